"""The ticket in the Atlassian Document Format, for the description or a comment of an issue on Jira Cloud.

A ticket that Jira would refuse for its length loses its least telling rows, and says which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from runbook.ticket import adf_nodes as nodes
from runbook.ticket.adf_nodes import Adf
from runbook.ticket.fit import Block, fit
from runbook.ticket.layout import FOLDED, ROOM, SHARES, closing, left_out, within
from runbook.ticket.outline import Entries, Grid, Outline, words
from runbook.ticket.renderers import Laid, limited
from runbook.ticket.sections import outline_of
from runbook.ticket.transcript import Transcript
from runbook.ticket.words import say

LIMIT = 32_767
"""Characters that Jira Cloud takes in a text field (https://jira.atlassian.com/browse/JRACLOUD-68949).

It is not documented what is counted of a document. Taken here are the characters of all texts, titles and addresses and
one for every node around them, which is what the document reads as.
"""


def lay(transcript: Transcript) -> Laid:
    """Return the ticket as JSON; what it says is at most LIMIT characters."""
    language = transcript.language
    content: list[Adf] = []
    lost = False
    for share in SHARES:
        outline = outline_of(transcript, share)
        pieces = list(_pieces(outline))
        blocks = fit([piece.block for piece in pieces], LIMIT - ROOM)
        parts = left_out(blocks, language)
        lost = bool(parts) or share < 1
        content = [node for piece, block in zip(pieces, blocks, strict=True) for node in piece.nodes(block, language)]
        if lost:
            told = nodes.paragraph(words(closing(parts, language, texts=share < 1)))
            content += [nodes.element("panel", [told], panelType="info")]
        if nodes.counted(content) <= LIMIT:
            break
    document = {"version": 1, "type": "doc", "content": content}
    return Laid(msgspec.json.encode(document) + b"\n", shortened=lost)


class _Piece:
    """A part with its nodes, and as a block of what these say."""

    def __init__(self, part: Entries | Grid) -> None:
        self.part = part
        self.rows: list[list[Adf]] = []
        said = within(map(self._said, part.rows), LIMIT if part.order else math.inf)
        head = "".join(map(nodes.said, self._whole([])))
        lost = len(part.rows) - len(said)
        self.block = Block((head,), said, (), part.name, part.order, part.floor, part.quiet, left_out=lost)

    def _said(self, row: tuple[Any, ...]) -> str:
        """Keep the nodes of a row, and return what they say."""
        drawn = [nodes.table_row(row)] if isinstance(self.part, Grid) else list(map(nodes.adf, row))
        self.rows.append(drawn)
        return "".join(map(nodes.said, drawn))

    def nodes(self, block: Block, language: str) -> Iterator[Adf]:
        """Yield the nodes of the rows that are left in a block."""
        if block.rows:
            yield from self._whole(self.rows[: len(block.rows)])
        if block.told:
            yield nodes.paragraph(words(say("more.of", language, count=block.left_out, part=block.part)))

    def _whole(self, rows: list[list[Adf]]) -> list[Adf]:
        part, flat = self.part, [node for row in rows for node in row]
        if isinstance(part, Grid):
            flat = [nodes.table(part.columns, flat)]
        name, count = part.title or part.name, len(part.rows)
        if part.fold or (isinstance(part, Grid) and count > FOLDED):
            return [nodes.expand(f"{name} ({count})", flat)]
        return [nodes.heading(part.title, 4), *flat] if part.title else flat


class _Fixed(_Piece):
    """Nodes that are no part: headings and the top."""

    def __init__(self, fixed: list[Adf]) -> None:
        super().__init__(Entries(rows=()))
        self.fixed = fixed
        self.block = Block(tuple(map(nodes.said, fixed)))

    def nodes(self, block: Block, language: str) -> Iterator[Adf]:
        """Yield them."""
        del block, language
        yield from self.fixed


def _pieces(outline: Outline) -> Iterator[_Piece]:
    top = [nodes.heading(outline.title, 1)]
    top += [nodes.bullets(map(words, outline.where))] if outline.where else []
    yield _Fixed([*top, *([nodes.paragraph(outline.about)] if outline.about else [])])
    for section in outline.sections:
        yield _Fixed([nodes.heading(section.title, 2)])
        yield from map(_Piece, section.parts)


def read(content: bytes) -> tuple[tuple[str, str], ...]:
    """Return what a document says, for the scan: every text, title and address."""
    return (("", nodes.said(msgspec.json.decode(content))),)


RENDERER = limited(".adf.json", lay, LIMIT, read)
