"""The dialogs: one line of words, a choice from a list, the keys, and what was written.

Invariant: Esc leaves a dialog without effect; a dialog returns what was entered and does nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from runbook.tui import paint
from runbook.tui.actions import SCOPES, bindings, of_scopes, show_key
from runbook.tui.rows import Row, Rows
from runbook.tui.view import View


class Dialog(ModalScreen[str | None]):
    """A box over the screen with a title and a hint. Dismisses with what was entered, None when it was left."""

    BINDINGS = [Binding("escape", "leave", "leave", show=False)]  # noqa: RUF012
    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical { width: 72; max-width: 94%; height: auto; max-height: 90%; padding: 1 2; }
    Dialog > Vertical { background: $ink-resting; border: solid $ink-accent; }
    Dialog Rows { height: auto; max-height: 16; min-height: 1; background: $ink-resting; }
    Dialog Input { border: none; height: 1; padding: 0; background: $ink-cursor; margin: 1 0; }
    Dialog VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
    Dialog #told { display: none; }
    Dialog:nocolor Input { text-style: underline; }
    """

    def __init__(self, view: View, title: str, hint: str = "") -> None:
        """Make a dialog; title and hint are words that are safe to draw."""
        super().__init__()
        self.view = view
        self._title, self._hint = title, hint

    def compose(self) -> ComposeResult:
        """Lay out title, body and hint."""
        with Vertical():
            yield Static(
                Content.styled(self._title, f"{self.view.ink.accent} {self.view.ink.strong}".strip()), markup=False
            )
            yield from self.body()
            if self._hint:
                yield Static(Content.styled(self._hint, self.view.ink.dim), id="hint", markup=False)
            yield Static(id="told", markup=False)

    def body(self) -> ComposeResult:
        """Lay out what is between title and hint."""
        yield from ()

    def tell(self, words: str) -> None:
        """Show what is going on in a line of the dialog: a toast would cover it. words: safe to draw."""
        line = self.query_one("#told", Static)
        line.update(Content.styled(words, self.view.ink.warn))
        line.display = True

    def action_leave(self) -> None:
        """Leave without effect."""
        self.dismiss(None)


class Ask(Dialog):
    """One line of words."""

    def body(self) -> ComposeResult:
        """Lay out."""
        line = Input()
        line.cursor_blink = False  # a blink is a redraw over SSH for nothing
        yield line

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return what was entered."""
        event.stop()
        self.dismiss(event.value.strip() or None)


class Choose(Dialog):
    """A choice from a list of (word, line)."""

    def __init__(self, view: View, title: str, choices: Sequence[tuple[str, Content]], hint: str = "") -> None:
        """Make a dialog over `choices`."""
        super().__init__(view, title, hint)
        self._choices = choices

    def body(self) -> ComposeResult:
        """Lay out."""
        yield Rows(id="choices", ink=self.view.ink, signs=self.view.signs)

    def on_mount(self) -> None:
        """Fill the list."""
        rows = self.query_one(Rows)
        rows.set_rows([Row(word, line) for word, line in self._choices])
        rows.styles.height = min(16, max(1, len(self._choices)))
        rows.styles.margin = (1, 0)
        rows.focus()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Return the chosen word."""
        event.stop()
        self.dismiss(event.key)


class Scrolled(Dialog):
    """A dialog over a text that may be longer than the screen; the keys of a pane scroll it."""

    BINDINGS = bindings("node")

    def on_mount(self) -> None:
        """Let the keys scroll."""
        self.query_one(VerticalScroll).focus()

    def action_scroll_down(self) -> None:
        """Scroll down."""
        self.query_one(VerticalScroll).scroll_down(animate=False)

    def action_scroll_up(self) -> None:
        """Scroll up."""
        self.query_one(VerticalScroll).scroll_up(animate=False)

    def action_page_down(self) -> None:
        """One page down."""
        self.query_one(VerticalScroll).scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        """One page up."""
        self.query_one(VerticalScroll).scroll_page_up(animate=False)

    def action_scroll_home(self) -> None:
        """To the top."""
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """To the end."""
        self.query_one(VerticalScroll).scroll_end(animate=False)


class Keys(Scrolled):
    """All keys of what has the focus."""

    BINDINGS = [Binding("question_mark,q,enter", "leave", "leave", show=False)]  # noqa: RUF012

    def __init__(self, view: View, scopes: Sequence[str]) -> None:
        """Show the keys of `scopes`, the nearest first."""
        super().__init__(view, view.word("help_title"))
        self._scopes = scopes

    def body(self) -> ComposeResult:
        """Lay out."""
        with VerticalScroll():
            yield Static(id="all-keys", markup=False)

    def on_resize(self) -> None:
        """Wrap to the new width."""
        width = min(72, self.app.size.width * 94 // 100) - 8
        self.query_one("#all-keys", Static).update(keys_text(self.view, self._scopes, width))


class Export(Choose):
    """Choose the format of a ticket; what will leave is shown next."""

    def __init__(self, view: View, formats: Sequence[str]) -> None:
        """Offer `formats`, the first at the cursor."""
        super().__init__(view, view.word("export_title"), [(f, Content(f)) for f in formats], view.word("export_next"))


class Written(Dialog):
    """What was written, and where."""

    BINDINGS = [Binding("enter,space,q", "leave", "leave", show=False)]  # noqa: RUF012

    def __init__(self, view: View, title: str, said: Sequence[Content], hint: str) -> None:
        """Say what stands in `said`, one below the other."""
        super().__init__(view, title, hint)
        self._said = said

    def body(self) -> ComposeResult:
        """Lay out."""
        yield Static(paint.lines("", *self._said, ""), id="said", markup=False)


def keys_text(view: View, scopes: Sequence[str], width: int) -> Content:
    """Return the keys of `scopes` in aligned columns, wrapped to `width` cells."""
    column = max((len(_keys(action.keys)) for action in of_scopes(*scopes)), default=0)
    blocks = []
    for scope in scopes:
        lines = [Content.styled(SCOPES[scope].say(view.language), view.ink.dim)]
        for action in of_scopes(scope):
            gone = view.bundled and action.outside
            keys = Content.styled(_keys(action.keys).ljust(column), view.ink.dim if gone else view.ink.accent)
            said = f"{action.help.say(view.language)} {view.word('gone')}" if gone else action.help.say(view.language)
            first, *rest = Content(said).wrap(max(12, width - column - 4))
            lines.append(Content.assemble("  ", keys, "  ", first.rstrip()))
            lines += [Content.assemble(" " * (column + 4), more.rstrip()) for more in rest]
        blocks.append(paint.lines(*lines))
    return Content.assemble("\n", Content("\n\n").join(blocks))


def _keys(keys: tuple[str, ...]) -> str:
    return " ".join(show_key(key) for key in keys)
