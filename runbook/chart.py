"""A plot in the words of one language, and the axes that every drawing of it shares.

Text, terminal and SVG are laid out from the same chart, domain and ticks, so that they never tell different stories.
Invariants: a chart is safe to draw (sanitised words, finite x, y finite or None); an axis maps its domain to 0..1 and
does not overflow on the largest numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from runbook.finding import Curve, Plot
from runbook.text import sanitise

LOG_DECADES = 3
"""A plot of positive values that spans more decades than this is drawn on a logarithmic axis."""

LIMIT_SHARE = 1 / 3
"""Least share of the vertical axis that the data keep when the axis is stretched to show a limit."""

Point = tuple[float, float | None]


class Chart(msgspec.Struct, frozen=True):
    """A `Plot` in one language; its fields are those of the plot."""

    title: str
    x: str
    unit: str
    curves: tuple[Curve, ...]
    marks: tuple[tuple[float, str], ...] = ()
    limits: tuple[tuple[float, str], ...] = ()


def chart_of(plot: Plot, language: str) -> Chart:
    """Return a plot in the words of `language`, safe to draw."""
    return Chart(
        sanitise(plot.title.say(language)),
        sanitise(plot.x),
        sanitise(plot.unit),
        tuple(Curve(sanitise(curve.name), tuple(_points(curve.points))) for curve in plot.curves),
        tuple((x, sanitise(words.say(language))) for x, words in plot.marks if math.isfinite(x)),
        tuple((y, sanitise(words.say(language))) for y, words in plot.limits if math.isfinite(y)),
    )


def _points(points: Iterable[Point]) -> Iterable[Point]:
    for x, y in points:
        if math.isfinite(x):
            yield x, y if y is not None and math.isfinite(y) else None


@dataclass(frozen=True)
class Axis:
    """A domain, low < high. log: logarithmic, low > 0. whole: only whole numbers make sense as ticks."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def at(self, value: float) -> float:
        """Return where a value stands: 0 at `low`, 1 at `high`, outside of that for what is not in the domain."""
        if self.log:
            if value <= 0:
                return -math.inf
            low = math.log10(self.low)
            return (math.log10(value) - low) / (math.log10(self.high) - low)
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def holds(self, value: float) -> bool:
        """Return whether a value lies in the domain."""
        return self.low <= value <= self.high

    def ticks(self, most: int) -> tuple[tuple[float, str], ...]:
        """Return at most about `most` round values of the domain with their labels, ascending."""
        most = max(most, 2)
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = max(1, math.ceil((last - first + 1) / most))
            return tuple((float(f"1e{power}"), short(float(f"1e{power}"))) for power in range(first, last + 1, every))
        step = _step((self.high / 2 - self.low / 2) / most * 2)
        if self.whole:
            step = max(step, 1.0)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [number * step for number in range(first, last + 1)]
        return tuple((value, short(value, step)) for value in values if math.isfinite(value))


def axes(chart: Chart) -> tuple[Axis, Axis] | None:
    """Return the horizontal and the vertical axis of a chart, None when it has not one finite value."""
    every = [(x, y) for curve in chart.curves for x, y in curve.points]
    values = [y for _, y in every if y is not None]
    if not values:
        return None
    along = [x for x, _ in every]
    whole = all(x == int(x) for x in along)
    low, high = min(along), max(along)
    across = Axis(low, high, whole=whole) if _wide(low, high) else Axis(low - 0.5 * _unit(low), low + 0.5 * _unit(low))
    return across, _upright(values, [limit for limit, _ in chart.limits])


def _upright(values: Sequence[float], limits: Sequence[float]) -> Axis:
    """Return the vertical axis: from 0 where that costs little, and up to the limits that leave the data readable."""
    low, high = min(values), max(values)
    if low > 0 and high / low > 10**LOG_DECADES:
        for limit in limits:
            reach = math.log10(high / low)
            if 0 < limit < low and reach >= LIMIT_SHARE * math.log10(high / limit):
                low = limit
            if limit > high and reach >= LIMIT_SHARE * math.log10(limit / low):
                high = limit
        return Axis(low, high, log=True)
    if not _wide(low, high):
        return _flat(low, limits)
    if 0 < low <= high / 2:
        low = 0.0
    reach = high / 2 - low / 2
    for limit in limits:
        below, above = min(low, limit), max(high, limit)
        if reach >= LIMIT_SHARE * (above / 2 - below / 2):
            low, high = below, above
    return Axis(low, high)


def _flat(value: float, limits: Iterable[float]) -> Axis:
    """Return the axis of a curve that never moves: from 0 to beyond it and beyond every limit."""
    every = (0.0, value, *limits)
    low, high = max(1.25 * min(every), -_LARGEST), min(1.25 * max(every), _LARGEST)
    return Axis(low, high) if high - low > _SMALLEST else Axis(0.0, 1.0)


_LARGEST, _SMALLEST = 1.7e308, 1e-300
"""Where halving and doubling still keep a number's digits."""


def _wide(low: float, high: float) -> bool:
    """Return whether two values differ by more than rounding."""
    return high / 2 - low / 2 > max(1e-12 * max(abs(low), abs(high)), _SMALLEST)


def _unit(value: float) -> float:
    return max(1.0, abs(value) * 1e-9)


def _step(rough: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten that is not less than `rough`."""
    rough = max(rough, 5e-324)
    power = math.floor(math.log10(rough))
    for digit in (1, 2, 5, 10):
        step = float(f"{digit}e{power}")
        if step >= rough * (1 - 1e-9) and step > 0:
            return min(step, 1e308)
    return 1e308


_PREFIXES = ((12, "T"), (9, "G"), (6, "M"), (3, "k"))


def short(value: float, step: float | None = None) -> str:
    """Return a number in few characters: 0.05, 1500, 12k, 3.4M, 2e-7.

    step: distance of the values that must read differently; without it three digits are told.
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    size = abs(value)
    if size >= 1e15 or size < 1e-3:
        digits = 2 if step is None else min(max(_power(size) - _power(step), 0), 6)
        mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
        return f"{_trimmed(mantissa)}e{int(exponent)}"
    power, prefix = next(((p, s) for p, s in _PREFIXES if size >= (1e4 if p == 3 else 10.0**p)), (0, ""))
    scaled = value / 10.0**power
    decimals = 2 - _power(scaled) if step is None else -_power(step / 10.0**power)
    if decimals > 9:
        return f"{value:.12g}"
    return _trimmed(f"{scaled:.{max(decimals, 0)}f}") + prefix


def _power(value: float) -> int:
    return math.floor(math.log10(abs(value)) + 1e-9)


def _trimmed(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def strokes(curve: Curve, across: Axis, columns: int) -> list[list[tuple[float, float]]]:
    """Return the pieces of a curve between its gaps, thinned to what `columns` columns can show.

    Of all points of one piece in one column the first, the lowest, the highest and the last are kept, which draw the
    same line. Cost is linear in the points.
    """
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in curve.points:
        if y is not None:
            pieces[-1].append((x, y))
        elif pieces[-1]:
            pieces.append([])
    return [_thinned(piece, across, columns) for piece in pieces if piece]


def _thinned(piece: list[tuple[float, float]], across: Axis, columns: int) -> list[tuple[float, float]]:
    if len(piece) <= 2 * columns:
        return piece
    groups: dict[int, list[tuple[float, float]]] = {}
    for point in piece:
        groups.setdefault(int(across.at(point[0]) * columns), []).append(point)
    kept: list[tuple[float, float]] = []
    for group in groups.values():
        order = range(len(group))
        low, high = min(order, key=lambda i: group[i][1]), max(order, key=lambda i: group[i][1])
        kept += (group[i] for i in sorted({0, low, high, len(group) - 1}))
    return kept
