"""The one next action at a node.

Pure: it reads a snapshot and says what Enter will do; the same words are drawn in the action line.

Invariant: there is always exactly one advice, and it never answers for a person what the evidence did not decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from runbook.finding import Verdict
from runbook.flow.model import Flow
from runbook.text import sanitise
from runbook.tui.actions import key_of
from runbook.tui.view import View
from runbook.walk import How, Mark, decide, earlier_answer, marks


class Do(str, Enum):
    """What Enter does."""

    ACCEPT = "accept"
    WAIT = "wait"
    EARLIER = "earlier"
    ATTACH = "attach"
    CHANGE = "change"
    ADD = "add"
    ANSWER = "answer"
    ASK = "ask"
    COPY = "copy"
    EXPORT = "export"
    RETURN = "return"
    BACK = "back"
    START = "start"


@dataclass(frozen=True)
class Advice:
    """The recommended action.

    target: the answer, slot or node it is about. words: for the action line. why: dim words behind it.
    """

    do: Do
    words: str
    target: str = ""
    why: str = ""


def advise(view: View, flow: Flow, node_id: str) -> Advice:
    """Return the recommended action for `node_id`, which is shown, in a walk that may stand elsewhere."""
    here = view.here(flow)
    node = flow.nodes[node_id]
    if node_id != here:
        if any(step.node == node_id for step in view.state.walk(flow.flow).steps):
            return Advice(Do.BACK, view.word("do_back", node=sanitise(node_id)), node_id)
        if node.cause is None or not _proven(view, flow, node_id):
            return Advice(
                Do.RETURN,
                view.word("do_return", node=sanitise(here)),
                here,
                view.word("elsewhere", node=sanitise(here)),
            )
    if node.is_leaf:
        if node.clear is not None:
            return Advice(Do.START, view.word("do_start"))
        if any(action.command for action in node.actions):
            return Advice(Do.COPY, view.word("do_copy"))
        return Advice(Do.EXPORT, view.word("do_export"))
    return _at_check(view, flow, node_id)


def _at_check(view: View, flow: Flow, node_id: str) -> Advice:  # noqa: PLR0911  # one return for each kind of advice
    node = flow.nodes[node_id]
    decision = view.state.decision(flow, node_id)
    if decision.how is How.DECIDED and decision.answer is not None:
        by = ", ".join(finding.probe for finding in decision.findings)
        return Advice(
            Do.ACCEPT,
            view.word("do_accept", answer=answer_words(view, flow, node_id, decision.answer)),
            decision.answer,
            by,
        )
    run = view.state.run_at(flow, node_id)
    busy = [probe for probe in node.probes if run is not None and (run, probe) in view.running]
    if busy:
        return Advice(Do.WAIT, view.word("do_wait", count=len(busy), key=key_of("walk", "cancel")))
    arrival = view.state.arrival(flow.flow, node_id)
    if run is None and (flow.flow, node_id) not in view.state.copies and view.can_change():
        return Advice(Do.CHANGE, view.word("do_change"))
    if run is None or (arrival is not None and arrival.lacks):
        return Advice(Do.ATTACH, view.word("do_attach"))
    earlier = earlier_answer(view.state.walk(flow.flow), node_id)
    if earlier is not None and earlier.answer in node.branches:
        return Advice(
            Do.EARLIER,
            view.word("do_earlier", answer=answer_words(view, flow, node_id, earlier.answer)),
            earlier.answer,
        )
    findings = view.state.findings_at(flow, node_id)
    if any(probe not in findings for probe in node.probes):
        return Advice(Do.ASK, view.word("do_ask"))
    if decision.how is How.DISAGREE:
        return Advice(Do.ANSWER, view.word("do_answer"), why=view.word("disagree"))
    lacking = [
        slot
        for f in decision.findings
        if f.verdict is Verdict.UNKNOWN
        for slot in f.slots
        if slot in view.catalog.slots
    ]
    empty = [slot for slot in lacking if not view.state.evidence(run).paths(slot)]
    if empty:
        title = view.say(view.catalog.slots[empty[0]].title)
        return Advice(Do.ADD, view.word("do_add", slot=title), empty[0])
    return Advice(Do.ANSWER, view.word("do_answer"))


def _proven(view: View, flow: Flow, node_id: str) -> bool:
    """Whether the report confirms the cause of this very leaf."""
    return any(v.flow == flow.flow and v.node == node_id for v in view.report.confirmed)


def answer_words(view: View, flow: Flow, node_id: str, answer: str) -> str:
    """Return the words of an answer: those the flow gives it, else the answer itself."""
    text = flow.nodes[node_id].answers.get(answer)
    said = view.say(text)
    return said if said and len(said) <= 40 else sanitise(answer)


def mark_of(view: View, flow: Flow) -> dict[str, Mark]:
    """Return the mark of every node of `flow`, each judged by the findings that speak there."""
    walk = view.state.walk(flow.flow)
    result = marks(flow, walk, view.state.findings_of())
    for name, node in flow.nodes.items():
        if node.kind == "experiment" and result[name] in (Mark.UNKNOWN, Mark.AHEAD):
            findings = view.state.findings_at(flow, name)
            asked = any(probe in findings for probe in node.probes)
            result[name] = Mark.UNKNOWN if asked and decide(node, findings).how is not How.DECIDED else Mark.AHEAD
    return result
