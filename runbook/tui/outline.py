"""How a flow's graph becomes indented lines. Pure.

A flow is mostly one line of checks with causes beside it. So the branch with the most nodes ahead goes on at the same
depth (the spine) and the others stand indented above its continuation; a check that several branches share is drawn
once, on the outermost line that leads to it, and only named elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from runbook.flow.model import Flow


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
