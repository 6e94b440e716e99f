"""How single things of a session are put into the words of one language: the pieces that a transcript is made of.

Text that came from outside is sanitised here, once; a file name that is no UTF-8 is shown with its bytes as escapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from runbook.chart import chart_of
from runbook.finding import Citation, Finding, Measurement, Table
from runbook.flow.model import Action, Cause, Flow
from runbook.picture import cells_of, proposal_lines
from runbook.session.state import SessionState
from runbook.text import Text, sanitise
from runbook.ticket import transcript as tr
from runbook.ticket.words import say
from runbook.triage import Report


class Speaker:
    """A session and the language in which it is told; every part of a transcript is made from one."""

    def __init__(
        self,
        state: SessionState,
        flows: Mapping[str, Flow],
        vocabulary: Mapping[str, Cause],
        report: Report,
        language: str,
    ) -> None:
        self.state = state
        self.flows = flows
        self.vocabulary = vocabulary
        self.report = report
        self.language = language
        self.questions = questions(flows.values())

    def say(self, text: Text | None) -> str:
        """Return words of a flow or a finding, "" for none."""
        return lines(text.say(self.language)) if text is not None else ""

    def word(self, key: str, **values: object) -> str:
        """Return the ticket's own words."""
        return say(key, self.language, **values)

    def title(self, cause: str) -> str:
        """Return the title of a cause, its id when the vocabulary lacks it."""
        known = self.vocabulary.get(cause)
        return self.say(known.title) if known is not None else cause

    def question(self, flow: str, node: str) -> str:
        """Return the question of a node, its id when there is none or the flow is gone."""
        known = self.flows[flow].nodes.get(node) if flow in self.flows else None
        return self.say(known.question) or node if known is not None else node

    def answer(self, flow: str, node: str, word: str) -> str:
        """Return an answer in words, the answer itself when the node has none for it."""
        known = self.flows[flow].nodes.get(node) if flow in self.flows else None
        words = known.answers.get(word) if known is not None else None
        return self.say(words) if words is not None else word


def proof_of(make: Speaker, finding: Finding) -> tr.Proof:
    """Return what a finding says and the places that prove it."""
    return tr.Proof(
        finding.probe,
        make.say(finding.summary),
        tuple(place(citation) for citation in finding.citations),
        tuple(chart_of(plot, make.language) for plot in finding.plots),
        tuple(cells_of(grid, make.language) for grid in finding.grids),
        tuple(tr.Edit(path, lines) for path, lines in proposal_lines(finding)),
    )


def do(make: Speaker, action: Action) -> tr.Do:
    """Return an action of a flow."""
    change = action.change.lines() if action.change is not None else ()
    return tr.Do(make.say(action.say), lines(action.command or ""), change, sanitise(action.link or ""))


def number(measurement: Measurement) -> tr.Number:
    """Return a measurement as a number and as text."""
    value = measurement.value
    unit = sanitise(measurement.unit)
    threshold = "" if measurement.threshold is None else f"{measurement.threshold:.6g} {unit}".rstrip()
    return tr.Number(
        sanitise(measurement.name),
        value if math.isfinite(value) else None,
        f"{value:.6g} {unit}".rstrip(),
        unit,
        threshold,
        sanitise(measurement.source),
    )


def lines(words: str) -> str:
    """Return text of several lines, each sanitised; blank lines at the ends are dropped."""
    return "\n".join(sanitise(line).rstrip() for line in words.splitlines()).strip("\n")


def show_path(path: str) -> str:
    """Return a path as text that can be written anywhere: bytes that are no UTF-8 become escapes."""
    return sanitise(path.encode("utf-8", "backslashreplace").decode("utf-8"))


def place(citation: Citation) -> tr.Place:
    """Return a citation as the transcript shows it."""
    path, excerpt = show_path(citation.path), sanitise(citation.excerpt)
    return tr.Place(path, citation.line, citation.offset, excerpt, citation.count, citation.time)


def table_of(make: Speaker, table: Table) -> tr.Table:
    """Return a table as the transcript shows it."""
    table = table.said(make.language)
    rows = tuple(tuple(map(sanitise, row)) for row in table.rows)
    return tr.Table(make.say(table.title), tuple(map(sanitise, table.columns)), rows)


def questions(flows: Iterable[Flow]) -> dict[str, Text]:
    """Return the question that each probe answers, in the words of the first node that asks it."""
    found: dict[str, Text] = {}
    for flow in flows:
        for node in flow.nodes.values():
            for probe in node.probes:
                if node.question is not None:
                    found.setdefault(probe, node.question)
    return found
