"""Pictures as lines of text, the same in every front: cells of a grid, and the diff of a proposed edit."""

from __future__ import annotations

import msgspec

from runbook.finding import Finding, Grid
from runbook.text import sanitise

DIFF_LINES = 60
"""Lines of a proposed edit that are shown; the session keeps the whole."""


class Cells(msgspec.Struct, frozen=True):
    """A `Grid` in the words of one language, safe to draw. legend: code, words and colour role."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[str, ...]
    legend: tuple[tuple[str, str, str], ...]


def cells_of(grid: Grid, language: str) -> Cells:
    """Return a grid in the words of `language`, safe to draw."""
    return Cells(
        sanitise(grid.title.say(language)),
        tuple(map(sanitise, grid.rows)),
        tuple(map(sanitise, grid.columns)),
        tuple(map(sanitise, grid.cells)),
        tuple((sanitise(code), sanitise(words.say(language)), sanitise(role)) for code, words, role in grid.legend),
    )


def grid_lines(grid: Cells) -> tuple[str, ...]:
    """Return a grid as lines: a label and one cell a column, the ends of the columns, the legend."""
    width = max(map(len, grid.rows), default=0)
    rows = [f"{label:<{width}}  {cells}" for label, cells in zip(grid.rows, grid.cells, strict=True)]
    ends = dict.fromkeys((*grid.columns[:1], *grid.columns[-1:]))
    below = [" " * (width + 2) + " .. ".join(ends)] if ends else []
    return (*rows, *below, "   ".join(f"{code} {words}" for code, words, _ in grid.legend))


def proposal_lines(finding: Finding) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return (path it is for, lines of the diff) for each edit that a finding proposes."""
    return tuple((sanitise(one.of), diff_lines(one.diff)) for one in finding.proposals)


def diff_lines(diff: str) -> tuple[str, ...]:
    """Return the first lines of a diff, safe to draw."""
    return tuple(sanitise(line) for line in diff.splitlines()[:DIFF_LINES])
