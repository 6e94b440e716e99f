"""How a flow's graph becomes indented lines. Pure.

A flow is mostly one line of checks with causes beside it. So the branch with the most nodes ahead goes on at the same
depth (the spine) and the others stand indented above its continuation; a check that several branches share is drawn
once, on the outermost line that leads to it, and only named elsewhere. An end that several checks share hangs below
each of them: `home` tells which of these lines stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runbook.flow.model import Flow
from runbook.session.state import SessionState


@dataclass(frozen=True)
class Line:
    """One line.

    node: its id. answer: the word that leads here ("" for the start). parent: node it hangs from, "" for the start.

    rails: for each depth, whether the spine of that depth goes on below. again: it is drawn in full elsewhere.
    inside: how many lines hang below it, which fold away with it.
    """

    node: str
    answer: str
    parent: str
    rails: tuple[bool, ...]
    again: bool = False
    inside: int = 0

    @property
    def key(self) -> str:
        """Return what identifies the line: the node, or the edge where it is named again."""
        return f"{self.parent}\0{self.answer}\0{self.node}" if self.again else self.node


def outline(flow: Flow) -> tuple[Line, ...]:
    """Return the lines of `flow`, from its start; unreachable nodes are left out."""
    lines: list[Line] = []
    seen: set[str] = set()
    reach = {name: frozenset(flow.reach(name)) for name in flow.nodes}

    def draw(start: str, answer: str, parent: str, rails: tuple[bool, ...], below: frozenset[str]) -> None:
        name: str | None = start
        while name is not None:
            if name in seen or (name in below and not flow.nodes[name].is_leaf):
                lines.append(Line(name, answer, parent, rails, again=True))
                return
            seen.add(name)
            place = len(lines)
            lines.append(Line(name, answer, parent, rails))
            into: dict[str, list[str]] = {}
            for word, target in flow.nodes[name].branches.items():
                into.setdefault(target, []).append(word)
            fresh = [t for t in into if t not in seen and t not in below and not flow.nodes[t].is_leaf]
            spine = max(fresh, key=lambda target: len(reach[target]), default=None)
            later = below | reach[spine] if spine is not None else below
            for target, said in into.items():
                if target != spine:
                    draw(target, " / ".join(said), name, (*rails, spine is not None), later)
            lines[place] = Line(name, answer, parent, rails, inside=len(lines) - place - 1)
            if spine is not None:
                answer, parent = " / ".join(into[spine]), name
            name = spine

    draw(flow.start, "", "", (), frozenset())
    return tuple(lines)


def visible(lines: tuple[Line, ...], folded: frozenset[str]) -> tuple[Line, ...]:
    """Return the lines that are left when the nodes in `folded` hide what hangs below them."""
    result: list[Line] = []
    skip = 0
    for line in lines:
        if skip:
            skip -= 1
            continue
        result.append(line)
        if line.node in folded and not line.again:
            skip = line.inside
    return tuple(result)


def home(lines: Sequence[Line], node: str, parent: str) -> int:
    """Return the place of the line that stands for `node`, -1 for none.

    parent: from which the way comes, "" when no way is known. A check stands where it is drawn in full.
    """
    places = [place for place, line in enumerate(lines) if line.node == node]
    full = next((place for place in places if not lines[place].again), -1)
    if full < 0 or lines[full].inside:
        return full
    return next((place for place in places if parent and lines[place].parent == parent), full)


def came_from(flow: Flow, state: SessionState, nodes: Iterable[str]) -> dict[str, str]:
    """Return for each of `nodes` the check from which the walk, else the evidence, comes to it; others are left out.

    Of several checks whose answer leads there, one to which the way from the start leads, else the first by name.
    """
    said = {step.node: step.answer for step in state.walk(flow.flow).steps}
    found = {name: state.decision(flow, name).answer or "" for name in flow.reach(flow.start)}
    walked, proven = _leads(flow, {**found, **said}), _leads(flow, found)
    ways = {node: _before(flow, walked, node) or _before(flow, proven, node) for node in nodes}
    return {node: way for node, way in ways.items() if way}


def _leads(flow: Flow, answers: Mapping[str, str]) -> dict[str, str]:
    """Return where the answers lead."""
    branches = {name: flow.nodes[name].branches for name in answers if name in flow.nodes}
    return {name: out[answers[name]] for name, out in branches.items() if answers[name] in out}


def _before(flow: Flow, leads: Mapping[str, str], node: str) -> str:
    here, seen = flow.start, set[str]()
    while here in leads and here not in seen:
        seen.add(here)
        if leads[here] == node:
            return here
        here = leads[here]
    return min((name for name, target in leads.items() if target == node), default="")
