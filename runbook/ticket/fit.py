"""Makes a ticket fit the size that its receiver accepts: the least telling rows go first, and it says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

_NOTE = 120
"""Characters kept for the line that tells that rows were left out."""


@dataclass(frozen=True)
class Block:
    """Lines that belong together.

    rows: what may be left out from the end, each as one or more lines. order: 0 is never shortened; of the others the
    highest goes first. floor: rows that stay; head and tail go with the last row. part: of the ticket, for the note on
    what was left out. quiet: no line tells that all of it is gone. left_out: how many rows were.
    """

    head: tuple[str, ...]
    rows: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    part: str = ""
    order: int = 0
    floor: int = 0
    quiet: bool = False
    left_out: int = 0

    def lines(self, more: Callable[[int, str], str]) -> tuple[str, ...]:
        """Return the block's lines, with `more` of the number and the part where rows were left out."""
        note = ("", more(self.left_out, self.part), "") if self.told else ()
        return (*self.head, *self.rows, *note, *self.tail)

    @property
    def size(self) -> int:
        """Return how many characters the block takes, with its newlines and room for the note."""
        return sum(length(line) + 1 for line in (*self.head, *self.rows, *self.tail)) + _NOTE * self.told

    @property
    def told(self) -> bool:
        """Whether a line tells that rows were left out."""
        return self.left_out > 0 and (bool(self.rows) or not self.quiet)


def length(text: str) -> int:
    """Return the length in UTF-16 units, as a front in JavaScript and a server in Java count it.

    A server that counts characters (GitLab's in Ruby) counts no more than that.
    """
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "replace")) // 2


def fit(blocks: Sequence[Block], limit: int) -> list[Block]:
    """Return the blocks with as few rows left out as make them fit into `limit` characters.

    What is never shortened must fit by itself: its texts are clipped where they are made.
    """
    result = list(blocks)
    over = sum(block.size for block in result) - limit
    for order in sorted({block.order for block in result if block.order}, reverse=True):
        for index in reversed(range(len(result))):
            block = result[index]
            if over > 0 and block.order == order and len(block.rows) > block.floor:
                result[index] = _shortened(block, over)
                over -= block.size - result[index].size
    return result


def _shortened(block: Block, over: int) -> Block:
    """Return the block with rows left out from the end until `over` characters are saved or the floor is reached."""
    keep = len(block.rows)
    saved = -_NOTE
    while keep > block.floor and saved < over:
        keep -= 1
        saved += length(block.rows[keep]) + 1
    left_out = block.left_out + len(block.rows) - keep
    if keep == 0:
        return replace(block, head=(), rows=(), tail=(), left_out=left_out)
    return replace(block, rows=block.rows[:keep], left_out=left_out)
