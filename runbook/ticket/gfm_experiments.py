"""Experiments in a Markdown ticket: grids, runs side by side, then each experiment with its diff, folded away."""

from __future__ import annotations

from collections.abc import Iterator

from runbook.ticket.fit import Block
from runbook.ticket.gfm import cell, code, fence, plain, row, table_head
from runbook.ticket.gfm_page import Page
from runbook.ticket.transcript import Experiment, Table


def experiment_blocks(page: Page) -> list[Block]:
    """Return the part on experiments, nothing where none was made."""
    of = page.of
    if not of.experiments and not of.matrices:
        return []
    title = page.say("experiments")
    blocks = [Block(("", f"### {title}", ""))]
    blocks += (_table(page, table) for table in of.matrices)
    if of.runs is not None:
        blocks.append(_table(page, of.runs))
    rows = tuple("\n".join(_told(page, one)) for one in of.experiments)
    return [*blocks, page.folded(title, rows, 32, 1)] if rows else blocks


def _table(page: Page, table: Table) -> Block:
    """Return a table with its title, in full as far as the ticket has room."""
    head = (f"**{plain(table.title, 200)}**", "", *table_head([cell(column) for column in table.columns]))
    rows = tuple(row(map(cell, cells)) for cells in table.rows)
    return Block(head, rows, ("",), page.say("experiments"), 31, 2)


def _told(page: Page, one: Experiment) -> Iterator[str]:
    run = f"{code(one.run)}, {code(one.path)}" if one.run else page.say("no_run")
    yield f"**{plain(one.question, 300)}** {code(f'{one.flow}/{one.node}')}: {run}"
    yield ""
    if one.edit is not None:
        yield from (code(one.edit.path), "", *fence("\n".join(one.edit.lines), "diff"), "")
    elif one.change:
        yield from (*fence("\n".join(one.change), "diff"), "")
    for words in one.left:
        yield f"- {page.say('by_hand')}: {plain(words, 400)}"
    for words in one.lacks:
        yield f"- **{page.say('lacking')}:** {plain(words, 400)}"
    for words in one.notes:
        yield f"- {plain(words, 400)}"
    for probe, answer, words in one.found:
        yield f"- {code(probe)}: **{plain(answer, 100)}**. {plain(words, 400)}"
    if one.answer:
        yield f"- {page.say('concluded')}: **{plain(one.answer, 200)}**"
    yield ""
