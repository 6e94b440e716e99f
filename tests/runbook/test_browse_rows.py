"""Filters and orders of a sheet."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.browse import Cell, Column, Line, Sheet
from runbook.browse_rows import EVERY, Filter, chosen, over, read_filter
from runbook.errors import UsageError
from runbook.text import Text

COLUMNS = (
    Column("name", Text("name", "名称")),
    Column("reward", Text("reward", "奖励"), number=True, plotted=True),
    Column("share", Text("share", "占比"), number=True, percent=True),
    Column("reason", Text("reason", "原因")),
)
ROWS: tuple[tuple[Cell, ...], ...] = (
    ("Alpha", 1.0, 0.25, Text("late", "晚了")),
    ("beta two", -0.5, 0.5, None),
    ("gamma", None, 0.75, "early"),
    ("Delta", 0.0, None, "late"),
)
SHEET = Sheet(
    Text("t", "t"), COLUMNS, tuple(Line(str(i), cells) for i, cells in enumerate(ROWS)), order="name", over="reward"
)


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        ("", [0, 1, 2, 3]),
        ("reward>0", [0]),
        ("reward>=0", [0, 3]),
        ("reward<0", [1]),
        ("reward!=0", [0, 1]),
        ("reward=", [2]),
        ("rew>-1 share>=50%", [1]),
        ("share=0.25", [0]),
        ("name=ALPHA", [0]),
        ("name!=alpha", [1, 2, 3]),
        ("name~a", [0, 1, 2, 3]),
        ("reason=late", [0, 3]),
        ("reason=晚了", [0]),
        ("'beta two'", [1]),
        ("name='beta two'", [1]),
        ("TA", [1, 3]),
        ("ta reward=0", [3]),
        ("nothing=5", []),
        ("reward>", [0, 1, 3]),
    ],
)
def test_a_filter_keeps_the_rows_it_names(written: str, rows: list[int]) -> None:
    """Columns by their first letters, numbers by value, words whatever their case and language.

    What is not known passes no comparison but that with nothing.
    """
    assert chosen(SHEET, read_filter(written, SHEET), "") == rows


@pytest.mark.parametrize("written", ["reward>many", "name>3", "reason<x"])
def test_a_filter_that_cannot_be_understood_is_told(written: str) -> None:
    """A number that is none, and an order of words, are errors with a remedy."""
    with pytest.raises(UsageError) as caught:
        read_filter(written, SHEET)
    assert caught.value.hint


def test_an_ambiguous_column_is_searched_for_as_words() -> None:
    """`re` begins two columns, so `re=late` names none of them."""
    assert read_filter("re=late", SHEET) == Filter((), ("re=late",))


def test_what_was_found_in_the_whole_content_passes_too() -> None:
    """A row whose id was found is kept although its cells do not hold the words."""
    assert chosen(SHEET, read_filter("hidden", SHEET), "", {"2"}) == [2]


@pytest.mark.parametrize(
    ("order", "rows"),
    [
        ("reward", [1, 3, 0, 2]),
        ("-reward", [0, 3, 1, 2]),
        ("name", [0, 1, 3, 2]),
        ("-share", [2, 1, 0, 3]),
        ("", [0, 1, 2, 3]),
        ("gone", [0, 1, 2, 3]),
    ],
)
def test_what_is_not_known_stands_last_in_every_order(order: str, rows: list[int]) -> None:
    """Largest or smallest first, words whatever their case."""
    assert chosen(SHEET, EVERY, order) == rows


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5), st.floats(allow_nan=True)), max_size=20), st.booleans())
def test_an_order_loses_no_row(values: list[float | None], down: bool) -> None:
    """Every row stands in the order exactly once, also beside values that compare with nothing."""
    sheet = Sheet(Text("t", "t"), (COLUMNS[1],), tuple(Line(str(i), (value,)) for i, value in enumerate(values)))
    rows = chosen(sheet, EVERY, "-reward" if down else "reward")
    assert sorted(rows) == list(range(len(values)))
    known = [values[row] for row in rows if values[row] is not None]
    numbers = [value for value in known if value is not None and value == value]  # noqa: PLR0124  # NaN
    assert numbers == sorted(numbers, reverse=down)


@given(st.text(max_size=30))
def test_any_words_are_a_filter_or_an_error_of_the_user(written: str) -> None:
    """Whatever is typed, reading it ends with a filter or with a UsageError."""
    with contextlib.suppress(UsageError):
        assert set(chosen(SHEET, read_filter(written, SHEET), "")) <= set(range(len(ROWS)))


def test_a_column_is_plotted_over_another() -> None:
    """Rows without either value are left out, a share is in percent, and one point is no plot."""
    lines = tuple(Line(str(i), (i, value)) for i, value in enumerate((0.5, None, 0.25)))
    columns = (Column("step", Text("step", "步"), number=True), Column("s", Text("s", "s"), percent=True, plotted=True))
    plot = over(Sheet(Text("t", "t"), columns, lines, over="step"), columns[1])
    assert plot is not None
    assert (plot.x, plot.unit, plot.curves[0].points) == ("step", "%", ((0.0, 50.0), (2.0, 25.0)))
    assert over(Sheet(Text("t", "t"), columns, lines[:1], over="step"), columns[1]) is None
    assert over(Sheet(Text("t", "t"), columns, lines, over="step"), columns[0]) is None
