"""Experiments in an HTML ticket: grids, runs side by side, then each experiment with its diff, as in the Markdown."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from runbook.ticket.html_page import Page, code, diff, folded, table
from runbook.ticket.markup import Child, el
from runbook.ticket.transcript import Experiment


def experiment_parts(page: Page) -> list[Element]:
    """Return the part on experiments, nothing where none was made."""
    of = page.of
    if not of.experiments and not of.matrices:
        return []
    title = page.say("experiments")
    parts = [el("h3", title)]
    for one in (*of.matrices, *((of.runs,) if of.runs is not None else ())):
        parts += [el("p", el("b", one.title)), *table(one.title, one.columns, one.rows)]
    told = [part for one in of.experiments for part in _told(page, one)]
    return [*parts, folded(title, len(of.experiments), *told)] if told else parts


def _told(page: Page, one: Experiment) -> list[Element]:
    run: list[Child] = [code(one.run), ", ", code(one.path)] if one.run else [page.say("no_run")]
    parts = [el("p", el("b", one.question), " ", code(f"{one.flow}/{one.node}"), ": ", *run)]
    if one.edit is not None:
        parts.append(el("figure", el("figcaption", one.edit.path), diff(one.edit.lines)))
    elif one.change:
        parts.append(diff(one.change))
    said = [el("li", f"{page.say('by_hand')}: {words}") for words in one.left]
    said += (el("li", el("b", f"{page.say('lacking')}: "), words) for words in one.lacks)
    said += (el("li", words) for words in one.notes)
    said += (el("li", code(probe), ": ", el("b", answer), f". {words}") for probe, answer, words in one.found)
    said += [el("li", f"{page.say('concluded')}: ", el("b", one.answer))] if one.answer else []
    return [*parts, *([el("ul", *said)] if said else [])]
