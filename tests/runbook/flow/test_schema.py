"""Tests of runbook.flow.schema and runbook.flow.graph."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given

from runbook.flow.graph import mermaid, tree_lines
from runbook.flow.load import load_flow
from runbook.flow.model import Flow, Node
from runbook.flow.schema import flow_schema, vocabulary_schema
from runbook.text import Text
from tests.helpers import hostile_text, is_safe
from tests.runbook.strategies import WORDS, flows

DATA = Path(__file__).parents[2] / "data" / "flows"


def read(name: str) -> Any:
    """Return a YAML file as an editor with YAML 1.2 would read it, every scalar as text."""
    return yaml.load((DATA / name).read_text(), yaml.CBaseLoader)


def test_sound_files_satisfy_the_schema() -> None:
    """An editor that knows the schema finds no fault in a flow that loads, and none in its vocabulary."""
    jsonschema.Draft202012Validator.check_schema(flow_schema())
    jsonschema.validate(read("small.yaml"), flow_schema())
    vocabulary = yaml.safe_load((DATA / "causes.yaml").read_text())
    jsonschema.validate(vocabulary, vocabulary_schema())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda flow: flow.pop("start"),
        lambda flow: flow.update(colour="red"),
        lambda flow: flow["nodes"]["load"].update(branchs={}),
        lambda flow: flow["nodes"]["load"]["question"].pop("zh"),
        lambda flow: flow["nodes"]["load"].update(probes="small.load"),
        lambda flow: flow["nodes"]["released"]["change"].update(adds=[]),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(spoil: Callable[[Any], object], tmp_path: Path) -> None:
    """Missing and unknown keys and wrong kinds are faults to an editor too."""
    flow = read("small.yaml")
    spoil(flow)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(flow, flow_schema())


def test_mermaid_of_the_small_flow() -> None:
    """Checks are boxes, experiments hexagons, causes stadiums, clear leaves circles; every branch is an edge."""
    drawn = mermaid(load_flow(DATA / "small.yaml").flow).splitlines()
    assert drawn[0] == "flowchart TD"
    assert '    n0["coherent: Is the text coherent?"]' in drawn
    assert '    n3{{"released: Is it coherent without offload?"}}' in drawn
    assert '    n4(["not-loaded"])' in drawn
    assert '    n1(("all-well: Nothing wrong"))' in drawn
    assert '    n0 -->|"no"| n2' in drawn
    assert len([line for line in drawn if "-->" in line]) == 8


def test_tree_of_the_small_flow() -> None:
    """The tree names each branch before the node that it leads to, with rules that also exist in ASCII."""
    flow = load_flow(DATA / "small.yaml").flow
    assert tree_lines(flow, ascii_only=True) == [
        "coherent: Is the text coherent?",
        "|-- yes: all-well: Nothing wrong",
        "`-- no: load: Was the checkpoint loaded?",
        "    |-- loaded: released: Is it coherent without offload?",
        "    |   |-- yes: buffer",
        "    |   `-- no: base: Is it only the pretrain model?",
        "    |       |-- yes: base-model: base",
        "    |       `-- no: unsure: This flow ends here",
        "    `-- not-loaded: not-loaded",
    ]
    assert tree_lines(flow, "zh")[0] == "coherent: 文本是否通顺？"


@given(flows())
def test_every_node_and_branch_is_drawn(flow: Flow) -> None:
    """The tree shows each node once in full and each branch once; a node met again is only named."""
    lines = tree_lines(flow)
    again = [line for line in lines if line.endswith("(see above)")]
    assert len(lines) - len(again) == len(flow.nodes)
    assert len(lines) == 1 + sum(len(node.branches) for node in flow.nodes.values())
    drawn = mermaid(flow).splitlines()
    assert len(drawn) == 1 + len(flow.nodes) + sum(len(node.branches) for node in flow.nodes.values())


@given(hostile_text)
def test_hostile_words_stay_inside_their_label(words: str) -> None:
    """Words and answers with quotes, brackets or escapes cannot leave a Mermaid label or act on a terminal."""
    nodes = {"a": Node(question=Text(words, words), branches={words: "b"}), "b": Node(clear=WORDS)}
    flow = Flow("x", WORDS, WORDS, "a", nodes)
    node, _, edge = mermaid(flow).splitlines()[1:]
    assert re.fullmatch(r' {4}n0\["a: [^"\[\](){}<>|#;`]*"\]', node)
    assert re.fullmatch(r' {4}n0 -->\|"[^"\[\](){}<>|#;`]*"\| n1', edge)
    assert is_safe(node + edge)
    assert all(is_safe(line) for line in tree_lines(flow))
