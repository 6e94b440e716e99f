"""A list of one-line rows with a cursor: causes, flows, the tree, answers, the lines of a log.

Draws only what is on the screen.

Invariants: rows may be a lazy sequence of any length; the cursor stays on its row by key when the rows change; row
text is never read as markup, and callers hand in sanitised text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from runbook.tui.actions import bindings
from runbook.tui.paint import cut
from runbook.tui.signs import UNICODE, Signs
from runbook.tui.theme import COLOUR, Ink

EMPTY = Content("")


@dataclass(frozen=True)
class Row:
    """One row.

    right: dim words at the right edge, left out where they do not fit. beside: what follows the content, left out where
    there is no room for it beside `right`. rest: the cursor may rest on it.
    """

    key: str
    content: Content
    right: Content = EMPTY
    rest: bool = True
    beside: Content = EMPTY


class LazyRows(Sequence[Row]):
    """Rows that are made when they are drawn: a list of any length costs what the screen shows of it."""

    def __init__(self, length: int, make: Callable[[int], Row], index_of: Callable[[str], int]) -> None:
        """Make rows by `make(index)`; index_of: finds the index of a key, -1 when there is none."""
        self._length, self._make, self.index_of = length, make, index_of

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        """Return a row."""
        if isinstance(index, slice):
            return [self._make(i) for i in range(*index.indices(self._length))]
        return self._make(range(self._length)[index])

    def __len__(self) -> int:
        return self._length


class Rows(ScrollView, can_focus=True):
    """A list with a cursor. Posts Moved when the cursor comes to another row, Chosen on Enter or a second click."""

    BINDINGS = bindings("rows")
    scopes: tuple[str, ...] = ("rows",)
    """Whose keys help shows while this has the focus."""
    DEFAULT_CSS = """
    Rows { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-gutter: auto; }
    """

    class Moved(Message):
        """The cursor came to a row."""

        def __init__(self, rows: Rows, key: str) -> None:
            """Say where the cursor is."""
            super().__init__()
            self.rows, self.key = rows, key

        @property
        def control(self) -> Rows:
            """Return the list."""
            return self.rows

    class Chosen(Moved):
        """A row was chosen."""

    def __init__(self, *, id: str | None = None, ink: Ink = COLOUR, signs: Signs = UNICODE) -> None:
        """Make an empty list."""
        super().__init__(id=id)
        self.ink, self.signs = ink, signs
        self.quiet = False  # whether the cursor is hidden while another widget has the focus
        self.rows: Sequence[Row] = ()
        self.cursor = -1
        self.shift = 0

    @property
    def key(self) -> str:
        """Return the key of the cursor's row, "" when there is none."""
        return self.rows[self.cursor].key if 0 <= self.cursor < len(self.rows) else ""

    def set_rows(self, rows: Sequence[Row], *, cursor: int | str | None = None, scroll_by: int = 0) -> None:
        """Replace the rows.

        cursor: index or key to go to; by default it stays on its key, else on the first row that takes it.
        """
        key = cursor if isinstance(cursor, str) else self.key
        old = self.cursor
        self.rows = rows
        self.virtual_size = Size(0, len(rows))
        if isinstance(cursor, int):
            self.cursor = min(max(cursor, 0), len(rows) - 1)
        else:
            same = self._index_of(key) if key else -1
            self.cursor = same if same >= 0 else self._step(min(max(old, 0), max(len(rows) - 1, 0)), 1)
        if scroll_by:
            self._scroll(self.scroll_offset.y + scroll_by)
        self.refresh()

    def move_to(self, index: int, *, lead: int | None = None, tell: bool = True) -> None:
        """Put the cursor on a row and bring it into sight.

        lead: how many rows to show above it, by default as few moves as can be.
        """
        if not 0 <= index < len(self.rows):
            return
        self.cursor = index
        height = self.size.height or 1
        top = self.scroll_offset.y
        if lead is not None:
            self._scroll(index - lead)
        elif index < top:
            lead = index if self._step(0, 1) < index else 0
            self._scroll(lead)
        elif index >= top + height:
            self._scroll(index - height + 1)
        self.refresh()
        if tell:
            self.post_message(self.Moved(self, self.key))

    def _index_of(self, key: str) -> int:
        if isinstance(self.rows, LazyRows):
            return self.rows.index_of(key)
        return next((i for i, row in enumerate(self.rows) if row.key == key and row.rest), -1)

    def _scroll(self, top: int) -> None:
        self.scroll_to(y=max(0, top), animate=False, force=True)
        self.call_after_refresh(self._show_place)

    def _show_place(self) -> None:
        """Put the scroll bar where the list is: it misses a scroll that came before it was shown."""
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = self.scroll_y

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        index = y + self.scroll_offset.y
        width = self.size.width
        style = self.visual_style
        if index >= len(self.rows) or width < 4:
            return Strip.blank(width, style.rich_style)
        row = self.rows[index]
        at = index == self.cursor and (self.has_focus or not self.quiet)
        sign = (
            Content.styled(self.signs.cursor.ljust(2), self.ink.accent if self.has_focus else self.ink.dim)
            if at
            else Content("  ")
        )
        left, right, room = row.content, row.right, width - 3
        kept = right.cell_length + 2 if right.cell_length and left.cell_length + right.cell_length + 2 <= room else 0
        if row.beside.cell_length and left.cell_length + row.beside.cell_length + 1 + kept <= room:
            left = Content.assemble(left, " ", row.beside)
        if kept:
            left = Content.assemble(left, " " * (room - left.cell_length - right.cell_length), right)
        elif self.shift:
            left = left[self.shift :]
        left = cut(left, room, self.signs).pad_right(max(0, room - left.cell_length) + 1)
        line = Content.assemble(sign, left)
        if at:
            line = line.stylize(self.ink.cursor if self.has_focus else self.ink.resting)
        return Visual.to_strips(self, line, width, 1, style)[0].adjust_cell_length(width, style.rich_style)

    def watch_has_focus(self, has_focus: bool) -> None:
        """Draw the cursor bright or quiet."""
        super().watch_has_focus(has_focus)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Move to the clicked row; choose it when the cursor is there already."""
        index = event.y + self.scroll_offset.y
        if 0 <= index < len(self.rows) and self.rows[index].rest:
            if index == self.cursor:
                self.action_choose()
            else:
                self.move_to(index)

    def _step(self, start: int, by: int) -> int:
        """Return the nearest row from `start` that takes the cursor, first in direction `by`; -1 when none does."""
        for step in (by, -by):
            index = start
            while 0 <= index < len(self.rows):
                if self.rows[index].rest:
                    return index
                index += step
        return -1

    def action_down(self) -> None:
        """Go to the next row."""
        self.move_to(self._step(self.cursor + 1, 1) if self.cursor + 1 < len(self.rows) else self.cursor)

    def action_up_row(self) -> None:
        """Go to the row before."""
        self.move_to(self._step(self.cursor - 1, -1) if self.cursor > 0 else self.cursor)

    def action_page_down(self) -> None:
        """Go one page down."""
        self.move_to(self._step(min(self.cursor + max(self.size.height - 1, 1), len(self.rows) - 1), 1))

    def action_page_up(self) -> None:
        """Go one page up."""
        self.move_to(self._step(max(self.cursor - max(self.size.height - 1, 1), 0), -1))

    def action_first(self) -> None:
        """Go to the first row."""
        self.move_to(self._step(0, 1))

    def action_last(self) -> None:
        """Go to the last row."""
        self.move_to(self._step(len(self.rows) - 1, -1))

    def action_choose(self) -> None:
        """Choose the cursor's row."""
        if self.key:
            self.post_message(self.Chosen(self, self.key))
