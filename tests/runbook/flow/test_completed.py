"""Tests of what a leaf says of its cause, and of answers that only a person gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from runbook.catalog import load_flows
from runbook.flow.lint import lint
from runbook.flow.load import completed, load_flow, load_vocabulary

CAUSES = """
causes:
  worn:
    guide: "-"
    title: {en: Worn, zh: 磨损}
    note: {en: Look closely., zh: 仔细看。}
    fix: {en: Replace it., zh: 更换。}
    actions: [{command: ls}]
    verify: [small.text]
"""

FLOW = """
flow: wear
title: {en: Wear, zh: 磨损}
symptom: {en: It rattles, zh: 有异响}
start: loud
nodes:
  loud:
    question: {en: Is it loud?, zh: 吵吗？}
    probes: [small.text]
    answers: {yes: {en: it is, zh: 吵}, no: {en: it is not, zh: 不吵}, later: {en: cannot tell now, zh: 现在不知道}}
    branches: {yes: worn, no: own-words, later: own-words}
  worn:
    cause: worn
  own-words:
    cause: worn
    fix: {en: Oil it., zh: 上油。}
"""

ANSWERS = {"small.text": ("yes", "no")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a flow and the vocabulary beside it."""
    (tmp_path / "causes.yaml").write_text(CAUSES)
    (tmp_path / "wear.yaml").write_text(FLOW)
    return tmp_path


def test_a_leaf_says_what_its_cause_says(folder: Path) -> None:
    """Each part that a leaf leaves out is its cause's; what it holds itself stays, part by part."""
    flow = load_flows([str(folder)]).loaded["wear"].flow
    bare, own = flow.nodes["worn"], flow.nodes["own-words"]
    assert bare.fix is not None
    assert (bare.fix.en, bare.verify, [action.command for action in bare.actions]) == (
        "Replace it.",
        ("small.text",),
        ["ls"],
    )
    assert own.fix is not None
    assert (own.fix.en, own.verify, own.note) == ("Oil it.", ("small.text",), bare.note)
    assert flow.nodes["loud"].fix is None


def test_the_hash_is_of_what_is_shown(folder: Path) -> None:
    """Other words of a cause make another flow, so that a session remarks it."""
    causes = load_vocabulary(folder / "causes.yaml").causes
    loaded = load_flow(folder / "wear.yaml")
    first = completed(loaded, causes).hash
    (folder / "causes.yaml").write_text(CAUSES.replace("Replace it.", "Replace both."))
    assert completed(loaded, load_vocabulary(folder / "causes.yaml").causes).hash != first
    assert completed(loaded, {}).hash == loaded.hash


def test_lint_reads_what_a_leaf_says_through_its_cause(folder: Path) -> None:
    """A sound cause leaves no complaint; a fault in its words or names is told at the leaf that says them."""
    loaded = load_flow(folder / "wear.yaml")
    assert lint(loaded, ANSWERS, load_vocabulary(folder / "causes.yaml").causes) == []
    (folder / "causes.yaml").write_text(CAUSES.replace("[small.text]", "[small.gone]").replace("zh: 更换。", "zh: ''"))
    told = [str(each) for each in lint(loaded, ANSWERS, load_vocabulary(folder / "causes.yaml").causes)]
    assert [words.removeprefix(str(folder)) for words in told] == [
        "/wear.yaml:12:3: the words in 'zh' are missing (write zh: …)",
        "/wear.yaml:12:3: worn: unknown probe 'small.gone' (see slime-runbook probes list)",
        "/wear.yaml:14:3: own-words: unknown probe 'small.gone' (see slime-runbook probes list)",
    ]


def test_a_cause_without_a_fix_anywhere_is_told(folder: Path) -> None:
    """One of the two places must say what to do."""
    loaded = load_flow(folder / "wear.yaml")
    bare = {name: cause for name, cause in load_vocabulary(folder / "causes.yaml").causes.items() if name != "worn"}
    assert any("worn: a cause needs a fix" in str(each) for each in lint(loaded, ANSWERS, bare))


def test_an_answer_of_a_person_needs_words(folder: Path) -> None:
    """A branch beside those of the probes is allowed where the flow gives it words, else it is a slip."""
    (folder / "wear.yaml").write_text(FLOW.replace(", later: {en: cannot tell now, zh: 现在不知道}", ""))
    told = lint(load_flow(folder / "wear.yaml"), ANSWERS, load_vocabulary(folder / "causes.yaml").causes)
    assert [each.message for each in told] == ["loud: no probe of this node answers 'later'"]
