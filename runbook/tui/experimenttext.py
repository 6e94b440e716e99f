"""What the node pane shows of an experiment: grid, changed copy, the run made with it, the runs compared. Pure."""

from __future__ import annotations

from textual.content import Content

from runbook.experiments import grids, grids_at, runs, side_by_side
from runbook.finding import Table
from runbook.flow.model import Flow
from runbook.picture import diff_lines
from runbook.session.events import CopyChanged, RunAttached
from runbook.text import sanitise
from runbook.tui import paint
from runbook.tui.actions import key_of
from runbook.tui.view import View


def experiment_blocks(view: View, flow: Flow, node_id: str, width: int) -> list[Content]:
    """Return the blocks that belong to a node beside its question, none for most."""
    node, state = flow.nodes[node_id], view.state
    drawn: tuple[Table, ...] = grids_at(flow, node_id, state, view.language)
    if node.is_leaf:
        drawn = grids(flow, state, view.language) if node_id == view.here(flow) else ()
    blocks = [grid_block(view, grid, width) for grid in drawn]
    if node.kind == "experiment":
        copy = state.copies.get((flow.flow, node_id))
        if copy is not None:
            blocks.append(_copy(view, copy, width, alone=state.arrival(flow.flow, node_id) is None))
    compared = side_by_side(state, view.language)
    if compared is not None and (drawn or node.kind == "experiment"):
        names = [Content.styled(f"{run.name}  {run.node}", view.ink.dim) for run in runs(state)]
        blocks.insert(len(drawn), paint.lines(paint.table_block(view, compared, width), *names))
    return blocks


def grid_block(view: View, grid: Table, width: int) -> Content:
    """Return a grid of experiments with every cell whole: side by side where they fit, else one a line."""
    title = Content.styled(view.say(grid.title), view.ink.accent)
    cells = [tuple(map(sanitise, row)) for row in (grid.columns, *grid.rows)]
    widths = [max(Content(row[at]).cell_length for row in cells) for at in range(len(grid.columns))]
    if sum(widths) + 2 * (len(widths) - 1) <= width - 2:
        lines = [Content("  ").join(_padded(cell, w) for cell, w in zip(row, widths, strict=True)) for row in cells]
        return paint.lines(title, *(paint.indent(line.rstrip(), 2) for line in lines))
    parts = [title]
    for row in cells[1:]:
        parts.append(Content.assemble("  ", (row[0], view.ink.strong)))
        named = zip(grid.columns[1:], row[1:], strict=True)
        parts += [
            paint.wrapped(Content.assemble((f"{sanitise(column)}: ", view.ink.dim), cell), width, 4)
            for column, cell in named
        ]
    return paint.lines(*parts)


def _padded(cell: str, width: int) -> Content:
    return Content(cell).pad_right(width - Content(cell).cell_length)


def _copy(view: View, copy: CopyChanged, width: int, *, alone: bool) -> Content:
    """Return a changed copy: the diff, what is left to do by hand, and how to go on. alone: no run was made yet."""
    ink = view.ink
    inks = {"+": ink.good, "-": ink.bad, "@": ink.dim}
    parts = [Content.styled(view.word("copy_of"), ink.accent)]
    parts += [
        paint.cut(Content.assemble("  ", (line, inks.get(line[:1], ""))), width, view.signs)
        for line in diff_lines(copy.diff)
    ]
    hand = (Content.styled(view.word("copy_hand", words=view.say(words)), ink.warn) for words in copy.left)
    notes = (Content.styled(view.word("copy_note", words=view.say(words)), ink.dim) for words in copy.notes)
    parts += [paint.wrapped(line, width, 2) for line in (*hand, *notes)]
    if alone and copy.path:
        parts.append(paint.wrapped(Content.styled(sanitise(copy.path), ink.dim), width, 2))
        if copy.command:
            parts.append(paint.wrapped(Content(view.word("copy_start", key=key_of("walk", "copy"))), width, 2))
            bar = Content.styled(f"{view.signs.bar} ", ink.dim)
            parts.append(paint.wrapped(Content.styled(sanitise(copy.command), ink.quote), width, 2, bar))
        parts.append(paint.wrapped(Content(view.word("copy_then", key=key_of("walk", "attach"))), width, 2))
    return paint.lines(*parts)


def arrival_block(view: View, arrival: RunAttached, width: int) -> Content:
    """Return which run was attached, what of the change it lacks, and what could not be checked."""
    ink = view.ink
    head = Content.assemble(view.word("attached", run=arrival.run), (f"  {sanitise(arrival.root)}", ink.dim))
    lacks = [*map(view.say, arrival.lacks), *([view.word("lacks")] if arrival.lacks else [])]
    notes = [Content.styled(view.say(words), ink.dim) for words in arrival.notes]
    return paint.lines(
        paint.wrapped(head, width),
        *(paint.wrapped(Content.styled(words, ink.warn), width, 2) for words in lacks),
        *(paint.wrapped(note, width, 2) for note in notes),
    )
