"""Random flows that lint clean, findings for their probes, and a slow, plain reading of what triage should say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from hypothesis import strategies as st

from runbook.finding import Citation, Finding, Verdict
from runbook.flow.model import Change, Flow, Node
from runbook.text import Text
from runbook.walk import Decision, How, decide

WORDS = Text("x", "x")
PROBES = {
    "p.two": ("yes", "no"),
    "p.same": ("yes", "no"),
    "p.three": ("yes", "no", "partly"),
    "p.other": ("left", "right"),
}
"""Probes that random flows ask, with their declared answers."""


@st.composite
def flows(draw: st.DrawFn, *, name: str = "random", several: bool = True, experiments: bool = True) -> Flow:
    """Return a flow that lints clean: a DAG from `start` whose ends are causes and clear leaves.

    several: nodes may ask more than one probe. experiments: some nodes are experiments.
    """
    leaves = [f"leaf{i}" for i in range(draw(st.integers(1, 5)))]
    checks = [f"check{i}" for i in range(draw(st.integers(1, 7)))]
    nodes: dict[str, Node] = {}
    for number, check in enumerate(checks):
        targets = [*checks[number + 1 :], *leaves]
        probes = tuple(draw(st.lists(st.sampled_from(list(PROBES)), max_size=2 if several else 1, unique=True)))
        words = dict.fromkeys(word for probe in probes for word in PROBES[probe]) or {"good": None, "bad": None}
        branches = {word: draw(st.sampled_from(targets)) for word in words}
        change = Change(add=("--flag",)) if experiments and draw(st.booleans()) else None
        nodes[check] = Node(question=WORDS, probes=probes, branches=branches, change=change)
    for number, leaf in enumerate(leaves):
        if number and draw(st.booleans()):
            nodes[leaf] = Node(clear=WORDS)
        else:
            nodes[leaf] = Node(cause=f"cause{draw(st.integers(0, 3))}", fix=WORDS)
    whole = Flow(name, WORDS, WORDS, checks[0], nodes)
    reachable = whole.reach(checks[0])
    return Flow(name, WORDS, WORDS, checks[0], {key: node for key, node in nodes.items() if key in reachable})


@st.composite
def finding_of(draw: st.DrawFn, probe: str) -> Finding:
    """Return any finding that `probe` may give; a careless one names an answer though its verdict does not decide."""
    verdict = draw(st.sampled_from(list(Verdict)))
    answer = draw(st.sampled_from(PROBES[probe])) if verdict.decides or draw(st.booleans()) else None
    citations = (Citation("job.log", draw(st.integers(1, 9)), 0, probe),) if verdict is Verdict.PROBLEM else ()
    return Finding(verdict, answer, Text(probe, probe), citations, probe=probe)


@st.composite
def findings(draw: st.DrawFn) -> dict[str, Finding]:
    """Return findings for some of the probes, by id."""
    asked = draw(st.lists(st.sampled_from(list(PROBES)), unique=True))
    return {probe: draw(finding_of(probe)) for probe in asked}


@st.composite
def experiments(draw: st.DrawFn, flow: Flow) -> dict[str, dict[str, Finding]]:
    """Return findings of attached runs for some of the experiment nodes of `flow`."""
    able = [name for name, node in flow.nodes.items() if node.kind == "experiment"]
    attached = draw(st.lists(st.sampled_from(able), unique=True)) if able else []
    return {name: draw(findings()) for name in attached}


def paths(flow: Flow, decisions: Mapping[str, Decision], to: str) -> Iterator[tuple[str, ...]]:
    """Yield every path from the start to node `to` that the decisions leave open, one by one and without shortcuts."""

    def onward(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if path[-1] == to:
            yield path
            return
        decision = decisions[path[-1]]
        for word, target in flow.nodes[path[-1]].branches.items():
            if decision.how is not How.DECIDED or decision.answer == word:
                yield from onward((*path, target))

    return onward((flow.start,))


def decisions_of(
    flow: Flow, known: Mapping[str, Finding], attached: Mapping[str, Mapping[str, Finding]]
) -> dict[str, Decision]:
    """Return what is decided at each node: at an experiment only by the run that was attached to it."""
    return {
        name: decide(node, attached.get(name, {}) if node.kind == "experiment" else known)
        for name, node in flow.nodes.items()
    }


def plain_standing(flow: Flow, decisions: Mapping[str, Decision], leaf: str) -> tuple[str, int]:
    """Return the standing of a leaf and the fewest undecided nodes on a way to it, read from every single path.

    docs/decisions/0003-confirmed.md: confirmed when the last edge of an open path was chosen by a finding with the
    verdict `problem`, or when every edge of an open path was decided.
    """
    found = list(paths(flow, decisions, leaf))
    if not found:
        return "ruled_out", 0
    open_nodes = min(sum(decisions[name].how is not How.DECIDED for name in path[:-1]) for path in found)
    proven = any(
        any(finding.verdict is Verdict.PROBLEM for finding in decisions[before].findings)
        and decisions[before].how is How.DECIDED
        for path in found
        for before, after in pairwise(path)
        if after == leaf
    )
    return ("confirmed" if proven or open_nodes == 0 else "possible"), open_nodes
