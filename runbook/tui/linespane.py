"""The evidence pane: lines of a file around the cited one.

It holds a window of the file and reads on, on a thread, as the cursor nears its end.

Invariants: nothing here waits for a disk; answers that come too late (another file was chosen meanwhile) are dropped.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from runbook.finding import Citation
from runbook.glyphs import as_cut
from runbook.text import sanitise
from runbook.tui import paint
from runbook.tui.actions import bindings, key_of
from runbook.tui.rows import LazyRows, Row, Rows
from runbook.tui.view import STILL_AFTER, View
from runbook.window import FILES, Line, Source, Window

NEAR = 200
"""Lines from either end of the window at which more are read."""
SHOWN = 2000
"""Characters of a line that can be scrolled to sideways."""
DETAIL_LINES = 5
"""Lines of the strip that shows the cursor's line in full."""


def line_rows(window: Window, view: View, cited: int | None) -> LazyRows:
    """Return the lines of a window as rows with their numbers; cited: byte offset of the cited line."""
    lines, ink = window.lines, view.ink
    last = next((line.number for line in reversed(lines) if line.number is not None), None)
    gutter = len(f"{last:,}") if last is not None else 0

    def make(index: int) -> Row:
        line = lines[index]
        if line.hole:
            return Row(str(line.offset), Content.styled(" " * gutter + hole_words(view, line), ink.dim))
        here = line.offset == cited
        number = "" if line.number is None else f"{line.number:,}"
        edge = Content.styled(f"{number:>{gutter}} ", ink.accent if here else ink.dim) if gutter else Content("")
        words = as_cut(sanitise(line.raw, SHOWN), ascii_only=view.signs.ascii_only)
        return Row(str(line.offset), Content.assemble(edge, (words, ink.strong if here else "")))

    def index_of(key: str) -> int:
        at = bisect_left(lines, int(key), key=lambda line: line.offset)
        return at if at < len(lines) and lines[at].offset == int(key) else -1

    return LazyRows(len(lines), make, index_of)


def hole_words(view: View, line: Line) -> str:
    """Return what stands for bytes that were not kept."""
    said = view.word("hole", n=f"{line.size:,}") if line.size >= 0 else view.word("hole_rest")
    return f" {view.signs.ellipsis} {said} {view.signs.ellipsis}"


class Lines(Rows):
    """The list of lines; it also moves sideways."""

    BINDINGS = bindings("lines")
    scopes = ("lines", "rows")
    STEP = 16

    def action_shift_left(self) -> None:
        """Show what lies left."""
        self.shift = max(0, self.shift - self.STEP)
        self.refresh()

    def action_shift_right(self) -> None:
        """Show what lies right."""
        self.shift = min(SHOWN, self.shift + self.STEP)
        self.refresh()

    def action_cited(self) -> None:
        """Go to the cited line again."""
        if isinstance(self.parent, LinesPane):
            self.parent.reopen()

    def action_first(self) -> None:
        """Go to the start of the file."""
        if isinstance(self.parent, LinesPane):
            self.parent.jump(tail=False)

    def action_last(self) -> None:
        """Go to the end of the file."""
        if isinstance(self.parent, LinesPane):
            self.parent.jump(tail=True)


class LinesPane(Vertical):
    """A file with its name above and the cursor's line in full below."""

    DEFAULT_CSS = """
    LinesPane { height: 1fr; }
    LinesPane #file { height: auto; max-height: 5; padding: 0 1 0 2; }
    LinesPane #full { height: auto; max-height: 6; padding: 0 1 0 2; border-top: solid $ink-line; }
    """

    def __init__(self) -> None:
        """Make an empty pane."""
        super().__init__(id="lines")
        self.window: Window | None = None
        self.citation: Citation | None = None
        self._path = ""
        self._order = 0
        self._reading = False
        self._view: View | None = None
        self._slow: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield Static(id="file", markup=False)
        yield Lines(id="file-lines")
        yield Static(id="full", markup=False)

    @property
    def _source(self) -> Source:
        return self._view.files if self._view is not None else FILES

    @property
    def busy(self) -> bool:
        """Whether a file is being read."""
        return self._reading

    def show(self, view: View) -> None:
        """Take over language and inks."""
        if self._view is None or (view.language, view.ink) != (self._view.language, self._view.ink):
            self._view = view
            self._draw()
        self._view = view

    def open(self, path: str, citation: Citation | None = None) -> None:
        """Open a file at a citation, or at its start; the same place twice is opened once."""
        if (path, citation) != (self._path, self.citation) or self.window is None:
            self._path, self.citation = path, citation
            self.reopen()

    def reopen(self) -> None:
        """Go to the cited place again."""
        citation, path, source = self.citation, self._path, self._source
        if self._view is not None and self._view.is_address(path):
            self._read(lambda: Window(path, "url"), fresh=True)
        else:
            self._read(lambda: source.open(path, citation), fresh=True)

    def jump(self, *, tail: bool) -> None:
        """Go to the start or the end of the file."""
        path, source = self._path, self._source
        packed = self.window is not None and self.window.packed
        if tail and packed and self._view is not None:
            self.notify(self._view.word("no_end"), markup=False)
        elif path and (self.window is None or self.window.kind != "url"):
            self._read(lambda: source.open(path, None, tail=tail), fresh=True, end=tail)

    def _read(self, work: Callable[[], Window], *, fresh: bool, end: bool = False) -> None:
        """Carry out `work` on a thread and take its window, unless another was asked for meanwhile."""
        if self._reading and not fresh:
            return
        self._order += 1
        order, self._reading = self._order, True
        app = self.app

        def run() -> None:
            window = work()
            app.call_later(self._take, order, window, fresh, end)

        if fresh and self._view is not None:
            self._head(self._view.word("opening", path=sanitise(self._path)))
            self._slow = self.set_timer(STILL_AFTER, lambda: self._still(order))
        threading.Thread(target=run, name="lines", daemon=True).start()

    def _still(self, order: int) -> None:
        if order == self._order and self._reading and self._view is not None:
            self._head(self._view.word("slow_disk"))

    def _take(self, order: int, window: Window, fresh: bool, end: bool) -> None:
        if order != self._order or not self.is_attached:
            return
        self._reading = False
        if self._slow is not None:
            self._slow.stop()
        old, self.window = self.window, window
        rows = self.query_one(Lines)
        if fresh:
            rows.shift = 0
            self._draw()
            at = len(window.lines) - 1 if end else window.at or 0
            self._go(at, end=end)
            self.call_after_refresh(self._go, at, end=end)  # the pane may have been unfolded just now
        elif old is not None and old.lines and window.lines:
            first = old.lines[0].offset
            moved = next((i for i, line in enumerate(window.lines) if line.offset == first), None)
            gone = next((i for i, line in enumerate(old.lines) if line.offset == window.lines[0].offset), 0)
            self._draw(scroll_by=moved or -gone)
        self._full()

    def _go(self, at: int, *, end: bool) -> None:
        self.query_one(Lines).move_to(at, lead=None if end else self.size.height // 3)

    def _draw(self, scroll_by: int = 0) -> None:
        view, window = self._view, self.window
        if view is None or not self.is_attached:
            return
        rows = self.query_one(Lines)
        rows.ink, rows.signs = view.ink, view.signs
        if window is None:
            self._head(view.word("no_file", key=key_of("walk", "proof")))
            return
        cited = self.citation.offset if self.citation is not None else None
        rows.set_rows(line_rows(window, view, cited), scroll_by=scroll_by)
        said = self._said(view, window)
        name = Content.styled(sanitise(window.path), view.ink.dim)
        width = max(20, self.size.width - 4)
        self._head(paint.lines(paint.wrapped(name, width), *(paint.wrapped(part, width) for part in said)))

    def _said(self, view: View, window: Window) -> list[Content]:
        """Return what is to be said about the file."""
        ink = view.ink
        said: list[Content] = []
        if window.kind in ("binary", "folder", "missing", "absent", "url"):
            said.append(
                Content.styled(
                    view.word(f"file_{window.kind}", **({"why": window.why} if window.why else {})), ink.warn
                )
            )
            if window.kind in ("binary", "folder", "absent") and self.citation is not None:
                said.append(Content(view.safe(self.citation.excerpt)))
        if window.note:
            said.append(Content.styled(view.word(window.note), ink.warn))
        return said

    def _head(self, words: Content | str) -> None:
        self.query_one("#file", Static).update(words if isinstance(words, Content) else Content(words))

    def _full(self) -> None:
        """Show the cursor's line in full below the list."""
        view, line = self._view, self._line()
        strip = self.query_one("#full", Static)
        strip.display = line is not None
        if view is None or line is None:
            return
        number = "" if line.number is None else view.word("line", n=f"{line.number:,}") + "  "
        where = Content.styled(number + view.word("byte", n=f"{line.offset:,}"), view.ink.dim)
        width = max(20, self.size.width - 4)
        if line.hole:
            strip.update(paint.lines(where, Content(hole_words(view, line).strip())))
            return
        text = Content(as_cut(sanitise(line.raw, width * DETAIL_LINES), ascii_only=view.signs.ascii_only))
        strip.update(paint.lines(where, *text.wrap(width)[: DETAIL_LINES - 1]))

    def _line(self) -> Line | None:
        window, cursor = self.window, self.query_one(Lines).cursor
        if window is None or window.kind != "text" or not 0 <= cursor < len(window.lines):
            return None
        return window.lines[cursor]

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Show the line in full, and read on near the ends."""
        event.stop()
        self._full()
        window, cursor = self.window, self.query_one(Lines).cursor
        if window is None or window.kind != "text":
            return
        if cursor > len(window.lines) - NEAR and not window.ends[1]:
            self._read(lambda: self._source.extend(window, after=True), fresh=False)
        elif cursor < NEAR and not window.ends[0]:
            self._read(lambda: self._source.extend(window, after=False), fresh=False)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Enter on a line does nothing more."""
        event.stop()

    def on_resize(self, _: Any) -> None:
        """Wrap to the new width."""
        self._draw()
        self._full()
