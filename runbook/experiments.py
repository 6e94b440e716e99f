"""Experiments as a person looks at them: grids that fill in, and the runs of one session side by side. Pure.

Invariant: a cell says only what the run that belongs to it answered; what was not run stays open, and which cell comes
next is decided by the flow's branches alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from runbook.finding import Table
from runbook.flow.model import Flow, Matrix
from runbook.session.state import SessionState
from runbook.text import Text, sanitise
from runbook.triage import Report
from runbook.walk import How, position

FIRST = Text("this run", "本次运行")
_NEXT = Text("next", "下一个")
_OPEN = Text("not run", "未运行")
_NEEDLESS = Text("not needed", "不需要")
_UNTOLD = Text("no answer yet", "尚无结论")
_OTHER = Text("made without the change", "未带此改动")


def grids(flow: Flow, state: SessionState, language: str) -> tuple[Table, ...]:
    """Return each matrix of a flow as a table of what its cells say; one that nobody has come to yet is left out."""
    return tuple(_table(flow, matrix, state, language) for matrix in flow.matrices if _begun(flow, matrix, state))


def grids_at(flow: Flow, node: str, state: SessionState, language: str) -> tuple[Table, ...]:
    """Return the matrices of which a node is a cell, or tells the cell."""
    near = (matrix for matrix in flow.matrices if node in matrix.nodes or node == matrix.hand.by)
    return tuple(_table(flow, matrix, state, language) for matrix in near)


def _begun(flow: Flow, matrix: Matrix, state: SessionState) -> bool:
    walked = {step.node for step in state.walk(flow.flow).steps}
    return any((flow.flow, node) in state.attached or node in walked for node in matrix.nodes) or (
        bool(state.walk(flow.flow).steps) and position(flow, state.walk(flow.flow)) in matrix.nodes
    )


def _table(flow: Flow, matrix: Matrix, state: SessionState, language: str) -> Table:
    at_hand = state.decision(flow, matrix.hand.by)
    hand = matrix.hand.cells.get(at_hand.answer or "")
    here = position(flow, state.walk(flow.flow))
    if here == matrix.hand.by and at_hand.how is How.DECIDED:
        here = flow.nodes[here].branches[at_hand.answer or ""]
    rows = []
    for number, name in enumerate(matrix.rows):
        cells = []
        for column in range(len(matrix.columns)):
            if hand == (number, column):
                word = _said(flow, matrix.hand.node, state)
                cells.append(_with(word or _UNTOLD, FIRST).say(language))
            else:
                cells.append(_cell(flow, matrix.cells[number][column], state, here).say(language))
        rows.append((name.say(language), *cells))
    return Table(matrix.title, ("", *(column.say(language) for column in matrix.columns)), tuple(rows))


def _cell(flow: Flow, nodes: tuple[str, ...], state: SessionState, here: str) -> Text:
    """Return what a cell says: the answer of its run, or how far it is. here: the node that is to be answered."""
    walk = state.walk(flow.flow)
    steps = {step.node: step.answer for step in walk.steps}
    for node in nodes:
        run = state.attached.get((flow.flow, node))
        if run is None and node not in steps:
            continue
        word = flow.nodes[node].answers.get(steps[node]) if node in steps else _said(flow, node, state)
        arrival = state.arrival(flow.flow, node)
        if word is None and arrival is not None and arrival.lacks:
            word = _OTHER
        return _with(word or _UNTOLD, Text(run, run)) if run is not None else (word or _UNTOLD)
    if here in nodes:
        return _NEXT
    ahead = flow.reach(here)
    return _OPEN if not nodes or any(node in ahead for node in nodes) else _NEEDLESS


def _said(flow: Flow, node: str, state: SessionState) -> Text | None:
    """Return the words of what the probes decide at a node."""
    decision = state.decision(flow, node)
    if decision.how is not How.DECIDED or decision.answer is None:
        return None
    return flow.nodes[node].answers.get(decision.answer, Text(decision.answer, decision.answer))


def _with(words: Text, run: Text) -> Text:
    return Text(f"{words.en} ({run.en})", f"{words.zh}（{run.zh}）")


class Run(NamedTuple):
    """An attached run. name: in the session. node: the experiment that it was made for. root: where it lies."""

    name: str
    node: str
    root: str


def runs(state: SessionState) -> tuple[Run, ...]:
    """Return the attached runs in order, also one that gave way to another."""
    return tuple(Run(one.run, f"{one.flow}/{one.node}", sanitise(one.root)) for one in state.arrivals.values())


def first_experiment(flow: Flow, state: SessionState) -> str | None:
    """Return the experiment that has to be run now, None when something else is open or nothing is.

    It is the first node on the way that evidence leads, where that is an experiment without an answer.
    """
    node = flow.start
    while not flow.nodes[node].is_leaf:
        decision = state.decision(flow, node)
        if decision.how is not How.DECIDED or decision.answer is None:
            return node if flow.nodes[node].kind == "experiment" else None
        node = flow.nodes[node].branches[decision.answer]
    return None


def next_experiment(state: SessionState, flows: Mapping[str, Flow], report: Report) -> tuple[Flow, str] | None:
    """Return the experiment that is the next thing to do, with its flow; None when a fix or other evidence comes first.

    A confirmed cause comes first, unless it is of the very flow that asks for the experiment: then it says no more than
    that something is wrong.
    """
    asked = report.asked if not report.confirmed else [report.confirmed[0].flow]
    for name in asked:
        if name in flows and (node := first_experiment(flows[name], state)) is not None:
            return flows[name], node
    return None


def side_by_side(state: SessionState, language: str) -> Table | None:
    """Return what the probes say of the runs of a session, those first that differ.

    One row a probe that was asked of two runs or more and knew an answer of one at least.
    """
    names = ("", *(run for run in state.runs if any(of == run for of, _ in state.findings)))
    if len(names) < 2:
        return None
    rows = sorted(_compared(state, names), key=lambda row: len({word for word in row[1:] if word}) < 2)
    title = Text("The runs side by side", "各次运行对比")
    columns = (Text("probe", "探针").say(language), FIRST.say(language), *names[1:])
    return Table(title, columns, tuple(rows)) if rows else None


def _compared(state: SessionState, runs: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    by_run = {run: state.findings_of(run) for run in runs}
    for probe in sorted({name for found in by_run.values() for name in found}):
        found = [by_run[run].get(probe) for run in runs]
        known = [one for one in found if one is not None]
        if len(known) >= 2 and any(one.verdict.decides for one in known):
            words = (one.answer or one.verdict.value if one is not None else "" for one in found)
            yield (probe, *words)
