"""What the flows at hand make of a session, as it is recorded: for reading it again under later flows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runbook.flow.model import Flow
from runbook.session import events as ev
from runbook.session.state import SessionState
from runbook.triage import Report, Standing
from runbook.walk import Decision, How, position

Decided = dict[str, dict[str, tuple[str, str]]]
"""Flow, then node, to the answer that the findings gave and the node it leads to, in the order of the way."""


def judged(state: SessionState, report: Report, flows: Mapping[str, Flow]) -> ev.Judged:
    """Return the judgement of a state. report: its triage under the same flows."""
    causes = {
        one.cause: ev.Stood(one.standing.value, one.flow, one.node) for one in (*report.causes, *report.ruled_out)
    }
    stood = {name: position(flows[name], walk) for name, walk in state.walks.items() if name in flows and walk.steps}
    return ev.Judged(causes, decided(state, flows), stood)


def confirmed(judgement: ev.Judged) -> tuple[str, ...]:
    """Return the causes that a judgement has confirmed, in its order."""
    return tuple(cause for cause, stood in judgement.causes.items() if stood.standing == Standing.CONFIRMED.value)


def moved(state: SessionState, report: Report) -> bool:
    """Return whether other causes are confirmed than the latest judgement says; without one, whether any is."""
    known = confirmed(state.judged) if state.judged is not None else ()
    return set(known) != {one.cause for one in report.confirmed}


def decided(state: SessionState, flows: Mapping[str, Flow]) -> Decided:
    """Return what the findings decide, in every flow, as far as they leave a way open."""
    every = {name: _decided(state, flow) for name, flow in flows.items()}
    return {name: table for name, table in every.items() if table}


def _decided(state: SessionState, flow: Flow) -> dict[str, tuple[str, str]]:
    return {
        name: (decision.answer, flow.nodes[name].branches[decision.answer])
        for name, decision in reached(state, flow)
        if decision.how is How.DECIDED and decision.answer is not None
    }


def reached(state: SessionState, flow: Flow) -> Iterator[tuple[str, Decision]]:
    """Yield the nodes to which the findings leave a way open, in the order of the way, and what is decided there."""
    seen, ahead = {flow.start}, [flow.start]
    for name in ahead:  # grows while it is read
        branches, decision = flow.nodes[name].branches, state.decision(flow, name)
        yield name, decision
        answer = decision.answer if decision.how is How.DECIDED else None
        for target in branches.values() if answer is None else (branches[answer],):
            if target not in seen:
                seen.add(target)
                ahead.append(target)
