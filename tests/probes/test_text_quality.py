"""Healthy text of every kind is left alone, and garbage of every kind is named."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from probes.text_quality import judge
from tests.probes.readers.pickles import DUMPS

TEXTS: dict[str, dict[str, str]] = yaml.safe_load((DUMPS / "texts.yaml").read_text(encoding="utf-8"))
HEALTHY, GARBLED = TEXTS["healthy"], TEXTS["garbled"]


def corpus(name: str) -> list[dict[str, Any]]:
    """Return the samples of `tests/data/texts`: kind, name, text, and where a garbled one begins to be."""
    return [json.loads(line) for line in (DUMPS.parent / "texts" / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", sorted({sample["kind"] for sample in corpus("healthy.jsonl")}))
def test_no_kind_of_model_output_is_garbage(kind: str) -> None:
    """Tool calls of nine formats, reasoning, songs, tables, numbers, encoded data, drawings and lists are text."""
    named = {s["name"]: judge(s["text"]) for s in corpus("healthy.jsonl") if s["kind"] == kind}
    assert {name: found.why.en for name, found in named.items() if found.kind == "garbled"} == {}


@pytest.mark.parametrize("kind", sorted({sample["kind"] for sample in corpus("garbled.jsonl")}))
def test_every_kind_of_damage_is_found_where_it_begins(kind: str) -> None:
    """Damage that was put into a text at a known place is called garbled from about that place on."""
    for sample in (sample for sample in corpus("garbled.jsonl") if sample["kind"] == kind):
        found = judge(sample["text"])
        assert found.kind == "garbled", sample["name"]
        assert abs(found.start - sample.get("start", found.start)) <= 350
        if sample.get("start"):
            assert f"from character {found.start:,} of {len(sample['text']):,} on" in found.why.en
            assert f"从第 {found.start:,} 个字符起" in found.why.zh


def test_what_ended_by_itself_is_no_endless_loop() -> None:
    """A song of repeated verses is text when the model ended it, and a loop when only the length limit did."""
    verse = (
        "Row the boat along the bay,\nsing the night into the day.\nHome, oh home, the tide is high,\nhome we go.\n\n"
    )
    assert judge(verse * 6, ended=True).kind == "coherent"
    assert judge(verse * 6).kind == "coherent"
    assert judge(verse * 6, ended=False).kind == "garbled"
    assert judge(verse * 5 + verse[:40]).kind == "garbled"
    assert judge(verse * 40, ended=True).kind == "garbled"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_text_is_never_garbled(name: str) -> None:
    """Prose in 30 languages, code, data, formulas, poems and short answers are text."""
    judgement = judge(HEALTHY[name])
    assert judgement.kind in ("coherent", "short"), judgement.why.en
    assert not judgement.weak


@pytest.mark.parametrize("name", GARBLED)
def test_garbage_is_named(name: str) -> None:
    """What broken weights, caches and samplers produce is garbled, for a reason in both languages."""
    judgement = judge(GARBLED[name])
    assert judgement.kind == "garbled"
    assert judgement.why.en
    assert judgement.why.zh


@pytest.mark.parametrize("name", [name for name in HEALTHY if len(HEALTHY[name]) > 200])
def test_a_piece_of_healthy_text_is_healthy(name: str) -> None:
    """A response cut at the length limit, or begun in the middle, is still text."""
    text = HEALTHY[name]
    for piece in (text[: len(text) // 2], text[len(text) // 3 :]):
        assert judge(piece).kind in ("coherent", "short")


@pytest.mark.parametrize("text", ["42", "\\boxed{4}", "yes", "B", "是的。", "3.14", "Да.", "a", "7\n", "0000000"])
def test_a_short_answer_is_not_judged(text: str) -> None:
    """What is too short to judge counts neither as text nor as garbage."""
    assert judge(text).kind == "short"


@pytest.mark.parametrize("text", ["", " ", "\n\n", "<|im_end|>", "<|endoftext|>\n", "</s>", "<｜end▁of▁sentence｜>"])
def test_nothing_but_special_tokens_is_empty(text: str) -> None:
    """A response of end tokens only is empty."""
    assert judge(text).kind == "empty"


def test_a_loop_must_fill_most_of_the_response() -> None:
    """A long answer that ends in a short loop is still an answer; one that loops for most of its length is not."""
    answer = HEALTHY["en-prose"] + "\n" + HEALTHY["de"]
    assert judge(answer + " Done." * 30).kind == "coherent"
    assert judge(answer + " Done." * 300).kind == "garbled"


def test_garbage_in_the_last_half_is_found_in_a_long_response() -> None:
    """A response that breaks down on the way is garbled, one with a strange line in it is not."""
    prose = " ".join(HEALTHY[name] for name in ("en-prose", "de", "fr", "es", "pt", "it"))
    assert judge(prose + GARBLED["mixed-scripts"] * 4).kind == "garbled"
    assert judge(prose * 3 + GARBLED["mixed-scripts"][:60]).kind == "coherent"


def test_the_engine_s_own_log_prob_decides_odd_text_only() -> None:
    """Words drawn nearly at random are garbled; sentences are not, whatever number stands beside them."""
    odd = (
        "was. multiplepe take= best x, explain toPrefix and,- proud to Social flight ing inflamm below members Physical"
    )
    assert judge(odd).kind == "coherent"
    assert judge(odd, -0.4).kind == "coherent"
    assert judge(odd, -6.0).kind == "garbled"
    assert judge(HEALTHY["en-prose"], -6.0).kind == "coherent"


@given(
    words=st.lists(st.sampled_from(["even", "or", "of", "size", "by"]), min_size=60, max_size=90),
    seed=st.integers(0, 99),
)
def test_a_stutter_over_few_words_is_garbled(words: list[str], seed: int) -> None:
    """Five words in any order, each often after itself, are no sentence."""
    random.Random(seed).shuffle(words)
    doubled = [word for word in words for _ in range(2)]
    assert judge(" ".join(doubled)).kind == "garbled"


@given(text=st.text(max_size=400))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    """NUL, escapes, surrogates and bidi controls are judged like anything else."""
    assert judge(text).kind in ("coherent", "garbled", "empty", "short")


def test_a_megabyte_is_judged_by_samples_of_it() -> None:
    """A response of a million characters costs no more than its windows."""
    assert judge(HEALTHY["en-prose"] * 3000).kind == "garbled"
    assert judge("".join(f"{n}: {HEALTHY['en-prose']}\n" for n in range(3000))).kind == "coherent"
