"""Pictures as lines of text, the same in every front: cells of a grid, and the diff of a proposed edit."""

from __future__ import annotations

from runbook.finding import Finding, Grid
from runbook.text import sanitise

DIFF_LINES = 60
"""Lines of a proposed edit that are shown; the session keeps the whole."""


def grid_lines(grid: Grid, language: str) -> tuple[str, ...]:
    """Return a grid as lines: a label and one cell a column, the ends of the columns, the legend."""
    width = max((len(sanitise(label)) for label in grid.rows), default=0)
    rows = [
        f"{sanitise(label):<{width}}  {sanitise(cells)}" for label, cells in zip(grid.rows, grid.cells, strict=True)
    ]
    ends = dict.fromkeys((*grid.columns[:1], *grid.columns[-1:]))
    below = [" " * (width + 2) + " .. ".join(map(sanitise, ends))] if ends else []
    legend = "   ".join(f"{sanitise(code)} {sanitise(words.say(language))}" for code, words, _ in grid.legend)
    return (*rows, *below, legend)


def proposal_lines(finding: Finding) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return (path it is for, lines of the diff) for each edit that a finding proposes."""
    return tuple(
        (sanitise(one.of), tuple(sanitise(line) for line in one.diff.splitlines()[:DIFF_LINES]))
        for one in finding.proposals
    )
