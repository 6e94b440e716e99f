"""Tests of runbook.plot: charts as text in three fidelities, and sparklines."""

from __future__ import annotations

import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from runbook.chart import chart_of
from runbook.finding import Curve, Finding, Plot, Verdict
from runbook.plot import CURVE_ROLES, Fidelity, plot_lines, plot_text, spark_of, sparkline
from runbook.text import Text
from tests.helpers import is_safe
from tests.runbook.plots import BURST, RAMP, TWO, any_plot


def drawn(plot: Plot, width: int, height: int, fidelity: Fidelity, language: str = "en") -> list[str]:
    """Return a plot as lines of text."""
    return list(plot_text(chart_of(plot, language), width, height, fidelity, language))


def test_two_level_curves_in_each_fidelity() -> None:
    """The canvas in full: the upper curve fills the first row, the lower one the last, each ends in its letter."""
    pictures = {
        fidelity: drawn(TWO, 28, 3, fidelity) for fidelity in (Fidelity.ASCII, Fidelity.BLOCK, Fidelity.BRAILLE)
    }
    assert pictures[Fidelity.ASCII] == [
        "10 +" + "a" * 22 + " a",
        " 5 +",
        " 0 +" + "b" * 22 + " b",
        "   ++---------+----------+",
        "    0         2          4",
        "minute",
        "a upper",
        "b lower",
    ]
    assert pictures[Fidelity.BLOCK][0] == "10 ┤" + "▀" * 22 + " a"
    assert pictures[Fidelity.BLOCK][2] == " 0 ┤" + "▄" * 22 + " b"
    assert pictures[Fidelity.BRAILLE][0] == "10 ┤" + "\u2809" * 22 + " a"
    assert pictures[Fidelity.BRAILLE][2] == " 0 ┤" + "\u28c0" * 22 + " b"
    assert pictures[Fidelity.BRAILLE][3] == "   └┬──────────┬─────────┬"


def test_a_curve_climbs_through_its_limit_past_its_mark() -> None:
    """0 to 10 over 6 rows: the limit 8 lies in the second row under its value, the mark at 5 in the middle column."""
    unit, *rows = (line.ljust(28) for line in drawn(RAMP, 28, 6, Fidelity.ASCII))
    assert unit.rstrip() == "C"
    tops = [min(row for row in range(6) if rows[row][column] == "*") for column in range(4, 28)]
    assert tops == sorted(tops, reverse=True)
    assert (tops[0], tops[-1]) == (5, 0)
    assert rows[1].startswith(" 8 +-----")
    assert set(rows[1][4:28]) == {"-", "*"}
    marked = rows[6].index("^")
    assert marked in (15, 16)
    assert rows[0][marked] == rows[5][marked] == ":"
    assert [row.rstrip() for row in rows[-3:]] == [
        "^ 5  the door was opened",
        "- 8  too hot from here",
        "upper shelf",
    ]


@pytest.mark.parametrize("fidelity", Fidelity)
@pytest.mark.parametrize("height", [4, 6, 7, 8])
def test_labels_stand_where_the_curve_is(fidelity: Fidelity, height: int) -> None:
    """The row that is labelled 5 is the row in which a curve that is 5 all the time is drawn, and so for the ends."""
    level = tuple(Curve(name, ((0.0, y), (10.0, y))) for name, y in (("low", 0.0), ("half", 5.0), ("high", 10.0)))
    chart = msgspec.structs.replace(TWO, curves=level)
    rows = [line for line in drawn(chart, 60, height, fidelity) if line.endswith((" a", " b", " c"))]
    assert [(row.split()[0], row[-1]) for row in rows] == [("10", "c"), ("5", "b"), ("0", "a")]


def test_what_is_not_finite_is_a_gap_and_a_cross_on_the_axis() -> None:
    """Steps 5 and 6 of 6 are crosses at five sixths and at the end of the axis; no curve stands above them."""
    head, *rows = drawn(BURST, 30, 6, Fidelity.BLOCK)
    assert head == "log scale"
    axis = rows[6]
    first, last = (i for i, sign in enumerate(axis) if sign == "×")
    begin = axis.index("└") + 1
    assert last == len(axis) - 1
    assert first == begin + round((last - begin) * 5 / 6)
    assert all(len(row) < first for row in rows[:6])
    assert [row.split(" ┤")[0].strip() for row in rows[:6] if "┤" in row] == ["10k", "100", "1"]
    assert "× printed, but not finite: 2" in rows


def test_a_logarithmic_axis_says_so_in_both_languages() -> None:
    """Where powers of ten stand at equal distances a reader is told, after the unit."""
    metres = msgspec.structs.replace(BURST, unit="m")
    assert drawn(metres, 40, 5, Fidelity.BRAILLE)[0] == "m, log scale"
    assert drawn(metres, 40, 5, Fidelity.BRAILLE, "zh")[0] == "m, 对数刻度"
    assert drawn(RAMP, 40, 5, Fidelity.BRAILLE)[0] == "C"


def test_several_marks_are_numbered() -> None:
    """Two marks are told apart by the number that stands on the axis and before the words."""
    marks = ((2.0, Text("in", "入")), (8.0, Text("out", "出")), (99.0, Text("later", "之后")))
    lines = drawn(msgspec.structs.replace(RAMP, marks=marks), 60, 5, Fidelity.ASCII)
    axis = next(line for line in lines if line.strip().startswith("+"))
    assert axis.index("1") < axis.index("2")
    assert "1 2  in" in lines
    assert "2 8  out" in lines
    assert "^ 99  later (beside this plot)" in lines


def test_a_limit_that_does_not_fit_is_named_with_its_side() -> None:
    """A limit far above or below is told in words and points there, so that the curve keeps its shape."""
    limits = ((1e6, Text("far", "远")), (-1e6, Text("deep", "深")))
    lines = drawn(msgspec.structs.replace(RAMP, limits=limits), 60, 5, Fidelity.ASCII)
    assert "^ 1M  far (above this plot)" in lines
    assert "v -1M  deep (below this plot)" in lines
    assert not any("-----" in line and "+-" not in line for line in lines)


def test_a_lone_value_is_a_dot_and_nothing_is_said_to_be_nothing() -> None:
    """A curve of one value can be seen; a plot without any finite value says that in words."""
    lone = msgspec.structs.replace(RAMP, curves=(Curve("c", ((3.0, 4.0),)),), limits=(), marks=())
    assert sum(line.count("*") for line in drawn(lone, 40, 5, Fidelity.ASCII)) == 1
    assert drawn(msgspec.structs.replace(RAMP, curves=()), 40, 5, Fidelity.ASCII) == ["no finite value"]
    empty = msgspec.structs.replace(RAMP, curves=(Curve("c", ((3.0, None),)),))
    assert drawn(empty, 40, 5, Fidelity.ASCII, "zh") == ["没有有限值"]


def test_more_curves_than_letters_are_counted() -> None:
    """Beyond six curves the rest is counted, never silently left out."""
    many = msgspec.structs.replace(TWO, curves=TWO.curves * 4)
    lines = drawn(many, 60, 5, Fidelity.ASCII)
    assert "f lower" in lines
    assert lines[-1] == "and 2 more curves"


def test_a_narrow_place_gets_words_and_sparklines() -> None:
    """Below 24 cells there are no axes, but the range, limits and marks are told."""
    lines = drawn(RAMP, 20, 5, Fidelity.ASCII)
    assert lines[:3] == ["upper shelf", sparkline([float(x) for x in range(11)], 20, True), "0 .. 10"]
    assert "- 8  too hot from" in lines


@given(any_plot(), st.integers(1, 120), st.integers(1, 30), st.sampled_from(Fidelity), st.sampled_from(["en", "zh"]))
def test_any_plot_fits_and_is_safe(plot: Plot, width: int, height: int, fidelity: Fidelity, language: str) -> None:
    """No line is wider than asked for, none holds a control or escape sequence, whatever words and numbers are."""
    lines = plot_lines(chart_of(plot, language), width, height, fidelity, language)
    for pieces in lines:
        line = "".join(piece.words for piece in pieces)
        assert is_safe(line)
        assert cell_len(line) <= max(width, 2)
        assert {piece.role for piece in pieces} <= {"", "dim", "bad", "strong", *CURVE_ROLES}


@given(st.lists(st.none() | st.floats(-1e9, 1e9), min_size=1, max_size=60), st.integers(24, 100))
def test_each_fidelity_keeps_to_its_characters(values: list[float | None], width: int) -> None:
    """ASCII stays ASCII; BLOCK takes box drawing, half blocks and signs of WGL4 only, which all stand in one cell."""
    points = tuple((float(x), y) for x, y in enumerate(values))
    plot = Plot(Text("t", "t"), "step", "u", (Curve("c", points),), ((0.0, Text("m", "m")),), ((3.0, Text("l", "l")),))
    assert all(line.isascii() for line in drawn(plot, width, 6, Fidelity.ASCII))
    odd = {char for line in drawn(plot, width, 6, Fidelity.BLOCK) for char in line if not char.isascii()}
    assert odd <= set("─│┤┬└▲×↑↓▀▄█")


def test_colour_is_never_the_only_sign() -> None:
    """Without its roles a plot still tells two crossing curves by letters, and its limit by its line and value."""
    chart = chart_of(msgspec.structs.replace(TWO, limits=((5.0, Text("half", "半")),)), "en")
    lines = plot_lines(chart, 40, 5, Fidelity.ASCII, "en")
    roles = {piece.words.strip(): piece.role for pieces in lines for piece in pieces if piece.words.strip()}
    assert roles["a"] != roles["b"]
    assert [line[:4] for line in plot_text(chart, 40, 5, Fidelity.ASCII, "en")[:5]] == [
        "10 +",
        "   |",
        " 5 +",
        "   |",
        " 0 +",
    ]


@pytest.mark.parametrize(
    ("values", "width", "ascii_only", "line"),
    [
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 8, False, "▁▂▃▄▅▆▇█"),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 8, True, "_.-=+*#"),
        ([7.0, None, 0.0], 8, False, "█×▁"),
        ([7.0, None, 0.0], 8, True, "#x_"),
        ([0.0] * 50 + [9.0] + [0.0] * 49, 10, False, "▁▁▁▁▁█▁▁▁▁"),
        ([9.0] * 50 + [0.0] + [9.0] * 49, 10, False, "█████▁████"),
        ([1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7], 8, False, "▁▂▃▄▅▆▇█"),
        ([5.0, 5.0], 8, False, "▅▅"),
        ([None, float("nan")], 8, False, ""),
        ([], 8, False, ""),
        ([1.0], 0, False, ""),
    ],
)
def test_sparklines(values: list[float | None], width: int, ascii_only: bool, line: str) -> None:
    """Lowest to highest; a spike or dip among many survives; a cross where a value is not finite; log over decades."""
    assert sparkline(values, width, ascii_only) == line


@given(st.lists(st.none() | st.floats(), max_size=200), st.integers(0, 40), st.booleans())
def test_any_sparkline_fits(values: list[float | None], width: int, ascii_only: bool) -> None:
    """It is never wider than asked for, and every sign takes one cell."""
    line = sparkline(values, width, ascii_only)
    assert len(line) <= width
    assert all(unicodedata.east_asian_width(char) != "W" for char in line)
    assert not ascii_only or line.isascii()


def test_the_spark_of_a_finding() -> None:
    """It is the first curve of the first plot; a finding without plots has none."""
    finding = Finding(Verdict.OK, "x", Text("x", "x"), plots=(RAMP, TWO))
    assert spark_of(finding, 11, ascii_only=False) == sparkline([float(x) for x in range(11)], 11, False)
    assert spark_of(msgspec.structs.replace(finding, plots=()), 11, ascii_only=False) == ""
