"""The walk: a person's path through one flow. Pure functions over frozen data.

Invariants: the active steps always form a path from the flow's start; going back never forgets an answer, it marks
it stale; a person may always answer against the probes, and the step says who answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from runbook.errors import UsageError
from runbook.finding import Finding
from runbook.flow.model import Flow, Node


class By(str, Enum):
    """Who gave an answer."""

    PROBE = "probe"
    PERSON = "person"


class Step(msgspec.Struct, frozen=True):
    """One answered node.

    who: name of the person, "" for a probe. probes: ids whose findings were on the table. time: epoch seconds.
    """

    node: str
    answer: str
    by: By
    who: str = ""
    probes: tuple[str, ...] = ()
    time: float = 0.0
    stale: bool = False


class Walk(msgspec.Struct, frozen=True):
    """The path through `flow`.

    steps: the active path, in order. stale: answers overtaken by going back, oldest first.
    """

    flow: str
    steps: tuple[Step, ...] = ()
    stale: tuple[Step, ...] = ()


class How(str, Enum):
    """How far the evidence decides a node."""

    DECIDED = "decided"
    DISAGREE = "disagree"
    UNKNOWN = "unknown"
    PERSON = "person"


class Decision(msgspec.Struct, frozen=True):
    """What the findings say about a node.

    answer: the branch word when decided, else None. findings: those that chose the answer, or that disagree, or
    that explain why it is unknown.
    """

    how: How
    answer: str | None = None
    findings: tuple[Finding, ...] = ()


def decide(node: Node, findings: Mapping[str, Finding]) -> Decision:
    """Return what `findings` (by probe id) decide about `node`.

    One distinct answer among the deciding verdicts chooses the branch; none leaves it unknown; two or more go to
    the person.
    """
    if not node.probes:
        return Decision(How.PERSON)
    asked = tuple(findings[probe] for probe in node.probes if probe in findings)
    deciding = tuple(finding for finding in asked if finding.verdict.decides and finding.answer in node.branches)
    answers = {finding.answer for finding in deciding}
    if len(answers) == 1:
        return Decision(How.DECIDED, deciding[0].answer, deciding)
    if answers:
        return Decision(How.DISAGREE, None, deciding)
    return Decision(How.UNKNOWN, None, asked)


def position(flow: Flow, walk: Walk) -> str:
    """Return the id of the node at which the walk stands."""
    if not walk.steps:
        return flow.start
    last = walk.steps[-1]
    return flow.nodes[last.node].branches[last.answer]


def fits(flow: Flow, walk: Walk, node: str, word: str) -> bool:
    """Return whether `word` may answer `node` now.

    The walk stands there and the flow, as it is today, has the branch.
    """
    try:
        return position(flow, walk) == node and word in flow.nodes[node].branches
    except KeyError:  # an earlier step names what the flow no longer has
        return False


def answer(flow: Flow, walk: Walk, step: Step) -> Walk:
    """Return the walk with `step` taken.

    Raises UsageError when the step is not at the walk's position or the answer is not one of the node's branches.
    """
    here = position(flow, walk)
    node = flow.nodes[here]
    if step.node != here:
        raise UsageError(
            f"flow {flow.flow}: the walk stands at {here}, not at {step.node}", "go back to that node first"
        )
    if step.answer not in node.branches:
        words = ", ".join(node.branches) or "none, it is a leaf"
        raise UsageError(f"flow {flow.flow}, node {here}: {step.answer!r} is not an answer", f"answers: {words}")
    return msgspec.structs.replace(walk, steps=(*walk.steps, step))


def back(walk: Walk, node: str | None = None) -> Walk:
    """Return the walk moved back to `node` (default: the last answered one); what followed becomes stale.

    Raises UsageError when the walk never answered that node.
    """
    if not walk.steps:
        raise UsageError(f"flow {walk.flow}: this is the first node", "there is nothing to go back to")
    target = node if node is not None else walk.steps[-1].node
    for index, step in enumerate(walk.steps):
        if step.node == target:
            overtaken = tuple(msgspec.structs.replace(step, stale=True) for step in walk.steps[index:])
            return Walk(walk.flow, walk.steps[:index], (*walk.stale, *overtaken))
    raise UsageError(f"flow {walk.flow}: node {target} was not answered on this path", "choose a node of the path")


def earlier_answer(walk: Walk, node: str) -> Step | None:
    """Return the latest stale answer of `node`, to be offered again; None when there is none."""
    return next((step for step in reversed(walk.stale) if step.node == node), None)


class Mark(str, Enum):
    """The state of a node in the drawn tree."""

    DONE = "done"
    CURRENT = "current"
    STALE = "stale"
    RULED_OUT = "ruled_out"
    UNKNOWN = "unknown"
    AHEAD = "ahead"


def marks(flow: Flow, walk: Walk, findings: Mapping[str, Finding]) -> dict[str, Mark]:
    """Return the mark of every node.

    Ruled out is what no open path from the position can reach; unknown is a node ahead whose probes were asked and
    did not decide.
    """
    here = position(flow, walk)
    ahead = flow.reach(here)
    result: dict[str, Mark] = {}
    stale = {step.node for step in walk.stale}
    done = {step.node for step in walk.steps}
    for name, node in flow.nodes.items():
        if name == here:
            result[name] = Mark.CURRENT
        elif name in done:
            result[name] = Mark.DONE
        elif name not in ahead:
            result[name] = Mark.STALE if name in stale else Mark.RULED_OUT
        elif name in stale:
            result[name] = Mark.STALE
        elif any(probe in findings for probe in node.probes) and decide(node, findings).how is not How.DECIDED:
            result[name] = Mark.UNKNOWN
        else:
            result[name] = Mark.AHEAD
    return result
