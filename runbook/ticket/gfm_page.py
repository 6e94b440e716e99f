"""A Markdown page being laid out: headings, tables and quotes in the transcript's language, as blocks to shorten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from runbook.ticket.fit import Block
from runbook.ticket.gfm import cell, code, fence, link, plain, table_head
from runbook.ticket.telling import Telling
from runbook.ticket.transcript import Do, Place

LONG = 8
"""Rows from which on a table is folded away."""


class Page(Telling):
    """A transcript and the pieces of Markdown that its sections are made of."""

    def where(self, place: Place | None) -> str:
        """Return a place for a table cell."""
        return code(self.path(place), in_table=True) if place is not None else "–"

    def quote(self, places: Sequence[Place]) -> list[str]:
        """Return places as grep prints them: path, line and the very text."""
        return fence("\n".join(map(self.quoted, places)))

    def heading(self, key: str) -> Block:
        """Return the heading of a section."""
        return Block(("", f"## {self.say(key)}", ""))

    def columns(self, *keys: str) -> tuple[str, str]:
        """Return the head of a table."""
        return table_head([self.say(f"col.{key}") for key in keys])

    def table(
        self,
        name: str,
        columns: tuple[str, str],
        rows: Iterable[str],
        order: int,
        floor: int = 0,
        *,
        fold: bool = False,
    ) -> list[Block]:
        """Return a table as a block, folded away when it is long or `fold` says so; nothing when it has no rows.

        name: what it is called, unescaped. order, floor: see Block.
        """
        listed = tuple(rows)
        if not listed:
            return []
        if len(listed) <= LONG and not fold:
            return [Block(columns, listed, ("",), name, order, floor)]
        return [self.folded(name, listed, order, floor, columns)]

    def folded(self, name: str, rows: tuple[str, ...], order: int, floor: int = 0, head: tuple[str, ...] = ()) -> Block:
        """Return rows that are folded away under their name."""
        opening = (f"<details><summary>{cell(name)} ({len(rows)})</summary>", "", *head)
        return Block(opening, rows, ("", "</details>", ""), name, order, floor)

    def left_out(self, blocks: Iterable[Block]) -> str:
        """Return a list of what was left out of the blocks, by part of the ticket; "" when nothing was."""
        lost: Counter[str] = Counter()
        whole: Counter[str] = Counter()
        for block in blocks:
            lost[block.part] += block.left_out
            whole[block.part] += block.left_out + len(block.rows)
        return ", ".join(
            self.say("left_out", count=count, total=whole[part], part=plain(part, 60))
            for part, count in lost.items()
            if count
        )


def action_lines(do: Do) -> list[str]:
    """Return a thing to do: its words, then its command or change as a code block, or its link."""
    lines = [plain(do.say, 1000), ""] if do.say else []
    if do.command:
        lines += fence(do.command, "bash")
    if do.change:
        lines += fence("\n".join(do.change), "diff")
    if do.link:
        lines.append(link(do.link))
    return [*lines, ""]


def one_blank(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without one blank after another; a code block is one string, whose blank lines stay."""
    blank = True
    for line in lines:
        if line or not blank:
            yield line
        blank = not line or line.endswith("\n")
