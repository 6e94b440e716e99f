"""A graph check of flows: what would leave a person, or triage, without a way on.

Lint reads positions from the loader, so every complaint has its true line and column. A flow that lints clean is a
directed acyclic graph from its start to its leaves in which every declared answer of every probe has a branch; the
walk and triage rely on that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from runbook.flow.load import LoadedFlow, Place, completed
from runbook.flow.model import Action, Cause, Flow, Node
from runbook.text import Text

RESERVED = ("unknown",)
"""Words that are no answers: unknown always goes to the person."""


class Complaint(NamedTuple):
    """One fault of a flow file with its place."""

    place: Place
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message} ({self.hint})"


def lint(loaded: LoadedFlow, answers: Mapping[str, Sequence[str]], vocabulary: Mapping[str, Cause]) -> list[Complaint]:
    """Return the complaints about one flow, in file order. answers: declared answers by probe id.

    A fault in what the vocabulary says of a cause is told at each leaf that says it.
    """
    loaded = completed(loaded, vocabulary)
    found = [
        *_words(loaded),
        *_references(loaded, answers, vocabulary),
        *_graph(loaded),
        *_ways(loaded),
        *_matrices(loaded),
    ]
    return sorted(set(found))


def unsound(loaded: LoadedFlow) -> Complaint | None:
    """Return the first fault for which a walk or triage of this flow would fail, None when there is none.

    Such a flow cannot be used at all; every other fault that lint finds only makes it worse.
    """
    return next(iter(sorted([*_ways(loaded), *_cycles(loaded)])), None)


def lint_guide(flows: Iterable[LoadedFlow], sections: Iterable[tuple[str, Place]]) -> list[Complaint]:
    """Return a complaint for each section of the guide that no node of any flow answers.

    sections: each with the place that asks for it.
    """
    covered = {section for loaded in flows for node in loaded.flow.nodes.values() for section in node.guide_ids}
    return [
        Complaint(place, f"guide section {section!r} has no node", "add a node with this guide id")
        for section, place in sections
        if section not in covered
    ]


def _at(loaded: LoadedFlow, message: str, hint: str, *keys: str) -> Complaint:
    return Complaint(loaded.source.place(*keys), message, hint)


def _words(loaded: LoadedFlow) -> list[Complaint]:
    """Return complaints about missing words in either language."""
    flow = loaded.flow
    texts: list[tuple[tuple[str, ...], Text | None]] = [(("title",), flow.title), (("symptom",), flow.symptom)]
    for number, matrix in enumerate(flow.matrices):
        base = ("matrices", str(number))
        texts.append(((*base, "title"), matrix.title))
        for field in ("rows", "columns"):
            texts += [((*base, field, str(i)), text) for i, text in enumerate(getattr(matrix, field))]
    for name, node in flow.nodes.items():
        base = ("nodes", name)
        texts += [((*base, field), getattr(node, field)) for field in ("note", "question", "fix", "clear")]
        texts += [((*base, "answers", word), text) for word, text in node.answers.items()]
        texts += [((*base, "actions", str(i)), action.say) for i, action in enumerate(node.actions)]
    return [
        _at(loaded, f"the words in {language!r} are missing", f"write {language}: …", *keys)
        for keys, text in texts
        if text is not None
        for language in ("en", "zh")
        if not getattr(text, language).strip()
    ]


def _references(
    loaded: LoadedFlow, answers: Mapping[str, Sequence[str]], vocabulary: Mapping[str, Cause]
) -> list[Complaint]:
    """Return complaints about names that lead nowhere and nodes that are half one kind, half another."""
    found: list[Complaint] = []
    for name, node in loaded.flow.nodes.items():
        base = ("nodes", name)
        for probe in (*node.probes, *node.verify):
            if probe not in answers:
                field = "probes" if probe in node.probes else "verify"
                found.append(
                    _at(loaded, f"{name}: unknown probe {probe!r}", "see slime-runbook probes list", *base, field)
                )
        found += [
            _at(
                loaded,
                f"{name}: action {i + 1} needs exactly one of command, change, link",
                "split it",
                *base,
                "actions",
            )
            for i, action in enumerate(node.actions)
            if not _one(action)
        ]
        if node.is_leaf:
            found += _leaf(loaded, name, node, vocabulary)
        else:
            found += _check(loaded, name, node, answers)
    return found


def _one(action: Action) -> bool:
    return sum(part is not None for part in (action.command, action.change, action.link)) == 1


def _leaf(loaded: LoadedFlow, name: str, node: Node, vocabulary: Mapping[str, Cause]) -> list[Complaint]:
    base = ("nodes", name)
    found: list[Complaint] = []
    if node.branches or node.question or node.probes or (node.cause is not None and node.clear is not None):
        found.append(_at(loaded, f"{name}: a leaf has no question, probes or branches", "split the node", *base))
    found += [
        _at(loaded, f"{name}: a leaf has no {field}", "move it to a check before it", *base, field)
        for field in ("change", "answers")
        if getattr(node, field)
    ]
    if node.cause is not None and node.cause not in vocabulary:
        found.append(_at(loaded, f"{name}: unknown cause {node.cause!r}", "add it to causes.yaml", *base, "cause"))
    if node.cause is not None and node.fix is None:
        hint = "say what to do, here or in causes.yaml"
        found.append(_at(loaded, f"{name}: a cause needs a fix", hint, *base, "cause"))
    return found


def _check(loaded: LoadedFlow, name: str, node: Node, answers: Mapping[str, Sequence[str]]) -> list[Complaint]:
    """Return complaints about a check; a branch beside those of its probes is a person's, and needs words."""
    base = ("nodes", name)
    found: list[Complaint] = []
    if node.question is None:
        found.append(_at(loaded, f"{name}: a check needs a question", "write question: {en: …, zh: …}", *base))
    if not node.branches:
        found.append(_at(loaded, f"{name}: no branch", "add branches, a cause or clear", *base))
    if node.fix or node.verify:
        found.append(_at(loaded, f"{name}: fix and verify belong to a cause", "move them to the leaf", *base))
    for probe in node.probes:
        found += [
            _at(
                loaded, f"{name}: {probe} may answer {word!r}, which has no branch", "add the branch", *base, "branches"
            )
            for word in answers.get(probe, ())
            if word not in node.branches
        ]
    declared = {word for probe in node.probes for word in answers.get(probe, ())}
    if node.probes and all(probe in answers for probe in node.probes):
        found += [
            _at(loaded, f"{name}: no probe of this node answers {word!r}", "remove the branch", *base, "branches", word)
            for word in node.branches
            if word not in declared and word not in node.answers
        ]
    found += [
        _at(
            loaded,
            f"{name}: {word!r} is not an answer",
            "unknown goes to the person by itself",
            *base,
            "branches",
            word,
        )
        for word in RESERVED
        if word in node.branches
    ]
    found += [
        _at(loaded, f"{name}: words for {word!r}, which is no branch", "remove them", *base, "answers", word)
        for word in node.answers
        if word not in node.branches
    ]
    return found


def _ways(loaded: LoadedFlow) -> list[Complaint]:
    """Return complaints about a start and branches that lead to no node."""
    flow = loaded.flow
    found = [
        _at(
            loaded,
            f"{name}: branch {word!r} leads to unknown node {target!r}",
            "name a node",
            *("nodes", name, "branches", word),
        )
        for name, node in flow.nodes.items()
        for word, target in node.branches.items()
        if target not in flow.nodes
    ]
    if flow.start not in flow.nodes:
        found.append(_at(loaded, f"start names no node: {flow.start!r}", "name one of the nodes", "start"))
    return found


def _matrices(loaded: LoadedFlow) -> list[Complaint]:
    """Return complaints about grids whose shape, cells or answers do not fit the flow."""
    flow, found = loaded.flow, []
    for number, matrix in enumerate(flow.matrices):
        base = ("matrices", str(number))
        shape = (len(matrix.rows), len(matrix.columns))
        if len(matrix.cells) != shape[0] or any(len(row) != shape[1] for row in matrix.cells):
            hint = "one list a row, one entry a column"
            found.append(
                _at(loaded, f"matrix {number + 1}: cells are not {shape[0]} × {shape[1]}", hint, *base, "cells")
            )
        for name in matrix.nodes:
            if name not in flow.nodes or flow.nodes[name].kind != "experiment":
                hint = "name an experiment of this flow"
                found.append(_at(loaded, f"matrix {number + 1}: {name!r} is no experiment", hint, *base, "cells"))
        for field in ("node", "by"):
            name = getattr(matrix.hand, field)
            if name not in flow.nodes or flow.nodes[name].kind != "check":
                hint = "name a check of this flow"
                found.append(_at(loaded, f"matrix {number + 1}: {name!r} is no check", hint, *base, "hand", field))
        branches = flow.nodes[matrix.hand.by].branches if matrix.hand.by in flow.nodes else {}
        for word, (row, column) in matrix.hand.cells.items():
            if word not in branches or not (0 <= row < shape[0] and 0 <= column < shape[1]):
                hint = "an answer of that check, and a row and column from 0"
                found.append(_at(loaded, f"matrix {number + 1}: {word!r} names no cell", hint, *base, "hand", "cells"))
    return found


def _graph(loaded: LoadedFlow) -> list[Complaint]:
    """Return complaints about nodes no way leads to, nodes without a way to a leaf, and cycles."""
    flow = loaded.flow
    reachable = flow.reach(flow.start)
    found = [
        _at(loaded, f"{name}: no way leads here from {flow.start!r}", "add a branch or remove it", "nodes", name)
        for name in flow.nodes
        if name not in reachable
    ]
    found += [
        _at(loaded, f"{name}: no way from here to a leaf", "end it in a cause or clear", "nodes", name)
        for name in reachable
        if not any(flow.nodes[target].is_leaf for target in flow.reach(name))
    ]
    return [*found, *_cycles(loaded)]


def _cycles(loaded: LoadedFlow) -> list[Complaint]:
    cycle = find_cycle(loaded.flow)
    way = " → ".join((*cycle, *cycle[:1]))
    return [_at(loaded, f"{cycle[0]}: cycle {way}", "a walk must end", "nodes", cycle[0], "branches")] if cycle else []


def find_cycle(flow: Flow) -> list[str]:
    """Return the node ids of one cycle in order, or an empty list. Iterative: flows may be deep."""
    state: dict[str, int] = {}
    for root in flow.nodes:
        path: list[str] = []
        stack: list[tuple[str, bool]] = [(root, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                path.pop()
                state[name] = 2
            elif state.get(name) == 1:
                return path[path.index(name) :]
            elif name in flow.nodes and name not in state:
                state[name] = 1
                path.append(name)
                stack.append((name, True))
                stack.extend((target, False) for target in flow.nodes[name].branches.values())
    return []
