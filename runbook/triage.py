"""Triage: every flow evaluated under what is known. Pure functions.

An answer given by evidence closes the other branches; an unknown leaves all of them open. A cause is confirmed when
the edge into it was chosen by a finding that proves something wrong by itself (verdict `problem`), or when every
edge from the flow's start to it was decided by evidence; it is possible when an open edge leads to it, and ruled
out otherwise. Why the two conditions: docs/decisions/0003-confirmed.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol, TypeVar

import msgspec

from runbook.exits import ExitCode
from runbook.finding import Citation, Finding, Verdict
from runbook.flow.model import Cause, Flow, Node
from runbook.text import Text
from runbook.walk import Decision, How, decide


class Standing(str, Enum):
    """How a cause stands."""

    CONFIRMED = "confirmed"
    POSSIBLE = "possible"
    RULED_OUT = "ruled_out"


class Verdicted(msgspec.Struct, frozen=True):
    """A cause with its standing in one flow.

    node: the leaf. by: the findings that decided it, for a confirmed cause those on the edge into it, for a
    ruled-out one those that closed the way. consequences: causes that follow from this one. open: number of
    undecided nodes on the shortest way to a possible cause. led: on some way to it a finding warns of something.
    """

    cause: str
    standing: Standing
    flow: str
    node: str
    leaf: Node
    by: tuple[Finding, ...] = ()
    consequences: tuple[str, ...] = ()
    open: int = 0
    led: bool = False

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Return all citations of the deciding findings."""
        return tuple(citation for finding in self.by for citation in finding.citations)


class Open(msgspec.Struct, frozen=True):
    """A node that evidence did not decide, with the reason and what would settle it."""

    flow: str
    node: str
    question: Text
    why: Text
    settle_with: Text
    slots: tuple[str, ...] = ()
    experiment: bool = False


class Report(msgspec.Struct, frozen=True):
    """The outcome of triage.

    causes: confirmed in rank order, then possible, those first to which something that went wrong leads. clear: (flow,
    node) of each leaf at which evidence alone found nothing wrong. asked: flows whose first question evidence answered.
    main: the first flow. warned: some finding tells of a problem or a warning.
    """

    causes: tuple[Verdicted, ...]
    ruled_out: tuple[Verdicted, ...]
    unknown: tuple[Open, ...]
    clear: tuple[tuple[str, str], ...]
    asked: tuple[str, ...]
    main: str = ""
    warned: bool = False

    @property
    def confirmed(self) -> tuple[Verdicted, ...]:
        """Return the confirmed causes in rank order."""
        return tuple(cause for cause in self.causes if cause.standing is Standing.CONFIRMED)

    @property
    def possible(self) -> tuple[Verdicted, ...]:
        """Return the possible causes, the likeliest first."""
        return tuple(cause for cause in self.causes if cause.standing is Standing.POSSIBLE)


class _Reached(msgspec.Struct):
    """What is known of a node while a flow is evaluated."""

    proven: bool = False
    """Every edge of some path to it was decided by evidence."""
    distance: int = 1 << 30
    """Fewest undecided nodes on a path to it."""
    led: bool = False
    """On some path to it a finding warns of something."""
    edges: list[tuple[str, Decision]] = []


_BAD = (Verdict.PROBLEM, Verdict.WARNING)

POSSIBLE_SHOWN = 8
"""Possible causes written where evidence points to none of them: what a reader looks through."""


class _MayLead(Protocol):
    @property
    def led(self) -> bool: ...


_Led = TypeVar("_Led", bound=_MayLead)

NO_PROBE = Text("No probe can answer this; a person has to.", "没有探针能回答，需要人来判断。")
NOT_ASKED = Text("Its probes were not run.", "相应的探针没有运行。")
DISAGREE = Text("The probes disagree; a person has to decide.", "各探针的结论不一致，需要人来裁定。")
EXPERIMENT = Text("This is an experiment; no run was attached to it yet.", "这是一个实验，尚未附上新的运行。")
RUN_IT = Text("Run the experiment and attach the new run.", "运行该实验并附上新的运行。")
ASK = Text("Answer it in a walk.", "在走查中回答它。")


def evaluate(
    flow: Flow, findings: Mapping[str, Finding], experiments: Mapping[str, Mapping[str, Finding]]
) -> tuple[list[Verdicted], list[Open], list[tuple[str, str]]]:
    """Return the standing of every cause of `flow`, its open nodes and the clear leaves it reached.

    findings: of the run, by probe id. experiments: findings of the runs attached to experiment nodes, by node id. A
    clear leaf is a pair of flow id and node id, listed only when evidence alone led to it.
    """
    reached: dict[str, _Reached] = {name: _Reached(edges=[]) for name in flow.nodes}
    reached[flow.start].proven, reached[flow.start].distance = True, 0
    opens: list[Open] = []
    closed_by: dict[str, tuple[Finding, ...]] = {}
    for name in _order(flow):
        state, node = reached[name], flow.nodes[name]
        if state.distance == 1 << 30 or node.is_leaf:
            continue
        decision = _decision(name, node, findings, experiments)
        decided = decision.how is How.DECIDED
        if not decided:
            opens.append(_open(flow.flow, name, node, decision))
        for word, target in node.branches.items():
            if decided and word != decision.answer:
                for lost in flow.reach(target):
                    closed_by.setdefault(lost, decision.findings)
                continue
            after = reached[target]
            after.proven = after.proven or (state.proven and decided)
            after.distance = min(after.distance, state.distance + (0 if decided else 1))
            after.led = after.led or state.led or (decided and any(f.verdict in _BAD for f in decision.findings))
            after.edges.append((name, decision))
    verdicts: list[Verdicted] = []
    clear: list[tuple[str, str]] = []
    for name, node in flow.nodes.items():
        state = reached[name]
        if node.cause is not None:
            verdicts.append(_verdict(flow.flow, name, node, state, closed_by))
        elif node.clear is not None and state.proven:
            clear.append((flow.flow, name))
    return verdicts, opens, clear


def _decision(
    name: str,
    node: Node,
    findings: Mapping[str, Finding],
    experiments: Mapping[str, Mapping[str, Finding]],
) -> Decision:
    if node.kind == "experiment":
        return decide(node, experiments[name]) if name in experiments else Decision(How.UNKNOWN)
    return decide(node, findings)


def _verdict(
    flow: str, name: str, node: Node, state: _Reached, closed_by: Mapping[str, tuple[Finding, ...]]
) -> Verdicted:
    cause = node.cause or ""
    proving = [
        finding
        for _, decision in state.edges
        if decision.how is How.DECIDED
        for finding in decision.findings
        if state.proven or finding.verdict is Verdict.PROBLEM
    ]
    if proving:
        by = tuple({id(finding): finding for finding in proving}.values())
        return Verdicted(cause, Standing.CONFIRMED, flow, name, node, by)
    if state.edges:
        return Verdicted(cause, Standing.POSSIBLE, flow, name, node, open=state.distance, led=state.led)
    return Verdicted(cause, Standing.RULED_OUT, flow, name, node, closed_by.get(name, ()))


def _open(flow: str, name: str, node: Node, decision: Decision) -> Open:
    question = node.question or Text(name, name)
    if node.kind == "experiment" and not decision.findings:
        return Open(flow, name, question, EXPERIMENT, RUN_IT, experiment=True)
    if decision.how is How.PERSON:
        return Open(flow, name, question, NO_PROBE, ASK)
    if decision.how is How.DISAGREE:
        return Open(flow, name, question, DISAGREE, ASK)
    telling = [f for f in decision.findings if f.verdict is not Verdict.NOT_APPLICABLE] or list(decision.findings)
    if not telling:
        return Open(flow, name, question, NOT_ASKED, ASK)
    first = telling[0]
    slots = tuple(dict.fromkeys(slot for finding in telling for slot in finding.slots))
    return Open(flow, name, question, first.summary, first.settle_with or ASK, slots)


def _order(flow: Flow) -> list[str]:
    """Return the nodes reachable from the start in topological order, the first branch first.

    Lint guarantees that there is no cycle. Iterative: flows may be deep.
    """
    order: list[str] = []
    seen: set[str] = set()
    stack: list[tuple[str, bool]] = [(flow.start, False)]
    while stack:
        name, leaving = stack.pop()
        if leaving:
            order.append(name)
        elif name not in seen:
            seen.add(name)
            stack.append((name, True))
            stack.extend((target, False) for target in flow.nodes[name].branches.values())
    return order[::-1]


def triage(
    flows: Iterable[Flow],
    vocabulary: Mapping[str, Cause],
    findings: Mapping[str, Finding],
    experiments: Mapping[str, Mapping[str, Mapping[str, Finding]]] | None = None,
) -> Report:
    """Evaluate every flow and return the merged report.

    findings: by probe id. experiments: by flow id, then node id. A cause named by several leaves or flows appears
    once, with its best standing.
    """
    best: dict[str, Verdicted] = {}
    unknown: list[Open] = []
    clear: list[tuple[str, str]] = []
    asked: list[str] = []
    every_flow = tuple(flows)
    for flow in every_flow:
        verdicts, opens, reached = evaluate(flow, findings, (experiments or {}).get(flow.flow, {}))
        unknown += opens
        clear += reached
        if any(finding.verdict.decides for probe in flow.nodes[flow.start].probes if (finding := findings.get(probe))):
            asked.append(flow.flow)
        for verdict in verdicts:
            known = best.get(verdict.cause)
            best[verdict.cause] = verdict if known is None else _merged(known, verdict)
    every = list(best.values())
    confirmed = rank([v for v in every if v.standing is Standing.CONFIRMED], vocabulary)
    possible = sorted(
        (v for v in every if v.standing is Standing.POSSIBLE), key=lambda v: _likely(v, every_flow, vocabulary)
    )
    ruled_out = tuple(v for v in every if v.standing is Standing.RULED_OUT)
    warned = any(finding.verdict in _BAD for finding in findings.values())
    main = next((flow.flow for flow in every_flow), "")
    return Report(
        (*confirmed, *possible), ruled_out, tuple(unknown), tuple(clear), tuple(asked), main=main, warned=warned
    )


def _likely(verdict: Verdicted, flows: Sequence[Flow], vocabulary: Mapping[str, Cause]) -> tuple[bool, int, int, int]:
    """Return a key that sorts possible causes.

    First those to which something that went wrong leads; then what stops the job before what is hygiene, the flows in
    their order, and the nearest first.
    """
    known = vocabulary.get(verdict.cause)
    place = next(i for i, flow in enumerate(flows) if flow.flow == verdict.flow)
    return (not verdict.led, known.severity if known is not None else 0, place, verdict.open)


def _merged(known: Verdicted, other: Verdicted) -> Verdicted:
    """Return the closer of two verdicts on one cause; two that confirm it support each other."""
    if known.standing is other.standing is Standing.CONFIRMED:
        by = {finding.probe or str(id(finding)): finding for finding in (*known.by, *other.by)}
        return msgspec.structs.replace(known, by=tuple(by.values()))
    return other if _closeness(other) < _closeness(known) else known


def _closeness(verdict: Verdicted) -> tuple[int, bool, int]:
    return (list(Standing).index(verdict.standing), not verdict.led, verdict.open)


def settling(unknown: Iterable[Open]) -> list[tuple[tuple[str, ...], tuple[Open, ...]]]:
    """Group open nodes by the slots that would settle them, most nodes first; what only a person can settle is last."""
    groups: dict[tuple[str, ...], list[Open]] = {}
    for open_ in unknown:
        groups.setdefault(tuple(sorted(set(open_.slots))), []).append(open_)
    ordered = sorted(groups.items(), key=lambda group: (not group[0], -len(group[1])))
    return [(slots, tuple(opens)) for slots, opens in ordered]


def rank(confirmed: list[Verdicted], vocabulary: Mapping[str, Cause]) -> tuple[Verdicted, ...]:
    """Order confirmed causes.

    Root before cascade, then severity, specific before general, earliest initiating line first.

    Cascades are folded into the first root as its consequences but stay in the list, after the roots.
    """

    def entry(verdict: Verdicted) -> Cause:
        return vocabulary.get(verdict.cause) or Cause("-", Text(verdict.cause, verdict.cause))

    said = {verdict.cause for verdict in confirmed}
    more_specific = {general for v in confirmed for general in entry(v).general if general in said}

    def key(verdict: Verdicted) -> tuple[bool, int, bool, tuple[float, int], str]:
        cause = entry(verdict)
        return (cause.cascade, cause.severity, verdict.cause in more_specific, _begin(verdict), verdict.cause)

    ordered = sorted(confirmed, key=key)
    roots = [verdict for verdict in ordered if not entry(verdict).cascade and verdict.cause not in more_specific]
    if not roots:
        return tuple(ordered)
    first = roots[0]
    folded = tuple(v.cause for v in ordered if v is not first and (entry(v).cascade or v.cause in entry(first).general))
    return tuple(msgspec.structs.replace(v, consequences=folded) if v is first else v for v in ordered)


def _begin(verdict: Verdicted) -> tuple[float, int]:
    """Return when the cause begins: by time where its lines carry one, else by line.

    What is no log line was there before.
    """
    lines = [citation for citation in verdict.citations if citation.line is not None]
    if not lines:
        return (0.0, 0)
    return min((citation.time or 0.0, citation.line or 0) for citation in lines)


def foremost(possible: Sequence[_Led]) -> Sequence[_Led]:
    """Return the possible causes that are written in full: those to which something that went wrong leads.

    Where it leads to none, the first `POSSIBLE_SHOWN`.
    """
    return tuple(cause for cause in possible if cause.led) or possible[:POSSIBLE_SHOWN]


def exit_code(report: Report) -> ExitCode:
    """Return the exit code of a triage.

    The main question is the start question of the first flow. All is clear when evidence answered it, nothing is
    confirmed, no finding warns of anything, and every flow that evidence could start ended in a clear leaf by evidence
    alone: less evidence never gives a better answer.
    """
    if report.confirmed:
        return ExitCode.CONFIRMED
    ended = {flow for flow, _ in report.clear}
    clear = report.main in report.asked and not report.warned and all(flow in ended for flow in report.asked)
    return ExitCode.CLEAR if clear else ExitCode.OPEN
