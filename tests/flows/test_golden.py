"""Tests of golden walks through every shipped flow: by a person's answers to each leaf, and by what findings decide.

A golden file holds two lists. `traces`: answers and the leaf they lead to. `found`: findings (written as in `made_up`),
the node at which a walk that takes what they decide stands, and what triage of that flow confirms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from runbook.walk import By, Step, Walk, answer, back, position
from tests.flows.made_up import CATALOG, FLOWS, WORLDS, confirmed_in, findings, walked

GOLDEN = Path(__file__).parent / "golden"
FILES = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(GOLDEN.glob("*.yaml"))]


def traces() -> list[Any]:
    """Return a parameter for each trace of each golden file."""
    return [
        pytest.param(data["flow"], trace["leaf"], tuple(trace["answers"]), id=f"{data['flow']}-{trace['leaf']}")
        for data in FILES
        for trace in data["traces"]
    ]


def found() -> list[Any]:
    """Return a parameter for each list of findings of each golden file."""
    return [
        pytest.param(
            data["flow"],
            {**WORLDS[one.get("over", "nothing")], **{probe: str(word) for probe, word in one["says"].items()}},
            one["stops"],
            set(one["confirms"]),
            id=f"{data['flow']}-{number}-{one['stops']}",
        )
        for data in FILES
        for number, one in enumerate(data["found"])
    ]


@pytest.mark.parametrize(("name", "leaf", "answers"), traces())
def test_a_scripted_walk_ends_at_its_leaf(name: str, leaf: str, answers: tuple[str, ...]) -> None:
    """The answers lead from the start to the leaf; going back to the start keeps every answer as stale."""
    flow = FLOWS[name]
    walk = Walk(name)
    for word in answers:
        walk = answer(flow, walk, Step(position(flow, walk), word, By.PERSON, who="someone"))
    assert position(flow, walk) == leaf
    assert flow.nodes[leaf].is_leaf
    returned = back(walk, flow.start)
    assert position(flow, returned) == flow.start
    assert [step.answer for step in returned.stale] == list(answers)


@pytest.mark.parametrize("name", sorted(FLOWS))
def test_every_leaf_has_a_trace(name: str) -> None:
    """The golden file of a flow names exactly the leaves that the flow has."""
    (data,) = [data for data in FILES if data["flow"] == name]
    leaves = {each for each, node in FLOWS[name].nodes.items() if node.is_leaf}
    assert {trace["leaf"] for trace in data["traces"]} == leaves


@pytest.mark.parametrize(("name", "says", "stops", "confirms"), found())
def test_findings_lead_where_they_must(name: str, says: dict[str, str], stops: str, confirms: set[str]) -> None:
    """The walk takes what findings decide and stops where they do not; the flow confirms what they prove, no more."""
    flow = FLOWS[name]
    unknown = set(says) - {probe for node in flow.nodes.values() for probe in node.probes} - set(WORLDS["healthy"])
    assert unknown == set(), "the flow asks no such probe"
    assert all(said.answer in CATALOG.answers[said.probe] for said in findings(says).values())
    walk = walked(flow, says)
    assert position(flow, walk) == stops
    assert {step.by for step in walk.steps} <= {By.PROBE}
    assert confirmed_in(flow, says) == confirms
