"""Findings, citations and measurements as text. Pure functions from a View to Content.

Invariants: every piece that came from outside passes through `sanitise` here, again where it already did; nothing is
read as markup; a status is always sign and word, in colour where there is colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from textual.content import Content

from runbook.chart import chart_of
from runbook.finding import Citation, Finding, Grid, Measurement, Plot, Table
from runbook.glyphs import VERDICTS
from runbook.picture import proposal_lines
from runbook.plot import Drawn, Fidelity, plot_lines
from runbook.text import sanitise
from runbook.tui.signs import Signs
from runbook.tui.view import STILL_AFTER, Running, View

CELL_LIMIT = 40
"""Cells of a table column."""
LABELS = 16
"""Columns of a grid that are named one by one."""
ROW_LIMIT = 24
"""Rows of a table drawn in a pane; the ticket has them all."""
PLOT_WIDTH = 100
"""Widest plot, in cells: a wider one is no clearer."""
PLOT_ROWS = (6, 12)
"""Fewest and most rows of a plot's canvas; between them a plot is an eighth as high as it is wide."""


def lines(*parts: Content | str) -> Content:
    """Join parts, one a line."""
    return Content("\n").join(part if isinstance(part, Content) else Content(part) for part in parts)


def indent(content: Content, by: int) -> Content:
    """Return `content` with every line moved right."""
    pad = " " * by
    return lines(*(Content.assemble(pad, line) for line in content.split("\n", allow_blank=True)))


def wrapped(content: Content, width: int, by: int = 0, lead: Content | None = None) -> Content:
    """Return `content` wrapped to `width` cells with its lines moved right by `by`; lead: stands before every line."""
    edge = lead if lead is not None else Content("")
    room = max(8, width - by - edge.cell_length)
    return lines(*(Content.assemble(" " * by, edge, line.rstrip()) for line in content.wrap(room)))


def place(citation: Citation) -> str:
    """Return where a citation points, as path:line."""
    path = sanitise(citation.path)
    return f"{path}:{citation.line}" if citation.line is not None else path


def left_cut(text: str, room: int, signs: Signs) -> str:
    """Return text cut at its left to fit `room` cells: the end of a path tells more than its begin."""
    return text if len(text) <= room else signs.ellipsis + text[-max(room - len(signs.ellipsis), 1) :]


def cut(content: Content, width: int, signs: Signs) -> Content:
    """Return content cut at its right to fit `width` cells."""
    if not signs.ascii_only or content.cell_length <= width:
        return content.truncate(width, ellipsis=True)
    return Content.assemble(content.truncate(max(0, width - len(signs.ellipsis))), signs.ellipsis).truncate(width)


def number(value: float) -> str:
    """Return a number as people write it."""
    if not math.isfinite(value):
        return str(value)
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"


def citation_block(view: View, citation: Citation, width: int, *, chosen: bool) -> Content:
    """Return a citation: the place, how many like it, and the excerpt under a bar."""
    ink, signs = view.ink, view.signs
    count = f"  {signs.times}{citation.count}" if citation.count > 1 else ""
    mark = f"{signs.cursor} " if chosen else "  "
    head = Content.assemble(
        (mark, ink.accent),
        (left_cut(place(citation), width - 4 - len(count), signs), ink.accent if chosen else ink.dim),
        (count, ink.dim),
    )
    if not citation.excerpt.strip():
        return head
    bar = Content.styled(f"{signs.bar} ", ink.dim)
    return lines(head, wrapped(Content.styled(view.safe(citation.excerpt), ink.quote), width, 2, bar))


def measurement_rows(view: View, measurements: Iterable[Measurement], width: int) -> Content:
    """Return measurements in aligned columns, each with its threshold and where that comes from."""
    ink = view.ink
    every = [(sanitise(m.name), f"{number(m.value)} {sanitise(m.unit)}".strip(), m) for m in measurements]
    names = max((len(name) for name, _, _ in every), default=0)
    values = max((len(value) for _, value, _ in every), default=0)
    rows = []
    for name, value, m in every:
        rest = ""
        if m.threshold is not None:
            rest = "  " + view.word("threshold", value=number(m.threshold))
        if m.source:
            rest += "  " + view.word("source", source=sanitise(m.source))
        row = Content.assemble((name.ljust(names), ink.dim), "  ", (value.rjust(values), ink.strong), (rest, ink.dim))
        rows += [line.rstrip() for line in row.wrap(max(8, width))]
    return lines(*rows)


def table_block(view: View, table: Table, width: int) -> Content:
    """Return a table in aligned columns, cut to the pane."""
    ink, table = view.ink, table.said(view.language)
    shown = [tuple(view.safe(cell, CELL_LIMIT) for cell in row) for row in table.rows[:ROW_LIMIT]]
    head = tuple(view.safe(column, CELL_LIMIT) for column in table.columns)
    cells = [Content(cell).cell_length for cell in head]
    for row in shown:
        for i, cell in enumerate(row[: len(cells)]):
            cells[i] = max(cells[i], Content(cell).cell_length)

    def draw(row: tuple[str, ...], style: str) -> Content:
        parts = [
            Content(cell).pad_right(max(0, cells[i] - Content(cell).cell_length))
            for i, cell in enumerate(row[: len(cells)])
        ]
        line = Content("  ").join(parts).rstrip()
        return cut(line.stylize(style) if style else line, width, view.signs)

    body = [draw(row, "") for row in shown]
    more = [Content.styled(f"+ {len(table.rows) - ROW_LIMIT}", ink.dim)] if len(table.rows) > ROW_LIMIT else []
    return lines(Content.styled(view.say(table.title), ink.strong), draw(head, ink.dim), *body, *more)


def edit_block(view: View, path: str, diff: Sequence[str]) -> Content:
    """Return a proposed edit as a coloured diff below the path of the file that it is for."""
    inks = {"+": view.ink.good, "-": view.ink.bad, "@": view.ink.dim}
    drawn = [Content.styled(line, inks.get(line[:1], "")) for line in diff]
    return Content("\n").join([Content.styled(path, view.ink.strong), *drawn])


def grid_block(view: View, grid: Grid, width: int) -> Content:
    """Return a picture of cells with its legend, cut to the pane.

    Every code is drawn as it is, in the colour of its role.
    """
    ink = view.ink
    roles = {code: view.role_ink(role) for code, _, role in grid.legend}
    names = [view.safe(name, CELL_LIMIT) for name in grid.rows]
    column = min(max((Content(name).cell_length for name in names), default=0), width // 3)
    parts = [Content.styled(view.say(grid.title), ink.strong)]
    labels = [view.safe(label, CELL_LIMIT) for label in grid.columns]
    if len(labels) > LABELS:
        labels = [f"{labels[0]} {view.signs.ellipsis} {labels[-1]}"]
    for i, label in enumerate(labels):
        head = Content.assemble(" " * (column + 2), (f"{view.signs.spine} " * i + label, ink.dim))
        parts.append(cut(head, width, view.signs))
    for name, cells in zip(names, grid.cells, strict=False):
        left = cut(Content(name), column, view.signs)
        drawn = [(f"{sanitise(code) or ' '} ", roles.get(code, "")) for code in cells]
        line = Content.assemble(left.pad_right(column - left.cell_length + 2).stylize(ink.dim or "not bold"), *drawn)
        parts.append(line.truncate(width))
    for code, words, _ in grid.legend:
        parts.append(Content.assemble((sanitise(code, 4), roles[code]), (f"  {view.say(words)}", ink.dim)))
    return lines(*parts)


def plot_block(view: View, plot: Plot, width: int) -> Content:
    """Return a plot with its legend; letters and signs tell what the colours repeat."""
    ink = view.ink
    inks = {"": "", "strong": ink.strong}
    wide = min(width, PLOT_WIDTH)
    high = min(max(wide // 8, PLOT_ROWS[0]), PLOT_ROWS[1])
    fidelity = Fidelity.ASCII if view.signs.ascii_only else Fidelity.BRAILLE
    drawn = [
        Content.assemble(*((piece.words, inks.get(piece.role, view.role_ink(piece.role))) for piece in pieces)).rstrip()
        for pieces in _drawn(plot, wide, high, fidelity, view.language)
    ]
    return lines(wrapped(Content.styled(view.say(plot.title), ink.strong), width), *drawn)


@lru_cache(maxsize=32)
def _drawn(plot: Plot, width: int, height: int, fidelity: Fidelity, language: str) -> Drawn:
    """Return the lines of a plot; a pane is redrawn ten times a second while probes run, its plots do not change."""
    return plot_lines(chart_of(plot, language), width, height, fidelity, language)


def finding_block(view: View, finding: Finding, width: int, first: int, chosen: int) -> Content:
    """Return a finding with all that proves it.

    first: number of its first citation at this node. chosen: number of the chosen one.
    """
    ink = view.ink
    head = Content.assemble(
        view.status(VERDICTS[finding.verdict]),
        "  ",
        (sanitise(finding.probe), ""),
        (f"  {sanitise(finding.answer)}" if finding.answer else "", ink.strong),
        (f"  {seconds(view, finding.seconds)}" if finding.seconds >= 0.1 else "", ink.dim),
    )
    parts = [cut(head, width, view.signs), wrapped(Content(view.say(finding.summary)), width, 2)]
    if finding.settle_with is not None:
        parts.append(
            wrapped(Content.styled(view.word("settle", words=view.say(finding.settle_with)), ink.accent), width, 2)
        )
    for i, citation in enumerate(finding.citations):
        parts.append(citation_block(view, citation, width, chosen=first + i == chosen))
    if finding.measurements:
        parts.append(indent(measurement_rows(view, finding.measurements, width - 2), 2))
    parts += [indent(plot_block(view, plot, width - 2), 2) for plot in finding.plots]
    parts += [indent(grid_block(view, grid, width - 2), 2) for grid in finding.grids]
    parts += [indent(table_block(view, table, width - 2), 2) for table in finding.tables]
    parts += [indent(edit_block(view, path, lines), 2) for path, lines in proposal_lines(finding)]
    return lines(*parts)


def running_line(view: View, probe: str, state: Running, width: int) -> Content:
    """Return the line of a probe that waits or runs: its own timer and its progress."""
    ink, signs = view.ink, view.signs
    if state.elapsed is None:
        waiting = Content.styled(f"{signs.queued} {view.word('queued')}  {sanitise(probe)}", ink.dim)
        return cut(waiting, width, signs)
    key = "still_running" if state.elapsed >= STILL_AFTER else "running"
    line = Content.assemble(
        (f"{signs.running} {view.word(key)}", ink.accent),
        f"  {sanitise(probe)}  ",
        (seconds(view, float(int(state.elapsed))), ink.dim),
        (progress_words(view, state), ink.dim),
    )
    return cut(line, width, signs)


def progress_words(view: View, state: Running) -> str:
    """Return how far a probe is: a share where the total is known."""
    unit = view.safe(state.unit, 16)
    if state.total:
        return f"  {min(state.done / state.total, 1.0):.0%} {number(state.done)}/{number(state.total)} {unit}".rstrip()
    return f"  {number(state.done)} {unit}".rstrip() if state.done else ""


def seconds(view: View, value: float) -> str:
    """Return a duration, to a tenth below ten seconds."""
    return view.word("seconds", n=f"{value:.1f}" if value < 10 and value != int(value) else f"{value:.0f}")
