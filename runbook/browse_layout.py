"""Where the pieces of a reading stand in lines of a width, and the marks below them, the same in every front.

Lines break at blanks where there are some, else between pieces, and a piece wider than a line is cut. Invariants: every
character of every piece stands in exactly one line, in order; the mark of a piece stands below it and does not need
colour to be read.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from runbook.browse import Passage, Reading

MARKS = (("┄", "-"), ("▔", "^"))
"""Signs under a piece by level, for Unicode and for ASCII; a higher level takes the last."""

HIDDEN = ("▯", "_")
"""Stands for a piece that has a level but nothing to draw, such as half of a character."""


@dataclass(frozen=True)
class Span:
    """A part of a piece on a line. start: cells before it. width: in cells."""

    piece: int
    text: str
    start: int
    width: int


@dataclass(frozen=True)
class Laid:
    """One line of a passage. hard: it ends because the text does, not because the width does."""

    passage: int
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """Return the line."""
        return "".join(span.text for span in self.spans)

    @property
    def first(self) -> int:
        """Return the first piece on the line."""
        return self.spans[0].piece if self.spans else 0


def lay_out(reading: Reading, number: int, width: int, *, ascii_only: bool = False) -> list[Laid]:
    """Return the lines of one passage in `width` cells; a line break in the text is a piece's part of no width."""
    passage, layout = reading.passages[number], _Layout(number, max(width, 4))
    for place, piece in enumerate(passage.pieces):
        text = piece
        if not text and passage.values and reading.level(passage.values[place]) >= 0:
            text = HIDDEN[ascii_only]
        first, *rest = text.split("\n")
        layout.add(place, first)
        for part in rest:
            layout.break_line(place)
            layout.add(place, part)
    return layout.whole()


class _Layout:
    """Lines of one passage being filled."""

    def __init__(self, passage: int, width: int) -> None:
        self._passage, self._width = passage, width
        self._lines: list[Laid] = []
        self._spans: list[Span] = []
        self._used = 0

    def whole(self) -> list[Laid]:
        """Return all lines."""
        if self._spans:
            self._end()
        return self._lines

    def break_line(self, piece: int) -> None:
        """End the line because the text of `piece` says so."""
        if not self._spans or self._spans[-1].piece != piece:
            self._spans.append(Span(piece, "", self._used, 0))
        self._end()

    def add(self, piece: int, text: str) -> None:
        """Put text behind what stands there, on as many lines as it needs."""
        while text:
            wide = cell_len(text)
            if self._used + wide <= self._width:
                self._put(piece, text, wide)
                return
            if self._used and not text[0].isspace():
                self._wrap()
                if self._used + wide <= self._width:
                    continue
            if self._used:
                self._end()
                continue
            head = _head(text, self._width)
            self._put(piece, head, cell_len(head))
            text = text[len(head) :]

    def _put(self, piece: int, text: str, wide: int) -> None:
        self._spans.append(Span(piece, text, self._used, wide))
        self._used += wide

    def _end(self) -> None:
        self._lines.append(Laid(self._passage, tuple(self._spans)))
        self._spans, self._used = [], 0

    def _wrap(self) -> None:
        """End the line before its last word, so that words stay whole; where that is long, or there is none, here."""
        spans = self._spans
        cut = next((i for i in range(len(spans) - 1, 0, -1) if spans[i].text[:1].isspace()), 0)
        if cut and self._used - spans[cut].start > self._width // 2:
            cut = 0
        carried = spans[cut:] if cut else []
        self._spans = spans[:cut] if cut else spans
        self._end()
        for span in carried:
            self._put(span.piece, span.text, span.width)


def _head(text: str, width: int) -> str:
    """Return the beginning of `text` that fits; at least one character."""
    head = text[:width]
    while len(head) > 1 and cell_len(head) > width:
        head = head[:-1]
    return head


def marks(reading: Reading, line: Laid, *, ascii_only: bool, values: bool = True) -> str:
    """Return what stands below a line: a sign under each piece that has a level; "" when there is none.

    values: write the value of a piece of the highest level behind its sign, where there is room up to the next one.
    """
    passage = reading.passages[line.passage]
    if not passage.values:
        return ""
    marked = [
        (span, level) for span in line.spans if span.width and (level := reading.level(passage.values[span.piece])) >= 0
    ]
    below, end = "", len(reading.levels) - 1
    for i, (span, level) in enumerate(marked):
        below = below.ljust(span.start) + MARKS[min(level, len(MARKS) - 1)][ascii_only] * span.width
        room = (marked[i + 1][0].start - 1 if i + 1 < len(marked) else 10**6) - len(below)
        words = said(passage, span.piece)
        if values and level == end and len(words) <= room:
            below += words
    return below


def said(passage: Passage, piece: int) -> str:
    """Return the value of a piece with its sign, "" when there is none."""
    value = passage.values[piece] if passage.values else None
    return "" if value is None else f"{value:+.2f}"
