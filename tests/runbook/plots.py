"""Made-up plots that tests of every front draw."""

from __future__ import annotations

from hypothesis import strategies as st

from runbook.finding import Curve, Plot
from runbook.text import Text
from tests.helpers import hostile_text

RAMP = Plot(
    Text("Oven by minute", "每分钟的烤箱"),
    "minute",
    "C",
    (Curve("upper shelf", tuple((float(x), float(x)) for x in range(11))),),
    ((5.0, Text("the door was opened", "门被打开")),),
    ((8.0, Text("too hot from here", "由此起过热")),),
)
"""One curve from 0 to 10, a mark in its middle, a limit near its top."""

TWO = Plot(
    Text("Two shelves", "两层"),
    "minute",
    "",
    (
        Curve("upper", tuple((float(x), 10.0) for x in range(5))),
        Curve("lower", tuple((float(x), 0.0) for x in range(5))),
    ),
)
"""Two level curves, one at the top and one at the bottom."""

BURST = Plot(
    Text("Grows and breaks", "增长后中断"),
    "step",
    "",
    (Curve("norm", tuple((float(x), 10.0**x if x < 5 else None) for x in range(7))),),
)
"""1 to 10,000 in five steps, then two values that are not finite."""

numbers = st.floats(allow_nan=True, allow_infinity=True)


@st.composite
def any_plot(draw: st.DrawFn) -> Plot:
    """Return a plot made without any of the safe builders: hostile words, any numbers, any order."""
    words = draw(hostile_text)
    text = Text(words, words)
    points = st.lists(st.tuples(numbers, st.none() | numbers), max_size=12).map(tuple)
    curves = st.lists(st.builds(Curve, hostile_text, points), max_size=8).map(tuple)
    marks = st.lists(st.tuples(numbers, st.just(text)), max_size=3).map(tuple)
    return Plot(text, words, words, draw(curves), draw(marks), draw(marks))
