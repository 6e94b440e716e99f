"""The shape of a flow: what may stand in a flow's YAML, and nothing else.

The JSON Schema for editors is generated from these same structures (`runbook.flow.schema`), so the two cannot
differ. Unknown keys are refused: a misspelt key would otherwise silently drop a branch.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from runbook.text import Text


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An edit of a launch script, described; never carried out on the original.

    add: flags to append. remove: flags to take away. set: flag to new value. env: variable to value, for the job's
    processes.
    """

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    set: dict[str, str] = {}
    env: dict[str, str] = {}

    def lines(self) -> tuple[str, ...]:
        """Return what a person does to the launch script, as the lines of a diff."""
        return (
            *(f"- {flag}" for flag in self.remove),
            *(f"+ {flag}" for flag in self.add),
            *(f"+ {flag} {value}" for flag, value in self.set.items()),
            *(f"+ export {name}={value}" for name, value in self.env.items()),
        )


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing a person can do. Exactly one of command, change and link is given; say explains it."""

    say: Text | None = None
    command: str | None = None
    change: Change | None = None
    link: str | None = None


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One node of a flow.

    A check has a question and branches (answer to node id) and, where it is automated, probes. An experiment is a
    check that also has a change: its probes are asked of the new run. A cause is a leaf: its note, fix, actions and
    verify stand here where they are of this place in the flow, else the cause's own apply (`completed`). A clear node
    is a leaf at which this flow found nothing wrong.
    """

    guide: tuple[str, ...] | str = ()
    note: Text | None = None
    question: Text | None = None
    probes: tuple[str, ...] = ()
    answers: dict[str, Text] = {}
    branches: dict[str, str] = {}
    change: Change | None = None
    cause: str | None = None
    fix: Text | None = None
    actions: tuple[Action, ...] = ()
    verify: tuple[str, ...] = ()
    clear: Text | None = None

    @property
    def kind(self) -> str:
        """Return "cause", "clear", "experiment" or "check"."""
        if self.cause is not None:
            return "cause"
        if self.clear is not None:
            return "clear"
        return "experiment" if self.change is not None else "check"

    @property
    def is_leaf(self) -> bool:
        """Whether a walk ends here."""
        return self.cause is not None or self.clear is not None

    @property
    def guide_ids(self) -> tuple[str, ...]:
        """Return the sections of the guide that this node answers."""
        return (self.guide,) if isinstance(self.guide, str) else self.guide


class Hand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which cell of a matrix the run at hand is.

    node: the check whose answer fills the cell. by: the check that tells which cell it is. cells: answer of `by` to
    (row, column), from 0.
    """

    node: str
    by: str
    cells: dict[str, tuple[int, int]]


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Experiments that vary two things, drawn as a grid that fills in; the flow's branches say which cell comes next.

    rows, columns: what each stands for. cells: for each row and column the experiments that are this cell, none for
    one that only the run at hand can be.
    """

    title: Text
    rows: tuple[Text, ...]
    columns: tuple[Text, ...]
    hand: Hand
    cells: tuple[tuple[tuple[str, ...], ...], ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the experiments of all cells."""
        return tuple(node for row in self.cells for cell in row for node in cell)


class Flow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One decision tree.

    flow: its id. symptom: what a person sees who should start here. start: id of the first node.

    order: place in lists, lowest first. matrices: grids of experiments.
    """

    flow: str
    title: Text
    symptom: Text
    start: str
    nodes: dict[str, Node]
    guide: tuple[str, ...] | str = ()
    order: int = 100
    matrices: tuple[Matrix, ...] = ()

    def completed(self, vocabulary: Mapping[str, Cause]) -> Flow:
        """Return the flow in which each leaf says what its cause says, as far as it does not say it itself."""
        return msgspec.structs.replace(self, nodes={name: _said(node, vocabulary) for name, node in self.nodes.items()})

    def reach(self, node: str) -> set[str]:
        """Return every node id that can be reached from `node`, itself included; unknown targets are passed over."""
        seen: set[str] = set()
        todo = [node]
        while todo:
            name = todo.pop()
            if name in self.nodes and name not in seen:
                seen.add(name)
                todo.extend(self.nodes[name].branches.values())
        return seen


class Cause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the vocabulary of causes.

    guide: section of the guide, "-" beyond it. cascade: it is a consequence whenever another, non-cascade cause is
    confirmed beside it. severity: 0 stops or corrupts the job, 1 degrades it, 2 is hygiene; more severe causes come
    first. general: ids of causes that say less than this one, which it replaces in the order when both are
    confirmed. note, fix, actions, verify: what every leaf says that names this cause and does not say it itself.
    """

    guide: str
    title: Text
    cascade: bool = False
    severity: int = 0
    general: tuple[str, ...] = ()
    note: Text | None = None
    fix: Text | None = None
    actions: tuple[Action, ...] = ()
    verify: tuple[str, ...] = ()


def _said(node: Node, vocabulary: Mapping[str, Cause]) -> Node:
    cause = vocabulary.get(node.cause or "")
    if cause is None:
        return node
    return msgspec.structs.replace(
        node,
        note=node.note or cause.note,
        fix=node.fix or cause.fix,
        actions=node.actions or cause.actions,
        verify=node.verify or cause.verify,
    )


class Vocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `causes.yaml`: every cause that the flows beside it may name.

    guide: sections of the guide that these flows are about; lint asks for a node for each.
    """

    causes: dict[str, Cause]
    guide: tuple[str, ...] = ()
