"""The experiments of a session as a ticket tells them: what was changed, which run it was, what that run said. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from runbook.picture import diff_lines
from runbook.text import sanitise
from runbook.ticket import transcript as tr
from runbook.ticket.parts import Speaker, show_path


def experiments(make: Speaker) -> tuple[tr.Experiment, ...]:
    """Return every experiment of which a copy was written or a run was attached, in the order in which that was."""
    keys = dict.fromkeys((*make.state.copies, *make.state.attached))
    known = (key for key in keys if key[0] in make.flows and key[1] in make.flows[key[0]].nodes)
    return tuple(_experiment(make, flow, node) for flow, node in known)


def _experiment(make: Speaker, flow: str, node: str) -> tr.Experiment:
    state, change = make.state, make.flows[flow].nodes[node].change
    copy, arrival = state.copies.get((flow, node)), state.arrival(flow, node)
    step = next((step for step in state.walk(flow).steps if step.node == node), None)
    notes = (*(copy.notes if copy is not None else ()), *(arrival.notes if arrival is not None else ()))
    return tr.Experiment(
        flow=flow,
        node=node,
        question=make.question(flow, node),
        change=tuple(map(sanitise, change.lines())) if change is not None else (),
        edit=tr.Edit(show_path(copy.of), diff_lines(copy.diff)) if copy is not None and copy.diff else None,
        left=tuple(map(make.say, copy.left)) if copy is not None else (),
        run=arrival.run if arrival is not None else "",
        path=show_path(arrival.root) if arrival is not None else "",
        lacks=tuple(map(make.say, arrival.lacks)) if arrival is not None else (),
        notes=tuple(map(make.say, notes)),
        found=tuple(_found(make, flow, node)),
        answer=make.answer(flow, node, step.answer) if step is not None else "",
    )


def _found(make: Speaker, flow: str, node: str) -> Iterator[tuple[str, str, str]]:
    """Yield probe, answer and words of what the probes of an experiment said of its run."""
    findings = make.state.findings_at(make.flows[flow], node)
    for probe in make.flows[flow].nodes[node].probes:
        if (finding := findings.get(probe)) is not None:
            yield probe, finding.answer or finding.verdict.value, make.say(finding.summary)
