"""Lays an outline out in a markup, within the size that the receiver accepts.

A markup is a `Hand`: it knows how one paragraph, table or quote is written. What stays, what goes first and how it is
said that something went is decided here, the same for every markup. Invariant: the result never exceeds the limit;
problem, standing, the first cause with its lines and the next action are in it, cut shorter when nothing else helps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from runbook.ticket.fit import Block, fit, length
from runbook.ticket.outline import Entries, Grid, Node, Outline, Words
from runbook.ticket.renderers import Laid
from runbook.ticket.sections import outline_of
from runbook.ticket.transcript import Transcript
from runbook.ticket.words import say

SHARES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.01)
"""How much of its room each text gets, tried in order until the ticket fits."""

ROOM = 1_500
"""Characters kept free for the note on what was left out."""


class Hand(Protocol):
    """How one markup is written. Every method returns finished lines; a line may hold line breaks of its own.

    folds: it can fold parts away, so long tables are, too.
    """

    folds: bool

    def top(self, outline: Outline) -> list[str]:
        """Return title, where the session stands, and what it is about."""

    def heading(self, title: str) -> list[str]:
        """Return the heading of a section."""

    def title(self, title: str) -> list[str]:
        """Return what stands above a part."""

    def node(self, node: Node) -> list[str]:
        """Return a node, with what separates it from the next."""

    def grid(self, grid: Grid) -> tuple[Sequence[str], Iterable[str], Sequence[str]]:
        """Return a table as its head, its rows, of which only the first may be asked for, and what ends it."""

    def fold(self, name: str, count: int) -> tuple[Sequence[str], Sequence[str]]:
        """Return what stands before and behind `count` rows of interest to few readers."""

    def note(self, text: str) -> list[str]:
        """Return what the ticket says of itself at its end."""

    def aside(self, text: str) -> str:
        """Return a line in the ticket's own words."""

    def join(self, lines: Iterable[str]) -> str:
        """Return the whole ticket."""


FOLDED = 8
"""Rows beyond which a table counts as of interest to few readers."""


def lay_out(transcript: Transcript, hand: Hand, limit: int | None, columns: int | None = None) -> Laid:
    """Return the ticket. limit: in UTF-16 units, None for all of it; columns: see `Teller`."""
    if limit is None:
        blocks = list(_blocks(outline_of(transcript, None, columns), hand, math.inf))
        return Laid(_text(blocks, hand, transcript.language, []).encode("utf-8"))
    text, lost = "", True
    for share in SHARES:
        outline = outline_of(transcript, share, columns)
        blocks = fit(list(_blocks(outline, hand, limit)), limit - ROOM)
        parts = left_out(blocks, transcript.language)
        lost = bool(parts) or share < 1
        notes = [closing(parts, transcript.language, texts=share < 1)] if lost else []
        text = _text(blocks, hand, transcript.language, notes)
        if length(text) <= limit:
            break
    return Laid(text.encode("utf-8"), shortened=lost)


def closing(parts: Sequence[str], language: str, *, texts: bool) -> str:
    """Return what a shortened ticket says of itself. texts: texts were cut, too."""
    told: list[str] = []
    room = ROOM // 3
    for part in (*parts, *([say("left_out.texts", language)] if texts else [])):
        room -= len(part) + 2
        told.append(part if room >= 0 else "…")
        if room < 0:
            break
    return say("shortened", language, parts=", ".join(told))


def _text(blocks: Iterable[Block], hand: Hand, language: str, notes: Iterable[str]) -> str:
    def more(count: int, part: str) -> str:
        return hand.aside(say("more.of", language, count=count, part=part))

    lines = [line for block in blocks for line in block.lines(more)]
    return hand.join([*lines, *(line for note in notes for line in hand.note(note))])


def left_out(blocks: Iterable[Block], language: str) -> list[str]:
    """Return what was left out of the blocks, by part of the ticket."""
    lost: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for block in blocks:
        lost[block.part] += block.left_out
        whole[block.part] += block.left_out + len(block.rows)
    return [
        say("left_out", language, count=count, total=whole[part], part=part) for part, count in lost.items() if count
    ]


def _blocks(outline: Outline, hand: Hand, room: float) -> Iterator[Block]:
    yield Block(tuple(hand.top(outline)))
    for section in outline.sections:
        yield Block(tuple(hand.heading(section.title)))
        for part in section.parts:
            yield _block(part, hand, room)


def _block(part: Entries | Grid, hand: Hand, room: float) -> Block:
    name, count = part.title or part.name, len(part.rows)
    head: Sequence[str]
    every: Iterable[str]
    if isinstance(part, Grid):
        head, every, tail = hand.grid(part)
        folded = part.fold or (hand.folds and count > FOLDED)
    else:
        head, every, tail = (), (_entry(row, hand) for row in part.rows), ()
        folded = part.fold
    if folded:
        before, behind = hand.fold(name, count)
        head, tail = (*before, *head), (*tail, *behind)
    elif part.title:
        head = (*hand.title(part.title), *head)
    rows = within(every, room if part.order else math.inf)
    return Block(
        tuple(head), rows, tuple(tail), part.name, part.order, part.floor, part.quiet, left_out=count - len(rows)
    )


def within(rows: Iterable[str], room: float) -> tuple[str, ...]:
    """Return the first rows, up to the one with which they are longer than `room`: more could not stay anyway."""
    kept: list[str] = []
    for row in rows:
        kept.append(row)
        room -= len(row)
        if room < 0:
            break
    return tuple(kept)


def _entry(nodes: Iterable[Node], hand: Hand) -> str:
    return "\n".join(line for node in nodes for line in hand.node(node))


def one_blank(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without one blank after another; a block of code is one string, whose blank lines stay."""
    blank = True
    for line in lines:
        if line or not blank:
            yield line
        blank = not line or line.endswith("\n")


def by_span(words: Words, write: Callable[[str, str], str]) -> str:
    """Return words with each span written by `write` of its text and its kind."""
    return "".join(write(span.text, span.kind) for span in words)
