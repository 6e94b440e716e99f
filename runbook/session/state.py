"""The state of a session, folded from its events. Pure: no clock, no disk.

The terminal UI, plain mode and replay all draw this one state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch

import msgspec
from msgspec.structs import replace as change

from runbook.evidence import Evidence, Item
from runbook.finding import Finding
from runbook.flow.model import Cause, Flow, Node
from runbook.placeholders import filled
from runbook.session import events as ev
from runbook.text import Text, sanitise
from runbook.triage import Report, triage
from runbook.walk import By, Decision, How, Step, Walk, answer, back, decide, fits


class Note(msgspec.Struct, frozen=True):
    """A person's note. time: seconds since the epoch."""

    words: str
    time: float
    who: str = ""
    flow: str = ""
    node: str = ""


class Fix(msgspec.Struct, frozen=True):
    """What a person said fixed a cause. cause: "" for all that are confirmed. time: seconds since the epoch."""

    cause: str
    words: str
    time: float
    who: str = ""


class SessionState(msgspec.Struct, frozen=True):
    """Everything known in a session.

    revision: number of records folded, so that two states of one session differ when their revisions do. findings:
    (run, probe id) to the latest finding. attached: (flow, node) to the name of the run attached to that experiment.
    copies: (flow, node) to the latest changed copy that was written for that experiment. runs: every attached run in
    order, also one that gave way to another, with its RUN. arrivals: run to how it was attached. judged: the latest
    judgement that was recorded. current: flow in
    front. flow_hashes: as recorded when the session began. began, changed: seconds since the epoch. by: who was at work
    last.
    """

    revision: int = 0

    root: str = ""
    version: str = ""
    who: tuple[str, ...] = ()
    flow_hashes: dict[str, str] = {}
    items: tuple[Item, ...] = ()
    findings: dict[tuple[str, str], Finding] = {}
    walks: dict[str, Walk] = {}
    attached: dict[tuple[str, str], str] = {}
    copies: dict[tuple[str, str], ev.CopyChanged] = {}
    runs: dict[str, str] = {}
    arrivals: dict[str, ev.RunAttached] = {}
    notes: tuple[Note, ...] = ()
    fixes: tuple[Fix, ...] = ()
    judged: ev.Judged | None = None
    exports: tuple[tuple[str, str], ...] = ()
    current: str = ""
    began: float = 0.0
    changed: float = 0.0
    by: str = ""

    def evidence(self, run: str = "") -> Evidence:
        """Return the evidence of one run of the session."""
        root = self.runs.get(run, "") if run else self.root
        return Evidence(tuple(item for item in self.items if item.run == run), root)

    def findings_of(self, run: str = "") -> dict[str, Finding]:
        """Return the findings of one run, by probe id and in that order, so that every front shows the same."""
        return dict(sorted((probe, finding) for (of, probe), finding in self.findings.items() if of == run))

    def run_at(self, flow: Flow, node: str) -> str | None:
        """Return the run that a node is about: "" for the first; None for an experiment without a run."""
        return self.attached.get((flow.flow, node)) if flow.nodes[node].kind == "experiment" else ""

    def findings_at(self, flow: Flow, node: str) -> dict[str, Finding]:
        """Return the findings that speak at a node: those of the run that it is about."""
        run = self.run_at(flow, node)
        return self.findings_of(run) if run is not None else {}

    def arrival(self, flow: str, node: str) -> ev.RunAttached | None:
        """Return how the run of an experiment was attached, None when it has none."""
        return self.arrivals.get(self.attached.get((flow, node), ""))

    def decision(self, flow: Flow, node: str) -> Decision:
        """Return what the findings decide at a node: nothing, where they are of a run without the node's change."""
        decision = decide(flow.nodes[node], self.findings_at(flow, node))
        arrival = self.arrival(flow.flow, node)
        if arrival is None or not arrival.lacks:
            return decision
        return Decision(How.UNKNOWN, None, decision.findings)

    def walk(self, flow: str) -> Walk:
        """Return the walk through a flow, empty when it was never started."""
        return self.walks.get(flow, Walk(flow))

    def report(self, flows: Iterable[Flow], vocabulary: Mapping[str, Cause]) -> Report:
        """Return the triage of what is known now."""
        experiments: dict[str, dict[str, dict[str, Finding]]] = {}
        for (flow, node), run in self.attached.items():
            if self.arrivals[run].lacks:
                continue
            experiments.setdefault(flow, {})[node] = self.findings_of(run)
        report = triage(flows, vocabulary, self.findings_of(), experiments)
        evidence = self.evidence()
        causes = tuple(change(c, leaf=filled(c.leaf, evidence, c.citations)) for c in report.causes)
        return change(report, causes=causes)

    def node(self, flow: Flow, id: str) -> Node:
        """Return a node whose commands name the evidence of the run that it is about."""
        return filled(flow.nodes[id], self.evidence(self.run_at(flow, id) or ""))


def fix_of(state: SessionState, cause: str) -> Fix | None:
    """Return what a person said last fixed a cause, None when nobody did."""
    return next((fix for fix in reversed(state.fixes) if fix.cause in ("", cause)), None)


def fold(state: SessionState, record: ev.Record, flows: Mapping[str, Flow]) -> SessionState:
    """Return the state after one more record.

    An answer that no longer fits its flow (the flow changed since) is kept out of the walk rather than failing the
    replay.
    """
    state = change(state, changed=record.t, began=state.began or record.t, revision=state.revision + 1)
    return _apply(record.event, state, record.t, flows)


@singledispatch
def _apply(event: ev.Event, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    """Return `state` changed by `event`; an event without a handler changes nothing."""
    return state


@_apply.register
def _(event: ev.Opened, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    who = state.who if not event.who or event.who in state.who else (*state.who, event.who)
    state = change(state, by=event.who or state.by)
    if state.version:
        return change(state, who=who)
    return change(state, who=who, version=event.version, root=event.root, flow_hashes=event.flows)


@_apply.register
def _(event: ev.EvidenceAdded, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    known = {(item.slot, item.path, item.run) for item in state.items}
    fresh = tuple(item for item in event.items if (item.slot, item.path, item.run) not in known)
    return change(state, items=(*state.items, *fresh))


@_apply.register
def _(event: ev.EvidenceDropped, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    gone = (event.slot, event.path, event.run)
    left = {key: f for key, f in state.findings.items() if key[0] != event.run or not _cites(f, event.path)}
    return change(state, items=tuple(i for i in state.items if (i.slot, i.path, i.run) != gone), findings=left)


def _cites(finding: Finding, path: str) -> bool:
    """Return whether a finding cites `path` or what lies in it."""
    inside = path.rstrip("/") + "/"
    return any(cited.path == path or cited.path.startswith(inside) for cited in finding.citations)


@_apply.register
def _(event: ev.Found, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    return change(state, findings={**state.findings, (event.run, event.finding.probe): event.finding})


@_apply.register
def _(event: ev.FlowStarted, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    return change(state, current=event.flow, walks={**state.walks, event.flow: state.walk(event.flow)})


@_apply.register
def _(event: ev.RunAttached, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    attached = {**state.attached, (event.flow, event.node): event.run}
    arrivals = {**state.arrivals, event.run: event}
    return change(state, attached=attached, arrivals=arrivals, runs={**state.runs, event.run: event.root})


@_apply.register
def _(event: ev.CopyChanged, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    return change(state, copies={**state.copies, (event.flow, event.node): event})


@_apply.register
def _(event: ev.Noted, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    note = Note(event.words, t, event.who, event.flow, event.node)
    return change(state, notes=(*state.notes, note), by=event.who or state.by)


@_apply.register
def _(event: ev.Fixed, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    return change(state, fixes=(*state.fixes, Fix(event.cause, event.words, t, event.who)))


@_apply.register
def _(event: ev.Judged, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    return change(state, judged=event)


@_apply.register
def _(event: ev.Exported, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    return change(state, exports=(*state.exports, (event.format, event.path)))


@_apply.register
def _(event: ev.WentBack, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    walk = state.walk(event.flow)
    if not any(step.node == event.node for step in walk.steps):
        return state
    return change(state, current=event.flow, walks={**state.walks, event.flow: back(walk, event.node)})


@_apply.register
def _(event: ev.Answered, state: SessionState, t: float, flows: Mapping[str, Flow]) -> SessionState:
    flow, walk = flows.get(event.flow), state.walk(event.flow)
    if flow is None or not fits(flow, walk, event.node, event.answer):
        return state
    who = "" if event.by is By.PROBE else event.who
    walk = answer(flow, walk, Step(event.node, event.answer, event.by, who, event.probes, t))
    return change(state, current=event.flow, walks={**state.walks, event.flow: walk})


def replay(records: Iterable[ev.Record], flows: Mapping[str, Flow]) -> SessionState:
    """Return the state after all records, in order."""
    state = SessionState()
    for record in records:
        state = fold(state, record, flows)
    return state


def flows_now(then: dict[str, str], now: dict[str, str]) -> list[Text]:
    """Return what to say about flows that are not what they were when the session began."""
    changed = ", ".join(sanitise(flow) for flow, known in then.items() if now.get(flow) not in (known, None))
    gone = ", ".join(sanitise(flow) for flow in then if flow not in now)
    said = []
    if changed:
        said.append(Text(f"changed since this session began: {changed}", f"自本会话开始以来流程已变更：{changed}"))
    if gone:
        said.append(
            Text(
                f"flows of this session that are not there now: {gone}; their folder is given with --flows",
                f"本会话的流程现已不存在：{gone}；可用 --flows 指定其目录",
            )
        )
    return said
