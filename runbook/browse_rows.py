"""Which rows of a sheet are shown and in which order: filters and orders over typed cells, the same in every front.

A filter is words: `reward>0.5 status=truncated foo`. A word that compares a column does that; any other has to stand
somewhere in the row. Invariants: what is not known compares with nothing and stands last in every order; a filter
that cannot be understood is told, never ignored.
"""

from __future__ import annotations

import operator
import re
import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass

from runbook.browse import Cell, Column, Sheet
from runbook.errors import UsageError
from runbook.finding import Curve, Plot
from runbook.text import Text

ROLE_SIGNS = {"bad": ("✗", "x"), "warn": ("▲", "!"), "good": ("✓", "+"), "dim": ("–", "-")}
"""Sign of a row's role, in Unicode and in ASCII, as the verdicts have them."""

_TEST = re.compile(r"([\w-]+)(>=|<=|!=|=|>|<|~)(.*)", re.DOTALL)

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class Test:
    """A comparison with one column. number: what numbers are compared with, None for words."""

    place: int
    sign: str
    words: str
    number: float | None

    def holds(self, cell: Cell) -> bool:
        """Return whether a cell passes."""
        if cell is None:
            return self.sign == "=" and not self.words
        if self.number is not None and isinstance(cell, int | float):
            return _COMPARE[self.sign](cell, self.number)
        if self.sign not in ("=", "!=", "~"):  # the number is still being written
            return True
        said, wanted = [words.casefold() for words in words_of(cell)], self.words.casefold()
        if self.sign == "~":
            return any(wanted in words for words in said)
        return (wanted in said) == (self.sign == "=")


def words_of(cell: Cell) -> tuple[str, ...]:
    """Return what a cell says, in every language."""
    if isinstance(cell, Text):
        return (cell.en, cell.zh)
    return () if cell is None else (str(cell),)


@dataclass(frozen=True)
class Filter:
    """Tests, and words that have to stand somewhere in the row, all of them."""

    tests: tuple[Test, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def find(self) -> str:
        """Return the words as one, for a search of more than the cells."""
        return " ".join(self.words)


EVERY = Filter()
"""Lets every row through."""


def read_filter(written: str, sheet: Sheet) -> Filter:
    """Return a filter as it was written. A column may be named by the first letters of its id.

    Raises UsageError for a number that is none, or a comparison that words do not know.
    """
    tests: list[Test] = []
    words: list[str] = []
    for part in _parts(written):
        match = _TEST.fullmatch(part)
        place = _column(match[1], sheet) if match else -1
        if match is None or place < 0:
            words.append(part)
            continue
        column, sign, value = sheet.columns[place], match[2], match[3]
        number = _number(value, column) if column.number and sign != "~" and value else None
        if column.number and sign != "~" and value and number is None:
            raise UsageError(f"{part}: {value!r} is no number", f"write for example {column.id}{sign}1")
        if not column.number and sign not in ("=", "!=", "~"):
            raise UsageError(
                f"{part}: {column.id} holds words", f"write {column.id}=…, {column.id}!=… or {column.id}~…"
            )
        tests.append(Test(place, sign, value, number))
    return Filter(tuple(tests), tuple(words))


def _parts(written: str) -> list[str]:
    try:
        return shlex.split(written)
    except ValueError:  # a quote that is not closed yet
        return written.split()


def _column(name: str, sheet: Sheet) -> int:
    exact = sheet.column(name.lower())
    begins = [place for place, column in enumerate(sheet.columns) if column.id.startswith(name.lower())]
    return exact if exact >= 0 else begins[0] if len(begins) == 1 else -1


def _number(words: str, column: Column) -> float | None:
    share = words.endswith("%")
    try:
        value = float(words.rstrip("%").replace(",", "").replace("_", ""))
    except ValueError:
        return None
    return value / 100 if share and column.percent else value


def chosen(sheet: Sheet, filter: Filter, order: str, found: Collection[str] | None = None) -> list[int]:
    """Return the places of the rows that pass, in order.

    order: as `Sheet.order`. found: ids of the rows in whose whole content the words stand, None when only the cells
    were searched.
    """
    lowered = tuple(word.casefold() for word in filter.words)

    def passes(place: int) -> bool:
        line = sheet.lines[place]
        if not all(test.holds(line.cells[test.place]) for test in filter.tests):
            return False
        if not lowered or (found is not None and line.id in found):
            return True
        row = "\n".join(words for cell in line.cells for words in words_of(cell)).casefold()
        return all(word in row for word in lowered)

    rows = [place for place in range(len(sheet.lines)) if passes(place)]
    return ordered(sheet, rows, order)


def ordered(sheet: Sheet, rows: list[int], order: str) -> list[int]:
    """Return rows in an order; rows of equal cells stay as they are, unknown ones are last."""
    column = sheet.column(order.lstrip("-"))
    if not order or column < 0:
        return rows
    known = [place for place in rows if sheet.lines[place].cells[column] is not None]
    unknown = [place for place in rows if sheet.lines[place].cells[column] is None]

    def key(place: int) -> tuple[bool, float, str]:
        cell = sheet.lines[place].cells[column]
        if not isinstance(cell, int | float):
            return (True, 0.0, "".join(words_of(cell)).casefold())
        return (False, float(cell) if cell == cell else float("-inf"), "")  # noqa: PLR0124  # NaN has no place in an order

    return [*sorted(known, key=key, reverse=order.startswith("-")), *unknown]


def over(sheet: Sheet, column: Column) -> Plot | None:
    """Return the plot of a column over the rows, None where there are not two points of it."""
    along, up = sheet.column(sheet.over), sheet.column(column.id)
    if not sheet.over or along < 0 or not column.plotted:
        return None
    points = []
    for line in sheet.lines:
        x, y = line.cells[along], line.cells[up]
        if isinstance(x, int | float) and isinstance(y, int | float):
            points.append((float(x), float(y) * (100 if column.percent else 1)))
    if len({x for x, _ in points}) < 2:
        return None
    title = sheet.columns[along].title
    curve = Curve("", tuple(sorted(points)))
    unit = "%" if column.percent else column.unit
    return Plot(column.title, title.en, unit, (curve,), (), column.limits)
