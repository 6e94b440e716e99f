"""A chart as inline SVG: axes, limits, marks and curves, with a title and a description for those who cannot see it.

Invariants: colours are classes of the page's style sheet, so that light, dark and print each have theirs; curves
differ in their dashes and end in a letter, marks are numbered, limits are named on the axis: nothing rests on colour.
"""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element

from runbook.chart import Axis, Chart, axes, short, strokes
from runbook.plot import CURVE_ROLES
from runbook.text import Text
from runbook.ticket.markup import el

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 70, 60, 22, 36
"""Margins: labels to the left, letters to the right, the unit above, ticks below."""

LABEL = 11
"""Height of a label: closer than this two would lie on each other."""

LETTERS = "abcdef"

Place = Callable[[float], str]

_CURVE = Text(
    "{name}: {count} values, from {first} to {last}, {low} to {high}.",
    "{name}：{count} 个值，从 {first} 到 {last}，最小 {low}，最大 {high}。",
)
_HOLES = Text("printed, but not finite: {count}.", "已打印但非有限值：{count} 处。")
_LIMIT = Text("Limit {value}: {words}.", "阈值 {value}：{words}。")
_MARK = Text("At {x} {at}: {words}.", "在 {x} {at}：{words}。")
_LOG = Text("log scale", "对数刻度")
_MORE = Text("and {count} more curves", "另有 {count} 条曲线")
_BEYOND = Text("beyond this plot", "超出本图")


def figure(chart: Chart, language: str, key: str) -> Element:
    """Return a chart as a figure: its title, the picture, and what its letters, numbers and lines mean.

    key: makes the ids of this figure unique in its page.
    """
    both = axes(chart)
    picture = [_picture(chart, both, language, key)] if both is not None else []
    legend = [el("li", part[0], " ", part[1], cls=part[2]) for part in _legend(chart, both, language)]
    return el("figure", el("figcaption", chart.title), *picture, *([el("ul", *legend, cls="legend")] if legend else []))


def _picture(chart: Chart, both: tuple[Axis, Axis], language: str, key: str) -> Element:
    across, upright = both
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def left_of(x: float) -> str:
        return _number(LEFT + across.at(x) * (right - LEFT))

    def top_of(y: float) -> str:
        return _number(bottom - min(max(upright.at(y), 0.0), 1.0) * (bottom - TOP))

    limits = [y for y, _ in chart.limits if upright.holds(y)]
    parts = [el("title", chart.title, attrs={"id": f"{key}-t"})]
    parts.append(el("desc", description(chart, language), attrs={"id": f"{key}-d"}))
    words = ", ".join(part for part in (chart.unit, _LOG.say(language) if upright.log else "") if part)
    parts.append(_text(words, LEFT, TOP - 9, "start"))
    parts += [_line("rule", _number(LEFT), top_of(y), _number(right), top_of(y)) for y, _ in upright.ticks(6)]
    labelled: list[float] = []
    for y, label, cls in (*((y, short(y), "bad") for y in limits), *((y, said, "") for y, said in upright.ticks(6))):
        if all(abs(float(top_of(y)) - other) > LABEL for other in labelled):
            labelled.append(float(top_of(y)))
            parts.append(_text(label, LEFT - 7, labelled[-1] + 4, "end", cls))
    for x, label in across.ticks(8):
        parts.append(_line("axis", left_of(x), _number(bottom), left_of(x), _number(bottom + 4)))
        parts.append(_text(label, float(left_of(x)), bottom + 16, "middle"))
    parts.append(_text(chart.x, right, HEIGHT - 5, "end"))
    parts.append(_line("axis", _number(LEFT), _number(bottom), _number(right), _number(bottom)))
    parts.append(_line("axis", _number(LEFT), _number(TOP), _number(LEFT), _number(bottom)))
    for limit in limits:
        parts.append(_line("limit", _number(LEFT), top_of(limit), _number(right), top_of(limit)))
    for number, (x, _) in enumerate(chart.marks, 1):
        if across.holds(x):
            parts.append(_line("mark", left_of(x), _number(TOP), left_of(x), _number(bottom)))
            parts.append(_text(_sign(chart, number), float(left_of(x)), TOP - 5, "middle", "strong"))
    parts += _curves(chart, across, left_of, top_of, bottom)
    viewed = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img", "aria-labelledby": f"{key}-t {key}-d"}
    return el("svg", *parts, cls="plot", attrs=viewed)


def _curves(chart: Chart, across: Axis, left_of: Place, top_of: Place, bottom: float) -> list[Element]:
    parts: list[Element] = []
    holes: dict[str, None] = {}
    ends: list[float] = []
    for number, curve in reversed(list(enumerate(chart.curves[: len(CURVE_ROLES)]))):
        lines, dots = [], []
        for stroke in strokes(curve, across, WIDTH):
            if len(stroke) == 1:
                dots.append(stroke[0])
            else:
                lines.append("M" + "L".join(f"{left_of(x)} {top_of(y)}" for x, y in stroke))
        if lines:
            parts.append(el("path", cls=f"curve c{number}", attrs={"d": "".join(lines)}))
        for x, y in dots:
            where = {"cx": left_of(x), "cy": top_of(y), "r": "2.5"}
            parts.append(el("circle", cls=f"dot c{number}", attrs=where))
        last = next(((x, y) for x, y in reversed(curve.points) if y is not None), None)
        if last is not None and len(chart.curves) > 1:
            end = float(top_of(last[1]))
            beside = 5 + 9 * sum(abs(end - other) < LABEL for other in ends)
            ends.append(end)
            parts.append(
                _text(LETTERS[number], float(left_of(last[0])) + beside, end + 4, "start", f"letter c{number}")
            )
        holes.update(dict.fromkeys(left_of(x) for x, y in curve.points if y is None))
    parts += (_text("×", float(x), bottom + 4, "middle", "bad") for x in holes)
    return parts


def description(chart: Chart, language: str) -> str:
    """Return what the picture shows, in sentences."""
    said = []
    for curve in chart.curves:
        values = [y for _, y in curve.points if y is not None]
        if values:
            numbers = {
                "count": len(values),
                "first": short(values[0]),
                "last": short(values[-1]),
                "low": short(min(values)),
                "high": short(max(values)),
            }
            said.append(_CURVE.say(language).format(name=curve.name, **numbers))
        if len(values) < len(curve.points):
            said.append(f"{curve.name}: {_HOLES.say(language).format(count=len(curve.points) - len(values))}")
    said += (_LIMIT.say(language).format(value=short(value), words=words) for value, words in chart.limits)
    said += (_MARK.say(language).format(x=chart.x, at=_place(x), words=words) for x, words in chart.marks)
    return " ".join(said)


def _legend(chart: Chart, both: tuple[Axis, Axis] | None, language: str) -> list[tuple[Element, str, str]]:
    """Return (sign, words, class) of each line below the picture."""
    lines: list[tuple[Element, str, str]] = []
    for number, curve in enumerate(chart.curves[: len(CURVE_ROLES)]):
        letter = f" {LETTERS[number]}" if len(chart.curves) > 1 else ""
        sample = el("path", cls=f"curve c{number}", attrs={"d": "M0 6L34 6"})
        sign = el(
            "span", el("svg", sample, cls="sample", attrs={"viewBox": "0 0 34 12"}), letter, cls=f"letter c{number}"
        )
        lines.append((sign, curve.name, ""))
    if len(chart.curves) > len(CURVE_ROLES):
        more = _MORE.say(language).format(count=len(chart.curves) - len(CURVE_ROLES))
        lines.append((el("span"), more, "quiet"))
    for number, (x, words) in enumerate(chart.marks, 1):
        beyond = "" if both is not None and both[0].holds(x) else f" ({_BEYOND.say(language)})"
        lines.append((el("b", _sign(chart, number)), f"{chart.x} {_place(x)}: {words}{beyond}", ""))
    for value, words in chart.limits:
        beyond = "" if both is not None and both[1].holds(value) else f" ({_BEYOND.say(language)})"
        lines.append((el("b", f"╌ {short(value)}", cls="bad"), f"{words}{beyond}", ""))
    count = sum(y is None for curve in chart.curves for _, y in curve.points)
    if count:
        lines.append((el("b", "×", cls="bad"), _HOLES.say(language).format(count=count).rstrip(".。"), ""))
    return lines


def _sign(chart: Chart, number: int) -> str:
    return "▼" if len(chart.marks) == 1 else str(number)


def _place(x: float) -> str:
    return short(x, 1.0 if x == int(x) else None)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _line(cls: str, x1: str, y1: str, x2: str, y2: str) -> Element:
    return el("line", cls=cls, attrs={"x1": x1, "y1": y1, "x2": x2, "y2": y2})


def _text(words: str, x: float, y: float, anchor: str, cls: str = "") -> Element:
    return el("text", words, cls=cls, attrs={"x": _number(x), "y": _number(y), "text-anchor": anchor})
