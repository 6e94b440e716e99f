"""Tests of the words of the shipped flows: both languages are there, are what they claim to be, and fit a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import pytest

from runbook.catalog import load_flows
from runbook.flow.model import Flow
from runbook.text import Text, sanitise
from tests.helpers import is_safe

FLOWS = {name: loaded.flow for name, loaded in load_flows(())[0].items()}
VOCABULARY = load_flows(())[1]

CHINESE = re.compile("[一-鿿]")

LIMITS = {
    "title": 80,
    "symptom": 160,
    "question": 160,
    "answers": 72,
    "note": 480,
    "fix": 480,
    "say": 160,
    "clear": 320,
}
"""Columns that a text may fill: two lines for a question, one for an answer, six for the rest."""


def words(flow: Flow) -> Iterator[tuple[str, str, Text]]:
    """Yield (where, kind, text) of everything a flow says."""
    yield flow.flow, "title", flow.title
    yield flow.flow, "symptom", flow.symptom
    for name, node in flow.nodes.items():
        for kind in ("note", "question", "fix", "clear"):
            text = getattr(node, kind)
            if text is not None:
                yield f"{flow.flow}/{name}", kind, text
        for word, text in node.answers.items():
            yield f"{flow.flow}/{name}/{word}", "answers", text
        for action in node.actions:
            if action.say is not None:
                yield f"{flow.flow}/{name}", "say", action.say


def columns(text: str) -> int:
    """Return how many terminal columns a text fills; an East Asian wide character fills two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


EVERY = [pytest.param(flow, id=name) for name, flow in FLOWS.items()]


@pytest.mark.parametrize("flow", EVERY)
def test_both_languages_are_what_they_claim(flow: Flow) -> None:
    """English has no Chinese character; Chinese has one, unless the text is only names and code."""
    for where, kind, text in words(flow):
        assert text.en.strip(), where
        assert text.zh.strip(), where
        assert not CHINESE.search(text.en), where
        if kind != "answers":
            assert CHINESE.search(text.zh), f"{where}: {text.zh}"
        elif not CHINESE.search(text.zh):
            assert re.fullmatch(r"[\x20-\x7e“”…、/]+", text.zh), f"{where}: {text.zh}"


@pytest.mark.parametrize("flow", EVERY)
def test_words_fit_a_terminal(flow: Flow) -> None:
    """No text is longer than its place on an 80-column terminal allows, in either language."""
    for where, kind, text in words(flow):
        for said in (text.en, text.zh):
            assert columns(said) <= LIMITS[kind], f"{where} {kind}: {columns(said)} columns: {said}"


@pytest.mark.parametrize("flow", EVERY)
def test_words_are_safe_and_tidy(flow: Flow) -> None:
    """Texts hold no control character, no doubled blank, and no blank that a folded Chinese line left behind."""
    for where, _, text in words(flow):
        for said in (text.en, text.zh):
            assert is_safe(said), where
            assert said == sanitise(said).strip(), where
            assert "  " not in said, where
        assert not re.search("[，。；：、] ", text.zh), f"{where}: {text.zh}"


@pytest.mark.parametrize("flow", EVERY)
def test_every_question_asks_and_every_branch_has_words(flow: Flow) -> None:
    """A check asks a question and gives each answer words in both languages; answers of one node differ."""
    for name, node in flow.nodes.items():
        if node.is_leaf:
            continue
        where = f"{flow.flow}/{name}"
        assert node.question is not None, where
        assert node.question.en.endswith("?"), where
        assert node.question.zh.endswith("？"), where
        assert set(node.answers) == set(node.branches), where
        for language in ("en", "zh"):
            said = [text.say(language) for text in node.answers.values()]
            assert len(set(said)) == len(said), where


@pytest.mark.parametrize("flow", EVERY)
def test_sentences_end(flow: Flow) -> None:
    """Fixes, notes and clear leaves are whole sentences in both languages."""
    for where, kind, text in words(flow):
        if kind in ("fix", "note", "clear", "say"):
            assert text.en[-1] in ".?:", f"{where}: {text.en}"
            assert text.zh[-1] in "。？：", f"{where}: {text.zh}"


def test_titles_of_causes_are_one_line() -> None:
    """Each cause has a title in both languages that fits one line and is no sentence."""
    for name, cause in VOCABULARY.items():
        for said in (cause.title.en, cause.title.zh):
            assert 0 < columns(said) <= 76, f"{name}: {columns(said)}"
            assert said[-1] not in ".。", name
        assert CHINESE.search(cause.title.zh), name
        assert not CHINESE.search(cause.title.en), name


@pytest.mark.parametrize(
    ("flow", "node", "says"),
    [
        ("precision", "ref-equal", ("v0.3.0", "train/kl_loss")),
        ("precision", "model-args", ("skipped",)),
        ("precision", "load-fallback", ("silently",)),
        ("int4", "router-ignored", ("re:.*mlp.gate$", r"re:.*mlp\.gate\..*")),
        ("ima", "deepep", ("--sglang-enable-deepep-moe", "--sglang-moe-a2a-backend")),
        ("ima", "blocking", ("captured CUDA graph", "runtime env")),
        ("ray-debugger", "enabled", ("RAY_DEBUG_POSTMORTEM", "RAY_DEBUG_POST_MORTEM")),
        ("ray-debugger", "enabled-quiet", ("RAY_DEBUG_POSTMORTEM", "RAY_DEBUG_POST_MORTEM")),
        ("ray-debugger", "debugpy", ("string", "1.10")),
    ],
)
def test_where_the_programs_differ_from_the_guide_the_note_says_so(flow: str, node: str, says: tuple[str, ...]) -> None:
    """A node whose section of the guide the programs contradict names what the programs do."""
    note = FLOWS[flow].nodes[node].note
    assert note is not None
    for each in says:
        assert each in note.en
