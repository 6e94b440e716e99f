"""The preview: every line that will leave, before it does. A person drops lines, hides words, and only then writes.

Invariants: nothing is written before Enter or `y`; what is written is what stands here; a refused ticket leads back to
the line that it was refused for; the work is done on other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from runbook.bundle.form import FORMAT
from runbook.clipboard import sequence
from runbook.text import sanitise
from runbook.tui import paint
from runbook.tui.actions import bindings, key_of
from runbook.tui.dialogs import Ask, Choose, Written
from runbook.tui.leaving import Leaving, Outcome, beside
from runbook.tui.page import Page
from runbook.tui.preview_rows import Shown, detail, find, next_hidden, preview_rows, summary
from runbook.tui.rows import Rows
from runbook.tui.view import View

if TYPE_CHECKING:
    from runbook.ticket.draft import Draft

DETAIL_ROWS = {20: 3, 30: 5, 50: 8}
"""Rows of the cursor's line in full, by the least height of the screen."""


class PreviewRows(Rows):
    """The lines; Enter and Space are the screen's."""

    BINDINGS = [  # noqa: RUF012
        Binding("enter", "screen.write", show=False),
        Binding("space", "screen.drop", show=False),
    ]


class PreviewScreen(Page):
    """What will leave of a session, in one format."""

    BINDINGS = bindings("preview")
    DEFAULT_CSS = """
    PreviewScreen #about { height: 1; padding: 0 2; }
    PreviewScreen Vertical { height: 1fr; }
    PreviewScreen #full { height: auto; padding: 0 2; border-top: solid $ink-line; }
    """
    scope = "preview"

    def __init__(self, leaving: Leaving, format: str, formats: Sequence[str]) -> None:
        """Show what leaves in `format`, one of `formats`."""
        super().__init__()
        self.leaving, self.format, self.formats = leaving, format, formats
        self._chosen = format if format != formats[0] else ""  # the first is what stands at the cursor
        self.draft: Draft | None = None
        self.dropped: frozenset[str] = frozenset()
        self.shown = Shown.of(())
        self.busy = True
        self._told = True
        self._searched = ""
        self._language = ""
        self._error = ""

    def body(self) -> ComposeResult:
        """Lay out."""
        with Vertical():
            yield Static(id="about", markup=False)
            yield PreviewRows(id="lines")
            yield Static(id="full", markup=False)

    @property
    def rows(self) -> PreviewRows:
        """Return the list."""
        return self.query_one(PreviewRows)

    def where(self, view: View) -> str:
        """Return what this page is."""
        return view.word("preview")

    def on_mount(self) -> None:
        """Put the focus on the lines."""
        super().on_mount()
        self.rows.focus()

    def show(self, view: View) -> None:
        """Draw `view`; in another language the ticket is another one."""
        super().show(view)
        if not self.is_mounted:
            return
        if view.language != self._language:
            self._language = view.language
            self._prepare()
        rows = self.rows
        if (rows.ink, rows.signs) != (view.ink, view.signs):
            rows.ink, rows.signs = view.ink, view.signs
            rows.refresh()
        self._about()

    def _prepare(self, then: Callable[[], None] | None = None) -> None:
        """Make the draft anew, and do `then` once it is shown."""
        self.busy, self._error = True, ""
        self._about()
        format = self.format
        self.leaving.draft(lambda draft: self._take(draft, then, format), format, fresh=self.draft is None)

    def _take(self, draft: Draft | str, then: Callable[[], None] | None, format: str) -> None:
        if not self.is_attached or format != self.format:  # of another format, which was chosen meanwhile
            return
        self.busy = False
        if isinstance(draft, str):
            self._error = draft
            self._about()
            return
        self.draft = draft
        self._draw()
        if then is not None:
            then()

    def _draw(self) -> None:
        """Draw the lines; the cursor stays at its line."""
        view, draft, chosen = self.view, self.draft, self.leaving.chosen
        if view is None or draft is None or chosen is None:
            return
        self.dropped = draft.dropped(chosen.drop)
        self.shown = Shown.of(draft.lines, told=self._told)
        self.rows.set_rows(preview_rows(view, self.shown, self.dropped))
        self._about()

    def _about(self) -> None:
        """Say above the list what will be written, and below it the cursor's line in full."""
        view = self.view
        if view is None:
            return
        about, strip = self.query_one("#about", Static), self.query_one("#full", Static)
        if self._error:
            words = Content.styled(view.safe(self._error), view.ink.bad)
        elif self.draft is None:
            words = Content.styled(view.word("preparing"), view.ink.dim)
        else:
            words = summary(view, self.format, self.shown, self.dropped, told=self._told)
        width, height = max(self.app.size.width - 4, 20), self.app.size.height
        about.update(paint.cut(words, width, view.signs))
        line = self.shown.at(self.rows.cursor)
        strip.display = line is not None
        if line is not None:
            rows = max((count for least, count in DETAIL_ROWS.items() if height >= least), default=1)
            strip.update(detail(view, line, width, rows, out=line.text in self.dropped))
            strip.styles.height = rows + 2

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Show the line in full."""
        event.stop()
        self._about()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Write, as a second click on a line asks for nothing else."""
        event.stop()

    def action_drop(self) -> None:
        """Leave the cursor's line out, or take it back."""
        line, draft, chosen = self.shown.at(self.rows.cursor), self.draft, self.leaving.chosen
        if line is None or draft is None or chosen is None:
            return
        texts = draft.texts([line])
        self.leaving.choose(chosen.keeping(texts) if line.text in self.dropped else chosen.dropping(texts))
        self._draw()

    def action_next_hidden(self) -> None:
        """Go to the next line in which something is hidden."""
        self._go(next_hidden(self.shown, self.rows.cursor, 1), "no_hidden")

    def action_previous_hidden(self) -> None:
        """Go to the one before."""
        self._go(next_hidden(self.shown, self.rows.cursor, -1), "no_hidden")

    def action_search(self) -> None:
        """Search."""
        if self.view is None:
            return
        keys = {"next": key_of("preview", "next_match"), "back": key_of("preview", "previous_match")}
        dialog = Ask(self.view, self.view.word("search_title"), self.view.word("search_hint", **keys))
        self.app.push_screen(dialog, self._search)

    def _search(self, words: str | None) -> None:
        if words:
            self._searched = words
            self.action_next_match()

    def action_next_match(self) -> None:
        """Go to the next line with what was searched for."""
        self._match(1)

    def action_previous_match(self) -> None:
        """Go to the one before."""
        self._match(-1)

    def _match(self, by: int) -> None:
        if self._searched:
            self._go(find(self.shown, self._searched, self.rows.cursor, by), "not_found")
        else:
            self.action_search()

    def _go(self, index: int, missing: str) -> None:
        if index >= 0:
            self.rows.move_to(index)
        elif self.view is not None:
            self.notify(self.view.word(missing), markup=False)

    def action_only(self) -> None:
        """Show only what comes from evidence and people, or all."""
        self._told = not self._told
        self._draw()

    def action_hide(self) -> None:
        """Ask for a word and hide it; one that a person hid is shown again."""
        if self.view is not None:
            self.app.push_screen(Ask(self.view, self.view.word("hide_title"), self.view.word("hide_hint")), self._hide)

    def _hide(self, word: str | None, then: Callable[[], None] | None = None) -> None:
        chosen = self.leaving.chosen
        if word and chosen is not None:
            self.leaving.choose(chosen.showing(word) if chosen.hides(word) else chosen.hiding(word))
            self._prepare(then)

    def action_format(self) -> None:
        """Choose another format."""
        if self.view is None:
            return
        choices = [(name, Content(name)) for name in self.formats]
        self.app.push_screen(Choose(self.view, self.view.word("format_title"), choices), self._turn)

    def _turn(self, format: str | None) -> None:
        """Take another format; a bundle has lines that its ticket has not."""
        before = self.format
        self.format, self._chosen = format or before, format or self._chosen
        if before != self.format and FORMAT in (before, self.format):
            self._prepare()
        self._about()

    def action_write(self) -> None:
        """Write the ticket."""
        self._write(copy=False)

    def action_copy(self) -> None:
        """Write the ticket and offer it to the clipboard."""
        self._write(copy=True)

    def action_send(self) -> None:
        """Send the ticket to a tracker."""
        from runbook.tui.sending import Sending

        if self.draft is not None and not self.busy:
            Sending(self, self.leaving, self._chosen, lambda: self._leave(None)).begin()

    def _write(self, *, copy: bool) -> None:
        if self.draft is None or self.busy or self.view is None:
            return
        self.busy = True
        self.query_one("#about", Static).update(Content.styled(self.view.word("exporting"), self.view.ink.dim))
        self.leaving.write(self.draft, self.format, lambda outcome: self._done(outcome, copy=copy))

    def _done(self, outcome: Outcome, *, copy: bool) -> None:
        self.busy = False
        view = self.view
        if not self.is_attached or view is None:
            return
        self._about()
        if not outcome.paths:
            self._refused(view, outcome, copy=copy)
            return
        said = [Content(sanitise(outcome.paths[0]))]
        if names := beside(outcome.paths):
            said.append(Content.styled(view.word("beside", names=sanitise(", ".join(names))), view.ink.dim))
        if copy:
            offered = bool(outcome.text) and bool(sequence(outcome.text))
            if offered:
                self.app.copy_to_clipboard(outcome.text)
            said.append(Content(view.word("offered" if offered else "offered_not")))
        self.app.push_screen(Written(view, view.word("exported"), said, view.word("written_hint")), self._leave)

    def _leave(self, _: str | None) -> None:
        self.app.pop_screen()

    def _refused(self, view: View, outcome: Outcome, *, copy: bool) -> None:
        """Say why nothing was written, at the line in question; a word that is left over can be hidden."""
        at = self._line_of(outcome)
        if at >= 0:
            self.rows.move_to(at, lead=self.rows.size.height // 3)
        choices = [("leave", Content(view.word("hide_not", key=key_of("preview", "drop"))))]
        if outcome.hide:
            hides = self.leaving.chosen is not None and self.leaving.chosen.hides(outcome.hide)
            words = view.word("show_it" if hides else "hide_it", shown=outcome.shown)
            choices.insert(0, ("hide", Content(words)))
        hint = f"{outcome.words}  {view.word('refused_hint')}" if at >= 0 else outcome.words

        def chosen(word: str | None) -> None:
            if word == "hide":
                self._hide(outcome.hide, lambda: self._write(copy=copy))

        self.app.push_screen(Choose(view, view.word("not_exported"), choices, hint), chosen)

    def _line_of(self, outcome: Outcome) -> int:
        """Return the row of the line that a ticket was refused for, -1 when it is in none."""
        self._told = True
        self._draw()
        wanted = outcome.hide or outcome.line
        return find(self.shown, wanted, -1, 1) if wanted else -1
