"""Experiments in the outline of a ticket: grids, runs side by side, then each experiment with its diff, folded away."""

from __future__ import annotations

from runbook.ticket.outline import Entries, Grid, Items, Node, Words, code, strong, words
from runbook.ticket.teller import PATH, Teller
from runbook.ticket.transcript import Experiment, Table


def experiment_parts(tell: Teller) -> list[Entries | Grid]:
    """Return the parts on experiments, nothing where none was made."""
    of = tell.of
    tables = (*of.matrices, *((of.runs,) if of.runs is not None else ()))
    if not of.experiments and not of.matrices:
        return []
    name = tell.say("experiments")
    parts: list[Entries | Grid] = [_table(tell, name, table) for table in tables if table.rows and table.columns]
    rows = tuple(tuple(_told(tell, one)) for one in of.experiments)
    return [*parts, Entries(name=name, rows=rows, order=32, floor=1, fold=True)] if rows else parts


def _table(tell: Teller, name: str, table: Table) -> Grid:
    """Return a table with its title, in full as far as the ticket has room."""
    rows = tuple(tuple(tell.cell(cell) for cell in row[: len(table.columns)]) for row in table.rows)
    columns = tuple(tell.cut(column, 100) for column in table.columns)
    title = f"{name}: {tell.cut(table.title, 200)}"
    return Grid(name=name, title=title, columns=columns, rows=rows, order=31, floor=tell.floor(2))


def _told(tell: Teller, one: Experiment) -> list[Node]:
    run = [code(one.run), ", ", code(tell.cut(one.path, PATH))] if one.run else [tell.say("no_run")]
    nodes: list[Node] = [
        tell.told(strong(tell.cut(one.question, 300)), " ", code(f"{one.flow}/{one.node}"), ": ", *run)
    ]
    if one.edit is not None:
        nodes += tell.edit(one.edit)
    elif one.change:
        nodes += tell.block(one.change, "diff")
    said: list[Words] = [words(f"{tell.say('by_hand')}: {tell.cut(left, 400)}") for left in one.left]
    said += (words(strong(f"{tell.say('lacking')}:"), f" {tell.cut(lack, 400)}") for lack in one.lacks)
    said += (words(tell.cut(note, 400)) for note in one.notes)
    for probe, answer, found in one.found:
        said.append(words(code(probe), ": ", strong(tell.cut(answer, 100)), f". {tell.cut(found, 400)}"))
    said += [words(f"{tell.say('concluded')}: ", strong(tell.cut(one.answer, 200)))] if one.answer else []
    shown = tell.first(said, 30)
    return [*nodes, *([Items(tuple(shown))] if shown else []), *tell.rest(len(said) - len(shown))]
