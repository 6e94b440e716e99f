"""Drawings of a flow: Mermaid for documents, a tree of lines for the terminal."""

from __future__ import annotations

import re

from runbook.flow.model import Flow, Node
from runbook.text import sanitise

_LABEL = re.compile(r'["\[\](){}<>|#;`]')


def mermaid(flow: Flow, language: str = "en") -> str:
    """Return the flow as a Mermaid flowchart.

    Checks are boxes, experiments hexagons, causes stadiums, clear leaves circles.
    """
    ids = {name: f"n{number}" for number, name in enumerate(flow.nodes)}
    lines = ["flowchart TD"]
    shapes = {"check": ("[", "]"), "experiment": ("{{", "}}"), "cause": ("([", "])"), "clear": ("((", "))")}
    for name, node in flow.nodes.items():
        opening, closing = shapes[node.kind]
        lines.append(f'    {ids[name]}{opening}"{_plain(_caption(name, node, language))}"{closing}')
    for name, node in flow.nodes.items():
        lines += [f'    {ids[name]} -->|"{_plain(word)}"| {ids[target]}' for word, target in node.branches.items()]
    return "\n".join(lines) + "\n"


def tree_lines(flow: Flow, language: str = "en", *, ascii_only: bool = False) -> list[str]:
    """Return the flow as an indented tree; a node that was drawn before is named with an arrow and not drawn again."""
    bars = ("|-- ", "`-- ", "|   ", "    ") if ascii_only else ("├── ", "└── ", "│   ", "    ")
    again = "(see above)" if language == "en" else "（见上）"
    drawn: set[str] = set()
    lines: list[str] = []
    stack: list[tuple[str, str, str, str]] = [(flow.start, "", "", "")]
    while stack:
        name, lead, deeper, word = stack.pop()
        node = flow.nodes[name]
        label = f"{word}: " if word else ""
        if name in drawn:
            lines.append(sanitise(f"{lead}{label}{name} {again}"))
            continue
        drawn.add(name)
        lines.append(sanitise(f"{lead}{label}{_caption(name, node, language)}"))
        branches = list(node.branches.items())
        for number, (answer, target) in reversed(list(enumerate(branches))):
            last = number == len(branches) - 1
            stack.append((target, deeper + bars[1 if last else 0], deeper + bars[3 if last else 2], answer))
    return lines


def _caption(name: str, node: Node, language: str) -> str:
    if node.cause is not None:
        return f"{name}: {node.cause}" if node.cause != name else node.cause
    words = node.clear or node.question
    return f"{name}: {words.say(language)}" if words else name


def _plain(words: str) -> str:
    return _LABEL.sub(" ", sanitise(words))
