"""Tests of runbook.chart: axes, ticks and short numbers that every drawing shares."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.chart import Axis, axes, chart_of, short, strokes
from runbook.finding import Curve, Plot
from runbook.text import Text
from tests.helpers import is_safe
from tests.runbook.plots import BURST, RAMP, any_plot

finite = st.floats(allow_nan=False, allow_infinity=False)


def of_values(*values: float | None, limits: tuple[float, ...] = ()) -> Plot:
    """Return a plot of one curve, its values at 0, 1, 2, ..."""
    points = tuple((float(x), y) for x, y in enumerate(values))
    return Plot(Text("t", "t"), "step", "", (Curve("c", points),), (), tuple((y, Text("l", "l")) for y in limits))


def upright(*values: float | None, limits: tuple[float, ...] = ()) -> Axis:
    """Return the vertical axis of such a plot."""
    both = axes(chart_of(of_values(*values, limits=limits), "en"))
    assert both is not None
    return both[1]


def test_a_chart_speaks_one_language() -> None:
    """Title, marks and limits are in the language asked for; numbers that are not finite become gaps."""
    chart = chart_of(msgspec.structs.replace(RAMP, curves=(Curve("c", ((0.0, math.inf), (math.nan, 1.0))),)), "zh")
    assert chart.title == "每分钟的烤箱"
    assert chart.marks == ((5.0, "门被打开"),)
    assert chart.limits == ((8.0, "由此起过热"),)
    assert chart.curves[0].points == ((0.0, None),)


@pytest.mark.parametrize(
    ("value", "step", "words"),
    [
        (0.0, None, "0"),
        (0.05, None, "0.05"),
        (-1500.0, None, "-1500"),
        (12_345.0, None, "12.3k"),
        (3.4e6, None, "3.4M"),
        (2e9, None, "2G"),
        (2e-7, None, "2e-7"),
        (1e16, None, "1e16"),
        (100.001, 0.001, "100.001"),
        (1000.0, 500.0, "1000"),
        (-1.2e-4, 2e-5, "-1.2e-4"),
        (math.inf, None, "inf"),
    ],
)
def test_short_numbers(value: float, step: float | None, words: str) -> None:
    """A number is told in few characters, and in as many as its step needs."""
    assert short(value, step) == words


def test_positive_values_over_more_than_three_decades_are_logarithmic() -> None:
    """From 1 to 1001 the axis is logarithmic with ticks at powers of ten; to 1000, or with a zero, it is linear."""
    assert upright(1.0, 1001.0).log
    assert [label for _, label in upright(1.0, 10_000.0).ticks(5)] == ["1", "10", "100", "1000", "10k"]
    assert not upright(1.0, 1000.0).log
    assert not upright(0.0, 1001.0).log
    assert not upright(-1.0, 1001.0).log


def test_a_limit_is_shown_while_the_data_stay_readable() -> None:
    """A limit close by stretches the axis; one that would squash the data to less than a third does not."""
    assert upright(1.0, 2.0, limits=(3.0,)).high == 3.0
    assert upright(1.0, 2.0, limits=(100.0,)).high == 2.0
    assert upright(1.0, 10_000.0, limits=(1e5,)).high == 1e5
    assert upright(1.0, 10_000.0, limits=(1e30, -1.0)) == Axis(1.0, 10_000.0, log=True)


def test_a_level_curve_stands_between_zero_and_its_limits() -> None:
    """All zeros under a limit show how far the limit is; all fives show where zero is."""
    assert upright(0.0, 0.0, limits=(0.001,)) == Axis(0.0, 0.00125)
    assert upright(5.0, 5.0) == Axis(0.0, 6.25)
    assert upright(0.0) == Axis(0.0, 1.0)
    assert upright(-4.0) == Axis(-5.0, 0.0)


def test_without_a_finite_value_there_are_no_axes() -> None:
    """No curve, no point and no finite value are told apart from a curve at zero."""
    assert axes(chart_of(of_values(), "en")) is None
    assert axes(chart_of(of_values(None, math.nan), "en")) is None


def test_whole_steps_have_whole_ticks() -> None:
    """Between step 0 and step 2 there is no step 0.5; between 0.0 and 0.2 there are such places."""
    both = axes(chart_of(of_values(1.0, 2.0, 3.0), "en"))
    assert both is not None
    assert both[0].ticks(8) == ((0.0, "0"), (1.0, "1"), (2.0, "2"))


@given(finite, finite, st.booleans(), st.integers(2, 12))
def test_ticks_are_few_and_inside(one: float, other: float, log: bool, most: int) -> None:
    """Every tick lies within the domain, ascending, and there are not many more than asked for; labels differ."""
    both = axes(chart_of(of_values(abs(one) if log else one, abs(other) if log else other), "en"))
    assert both is not None
    axis = both[1]
    ticks = axis.ticks(most)
    shares = [axis.at(value) for value, _ in ticks]
    assert all(-1e-6 <= share <= 1 + 1e-6 for share in shares)
    assert shares == sorted(shares)
    assert len(ticks) <= most + 2
    assert len({label for _, label in ticks}) == len(ticks)


@given(any_plot())
def test_any_plot_becomes_a_safe_chart(plot: Plot) -> None:
    """Words are sanitised, x is finite and y is finite or a gap; every value stands at a finite place of the axis."""
    chart = chart_of(plot, "en")
    words = (chart.title, chart.x, chart.unit, *(c.name for c in chart.curves), *(w for _, w in chart.marks))
    assert all(map(is_safe, words))
    both = axes(chart)
    for curve in chart.curves:
        assert all(math.isfinite(x) and (y is None or math.isfinite(y)) for x, y in curve.points)
        if both is not None:
            assert all(math.isfinite(both[1].at(y)) for _, y in curve.points if y is not None)


def test_gaps_end_a_stroke() -> None:
    """A value that is not finite parts the curve; nothing is drawn across it."""
    chart = chart_of(of_values(1.0, 2.0, None, None, 3.0), "en")
    assert strokes(chart.curves[0], Axis(0.0, 4.0), 100) == [[(0.0, 1.0), (1.0, 2.0)], [(4.0, 3.0)]]
    assert len(strokes(chart_of(BURST, "en").curves[0], Axis(0.0, 6.0), 10)) == 1


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=400), st.integers(1, 40))
def test_thinning_keeps_what_a_column_shows(values: list[float], columns: int) -> None:
    """Of the points of each column the first, last, lowest and highest survive, in order; no point is made up."""
    curve = chart_of(of_values(*values), "en").curves[0]
    across = Axis(0.0, max(len(values) - 1.0, 1.0))
    (kept,) = strokes(curve, across, columns)

    def by_column(points: list[tuple[float, float]]) -> dict[int, list[float]]:
        groups: dict[int, list[float]] = {}
        for x, y in points:
            groups.setdefault(int(across.at(x) * columns), []).append(y)
        return groups

    every = by_column([(x, y) for x, y in curve.points if y is not None])
    for column, shown in by_column(kept).items():
        whole = every[column]
        expected = (whole[0], whole[-1], min(whole), max(whole))
        assert (shown[0], shown[-1], min(shown), max(shown)) == expected
    assert set(by_column(kept)) == set(every)
    assert kept == sorted(kept, key=lambda point: point[0])
    assert len(kept) <= max(4 * (columns + 1), 2 * columns)
