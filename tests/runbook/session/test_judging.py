"""Tests of runbook.session.judging: what is recorded of a judgement is what triage says."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from runbook.cli.desks import ask_all
from runbook.evidence import Item
from runbook.session import events as ev
from runbook.session.judging import confirmed, judged
from runbook.session.opening import new_session
from runbook.session.state import replay
from runbook.session.store import read
from runbook.text import Text
from runbook.triage import Standing
from runbook.walk import How
from tests.runbook import small
from tests.runbook.strategies import findings, flows


@given(st.data())
def test_it_says_what_triage_says(data: st.DataObject) -> None:
    """Each cause with its standing and leaf; each decided node that is reached leads where its answer leads."""
    flow = data.draw(flows())
    known = data.draw(findings())
    every = {flow.flow: flow}
    state = replay([ev.Record(n, 1.0, ev.Found(one)) for n, one in enumerate(known.values())], every)
    report = state.report(every.values(), {})
    record = judged(state, report, every)
    stands = {one.cause: (one.standing.value, one.node) for one in (*report.causes, *report.ruled_out)}
    assert {cause: (stood.standing, stood.node) for cause, stood in record.causes.items()} == stands
    table = record.decided.get(flow.flow, {})
    for name, (answer, target) in table.items():
        decision = state.decision(flow, name)
        assert (decision.how, decision.answer, flow.nodes[name].branches[answer]) == (How.DECIDED, answer, target)
    ways = {node for one in report.confirmed for node, (_, target) in table.items() if target == one.node}
    assert bool(ways) == bool(report.confirmed)
    assert all(one.standing is not Standing.CONFIRMED or one.by for one in report.causes)


def test_a_walk_is_recorded_by_where_it_stands() -> None:
    """Only walks in which something was answered; a flow that is not there is left out."""
    from runbook.walk import By
    from tests.runbook import small

    catalog = small.catalog()
    events: list[ev.Event] = [
        ev.FlowStarted("small"),
        ev.Answered("small", "coherent", "no", By.PERSON, "me"),
        ev.FlowStarted("gone"),
    ]
    state = replay([ev.Record(n, 1.0, event) for n, event in enumerate(events)], catalog.flows)
    report = state.report(catalog.flows.values(), catalog.vocabulary)
    assert judged(state, report, catalog.flows).stood == {"small": "load"}


def test_other_confirmed_causes_are_recorded_at_once(tmp_path: Path) -> None:
    """A probe that confirms a cause leaves a judgement in the journal, so that a kill later costs no list its cause."""
    (tmp_path / "job.log").write_bytes(small.GARBLED)
    desk = new_session(small.catalog(), str(tmp_path / "kept"))
    desk.begin(str(tmp_path))
    desk.append(ev.EvidenceAdded((Item("log", str(tmp_path / "job.log"), Text("x", "x")),)))
    ask_all(desk, ("small.load",))
    ask_all(desk, ("small.text",))
    judgements = [one.event for one in read(desk.folder)[0] if isinstance(one.event, ev.Judged)]
    assert [confirmed(one) for one in judgements] == [("not-loaded",)]
    desk.close()
