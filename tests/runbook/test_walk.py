"""Tests of runbook.walk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runbook.errors import UsageError
from runbook.finding import Finding, Verdict
from runbook.flow.load import load_flow
from runbook.flow.model import Flow, Node
from runbook.text import Text
from runbook.walk import (
    By,
    How,
    Mark,
    Step,
    Walk,
    answer,
    back,
    decide,
    earlier_answer,
    fits,
    marks,
    position,
)
from tests.runbook.strategies import PROBES, finding_of, findings, flows

SMALL = load_flow(Path(__file__).parents[1] / "data" / "flows" / "small.yaml").flow


def step(node: str, word: str) -> Step:
    """Return a person's answer."""
    return Step(node, word, By.PERSON, "ann")


@st.composite
def walks(draw: st.DrawFn, flow: Flow) -> Walk:
    """Return a walk through `flow` of any length, with some ways back in it."""
    walk = Walk(flow.flow)
    for _ in range(draw(st.integers(0, 12))):
        here = flow.nodes[position(flow, walk)]
        if walk.steps and (here.is_leaf or draw(st.integers(0, 3)) == 0):
            walk = back(walk, draw(st.sampled_from([taken.node for taken in walk.steps])))
        elif not here.is_leaf:
            walk = answer(flow, walk, step(position(flow, walk), draw(st.sampled_from(list(here.branches)))))
    return walk


@given(st.data())
def test_active_steps_form_a_path(data: st.DataObject) -> None:
    """Whatever a person answers and takes back, the active steps are a path from the start to the position."""
    flow = data.draw(flows())
    walk = data.draw(walks(flow))
    here = flow.start
    for taken in walk.steps:
        assert taken.node == here
        assert not taken.stale
        here = flow.nodes[here].branches[taken.answer]
    assert position(flow, walk) == here
    assert all(taken.stale for taken in walk.stale)


@given(st.data())
def test_back_and_the_same_answers_lead_to_the_same_place(data: st.DataObject) -> None:
    """Going back forgets nothing: what followed is stale, is offered again, and leads to the same position."""
    flow = data.draw(flows())
    walk = data.draw(walks(flow))
    assume(walk.steps)
    index = data.draw(st.integers(0, len(walk.steps) - 1))
    returned = back(walk, walk.steps[index].node)
    assert position(flow, returned) == walk.steps[index].node
    assert [s.answer for s in returned.stale[len(walk.stale) :]] == [s.answer for s in walk.steps[index:]]
    again = returned
    for _ in walk.steps[index:]:
        offered = earlier_answer(again, position(flow, again))
        assert offered is not None
        again = answer(flow, again, step(offered.node, offered.answer))
    assert position(flow, again) == position(flow, walk)
    assert [(s.node, s.answer) for s in again.steps] == [(s.node, s.answer) for s in walk.steps]


@given(st.data())
def test_marks_partition_the_flow(data: st.DataObject) -> None:
    """Every node has one mark: one is current, the answered ones are done, what no open way reaches is out."""
    flow = data.draw(flows())
    walk = data.draw(walks(flow))
    known = data.draw(findings())
    marked = marks(flow, walk, known)
    assert set(marked) == set(flow.nodes)
    here = position(flow, walk)
    assert [name for name, mark in marked.items() if mark is Mark.CURRENT] == [here]
    assert {name for name, mark in marked.items() if mark is Mark.DONE} == {taken.node for taken in walk.steps}
    out = {name for name, mark in marked.items() if mark is Mark.RULED_OUT}
    assert not out & flow.reach(here)
    stale = {taken.node for taken in walk.stale}
    assert {name for name, mark in marked.items() if mark is Mark.STALE} <= stale
    for name, mark in marked.items():
        if mark is Mark.UNKNOWN:
            assert any(probe in known for probe in flow.nodes[name].probes)
            assert decide(flow.nodes[name], known).how is not How.DECIDED


@given(st.data())
def test_a_walk_only_goes_where_the_flow_leads(data: st.DataObject) -> None:
    """An answer elsewhere, or a word that is no branch, is refused with the place; `fits` says so beforehand."""
    flow = data.draw(flows())
    walk = data.draw(walks(flow))
    node = data.draw(st.sampled_from(list(flow.nodes)))
    word = data.draw(st.sampled_from(["yes", "no", "left", "good", "nonsense"]))
    allowed = node == position(flow, walk) and word in flow.nodes[node].branches
    assert fits(flow, walk, node, word) is allowed
    if allowed:
        assert position(flow, answer(flow, walk, step(node, word))) == flow.nodes[node].branches[word]
    else:
        with pytest.raises(UsageError):
            answer(flow, walk, step(node, word))


def test_back_needs_a_step() -> None:
    """There is no way back from the first node, nor to a node that was not answered on this path."""
    with pytest.raises(UsageError, match="first node"):
        back(Walk("small"))
    with pytest.raises(UsageError, match="released"):
        back(answer(SMALL, Walk("small"), step("coherent", "no")), "released")


def test_an_answer_does_not_fit_a_flow_that_lost_the_node() -> None:
    """A walk kept from an older version of a flow fits nowhere instead of failing."""
    walk = Walk("small", (step("gone", "yes"),))
    assert not fits(SMALL, walk, "coherent", "yes")


@given(st.lists(st.sampled_from(list(PROBES)), unique=True, max_size=3), st.data())
def test_decide_reads_only_deciding_verdicts(probes: list[str], data: st.DataObject) -> None:
    """One distinct answer decides, two go to the person, none leaves it unknown; unknown never chooses a branch."""
    known = {probe: data.draw(finding_of(probe)) for probe in probes}
    words = dict.fromkeys(word for answers in PROBES.values() for word in answers)
    node = Node(probes=tuple(PROBES), branches=dict.fromkeys(words, "x"))
    decision = decide(node, known)
    answers = {f.answer for f in known.values() if f.verdict in (Verdict.OK, Verdict.PROBLEM, Verdict.WARNING)}
    assert decision.how is {0: How.UNKNOWN, 1: How.DECIDED}.get(len(answers), How.DISAGREE)
    assert decision.answer == (answers.pop() if len(answers) == 1 else None)


def test_a_node_without_probes_is_the_persons() -> None:
    """Where nothing is automated, the person is asked; an answer that is no branch of the node decides nothing."""
    assert decide(Node(branches={"yes": "x"}), {}).how is How.PERSON
    stray = Finding(Verdict.OK, "other", Text("x", "x"), probe="p.two")
    assert decide(Node(probes=("p.two",), branches={"yes": "x"}), {"p.two": stray}).how is How.UNKNOWN


SIGNS = {
    Mark.DONE: "+",
    Mark.CURRENT: ">",
    Mark.STALE: "~",
    Mark.RULED_OUT: "-",
    Mark.UNKNOWN: "?",
    Mark.AHEAD: ".",
}

UNKNOWN_LOAD = {"small.load": Finding(Verdict.UNKNOWN, None, Text("no log", "无日志"), probe="small.load")}

TRACES = {
    "straight to the clear leaf": (["yes"], ["> . ? . . . . .", "+ > - - - - - -"]),
    "through the experiment to a cause": (
        ["no", "loaded", "yes"],
        ["> . ? . . . . .", "+ - > . . . . .", "+ - + > - . . .", "+ - + + - > - -"],
    ),
    "back marks what followed as stale, and the other way rules it out": (
        ["no", "loaded", "back coherent", "yes"],
        ["> . ? . . . . .", "+ - > . . . . .", "+ - + > - . . .", "> . ~ . . . . .", "+ > ~ - - - - -"],
    ),
    "back one step and the same again": (
        ["no", "loaded", "back", "loaded"],
        ["> . ? . . . . .", "+ - > . . . . .", "+ - + > - . . .", "+ - > . . . . .", "+ - + > - . . ."],
    ),
}
"""Answers, and after each the marks of: coherent all-well load released not-loaded buffer base unsure."""


@pytest.mark.parametrize("name", TRACES)
def test_golden_traces(name: str) -> None:
    """The whole tree as a person sees it after each answer: what is done, here, stale, ruled out, unknown, ahead."""
    words, expected = TRACES[name]
    walk = Walk("small")
    seen = [marks(SMALL, walk, UNKNOWN_LOAD)]
    for word in words:
        if word.startswith("back"):
            walk = back(walk, word.removeprefix("back").strip() or None)
        else:
            walk = answer(SMALL, walk, step(position(SMALL, walk), word))
        seen.append(marks(SMALL, walk, UNKNOWN_LOAD))
    order = ["coherent", "all-well", "load", "released", "not-loaded", "buffer", "base", "unsure"]
    assert [" ".join(SIGNS[marked[node]] for node in order) for marked in seen] == expected
