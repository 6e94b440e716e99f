"""Charts as lines of plain text, in three fidelities, and sparklines.

Why it is here and no library: docs/decisions/0050-plots.md. Invariants: no line is wider than asked for; nothing but
text is returned, no escape sequence and no markup; what tells curves, limits and marks apart is a sign, colour roles
only repeat it; a gap stays a gap.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from runbook.chart import Axis, Chart, axes, short, strokes
from runbook.finding import Curve, Finding
from runbook.text import Text

CURVE_ROLES = ("accent", "warn", "good", "", "dim", "")
"""Colour role of each curve in order; curves beyond these are counted and not drawn."""

LEAST = 24
"""Width from which on axes fit; below it a chart is told by its words and sparklines."""

_LOG = Text("log scale", "对数刻度")
_HOLES = Text("printed, but not finite: {count}", "已打印但非有限值：{count} 处")
_MORE = Text("and {count} more curves", "另有 {count} 条曲线")
_ABOVE = Text("above this plot", "高于本图")
_BELOW = Text("below this plot", "低于本图")
_OUTSIDE = Text("beside this plot", "不在本图内")
_NOTHING = Text("no finite value", "没有有限值")


class Fidelity(Enum):
    """What a receiver's font can show.

    BLOCK takes only signs of the old PC character sets, which every monospaced font has in one width: for text that
    is read elsewhere. BRAILLE needs a terminal.
    """

    BRAILLE = "braille"
    BLOCK = "block"
    ASCII = "ascii"


class Piece(NamedTuple):
    """Words of one line and their colour role, "" for none; roles are those of grids and "strong"."""

    words: str
    role: str = ""


Drawn = tuple[tuple[Piece, ...], ...]
"""Lines, each of pieces."""


class _Signs(NamedTuple):
    across: str
    upright: str
    tick_left: str
    tick_below: str
    corner: str
    limit: str
    mark_line: str
    mark: str
    hole: str
    up: str
    down: str


_SIGNS = {
    Fidelity.BRAILLE: _Signs("─", "│", "┤", "┬", "└", "╌", "┊", "▲", "×", "↑", "↓"),
    Fidelity.BLOCK: _Signs("─", "│", "┤", "┬", "└", "-", ":", "▲", "×", "↑", "↓"),
    Fidelity.ASCII: _Signs("-", "|", "+", "+", "+", "-", ":", "^", "x", "^", "v"),
}
_DOTS = {Fidelity.BRAILLE: (2, 4), Fidelity.BLOCK: (1, 2), Fidelity.ASCII: (1, 1)}
"""Columns and rows of dots in one cell."""

_BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot of U+2800, by row and column."""

_HALVES = {1: "▀", 2: "▄", 3: "█"}


def plot_text(chart: Chart, width: int, height: int, fidelity: Fidelity, language: str) -> tuple[str, ...]:
    """Return `plot_lines` without roles."""
    return tuple(
        "".join(piece.words for piece in line).rstrip() for line in plot_lines(chart, width, height, fidelity, language)
    )


def plot_lines(chart: Chart, width: int, height: int, fidelity: Fidelity, language: str) -> Drawn:
    """Return a chart without its title as lines of at most `width` cells, its canvas `height` rows high."""
    both = axes(chart)
    if both is None:
        return _wrapped([Piece(_NOTHING.say(language), "dim")], width)
    if width < LEAST:
        return _told(chart, both, width, fidelity, language)
    return _Drawing(chart, both, width, max(height, 3), fidelity, language).lines()


class _Drawing:
    """One chart being laid out: the labels decide the width of the canvas, the canvas is filled, words go below."""

    def __init__(
        self, chart: Chart, both: tuple[Axis, Axis], width: int, height: int, fidelity: Fidelity, language: str
    ) -> None:
        self.chart, self.width, self.height = chart, width, height
        self.fidelity, self.language = fidelity, language
        self.across, self.upright = both
        self.signs = _SIGNS[fidelity]
        self.curves = chart.curves[: len(CURVE_ROLES)]
        self.labels = self._labels()
        self.edge = max(map(len, self.labels.values()))
        ends: dict[int, str] = {}
        for number, curve in enumerate(self.curves):
            last = next((y for _, y in reversed(curve.points) if y is not None), None)
            if last is not None and len(self.curves) > 1:
                ends[self._row(last)] = ends.get(self._row(last), "") + _letter(number)
        self.ends = ends
        self.columns = width - self.edge - 2 - max(map(len, ends.values()), default=-1) - 1
        self.owner: dict[tuple[int, int], int] = {}
        self.bits: dict[tuple[int, int], int] = {}
        self.marks = self._marks()
        self.holes = {
            self._column(x) for curve in self.curves for x, y in curve.points if y is None and self.across.holds(x)
        }

    def lines(self) -> Drawn:
        """Return the drawing."""
        for number in reversed(range(len(self.curves))):
            self._trace(number)
        limits = {self._row(y) for y, _ in self.chart.limits if self.upright.holds(y)}
        below = [self._foot(), *self._steps()]
        return (*self._head(), *(self._line(row, limits) for row in range(self.height)), *below, *self._words())

    def _labels(self) -> dict[int, str]:
        """Return the label of each row that has one; a limit's own value goes before a round one beside it."""
        labels: dict[int, str] = {}
        shown = [(y, short(y)) for y, _ in self.chart.limits if self.upright.holds(y)]
        for value, label in (*shown, *self.upright.ticks(max(2, self.height // 2))):
            labels.setdefault(self._row(value), label)
        return {row: label[:14] for row, label in labels.items()}

    def _head(self) -> Drawn:
        words = [self.chart.unit] if self.chart.unit else []
        words += [_LOG.say(self.language)] if self.upright.log else []
        return _wrapped([Piece(", ".join(words), "dim")], self.width) if words else ()

    def _row(self, value: float) -> int:
        """Return the row in which the dot of a value lies, 0 at the top."""
        high = _DOTS[self.fidelity][1]
        return _slot(1 - self.upright.at(value), self.height * high) // high

    def _column(self, x: float) -> int:
        wide = _DOTS[self.fidelity][0]
        return _slot(self.across.at(x), self.columns * wide) // wide

    def _marks(self) -> dict[int, str]:
        """Return the sign that points at each marked column: a number where there are several."""
        inside = [x for x, _ in self.chart.marks if self.across.holds(x)]
        signs = {x: self.signs.mark if len(inside) == 1 else str(i % 10) for i, x in enumerate(inside, 1)}
        return {self._column(x): sign for x, sign in reversed(signs.items())}

    def _trace(self, number: int) -> None:
        wide, high = _DOTS[self.fidelity]
        across, down = self.columns * wide, self.height * high
        for piece in strokes(self.curves[number], self.across, across):
            dots = [(_slot(self.across.at(x), across), _slot(1 - self.upright.at(y), down)) for x, y in piece]
            for begin, end in zip(dots, dots[1:] or dots, strict=False):
                for x, y in _between(begin, end):
                    cell = (y // high, x // wide)
                    bit = _BRAILLE[y % 4][x % 2] if self.fidelity is Fidelity.BRAILLE else 1 << (y % high)
                    self.bits[cell] = self.bits.get(cell, 0) | bit
                    self.owner[cell] = number

    def _line(self, row: int, limits: set[int]) -> tuple[Piece, ...]:
        cells: list[Piece] = []
        for column in range(self.columns):
            if (row, column) in self.owner:
                number = self.owner[row, column]
                cells.append(Piece(self._dot(self.bits[row, column], number), CURVE_ROLES[number]))
            elif row in limits:
                cells.append(Piece(self.signs.limit, "bad"))
            elif column in self.marks:
                cells.append(Piece(self.signs.mark_line, "dim"))
            else:
                cells.append(Piece(" "))
        label = self.labels.get(row, "")
        tick = self.signs.tick_left if label else self.signs.upright
        ends = self.ends.get(row, "")
        right = (Piece(" "), *(Piece(end, CURVE_ROLES[_LETTERS.index(end)]) for end in ends)) if ends else ()
        role = "bad" if row in limits else "dim"
        return (Piece(f"{label:>{self.edge}} ", role), Piece(tick, "dim"), *_joined(cells), *right)

    def _dot(self, bits: int, number: int) -> str:
        if self.fidelity is Fidelity.BRAILLE:
            return chr(0x2800 + bits)
        if self.fidelity is Fidelity.BLOCK:
            return _HALVES[bits]
        return _letter(number) if len(self.curves) > 1 else "*"

    def _foot(self) -> tuple[Piece, ...]:
        """Return the horizontal axis with its ticks; marks and values that are not finite stand on it."""
        signs = self.signs
        ticks = {self._column(x) for x, _ in self._ticks()}
        cells = [Piece(" " * (self.edge + 1) + signs.corner, "dim")]
        for column in range(self.columns):
            if column in self.marks:
                cells.append(Piece(self.marks[column], "strong"))
            elif column in self.holes:
                cells.append(Piece(signs.hole, "bad"))
            else:
                cells.append(Piece(signs.tick_below if column in ticks else signs.across, "dim"))
        return _joined(cells)

    def _ticks(self) -> tuple[tuple[float, str], ...]:
        return self.across.ticks(max(2, self.columns // 12))

    def _steps(self) -> Drawn:
        """Return the labels of the horizontal axis and what it counts."""
        begin = self.edge + 2
        line = ""
        for x, label in self._ticks():
            at = max(begin + self._column(x) - len(label) // 2, 0)
            if at + len(label) <= self.width and (not line or at > len(line) + 1):
                line = f"{line:<{at}}{label}"
        name, room = self.chart.x, len(line) - len(line.lstrip())
        if name and cell_len(name) < room:
            return ((Piece(name + line[cell_len(name) :], "dim"),),)
        if name and len(line) + 2 + cell_len(name) <= self.width:
            return ((Piece(f"{line}  {name}", "dim"),),)
        return ((Piece(line, "dim"),), *(_wrapped([Piece(name, "dim")], self.width, begin) if name else ()))

    def _words(self) -> Drawn:
        """Return what stands below: marks, limits, gaps, curves."""
        signs, lines = self.signs, []
        for x, words in self.chart.marks:
            inside = self.across.holds(x)
            sign = self.marks[self._column(x)] if inside else signs.mark
            rest = words if inside else f"{words} ({_OUTSIDE.say(self.language)})"
            lines.append([Piece(f"{sign} ", "strong"), Piece(f"{short(x, 1.0 if x == int(x) else None)}  {rest}")])
        lines += _limits(self.chart, self.upright, self.fidelity, self.language)
        count = sum(y is None for curve in self.curves for _, y in curve.points)
        if count:
            told = _HOLES.say(self.language).format(count=count)
            lines.append([Piece(f"{signs.hole} ", "bad"), Piece(told, "dim")])
        lines += _names(self.chart, self.language)
        return tuple(part for line in lines for part in _wrapped(line, self.width, 2))


def _names(chart: Chart, language: str) -> list[list[Piece]]:
    """Return the legend of the curves; one curve whose name is in the title needs none."""
    if len(chart.curves) == 1:
        name = chart.curves[0].name
        return [[Piece(name, CURVE_ROLES[0])]] if name and name not in chart.title else []
    named = zip(range(len(CURVE_ROLES)), chart.curves, strict=False)
    lines = [[Piece(f"{_letter(number)} ", CURVE_ROLES[number]), Piece(curve.name)] for number, curve in named]
    more = len(chart.curves) - len(CURVE_ROLES)
    return [*lines, *([[Piece(_MORE.say(language).format(count=more), "dim")]] if more > 0 else [])]


def _limits(chart: Chart, upright: Axis, fidelity: Fidelity, language: str) -> list[list[Piece]]:
    lines = []
    signs = _SIGNS[fidelity]
    for value, words in chart.limits:
        sign, where = signs.limit, ""
        if value > upright.high:
            sign, where = signs.up, f" ({_ABOVE.say(language)})"
        elif not upright.holds(value):
            sign, where = signs.down, f" ({_BELOW.say(language)})"
        lines.append([Piece(f"{sign} ", "bad"), Piece(f"{short(value)}  {words}{where}")])
    return lines


def _told(chart: Chart, both: tuple[Axis, Axis], width: int, fidelity: Fidelity, language: str) -> Drawn:
    """Return a chart in a place too narrow for axes: sparklines, their ends, limits and marks."""
    ascii_only = fidelity is Fidelity.ASCII
    lines: list[list[Piece]] = []
    for number, curve in enumerate(chart.curves[: len(CURVE_ROLES)]):
        values = [y for _, y in curve.points]
        finite = [y for y in values if y is not None]
        ends = f" {short(min(finite))} .. {short(max(finite))}" if finite else ""
        lines += [[Piece(curve.name)], [Piece(sparkline(values, max(width, 1), ascii_only), CURVE_ROLES[number])]]
        lines += [[Piece(ends.strip(), "dim")]]
    lines += _limits(chart, both[1], fidelity, language)
    lines += [[Piece(f"{short(x)}  {words}")] for x, words in chart.marks]
    return tuple(part for line in lines for part in _wrapped(line, width))


SPARKS = "▁▂▃▄▅▆▇█"
SPARKS_ASCII = "_.-=+*#"


def sparkline(values: Sequence[float | None], width: int, ascii: bool) -> str:
    """Return values in order as one line of at most `width` cells, lowest to highest, "" when none is finite.

    More values than cells share a cell, which shows the one farthest from the median, so that a spike or a dip is
    never lost. A cell in which a value is not finite is a cross. Positive values over more than three decades stand
    on a logarithmic scale.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known or width < 1:
        return ""
    sparks, hole = (SPARKS_ASCII, "x") if ascii else (SPARKS, "×")
    low, high = min(known), max(known)
    log = low > 0 and high / low > 1000
    axis = Axis(low, high, log) if high / 2 > low / 2 else None
    middle = statistics.median(known)
    cells = min(width, len(values))
    line = ""
    for cell in range(cells):
        group = values[cell * len(values) // cells : (cell + 1) * len(values) // cells]
        finite = [value for value in group if value is not None and math.isfinite(value)]
        if len(finite) < len(group):
            line += hole
            continue
        value = max(finite, key=lambda value: abs(value / 2 - middle / 2))
        line += sparks[_slot(axis.at(value) if axis is not None else 0.5, len(sparks))]
    return line


def spark_of(finding: Finding, width: int, *, ascii_only: bool) -> str:
    """Return the first curve of a finding's first plot as a sparkline, "" when it has none."""
    curve = next((curve for plot in finding.plots[:1] for curve in plot.curves[:1]), None)
    return _spark(curve, width, ascii_only) if curve is not None else ""


@lru_cache(maxsize=256)
def _spark(curve: Curve, width: int, ascii_only: bool) -> str:
    """Return the sparkline of a curve; lists are redrawn often, their curves do not change."""
    return sparkline([y for _, y in curve.points], width, ascii_only)


_LETTERS = "abcdef"


def _letter(number: int) -> str:
    return _LETTERS[number]


def _slot(share: float, count: int) -> int:
    """Return which of `count` equal slots a share of 0..1 falls into; what is outside goes to the nearest end."""
    return min(max(round(min(max(share, 0.0), 1.0) * (count - 1)), 0), count - 1)


def _between(begin: tuple[int, int], end: tuple[int, int]) -> Iterable[tuple[int, int]]:
    """Yield the dots of a straight line, both ends included."""
    (x0, y0), (x1, y1) = begin, end
    count = max(abs(x1 - x0), abs(y1 - y0))
    if count == 0:
        yield begin
    for i in range(count + 1 if count else 0):
        yield round(x0 + (x1 - x0) * i / count), round(y0 + (y1 - y0) * i / count)


def _joined(cells: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return pieces with neighbours of one role made one."""
    joined: list[Piece] = []
    for cell in cells:
        if joined and joined[-1].role == cell.role:
            joined[-1] = Piece(joined[-1].words + cell.words, cell.role)
        else:
            joined.append(cell)
    return tuple(joined)


def _wrapped(line: Sequence[Piece], width: int, by: int = 0) -> Drawn:
    """Return a line of words as lines of at most `width` cells, the later ones moved right by `by`."""
    whole = "".join(piece.words for piece in line)
    if cell_len(whole) <= width:
        return (tuple(line),)
    lead = len(line) > 1 and cell_len(line[0].words) < width // 2
    head, rest = (list(line[:1]), line[1:]) if lead else ([], line)
    text, role = "".join(piece.words for piece in rest), rest[0].role
    room = max(width - by - (cell_len(head[0].words) if head else 0), 1)
    chopped = _broken(text, room)
    return tuple(
        (*(head if i == 0 else [Piece(" " * by)] if by else []), Piece(part, role)) for i, part in enumerate(chopped)
    )


def _broken(text: str, room: int) -> list[str]:
    """Return text in pieces of at most `room` cells, broken at blanks where there are any."""
    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        longer = f"{current} {word}" if current else word
        if cell_len(longer) <= room:
            current = longer
            continue
        if current:
            lines.append(current)
        *full, current = chop_cells(word, room) or [""]
        lines += full
    return [set_cell_size(line, room).rstrip() if cell_len(line) > room else line for line in (*lines, current) if line]
