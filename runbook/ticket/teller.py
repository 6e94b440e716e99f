"""What the sections of an outline are told with: the ticket's words, and how much room each text gets.

A layout without a limit gets every text whole. One with a limit gets texts cut to their share, so that the rows of
which a ticket consists can be counted on; when even what must stay is too long, all shares become smaller together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from rich.cells import cell_len

from runbook.picture import Cells, grid_lines
from runbook.plot import Fidelity, plot_text
from runbook.text import CUT
from runbook.ticket.outline import (
    Address,
    Code,
    Entries,
    Grid,
    Node,
    Paragraph,
    Quote,
    Section,
    Span,
    Words,
    code,
    strong,
    words,
)
from runbook.ticket.telling import Telling
from runbook.ticket.transcript import Do, Edit, Place, Proof, Transcript

_Item = TypeVar("_Item")

CELL, PATH, QUOTED, BLOCK = 400, 200, 700, 4000
"""Characters that a cell, a path, a quoted line and a block of code get where there is a limit."""

PLOT_WIDTH, PLOT_HEIGHT = 72, 12
"""Cells of a plot: what an issue shows beside its margins without scrolling sideways, and a mail without folding."""

_LEAST = 24
"""Characters to which no text is cut."""


class Teller(Telling):
    """A transcript and how much of it is told.

    share: of the room that each text gets, over 0 and at most 1; None for all of every text. columns: of a picture,
    beyond which a grid goes on below; None where a reader can scroll sideways.
    """

    def __init__(self, transcript: Transcript, share: float | None, columns: int | None = None) -> None:
        super().__init__(transcript)
        self.share = share
        self.columns = columns

    def cut(self, text: str, room: int) -> str:
        """Return a text, cut to its share of `room` characters."""
        if self.share is None:
            return text
        room = max(_LEAST, int(room * self.share))
        return text if len(text) <= room else text[: room - 1] + CUT

    def first(self, items: Sequence[_Item], room: int) -> Sequence[_Item]:
        """Return the first items, as many as there is room for; at least one."""
        return items if self.share is None else items[: max(1, math.ceil(room * self.share))]

    def place(self, place: Place) -> str:
        """Return path:line, a path that is too long cut at its beginning."""
        where = self.path(place)
        if self.share is None or len(where) <= PATH * self.share:
            return where
        return CUT + where[-max(_LEAST, int(PATH * self.share)) :]

    def where(self, place: Place | None) -> Words:
        """Return a place for a cell."""
        return words(code(self.place(place) if place is not None else ""))

    def quote(self, places: Sequence[Place], room: int) -> list[Node]:
        """Return places as grep prints them, and how many more there are."""
        if not places:
            return []
        shown = self.first(places, room)
        lines = [self.cut(self.quoted(place), QUOTED) for place in shown]
        return [Quote(tuple(lines)), *self.rest(len(places) - len(shown))]

    def rest(self, count: int) -> list[Node]:
        """Return the line that tells how many items are not shown."""
        return [self.told(self.say("more", count=count))] if count > 0 else []

    def told(self, *parts: str | Span) -> Paragraph:
        """Return a paragraph."""
        return Paragraph(words(*parts))

    def own(self, key: str) -> Node:
        """Return a paragraph of the ticket's own words."""
        return self.told(self.say(key))

    def labelled(self, key: str, *parts: str | Span) -> Paragraph:
        """Return a paragraph that begins with its name."""
        return Paragraph(words(Span(f"{self.say(key)}:", "strong"), " ", *parts))

    def block(self, text: str | Sequence[str], language: str) -> list[Node]:
        """Return a block of code, cut after a whole line, and how many lines are not shown."""
        lines = text.splitlines() if isinstance(text, str) else text
        if self.share is None:
            return [Code(tuple(lines), language)]
        kept: list[str] = []
        room = int(BLOCK * self.share)
        for line in lines:
            room -= len(line) + 1
            if room < 0 and kept:
                break
            kept.append(self.cut(line, BLOCK))
        return [Code(tuple(kept), language), *self.rest(len(lines) - len(kept))]

    def cell(self, *parts: str | Span) -> Words:
        """Return a cell of a table, its texts cut."""
        return tuple(Span(self.cut(span.text, CELL), span.kind) for span in words(*parts)) or words("–")

    def action(self, do: Do) -> list[Node]:
        """Return a thing to do: its words, then its command or change as a block of code, or its link."""
        nodes: list[Node] = [self.told(self.cut(do.say, 1000))] if do.say else []
        nodes += self.block(do.command, "bash") if do.command else []
        nodes += self.block(do.change, "diff") if do.change else []
        return [*nodes, *([Address(self.cut(do.link, 2000))] if do.link else [])]

    def pictures(self, proofs: Iterable[Proof]) -> list[tuple[Node, ...]]:
        """Return the plots, grids and proposed edits of some proofs, one a row."""
        drawn: list[tuple[Node, ...]] = []
        for proof in proofs:
            for plot in proof.plots:
                lines = plot_text(plot, PLOT_WIDTH, PLOT_HEIGHT, Fidelity.BLOCK, self.of.language)
                drawn.append(self._drawing(plot.title, lines))
            drawn += (self._drawing(grid.title, self._grid(grid)) for grid in proof.grids)
            drawn += (tuple(self.edit(edit)) for edit in proof.edits)
        return drawn

    def _drawing(self, title: str, lines: Sequence[str]) -> tuple[Node, ...]:
        named = [self.told(strong(self.cut(title, 200)))] if title.strip() else []
        return (*named, *self.block(lines, "text"))

    def _grid(self, grid: Cells) -> tuple[str, ...]:
        """Return a grid as lines, in bands where it is wider than there are columns and its labels leave room."""
        wide = max(map(len, grid.cells), default=0)
        labels = max(map(cell_len, grid.rows), default=0)
        banded = self.columns is not None and labels < self.columns // 2
        room = self.columns - labels - 2 if banded and self.columns is not None else wide
        lines: list[str] = []
        for start in range(0, max(wide, 1), max(room, 1)):
            cells = tuple(row[start : start + room] for row in grid.cells)
            band = msgspec.structs.replace(grid, columns=grid.columns[start : start + room], cells=cells, legend=())
            lines += grid_lines(band)[:-1]
        return (*lines, grid_lines(grid)[-1])

    def edit(self, edit: Edit) -> list[Node]:
        """Return a proposed edit under the name of its file."""
        return [self.told(code(self.cut(edit.path, PATH))), *self.block(edit.lines, "diff")]

    def always(self, *nodes: Node) -> Entries:
        """Return nodes that are never left out."""
        return Entries(rows=(tuple(nodes),))

    def table(self, key: str, columns: Sequence[str], rows: Iterable[tuple[Words, ...]], order: int, floor: int = 0,
              *, fold: bool = False, titled: bool = False) -> list[Entries | Grid]:  # fmt: skip
        """Return a table, nothing without rows. key: of its name; columns: keys of theirs. titled: with its name above.

        Of two tables of one section, each is titled.
        """
        drawn = tuple(rows)
        head = tuple(self.say(f"col.{column}") for column in columns)
        floor = self.floor(floor)
        if not drawn:
            return []
        name = self.say(key)
        title = name if titled else ""
        return [Grid(name=name, title=title, columns=head, rows=drawn, order=order, floor=floor, fold=fold)]

    def floor(self, rows: int) -> int:
        """Return how many rows stay: fewer where there is little room."""
        return rows if self.share is None or self.share >= 1 else min(rows, 1)

    def section(self, key: str, parts: Iterable[Entries | Grid]) -> Section:
        """Return a section; what it says when it has no part is its own word."""
        return Section(key, self.say(key), tuple(parts) or (self.always(self.own(f"nothing.{key}")),))
