"""A sheet on the screen: the plot of a column, the headings, the rows, and the row at the cursor in full.

Invariants: nothing is read from disk here; whatever the width, the first column and the column at the cursor are to be
seen; a sign stands beside every colour.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from runbook.browse import Column, Line, Sheet, heading, say_cell
from runbook.browse_rows import EVERY, ROLE_SIGNS, Filter, chosen, over
from runbook.chart import chart_of
from runbook.plot import Fidelity, plot_lines
from runbook.tui import paint
from runbook.tui.actions import bindings
from runbook.tui.rows import LazyRows, Row, Rows
from runbook.tui.view import View

NARROW = 24
"""Cells that a column of words gets before what is left over is shared out."""

GAP = 2
"""Cells between two columns."""

PLOT_ROWS = {24: 4, 32: 6, 40: 8, 60: 12}
"""Rows of the canvas by the least height of the screen."""

TALL = 40
"""Rows of the screen from which words are not spared."""


@dataclass(frozen=True)
class Shown:
    """How a person looks at a sheet. column: id of the column at the cursor. key: id of the row at the cursor."""

    filter: Filter = EVERY
    written: str = ""
    order: str = ""
    column: str = ""
    key: str = ""
    found: frozenset[str] | None = None


NOTHING = Shown()
"""A sheet that nobody has looked at."""


class SheetRows(Rows):
    """The rows; h and l choose a column."""

    BINDINGS = bindings("sheet")
    scopes = ("sheet", "rows")

    class Does(Message):
        """A key that the pane serves. what: name of the action."""

        def __init__(self, what: str) -> None:
            """Say which."""
            super().__init__()
            self.what = what

    def action_column_left(self) -> None:
        """Choose the column to the left."""
        self.post_message(self.Does("left"))

    def action_column_right(self) -> None:
        """Choose the column to the right."""
        self.post_message(self.Does("right"))

    def action_order(self) -> None:
        """Order by the chosen column."""
        self.post_message(self.Does("order"))

    def action_filter(self) -> None:
        """Write a filter."""
        self.post_message(self.Does("filter"))


class Headings(Static):
    """The names of the columns; a click orders by one."""

    class Clicked(Message):
        """A click at a cell."""

        def __init__(self, x: int) -> None:
            """Say where."""
            super().__init__()
            self.x = x

    def on_click(self, event: events.Click) -> None:
        """Tell where it was."""
        event.stop()
        self.post_message(self.Clicked(event.x))


class SheetPane(Vertical):
    """One sheet. Posts Rows.Chosen when a row is opened."""

    DEFAULT_CSS = """
    SheetPane { height: 1fr; }
    SheetPane #plot { height: auto; padding: 0 2; display: none; }
    SheetPane #headings { height: 1; }
    SheetPane #count { height: auto; max-height: 4; padding: 0 2; }
    SheetPane #row { height: auto; max-height: 8; padding: 0 2; border-top: solid $ink-line; }
    """

    class Changed(Message):
        """A person looks at the sheet in another way. filter: they want to write one."""

        def __init__(self, *, filter: bool = False) -> None:
            """Say what changed."""
            super().__init__()
            self.filter = filter

    def __init__(self) -> None:
        """Make an empty pane."""
        super().__init__(id="sheet-pane")
        self.sheet: Sheet | None = None
        self.shown = Shown()
        self.places: list[int] = []
        self._view: View | None = None
        self._fitted: list[tuple[int, int]] = []

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield Static(id="plot", markup=False)
        yield Static(id="count", markup=False)
        yield Headings(id="headings", markup=False)
        yield SheetRows(id="sheet")
        yield Static(id="row", markup=False)

    @property
    def rows(self) -> SheetRows:
        """Return the list."""
        return self.query_one(SheetRows)

    def show_sheet(self, view: View, sheet: Sheet, shown: Shown) -> None:
        """Draw a sheet as a person looks at it."""
        self._view = view
        rows = self.rows
        rows.ink, rows.signs = view.ink, view.signs
        if sheet is not self.sheet or shown != self.shown or not self.places:
            self.sheet, self.shown = sheet, shown
            self.places = chosen(sheet, shown.filter, shown.order, shown.found)
        self._draw()

    def look(self, shown: Shown) -> None:
        """Look at the same sheet in another way."""
        if self._view is not None and self.sheet is not None:
            self.show_sheet(self._view, self.sheet, shown)

    def keys(self) -> list[str]:
        """Return the ids of the rows in sight of the filter, in order."""
        return [self.sheet.lines[place].id for place in self.places] if self.sheet is not None else []

    def _column(self) -> int:
        """Return the column at the cursor: the chosen one, else the one that orders, else the first."""
        sheet = self.sheet
        assert sheet is not None
        chosen_by = sheet.column(self.shown.column)
        return chosen_by if chosen_by >= 0 else max(sheet.column(self.shown.order.lstrip("-")), 0)

    def _draw(self) -> None:
        view, sheet = self._view, self.sheet
        if view is None or sheet is None or not self.is_mounted:
            return
        room = max(self.size.width - 7, 20)
        left = _scrolled(sheet, room, self._column(), view.language)
        self._fitted = fit(sheet, room, left, view.language)
        self.query_one(Headings).update(self._heading(view, sheet))
        self.query_one("#count", Static).update(self._count(view, sheet))
        places, index = self.places, {sheet.lines[place].id: i for i, place in enumerate(self.places)}

        def make(i: int) -> Row:
            line = sheet.lines[places[i]]
            return Row(line.id, self._cells(view, sheet, line))

        rows = self.rows
        rows.set_rows(LazyRows(len(places), make, lambda key: index.get(key, -1)), cursor=self.shown.key or None)
        self._plot(view, sheet)
        self._about()

    def _heading(self, view: View, sheet: Sheet) -> Content:
        ink, at = view.ink, self._column()
        parts = [Content("    ")]
        for place, width in self._fitted:
            column = sheet.columns[place]
            order = self.shown.order
            arrow = "" if order.lstrip("-") != column.id else _arrow(view, down=order.startswith("-"))
            words = heading(column, view.language)
            name = paint.cut(Content(words + arrow), width, view.signs)
            pad = " " * max(0, width - name.cell_length)
            style = f"{ink.accent} underline" if place == at else ink.dim
            styled = Content.styled(name.plain, style)
            parts.append(Content.assemble(pad, styled) if column.number else Content.assemble(styled, pad))
            parts.append(Content(" " * GAP))
        return Content.assemble(*parts)

    def _cells(self, view: View, sheet: Sheet, line: Line) -> Content:
        role = ROLE_SIGNS.get(line.role)
        sign = role[view.signs.ascii_only] if role else " "
        parts = [Content.styled(f"{sign} ", view.role_ink(line.role) if role else "")]
        for i, (place, width) in enumerate(self._fitted):
            column, cell = sheet.columns[place], line.cells[place]
            words = Content(view.safe(say_cell(column, cell, view.language)))
            words = paint.cut(words, width, view.signs)
            pad = " " * max(0, width - words.cell_length)
            words = words.stylize(self._cell_style(view, column, cell, first=i == 0))
            parts += [Content(pad), words] if column.number else [words, Content(pad)]
            parts.append(Content(" " * GAP))
        return Content.assemble(*parts)

    @staticmethod
    def _cell_style(view: View, column: Column, cell: object, *, first: bool) -> str:
        if isinstance(cell, int | float) and any(cell > limit for limit, _ in column.limits):
            return view.ink.bad or "bold"
        return view.ink.strong if first else "not bold"

    def _count(self, view: View, sheet: Sheet) -> Content:
        ink = view.ink
        parts = [Content.styled(view.say(sheet.title), ink.strong)]
        every, here = len(sheet.lines), len(self.places)
        count = (
            view.word("rows_all", n=f"{every:,}")
            if here == every
            else view.word("rows_some", n=f"{here:,}", all=f"{every:,}")
        )
        parts.append(Content.styled(f"  {count}", ink.dim))
        if self.shown.written:
            parts.append(Content.assemble(("  /", ink.accent), (view.safe(self.shown.written), ink.accent)))
        if sheet.done < 1:
            parts.append(Content.styled("  " + view.word("reading_on", share=f"{sheet.done:.0%}"), ink.warn))
        head = Content.assemble(*parts)
        width = max(self.size.width - 4, 20)
        notes = [paint.wrapped(Content.styled(view.say(note), ink.warn), width) for note in sheet.notes[:2]]
        return paint.lines(paint.cut(head, width, view.signs), *notes)

    def _plot(self, view: View, sheet: Sheet) -> None:
        plot = self.query_one("#plot", Static)
        height = max((rows for least, rows in PLOT_ROWS.items() if self.app.size.height >= least), default=0)
        column = sheet.columns[self._column()]
        column = column if column.plotted else next((c for c in sheet.columns if c.plotted), column)
        drawn = over(sheet, column) if height else None
        plot.display = drawn is not None
        if drawn is None:
            return
        chart = msgspec.structs.replace(chart_of(drawn, view.language), unit="")
        if self.app.size.height < TALL:
            chart = msgspec.structs.replace(chart, x="")  # the first column of the table names it
        fidelity = Fidelity.ASCII if view.signs.ascii_only else Fidelity.BRAILLE
        width = min(max(self.size.width - 4, 20), 160)
        title = Content.assemble((chart.title, view.ink.strong), (f"  {drawn.unit}", view.ink.dim))
        lines = [
            Content.assemble(*((piece.words, _style(view, piece.role)) for piece in line))
            for line in plot_lines(chart, width, height, fidelity, view.language)
        ]
        plot.update(paint.lines(title, *lines))

    def _about(self) -> None:
        """Show the words of the cursor's row that do not fit into its cells."""
        view, sheet, strip = self._view, self.sheet, self.query_one("#row", Static)
        at = self.rows.cursor
        if view is None or sheet is None or not 0 <= at < len(self.places):
            strip.display = False
            return
        strip.display = True
        line, width = sheet.lines[self.places[at]], max(self.size.width - 4, 20)
        shown = dict(self._fitted)
        words: list[Content] = []
        numbers: list[Content] = []
        for place, (column, cell) in enumerate(zip(sheet.columns, line.cells, strict=True)):
            said = view.safe(say_cell(column, cell, view.language))
            name = view.say(column.title)
            if not said or (place in shown and Content(said).cell_length <= shown[place]):
                continue
            part = Content.assemble((f"{name}  ", view.ink.dim), said + (f" {column.unit}" if column.unit else ""))
            (numbers if column.number else words).append(part)
        tall = self.app.size.height >= TALL
        limit, count = (3, 3) if tall else (1, 1) if self.query_one("#plot").display else (2, 2)
        blocks = [
            paint.lines(*paint.wrapped(part, width).split("\n", allow_blank=True)[:limit]) for part in words[:count]
        ]
        if numbers:
            blocks.append(paint.cut(Content("   ").join(numbers), width, view.signs))
        strip.display = bool(blocks)
        strip.update(paint.lines(*blocks))

    def on_rows_moved(self) -> None:
        """Show the row in full."""
        self._about()

    def on_resize(self) -> None:
        """Fit the new width."""
        self._draw()

    def on_headings_clicked(self, event: Headings.Clicked) -> None:
        """Order by the clicked column."""
        event.stop()
        at = 4
        for place, width in self._fitted:
            if event.x < at + width + 1 and self.sheet is not None:
                self._choose(place)
                self.order()
                return
            at += width + GAP

    def on_sheet_rows_does(self, event: SheetRows.Does) -> None:
        """Choose a column, order by it, or let the screen ask for a filter."""
        event.stop()
        if self.sheet is None:
            return
        if event.what == "order":
            self.order()
        elif event.what == "filter":
            self.post_message(self.Changed(filter=True))
        else:
            by = 1 if event.what == "right" else -1
            self._choose(min(max(self._column() + by, 0), len(self.sheet.columns) - 1))

    def _choose(self, place: int) -> None:
        assert self.sheet is not None
        self._set(column=self.sheet.columns[place].id)

    def order(self) -> None:
        """Order by the column at the cursor: numbers from the largest first; a second time the other way round."""
        assert self.sheet is not None
        column = self.sheet.columns[self._column()]
        first, second = (f"-{column.id}", column.id) if column.number else (column.id, f"-{column.id}")
        self._set(order=second if self.shown.order == first else first, column=column.id, top=True)

    def _set(self, *, order: str | None = None, column: str, top: bool = False) -> None:
        shown = self.shown
        key = "" if top else self.rows.key
        self.look(Shown(shown.filter, shown.written, shown.order if order is None else order, column, key, shown.found))
        if top:
            self.rows.action_first()
        self.post_message(self.Changed())


def fit(sheet: Sheet, room: int, left: int, language: str) -> list[tuple[int, int]]:
    """Return (place, width) of the columns that fit into `room` cells: the first, and those from place `left` on.

    A column is as wide as its heading and the sign of the order at least; what is left over goes to the columns of
    words that are cut.
    """
    fitted: list[tuple[int, int]] = []
    used = 0
    for place in [0, *range(max(left, 1), len(sheet.columns))]:
        column = sheet.columns[place]
        width = max(
            column.width if column.number else min(column.width, NARROW), cell_len(heading(column, language)) + 1
        )
        if fitted and used + width > room:
            break
        fitted.append((place, width))
        used += width + GAP
    rest = room - used + GAP
    for i, (place, width) in enumerate(fitted):
        more = min(max(sheet.columns[place].width - width, 0), max(rest, 0))
        fitted[i] = (place, width + more)
        rest -= more
    return fitted


def _scrolled(sheet: Sheet, room: int, column: int, language: str) -> int:
    """Return the leftmost column drawn behind the first: as far left as can be with `column` in sight."""
    left = 1
    while left < column and column not in [place for place, _ in fit(sheet, room, left, language)]:
        left += 1
    return left


def _arrow(view: View, *, down: bool) -> str:
    if view.signs.ascii_only:
        return "v" if down else "^"
    return "▾" if down else "▴"


def _style(view: View, role: str) -> str:
    if not role:
        return ""
    return view.ink.strong if role == "strong" else view.role_ink(role)
