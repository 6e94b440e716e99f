"""Breaks text into lines of a width, as it is shown: a wide character takes two cells.

Invariants: nothing is lost but blanks at a break; no line is wider than asked for unless one character is. Lines break
at blanks and between wide characters, but not before closing punctuation; a word that is too wide is broken beside its
signs or, when that is not enough, anywhere. A pseudonym is not broken, lest the rest of it read as a name. Linear in
the length of the text, so that a line of a megabyte is no trouble.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len, chop_cells

_WIDE = (
    "[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001faff\U00020000-\U0003fffd]"
)
_JOINED = "[\u0300-\u036f\u200d\ufe0f\U0001f3fb-\U0001f3ff]"
_OPENING, _CLOSING = frozenset("（《「『【〈"), frozenset("，。；：、！？）》」』】〉")
_PIECE = re.compile(
    rf"(?P<blank>\s+)|{_WIDE}{_JOINED}(?:{_JOINED}|(?<=\u200d){_WIDE})*|(?P<run>(?:{_WIDE}(?!{_JOINED}))+)|(?:(?!{_WIDE})\S)+"
)
"""Blanks, a wide character with what is joined to it, a run of wide characters, a word."""

_INNER = re.compile(r"(?:user|host|ip|mail|phone|secret|hidden)-\d+|[A-Za-z0-9]+|.", re.DOTALL)
"""What is not broken of a word that is too wide."""

_LONGEST = 24
"""Characters of a pseudonym, at most."""


def width_of(text: str) -> int:
    """Return how many cells a text takes."""
    return len(text) if text.isascii() else cell_len(text)


def wrap(text: str, width: int) -> list[str]:
    """Return text as lines of at most `width` cells; its own line breaks stay. At least one line."""
    return [line for own in text.splitlines() or [""] for line in _lines(own, max(width, 2))]


def hang(text: str, width: int, first: str, then: str) -> list[str]:
    """Return text wrapped to `width` cells, its first line behind `first`, the others behind `then`."""
    lines = wrap(text, width - max(width_of(first), width_of(then)))
    return [f"{first if number == 0 else then}{line}".rstrip() for number, line in enumerate(lines)]


def pad(text: str, width: int) -> str:
    """Return text with blanks behind it up to `width` cells."""
    return text + " " * (width - width_of(text))


def _lines(text: str, width: int) -> Iterator[str]:
    if len(text) * 2 <= width or width_of(text) <= width:
        yield text.rstrip()
        return
    if text.isascii():
        yield from _ascii_lines(text, width)
        return
    line, room = "", width
    for piece in _pieces(text, width):
        taken = width_of(piece)
        if taken > room:
            if line.strip():
                yield line.rstrip()
            line, room = "", width
            if piece.isspace():
                continue
        line += piece
        room -= taken
    if line.strip():
        yield line.rstrip()


def _ascii_lines(text: str, width: int) -> Iterator[str]:
    start = 0
    while len(text) - start > width:
        cut = text.rfind(" ", start, start + width + 1)
        if cut <= start or not text[start:cut].strip():
            ends = (match.end() for match in _INNER.finditer(text, start, start + width + _LONGEST))
            cut = max((end for end in ends if end <= start + width), default=start + width)
            cut = cut if text[start:cut].strip() else start + width
        yield text[start:cut].rstrip()
        start = cut
        while text[start : start + 1] == " ":
            start += 1
    if start < len(text):
        yield text[start:].rstrip()


def _pieces(text: str, width: int) -> Iterator[str]:
    """Yield what is not broken, none wider than `width`."""
    for match in _PIECE.finditer(text):
        piece = match[0]
        if match["run"] is not None:
            yield from _run(piece)
        elif len(piece) * 2 <= width or width_of(piece) <= width:
            yield piece
        else:
            for inner in _INNER.findall(piece):
                yield from (inner,) if width_of(inner) <= width else _chopped(inner, width)


def _run(run: str) -> Iterator[str]:
    """Yield wide characters, closing punctuation with the one before it, opening punctuation with the one behind it."""
    piece = ""
    for character in run:
        if (piece and character not in _CLOSING and piece[-1] not in _OPENING) or len(piece) > 3:
            yield piece
            piece = ""
        piece += character
    yield piece


def _chopped(piece: str, width: int) -> Iterable[str]:
    if piece.isascii():
        return (piece[start : start + width] for start in range(0, len(piece), width))
    return chop_cells(piece, width)
