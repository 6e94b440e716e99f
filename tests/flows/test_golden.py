"""Tests that every leaf of every shipped flow is reached by a scripted walk, through the walk that people take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from runbook.catalog import load_flows
from runbook.walk import By, Step, Walk, answer, back, position

GOLDEN = Path(__file__).parent / "golden"
FLOWS = {name: loaded.flow for name, loaded in load_flows(())[0].items()}


def traces() -> list[Any]:
    """Return a parameter for each trace of each golden file."""
    return [
        pytest.param(data["flow"], trace["leaf"], tuple(trace["answers"]), id=f"{data['flow']}-{trace['leaf']}")
        for path in sorted(GOLDEN.glob("*.yaml"))
        for data in [yaml.safe_load(path.read_text(encoding="utf-8"))]
        for trace in data["traces"]
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
    data = yaml.safe_load((GOLDEN / f"{name}.yaml").read_text(encoding="utf-8"))
    leaves = {each for each, node in FLOWS[name].nodes.items() if node.is_leaf}
    assert {trace["leaf"] for trace in data["traces"]} == leaves
