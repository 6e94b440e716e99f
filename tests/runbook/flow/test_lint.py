"""Tests of runbook.flow.lint: each fault is told once, with its true place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.flow.lint import find_cycle, lint, lint_guide, unsound
from runbook.flow.load import LoadedFlow, Place, Source, load_flow, load_vocabulary
from runbook.flow.model import Flow, Node
from tests.runbook.strategies import PROBES, WORDS, flows

DATA = Path(__file__).parents[2] / "data" / "flows"
VOCABULARY = load_vocabulary(DATA / "causes.yaml")[0]
ANSWERS = {"small.text": ("yes", "no"), "small.load": ("loaded", "not-loaded"), "small.more": ("yes", "no", "maybe")}


def complaints(text: str, tmp_path: Path) -> list[str]:
    """Return the complaints about a flow as "line:column: words"."""
    path = tmp_path / "x.yaml"
    path.write_text(text)
    return [str(complaint).removeprefix(f"{path}:") for complaint in lint(load_flow(path), ANSWERS, VOCABULARY)]


def test_the_small_flow_is_clean() -> None:
    """A flow without fault gets no complaint."""
    assert lint(load_flow(DATA / "small.yaml"), ANSWERS, VOCABULARY) == []


FAULTS = [
    ("no: load}", "no: loads}", "no: loads", "coherent: branch 'no' leads to unknown node 'loads'"),
    ("probes: [small.load]\n", "probes: [small.gone]\n", "probes: [small.gone]", "load: unknown probe 'small.gone'"),
    ("verify: [small.load]", "verify: [small.gone]", "verify:", "not-loaded: unknown probe 'small.gone'"),
    ("cause: buffer", "cause: buffers", "cause: buffers", "buffer: unknown cause 'buffers'"),
    (
        "not-loaded: not-loaded}",
        "not-loaded: not-loaded, lost: base}",
        "lost:",
        "load: no probe of this node answers 'lost'",
    ),
    (
        "probes: [small.text]\n    answers",
        "probes: [small.more]\n    answers",
        "branches: {yes: all-well",
        "coherent: small.more may answer 'maybe', which has no branch",
    ),
    ("yes: {en: coherent", "sure: {en: coherent", "sure:", "coherent: words for 'sure', which is no branch"),
    ("no: unsure}", "no: unsure, unknown: unsure}", "unknown:", "base: 'unknown' is not an answer"),
    ("zh: 没有问题}", "zh: ' '}", "clear: {en: Nothing", "the words in 'zh' are missing"),
    ("say: {en: Read this,", "say: {en: '',", "{link:", "the words in 'en' are missing"),
    ("- {command: ls CKPT}", "- {say: {en: a, zh: 甲}}", "actions:", "not-loaded: action 1 needs exactly one of"),
    ("- {command: ls CKPT}", "- {command: ls, link: x}", "actions:", "not-loaded: action 1 needs exactly one of"),
    ("    fix: {en: Keep it, zh: 保留}\n", "", "cause: buffer", "buffer: a cause needs a fix"),
    ("cause: buffer", "cause: buffer\n    probes: [small.text]", "buffer:\n", "buffer: a leaf has no question"),
    ("cause: buffer", "cause: buffer\n    clear: {en: a, zh: 甲}", "buffer:\n", "buffer: a leaf has no question"),
    ("cause: buffer", "cause: buffer\n    change: {add: [--x]}", "change: {add: [--x]", "buffer: a leaf has no change"),
    (
        "cause: buffer",
        "cause: buffer\n    answers: {yes: {en: a, zh: 甲}}",
        "answers: {yes: {en: a",
        "buffer: a leaf has no answers",
    ),
    (
        "    question: {en: Was the checkpoint loaded?, zh: 是否加载了 ckpt？}\n",
        "",
        "load:\n",
        "load: a check needs a question",
    ),
    (
        "branches: {yes: base-model",
        "fix: {en: a, zh: 甲}\n    branches: {yes: base-model",
        "base:\n",
        "base: fix and verify belong",
    ),
    ("  unsure:\n", "  extra:\n    clear: {en: a, zh: 甲}\n  unsure:\n", "extra:", "extra: no way leads here"),
]
"""What to replace in the small flow, by what; where the fault then stands; what is said."""


@pytest.mark.parametrize(("old", "new", "at", "words"), FAULTS, ids=[fault[3] for fault in FAULTS])
def test_each_fault_is_told_once(old: str, new: str, at: str, words: str, tmp_path: Path) -> None:
    """One fault in a sound flow gives one complaint at the line and column of the key at fault.

    Where the fault cuts the only way to a node, that node is told as well.
    """
    text = (DATA / "small.yaml").read_text()
    assert text.count(old) >= 1
    text = text.replace(old, new, 1)
    before = text[: text.index(at)]
    place = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    told = complaints(text, tmp_path)
    cut_off = [complaint for complaint in told if "no way leads here" in complaint and "extra" not in complaint]
    assert bool(cut_off) is ("unknown node" in words)
    assert [complaint.partition(" (")[0] for complaint in told if complaint not in cut_off] == [
        complaint.partition(" (")[0] for complaint in told if complaint.startswith(f"{place}: {words}")
    ]
    assert len(told) == len(cut_off) + 1


def test_a_start_that_is_no_node_is_told(tmp_path: Path) -> None:
    """A start that names no node is a fault at the start key."""
    text = (DATA / "small.yaml").read_text().replace("start: coherent", "start: nowhere")
    assert complaints(text, tmp_path)[0].startswith("5:1: start names no node: 'nowhere'")


CYCLE = """\
flow: x
title: {en: T, zh: 题}
symptom: {en: S, zh: 症}
start: a
nodes:
  a:
    question: {en: Q, zh: 问}
    branches: {on: b}
  b:
    question: {en: Q, zh: 问}
    branches: {on: c, off: end}
  c:
    question: {en: Q, zh: 问}
    branches: {again: b}
  d:
    question: {en: Q, zh: 问}
    branches: {round: d}
  end:
    clear: {en: E, zh: 完}
"""


def test_a_cycle_is_told_with_its_nodes(tmp_path: Path) -> None:
    """A cycle is told at one of its nodes, naming the way round; so is a node that leads to no leaf."""
    assert complaints(CYCLE.partition("  d:")[0] + "  end:\n    clear: {en: E, zh: 完}\n", tmp_path) == [
        "11:5: b: cycle b → c → b (a walk must end)"
    ]
    endless = CYCLE.replace(", off: end", "").replace("{on: b}", "{on: b, off: end}")
    told = complaints(endless.partition("  d:")[0] + "  end:\n    clear: {en: E, zh: 完}\n", tmp_path)
    assert [words.partition(" (")[0] for words in told] == [
        "9:3: b: no way from here to a leaf",
        "11:5: b: cycle b → c → b",
        "12:3: c: no way from here to a leaf",
    ]


def test_a_node_without_branches_is_told(tmp_path: Path) -> None:
    """A check that leads nowhere is a fault of its own."""
    told = complaints(CYCLE.partition("  b:")[0].replace("    branches: {on: b}\n", ""), tmp_path)
    assert "6:3: a: no branch (add branches, a cause or clear)" in told


@given(flows())
def test_sound_flows_are_clean(flow: Flow) -> None:
    """No random flow that is a DAG with all branches draws a complaint, and none has a cycle."""
    causes = {node.cause: VOCABULARY["buffer"] for node in flow.nodes.values() if node.cause}
    assert lint(LoadedFlow(flow, Source("x", {}), ""), PROBES, causes) == []
    assert find_cycle(flow) == []


@given(flows(), st.data())
def test_every_way_back_is_found(flow: Flow, data: st.DataObject) -> None:
    """Bending any branch back to a node that leads to it makes a cycle, and the cycle found is a true one."""
    checks = [name for name, node in flow.nodes.items() if node.branches]
    late = data.draw(st.sampled_from(checks))
    early = data.draw(st.sampled_from([name for name in checks if late in flow.reach(name)]))
    word = data.draw(st.sampled_from(list(flow.nodes[late].branches)))
    node = flow.nodes[late]
    bent = Node(question=WORDS, probes=node.probes, branches={**node.branches, word: early})
    nodes = {**flow.nodes, late: bent}
    broken = Flow(flow.flow, WORDS, WORDS, flow.start, nodes)
    cycle = find_cycle(broken)
    assert cycle
    for name, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        assert following in nodes[name].branches.values()


def test_deep_flows_are_checked() -> None:
    """A chain of ten thousand nodes is no deeper than the stack."""
    nodes = {f"n{i}": Node(question=WORDS, branches={"on": f"n{i + 1}"}) for i in range(10_000)}
    nodes["n10000"] = Node(clear=WORDS)
    assert find_cycle(Flow("deep", WORDS, WORDS, "n0", nodes)) == []
    looped = {**nodes, "n10000": Node(question=WORDS, branches={"on": "n0"})}
    assert len(find_cycle(Flow("deep", WORDS, WORDS, "n0", looped))) == 10_001


def test_sections_of_the_guide_without_a_node_are_told() -> None:
    """Each section that no node of any flow answers is told once, at the place that asks for it."""
    small = load_flow(DATA / "small.yaml")
    place = Place("causes.yaml", 3, 1)
    told = lint_guide([small], [(section, place) for section in ("1", "1 a", "1 b", "2.1", "int4 1")])
    assert [(complaint.place, complaint.message) for complaint in told] == [
        (place, "guide section '2.1' has no node"),
        (place, "guide section 'int4 1' has no node"),
    ]
    assert [c.message for c in lint_guide([], [("1", place)])] == ["guide section '1' has no node"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("start: coherent", "start: gone", "start names no node: 'gone'"),
        ("no: load}", "no: loads}", "coherent: branch 'no' leads to unknown node 'loads'"),
        ("yes: buffer, no: base}", "yes: buffer, no: load}", "load: cycle load → released → load"),
    ],
)
def test_what_no_walk_survives_is_unsound(old: str, new: str, words: str, tmp_path: Path) -> None:
    """A start or a branch that leads nowhere and a cycle make a flow unusable, and the first fault is named."""
    path = tmp_path / "x.yaml"
    path.write_text((DATA / "small.yaml").read_text().replace(old, new))
    complaint = unsound(load_flow(path))
    assert complaint is not None
    assert complaint.message == words
    assert complaint in lint(load_flow(path), ANSWERS, VOCABULARY)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if "unknown node" not in fault[3]], ids=lambda f: f[3])
def test_lesser_faults_leave_a_flow_usable(fault: tuple[str, str, str, str], tmp_path: Path) -> None:
    """What lint complains about otherwise does not keep a flow from being walked."""
    path = tmp_path / "x.yaml"
    path.write_text((DATA / "small.yaml").read_text().replace(fault[0], fault[1]))
    assert unsound(load_flow(path)) is None


MATRIX = """
flow: grid
title: {en: Grid, zh: 表}
symptom: {en: Something, zh: 某事}
start: present
matrices:
  - title: {en: One × other, zh: 一 × 二}
    rows: [{en: a, zh: 甲}, {en: b, zh: 乙}]
    columns: [{en: c, zh: 丙}]
    hand: {node: present, by: which, cells: {"yes": [0, 0]}}
    cells: [[[]], [[other]]]
nodes:
  present:
    question: {en: Is it there?, zh: 有吗？}
    probes: [small.text]
    branches: {"yes": which, "no": well}
  which:
    question: {en: Is it on?, zh: 开了吗？}
    branches: {"yes": other, "no": well}
    answers: {"yes": {en: "yes", zh: 是}, "no": {en: "no", zh: 否}}
  other:
    question: {en: And without?, zh: 没有呢？}
    change: {add: [--no-x]}
    probes: [small.text]
    branches: {"yes": found, "no": well}
  found: {cause: buffer, fix: {en: Mend it., zh: 修好。}}
  well: {clear: {en: Fine, zh: 好}}
"""


def test_a_sound_grid_gets_no_complaint(tmp_path: Path) -> None:
    """A grid whose cells are experiments and whose answers are branches is clean."""
    assert complaints(MATRIX, tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[[[]], [[other]]]", "[[[]], [[which]]]", "matrix 1: 'which' is no experiment"),
        ("[[[]], [[other]]]", "[[[]], [[gone]]]", "matrix 1: 'gone' is no experiment"),
        ("[[[]], [[other]]]", "[[[other]]]", "matrix 1: cells are not 2 × 1"),
        ("by: which", "by: other", "matrix 1: 'other' is no check"),
        ('{"yes": [0, 0]}', '{"maybe": [0, 0]}', "matrix 1: 'maybe' names no cell"),
        ('{"yes": [0, 0]}', '{"yes": [0, 1]}', "matrix 1: 'yes' names no cell"),
        ("{en: a, zh: 甲}", "{en: a, zh: ''}", "the words in 'zh' are missing"),
    ],
)
def test_faults_of_a_grid(tmp_path: Path, old: str, new: str, words: str) -> None:
    """Each fault of a grid is told once, at its line."""
    assert old in MATRIX
    (told,) = complaints(MATRIX.replace(old, new), tmp_path)
    place, _, said = told.partition(": ")
    assert said.startswith(words)
    assert (
        MATRIX.replace(old, new)
        .splitlines()[int(place.split(":")[0]) - 1]
        .strip()
        .startswith(("hand", "cells", "rows"))
    )
