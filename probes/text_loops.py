"""Finds the one piece that a text repeats without end, and where the repetition begins.

A model that loops never ends by itself, so the response breaks off inside the piece. Songs, stanzas, tables and grids
repeat too, but in lines, a few times, and they end where a line ends. Invariant: linear in the length of the text, for
any text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from probes.thresholds import text as limit

_DATA = re.compile(r"[\d\s.,;:|\[\]()\-+*/=]+")


@dataclass(frozen=True)
class Loop:
    """A repeated piece. start: character at which the first copy begins. repeats: copies, the last one may be cut."""

    piece: str
    start: int
    repeats: float


def find_loop(text: str, *, ended: bool | None = None) -> Loop | None:
    """Return the loop that a text ends in, None when it ends in none or in lines that may well be meant.

    ended: whether the model itself ended the response; None when that is not known.
    """
    end = len(text)
    if end < limit.SHORT.value:
        return None
    tail = min(int(limit.LOOP_TAIL.value), end // 3)
    before = text.rfind(text[end - tail :], 0, end - 1)
    if before < 0:
        return None
    period = end - tail - before
    start = end - tail
    while start > period and text[start - 1] == text[start - 1 - period]:
        start -= 1
    start = max(start - period, 0)
    loop = Loop(text[end - period :], start, (end - start) / period)
    return loop if _endless(text, loop, ended=ended) else None


def _endless(text: str, loop: Loop, *, ended: bool | None) -> bool:
    end, period, run = len(text), len(loop.piece), len(text) - loop.start
    enough = limit.LOOP_CHARACTERS.value
    if period <= limit.LOOP_LETTERS.value:
        enough = min(enough, end)
    if run < enough or loop.repeats < limit.LOOP_REPEATS.value:
        return False
    long = run >= limit.LOOP_LONG.value and loop.repeats >= limit.LOOP_LONG_REPEATS.value
    if run < limit.LOOP_SHARE.value * end and not long:
        return False
    return ended is False or not _meant(text, loop, run)


def _meant(text: str, loop: Loop, run: int) -> bool:
    """Return whether the repetition may be verses, a grid or the digits of a number."""
    if _DATA.fullmatch(loop.piece) and any(map(str.isdigit, loop.piece)):
        return run < (limit.LOOP_GRID.value if "\n" in loop.piece else limit.LOOP_DIGITS.value)
    if loop.piece.count("\n") < limit.LOOP_LINES.value or loop.repeats >= limit.LOOP_VERSES.value:
        return False
    body = text.rstrip()
    last = body[body.rfind("\n") :]
    return body.rfind(f"{last}\n", 0, len(body)) >= 0
