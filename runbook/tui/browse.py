"""The browse screen: pages of one browser, one level deeper with Enter and one up with Esc.

Invariants: pages come from worker processes by `Pages`, nothing here opens evidence; Esc first leaves the filter, then
stops what is on its way, then goes one level up; coming back up, a page is looked at as it was left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static

from runbook.browse import Ask, Browser, Page, Place, Reading, Sheet
from runbook.browse_rows import read_filter
from runbook.errors import UsageError
from runbook.evidence import Evidence
from runbook.tui import paint
from runbook.tui.actions import bindings, key_of
from runbook.tui.browse_pages import Pages
from runbook.tui.browse_reading import JumpRows, ReadingPane, begin_of
from runbook.tui.browse_sheet import NOTHING, SheetPane, SheetRows, Shown
from runbook.tui.browse_tokens import Tokens
from runbook.tui.deeds import why
from runbook.tui.page import Page as Screen
from runbook.tui.rows import Rows
from runbook.tui.view import View

SOON = 0.3
"""Seconds after which a page that is on its way is said to be."""


@dataclass(frozen=True)
class Stand:
    """One level: its page and how it is looked at. part, at: window and piece of a reading."""

    place: Place
    page: Page | None = None
    shown: Shown = NOTHING
    part: int = 0
    at: tuple[int, int] | None = None


class BrowseScreen(Screen):
    """One browser over one evidence."""

    BINDINGS = bindings("browse")
    scope = "browse"
    DEFAULT_CSS = """
    BrowseScreen #state { height: auto; max-height: 6; padding: 1 2; display: none; }
    BrowseScreen SheetPane, BrowseScreen ReadingPane { display: none; }
    BrowseScreen #filter { dock: bottom; border: none; height: 1; padding: 0 2; display: none; }
    BrowseScreen #filter { background: $ink-cursor; }
    BrowseScreen:nocolor #filter { text-style: underline; }
    """

    def __init__(self, browser: Browser, evidence: Evidence, pages: Pages) -> None:
        """Browse `evidence`."""
        super().__init__()
        self.browser, self.evidence, self.pages = browser, evidence, pages
        self.levels: list[Stand] = [Stand(())]
        self._wanted: Ask | None = None
        self._since = 0.0
        self._timer: Timer | None = None
        self._error = ""

    def body(self) -> ComposeResult:
        """Lay out."""
        yield Static(id="state", markup=False)
        yield SheetPane()
        yield ReadingPane()
        line = Input(id="filter", select_on_focus=False)
        line.cursor_blink = False  # a blink is a redraw over SSH for nothing
        yield line

    def on_mount(self) -> None:
        """Open the first page."""
        self._timer = self.set_interval(0.25, self._tick)
        self._open(self.levels[0])

    def on_unmount(self) -> None:
        """Let nothing more be read for a screen that is gone."""
        self.pages.cancel(self.browser, self.evidence)

    @property
    def here(self) -> Stand:
        """Return the level in front."""
        return self.levels[-1]

    @property
    def busy(self) -> bool:
        """Whether a page is on its way."""
        return self.pages.busy

    def foot_scopes(self) -> tuple[str, ...]:
        """Return whose keys the foot shows."""
        return ("reading", "browse") if isinstance(self.here.page, Reading) else ("sheet", "browse")

    def where(self, view: View) -> str:
        """Return the way to the page in front."""
        words = [view.say(self.browser.title)]
        for depth, id in zip(self.browser.depths, self.here.place, strict=False):
            words.append(view.say(depth.title).format(id=view.safe(id, 20)))
        return f" {view.signs.dot} ".join(words)

    def show(self, view: View) -> None:
        """Draw `view`."""
        super().show(view)
        if not self.is_mounted:
            return
        stand = self.here
        sheet, reading = self.query_one(SheetPane), self.query_one(ReadingPane)
        sheet.display = isinstance(stand.page, Sheet)
        reading.display = isinstance(stand.page, Reading)
        self._state(view)
        if isinstance(stand.page, Sheet):
            sheet.show_sheet(view, stand.page, stand.shown)
        elif isinstance(stand.page, Reading):
            at = reading.tokens.cursor if reading.reading is stand.page else stand.at or begin_of(stand.page)
            reading.show_reading(view, stand.page, at)

    def _state(self, view: View) -> None:
        """Say that a page is on its way, or why it did not come."""
        state = self.query_one("#state", Static)
        waited = time.monotonic() - self._since
        if self._error:
            words = Content.assemble((view.safe(self._error), view.ink.bad))
        elif self._wanted is not None and (waited > SOON or self.here.page is None):
            words = Content.styled(view.word("opening_page", n=f"{waited:.1f}", key=key_of("app", "up")), view.ink.dim)
        else:
            words = Content("")
        state.display = bool(words.plain)
        state.update(paint.wrapped(words, max(self.app.size.width - 4, 20)))

    def _tick(self) -> None:
        if self._wanted is not None and self.view is not None:
            self._state(self.view)

    def _open(self, stand: Stand, *, fresh: bool = False) -> None:
        """Fetch the page of a level; it comes to the front when it is there."""
        ask = Ask(stand.place, part=stand.part)
        self._wanted, self._since, self._error = ask, time.monotonic(), ""
        self.pages.open(self.browser, self.evidence, ask, partial(self._came, stand, ask), fresh=fresh)
        self._redraw()

    def _came(self, stand: Stand, ask: Ask, answer: Page | BaseException) -> None:
        """Take a page: the one that is waited for, or more of one that is there already."""
        if not self.is_attached:
            return
        if ask == self._wanted:
            self._wanted = None
            if isinstance(answer, BaseException):
                self._error = why(answer)
                if stand.page is None and len(self.levels) == 1 and stand.place == ():
                    self.levels = [stand]
                self._redraw()
                return
            self._arrive(stand, answer)
        elif isinstance(answer, Sheet):
            for i, level in enumerate(self.levels):
                if level.place == ask.place and isinstance(level.page, Sheet):
                    self.levels[i] = replace(level, page=answer)
            if self.here.place == ask.place:
                self._keep()
                self._redraw()

    def _arrive(self, stand: Stand, page: Page) -> None:
        """Put a page in front, over the levels that lead to it."""
        self._keep()
        depth = len(stand.place)
        shown = stand.shown
        if isinstance(page, Sheet) and stand.page is None:
            plotted = next((column.id for column in page.columns if column.plotted), "")
            shown = Shown(order=page.order, column=page.order.lstrip("-") or plotted)
        self.levels = [*self.levels[:depth], replace(stand, page=page, shown=shown)]
        self._redraw()
        self._focus()

    def _focus(self) -> None:
        page = self.here.page
        if isinstance(page, Reading):
            self.query_one(Tokens).focus()
        elif isinstance(page, Sheet):
            rows = self.query_one(SheetRows)
            rows.focus()
            if not self.here.shown.key:
                rows.action_first()

    def _keep(self) -> None:
        """Remember how the page in front is looked at."""
        stand = self.here
        if isinstance(stand.page, Sheet):
            pane = self.query_one(SheetPane)
            if pane.sheet is stand.page:
                self.levels[-1] = replace(stand, shown=replace(pane.shown, key=pane.rows.key))
        elif isinstance(stand.page, Reading):
            reading = self.query_one(ReadingPane)
            if reading.reading is stand.page:
                self.levels[-1] = replace(stand, at=reading.tokens.cursor)

    def _redraw(self) -> None:
        if self.view is not None:
            self.show(self.view)

    def leave_pane(self) -> bool:
        """Leave the filter, stop waiting, or go one level up; False on the first page."""
        written = self.query_one("#filter", Input)
        if written.has_focus:
            self._filter("")
            self._close_filter()
            return True
        if self._wanted is not None and self.here.page is not None:
            self.pages.cancel(self.browser, self.evidence, self._wanted)
            self._wanted = None
            self._redraw()
            return True
        if self._error and self.here.page is not None:
            self._error = ""
            self._redraw()
            return True
        if isinstance(self.focused, JumpRows | VerticalScroll) and not isinstance(self.focused, SheetRows):
            self.query_one(Tokens).focus()
            return True
        if len(self.levels) == 1:
            return False
        self.levels.pop()
        self._redraw()
        self._focus()
        return True

    def action_reload(self) -> None:
        """Read the page again from the evidence."""
        self._keep()
        self._open(replace(self.here), fresh=True)

    @on(Rows.Chosen, "#sheet")
    def _on_row(self, event: Rows.Chosen) -> None:
        event.stop()
        self._enter(event.key)

    def _enter(self, id: str) -> None:
        page = self.here.page
        if not isinstance(page, Sheet) or len(self.here.place) >= len(self.browser.depths):
            return
        line = next((line for line in page.lines if line.id == id), None)
        if line is not None and line.opens:
            self._keep()
            self._open(Stand((*self.here.place, id)))

    @on(Rows.Chosen, "#jumps")
    def _on_jump(self, event: Rows.Chosen) -> None:
        event.stop()
        jump = self.query_one(ReadingPane).jump_at_cursor()
        if jump is not None:
            self._go(jump.part, (jump.passage, jump.piece))

    def on_tokens_beyond(self, event: Tokens.Beyond) -> None:
        """Open another window or the neighbouring sample, or say that there is no further jump."""
        event.stop()
        reading = self.here.page
        if not isinstance(reading, Reading):
            return
        if event.nothing and self.view is not None:
            self.notify(self.view.word("no_jump"), markup=False, timeout=3)
        elif event.jump is not None:
            self._go(event.jump.part, (event.jump.passage, event.jump.piece))
        elif event.part is not None:
            self._go(event.part, None if event.part > reading.part else (10**6, 10**9))
        elif event.neighbour:
            self._neighbour(event.neighbour)

    def _go(self, part: int, at: tuple[int, int] | None) -> None:
        """Go to a piece of a window of this reading."""
        stand = self.here
        if part == stand.part and at is not None:
            tokens = self.query_one(Tokens)
            tokens.go(at, lead=True)
            tokens.focus()
        else:
            self._open(replace(stand, part=part, at=at, page=None))

    def _neighbour(self, by: int) -> None:
        """Open the row before or after this one, in the order in which the sheet is looked at."""
        if len(self.levels) < 2 or not isinstance(self.levels[-2].page, Sheet):
            return
        pane = self.query_one(SheetPane)
        keys = pane.keys()
        id = self.here.place[-1]
        place = keys.index(id) + by if id in keys else -1
        if not 0 <= place < len(keys):
            return
        above = self.levels[-2]
        self.levels[-2] = replace(above, shown=replace(above.shown, key=keys[place]))
        self._open(Stand((*self.here.place[:-1], keys[place])))

    def on_sheet_pane_changed(self, event: SheetPane.Changed) -> None:
        """Keep how the sheet is looked at; open the filter when that is wanted."""
        event.stop()
        self._keep()
        if event.filter:
            written = self.query_one("#filter", Input)
            written.display = True
            written.placeholder = self._hint()
            written.value = self.here.shown.written
            written.cursor_position = len(written.value)
            written.focus()

    def _hint(self) -> str:
        page, view = self.here.page, self.view
        if not isinstance(page, Sheet) or view is None:
            return ""
        numbers = [column.id for column in page.columns if column.number][1:2]
        words = [column.id for column in page.columns if not column.number][:1]
        example = " ".join([*(f"{id}>0" for id in numbers), *(f"{id}=…" for id in words)])
        return view.word("filter_hint", example=example.replace("…", view.signs.ellipsis))

    @on(Input.Changed, "#filter")
    def _on_typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.input.has_focus:
            self._filter(event.value)

    @on(Input.Submitted, "#filter")
    def _on_filtered(self, event: Input.Submitted) -> None:
        event.stop()
        if self._filter(event.value, tell=True):
            self._close_filter()
            self._search()

    def _filter(self, written: str, *, tell: bool = False) -> bool:
        """Filter by what was written; what is not understood changes nothing and, when it is submitted, is told."""
        page = self.here.page
        if not isinstance(page, Sheet):
            return True
        try:
            filter = read_filter(written, page)
        except UsageError as error:
            if tell:
                self.notify(why(error), markup=False, severity="error", timeout=4)
            return False
        self._keep()
        shown = replace(self.here.shown, filter=filter, written=written.strip(), found=None)
        self.levels[-1] = replace(self.here, shown=shown)
        self._redraw()
        return True

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).display = False
        self._focus()

    def _search(self) -> None:
        """Let a worker search the words of the filter in more than the cells."""
        page, shown = self.here.page, self.here.shown
        if not isinstance(page, Sheet) or not page.finds or not shown.filter.words:
            return
        place, find = self.here.place, shown.filter.find

        def found(answer: Page | BaseException) -> None:
            stand = self.here
            if isinstance(answer, Sheet) and stand.place == place and stand.shown.filter.find == find:
                self._keep()
                ids = frozenset(line.id for line in answer.lines)
                self.levels[-1] = replace(self.here, shown=replace(self.here.shown, found=ids))
                self._redraw()

        self.pages.open(self.browser, self.evidence, Ask(place, find=find), found)
