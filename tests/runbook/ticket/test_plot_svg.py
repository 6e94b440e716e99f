"""A chart as SVG: its numbers stand where they belong, its signs do not rest on colour."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree.ElementTree import Element, fromstring, tostring

import msgspec
import pytest
from hypothesis import given

from runbook.chart import chart_of
from runbook.finding import Curve, Plot
from runbook.text import Text
from runbook.ticket.plot_svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, figure
from tests.runbook.plots import BURST, RAMP, TWO, any_plot


def drawn(plot: Plot, language: str = "en") -> Element:
    """Return the figure of a plot."""
    return figure(chart_of(plot, language), language, "k")


def one(whole: Element, selector: str) -> Element:
    """Return the only element of a selector."""
    (found,) = whole.findall(selector)
    return found


def test_values_stand_at_their_places() -> None:
    """0 to 10 runs from the lower left to the upper right corner; the limit 8 and the mark 5 lie between."""
    whole = drawn(RAMP)
    path = one(whole, "svg[@class='plot']/path").get("d", "")
    places = [[float(number) for number in place.split(" ")] for place in re.split("[ML]", path) if place]
    assert len(places) == 11
    assert places[0] == [LEFT, HEIGHT - BOTTOM]
    assert places[-1] == [WIDTH - RIGHT, TOP]
    limit = one(whole, ".//line[@class='limit']")
    assert float(limit.get("y1", "")) == pytest.approx(TOP + 0.2 * (HEIGHT - BOTTOM - TOP), abs=0.1)
    mark = one(whole, ".//line[@class='mark']")
    assert float(mark.get("x1", "")) == pytest.approx((LEFT + WIDTH - RIGHT) / 2, abs=0.1)


def test_it_is_named_and_described() -> None:
    """Title and description are tied to the picture, for a reader that cannot see it, in the reader's language."""
    picture = one(drawn(RAMP), "svg[@class='plot']")
    assert picture.get("aria-labelledby") == "k-t k-d"
    assert one(picture, "title").text == "Oven by minute"
    assert one(picture, "desc").text == (
        "upper shelf: 11 values, from 0 to 10, 0 to 10. Limit 8: too hot from here. At minute 5: the door was opened."
    )
    assert one(one(drawn(RAMP, "zh"), "svg[@class='plot']"), "title").text == "每分钟的烤箱"


def test_curves_end_in_letters_and_gaps_in_crosses() -> None:
    """Two curves have a letter each in picture and legend; what is not finite is a cross on the axis and counted."""
    whole = drawn(TWO)
    letters = [text.text for text in whole.iter("text") if text.get("class", "").startswith("letter")]
    assert sorted(letter or "" for letter in letters) == ["a", "b"]
    legend = ["".join(item.itertext()).split() for item in one(whole, "ul").findall("li")]
    assert legend == [["a", "upper"], ["b", "lower"]]
    burst = drawn(BURST)
    assert sum(text.text == "×" for text in burst.iter("text")) == 2
    assert "".join(one(burst, "ul").itertext()).split("×")[1].strip() == "printed, but not finite: 2"
    assert [text.text for text in burst.iter("text") if (text.text or "").startswith("log")] == ["log scale"]


def test_labels_never_lie_on_each_other() -> None:
    """Limits close together share one label on the axis; letters of curves that end together stand side by side."""
    limits = ((8.0, Text("one", "一")), (8.01, Text("two", "二")))
    close = msgspec.structs.replace(RAMP, limits=limits, curves=RAMP.curves * 3)
    whole = drawn(close)
    heights = sorted(float(text.get("y", "")) for text in whole.iter("text") if text.get("text-anchor") == "end")
    assert all(after - before > 10 for before, after in pairwise(heights))
    letters = [text for text in whole.iter("text") if text.get("class", "").startswith("letter")]
    assert len({text.get("y") for text in letters}) == 1
    assert sorted(float(text.get("x", "")) - (WIDTH - RIGHT) for text in letters) == [5, 14, 23]
    told = "".join(one(whole, "ul").itertext())
    assert "8 one" in told
    assert "8.01 two" in told


def test_what_does_not_fit_is_told_in_the_legend() -> None:
    """A limit far away, a mark beside the plot and the seventh curve are words, not lines."""
    far = msgspec.structs.replace(
        RAMP,
        curves=RAMP.curves * 8,
        limits=((1e9, Text("far", "远")),),
        marks=((77.0, Text("later", "之后")),),
    )
    whole = drawn(far)
    assert whole.findall(".//line[@class='limit']") == []
    assert whole.findall(".//line[@class='mark']") == []
    told = "".join(one(whole, "ul").itertext())
    for words in ("1G far (beyond this plot)", "minute 77: later (beyond this plot)", "and 2 more curves"):
        assert words in told


def test_a_lone_value_is_a_dot_and_none_is_no_picture() -> None:
    """One value can be seen; without a finite value there is a title and a legend only."""
    lone = msgspec.structs.replace(RAMP, curves=(Curve("c", ((3.0, 4.0),)),))
    assert len(list(drawn(lone).iter("circle"))) == 1
    assert drawn(msgspec.structs.replace(RAMP, curves=())).findall("svg") == []


@given(any_plot())
def test_any_plot_is_well_formed_and_inside_its_frame(plot: Plot) -> None:
    """Whatever words and numbers are, the figure parses again, and no place is outside of the picture."""
    whole = fromstring(tostring(drawn(plot), encoding="unicode"))
    for element in whole.iter():
        for name in ("x", "x1", "x2", "cx"):
            assert -1 <= float(element.get(name, "0")) <= WIDTH + 20
        for name in ("y", "y1", "y2", "cy"):
            assert -1 <= float(element.get(name, "0")) <= HEIGHT
