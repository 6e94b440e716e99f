"""Prompts are held against the template of their own tokenizer: every family right, and each flaw in each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.template_prompts import prompts
from runbook.finding import Finding
from tests.helpers import hostile_text, is_safe
from tests.probes.asking import word
from tests.probes.readers.pickles import DUMPS
from tests.probes.scripts import ask, script, write
from tests.probes.tiny_tokenizers import (
    CHATML,
    DEEPSEEK,
    FAMILIES,
    GLM,
    LLAMA3,
    Family,
    sample,
    tokenizer,
    write_checkpoint,
    write_rollout,
    write_train,
)

QUESTIONS = ("What is 2+2?", "素数を一つ。", "Prove that x < y.", "List: a, b\n\nthen c.")
FAMILY = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def asked(folder: Path, family: Family, texts: list[str], *, flags: tuple[str, ...] = (), **changes: Any) -> Finding:
    """Ask about a rollout of these prompts with an instruct model of the family; changes: see write_checkpoint."""
    made = tokenizer(family)
    write_rollout(folder / "dump", [sample(made, n, text, "It is four." + family.end) for n, text in enumerate(texts)])
    write_checkpoint(folder / "toy-instruct", family, **changes)
    launch = {"launch": write(folder, "run.sh", script(*flags))} if flags else {}
    return ask(prompts, rollout_dump=str(folder / "dump"), hf_checkpoint=str(folder / "toy-instruct"), **launch)


@FAMILY
def test_prompts_as_the_template_renders_them_match(family: Family, tmp_path: Path) -> None:
    """Healthy prompts of seven families, with the conversation of an earlier turn among them, are silent."""
    texts = [family.prompt(question) for question in QUESTIONS]
    assert word(asked(tmp_path, family, texts)) == "ok:matches"


@FAMILY
def test_a_template_applied_twice_is_a_problem(family: Family, tmp_path: Path) -> None:
    """A user's turn that holds a whole templated conversation is what --apply-chat-template does to templated data."""
    texts = [family.prompt(family.prompt(question)) for question in QUESTIONS]
    finding = asked(tmp_path, family, texts, flags=("--apply-chat-template", "--input-key question"))
    assert word(finding) == "problem:double"
    assert "--input-key question" in finding.summary.en
    assert "--apply-chat-template" in finding.citations[-1].excerpt


@FAMILY
def test_raw_prompts_of_an_instruct_model_are_a_problem(family: Family, tmp_path: Path) -> None:
    """No marker at all; the script shows that --apply-chat-template is not given."""
    finding = asked(tmp_path, family, list(QUESTIONS), flags=("--input-key question",))
    assert word(finding) == "problem:missing"
    assert "--apply-chat-template is not given" in finding.summary.en


@FAMILY
def test_a_base_model_needs_no_template(family: Family, tmp_path: Path) -> None:
    """Raw prompts are right for a base model, though it ships a template, and a warning where the kind is not known."""
    made = tokenizer(family)
    write_rollout(tmp_path / "dump", [sample(made, n, text, "Four.") for n, text in enumerate(QUESTIONS)])
    for name, expected in (("toy-base", "ok:matches"), ("toy", "warning:missing")):
        write_checkpoint(tmp_path / name, family, stops=None, extra={})
        finding = ask(prompts, rollout_dump=str(tmp_path / "dump"), hf_checkpoint=str(tmp_path / name))
        assert word(finding) == expected


def test_a_base_model_with_both_kinds_of_prompts_is_told_so(tmp_path: Path) -> None:
    """Three raw prompts and one templated one: all right for a base model, and each counted as what it is."""
    made = tokenizer(CHATML)
    texts = [*QUESTIONS[:3], CHATML.prompt(QUESTIONS[3])]
    write_rollout(tmp_path / "dump", [sample(made, n, text, "Four.") for n, text in enumerate(texts)])
    write_checkpoint(tmp_path / "toy-base", CHATML, stops=None, extra={})
    finding = ask(prompts, rollout_dump=str(tmp_path / "dump"), hf_checkpoint=str(tmp_path / "toy-base"))
    assert word(finding) == "ok:matches"
    assert "1 prompt follows the tokenizer's chat template; 3 prompts hold no template" in finding.summary.en


@FAMILY
def test_another_family_s_template_is_a_problem(family: Family, tmp_path: Path) -> None:
    """ChatML data for every other family, Llama 3's for ChatML."""
    other = LLAMA3 if family is CHATML else CHATML
    finding = asked(tmp_path, family, [other.prompt(question) for question in QUESTIONS])
    assert word(finding) == "problem:foreign"
    assert ("Llama 3" if family is CHATML else "ChatML") in finding.summary.en


@FAMILY
def test_a_missing_generation_prompt_is_a_problem(family: Family, tmp_path: Path) -> None:
    """The prompt ends with the user's turn; Mistral's has no opener of an answer but the end of the user's turn."""
    opener = family.prompt("~").partition("~")[2]
    opener = opener if family.end not in opener else opener.partition(family.end)[2]
    texts = [family.prompt(question).removesuffix(opener) for question in QUESTIONS]
    assert word(asked(tmp_path, family, texts)) == "problem:no-generation-prompt"


@pytest.mark.parametrize("family", [CHATML, LLAMA3], ids=lambda family: family.name)
def test_markers_spelled_out_letter_by_letter_are_a_problem(family: Family, tmp_path: Path) -> None:
    """The text is right, but the ids of its markers are those of their letters."""
    made = tokenizer(family)
    plain = tokenizer(GLM)  # its markers are others, so that these are split
    samples = []
    for n, question in enumerate(QUESTIONS):
        one = sample(made, n, family.prompt(question), "Four." + family.end)
        ids = plain.encode(family.prompt(question)).ids
        samples.append({**one, "tokens": ids + one["tokens"][-one["response_length"] :]})
    write_rollout(tmp_path / "dump", samples)
    folder = write_checkpoint(tmp_path / "toy-instruct", family)
    finding = ask(prompts, rollout_dump=str(tmp_path / "dump"), hf_checkpoint=str(folder))
    assert word(finding) == "problem:split"


def test_two_first_tokens_are_a_problem(tmp_path: Path) -> None:
    """The tokenizer added its first token in front of that of the template."""
    made = tokenizer(LLAMA3)
    samples = [sample(made, n, LLAMA3.prompt(question), "Four.<|eot_id|>") for n, question in enumerate(QUESTIONS)]
    first = made.token_to_id("<|begin_of_text|>")
    write_rollout(tmp_path / "dump", [{**one, "tokens": [first, *one["tokens"]]} for one in samples])
    folder = write_checkpoint(tmp_path / "toy-instruct", LLAMA3)
    finding = ask(prompts, rollout_dump=str(tmp_path / "dump"), hf_checkpoint=str(folder))
    assert word(finding) == "problem:double"
    assert "twice" in finding.summary.en


@pytest.mark.parametrize(("shift", "expected"), [(5, "problem:tokens-differ"), (5000, "problem:tokens-differ")])
def test_tokens_of_another_tokenizer_are_a_problem(shift: int, expected: str, tmp_path: Path) -> None:
    """Prompt and response decode to another text, or the ids do not exist."""
    made = tokenizer(CHATML)
    samples = [sample(made, n, CHATML.prompt(question), "It is four, I think.") for n, question in enumerate(QUESTIONS)]
    shifted = [
        {**one, "tokens": [(id + shift) % (256 if shift < 256 else 9999) for id in one["tokens"]]} for one in samples
    ]
    write_rollout(tmp_path / "dump", shifted)
    folder = write_checkpoint(tmp_path / "toy-instruct", CHATML)
    assert word(ask(prompts, rollout_dump=str(tmp_path / "dump"), hf_checkpoint=str(folder))) == expected


@pytest.mark.parametrize(
    ("kwargs", "end", "expected"),
    [
        ('{"enable_thinking":false}', "<think>\n\n</think>\n\n", "ok:matches"),
        ('{"enable_thinking":false}', "", "warning:thinking"),
        ('{"enable_thinking":true}', "<think>\n\n</think>\n\n", "warning:thinking"),
        ('{"enable_thinking":true}', "", "ok:matches"),
        ('{"other":1}', "", "ok:matches"),
        ("not json", "<think>\n\n</think>\n\n", "ok:matches"),
    ],
)
def test_the_thinking_switch_is_compared_with_the_flag(kwargs: str, end: str, expected: str, tmp_path: Path) -> None:
    """--apply-chat-template-kwargs asks for thoughts or for none; the end of the prompt shows which it was."""
    texts = [CHATML.prompt(question) + end for question in QUESTIONS]
    flags = ("--apply-chat-template", f"--apply-chat-template-kwargs '{kwargs}'")
    finding = asked(tmp_path, CHATML, texts, flags=flags)
    assert word(finding) == expected


def test_a_thought_opened_by_prompt_and_response_is_a_warning(tmp_path: Path) -> None:
    """DeepSeek-R1's template pre-fills <think>; a response that opens it again has seen another prompt."""
    made = tokenizer(DEEPSEEK)
    write_rollout(
        tmp_path / "d", [sample(made, n, DEEPSEEK.prompt(q), "<think>\nHm.") for n, q in enumerate(QUESTIONS)]
    )
    folder = write_checkpoint(tmp_path / "toy-instruct", DEEPSEEK)
    finding = ask(prompts, rollout_dump=str(tmp_path / "d"), hf_checkpoint=str(folder))
    assert word(finding) == "warning:thinking"


def test_a_few_prompts_that_quote_a_template_are_no_fault(tmp_path: Path) -> None:
    """One of forty prompts asks about templates."""
    texts = [CHATML.prompt(f"Question {n}?") for n in range(39)] + [CHATML.prompt("<|im_start|>user what is this?")]
    finding = asked(tmp_path, CHATML, texts)
    assert word(finding) == "ok:matches"
    assert "double" in {row[2] for row in finding.tables[0].rows}


def test_what_the_tokens_say_wins_over_the_prompt(tmp_path: Path) -> None:
    """A custom rollout function leaves sample.prompt raw and puts the template into the tokens (slime's retool)."""
    made = tokenizer(CHATML)
    samples = [{**sample(made, n, CHATML.prompt(q), "4<|im_end|>"), "prompt": q} for n, q in enumerate(QUESTIONS)]
    write_rollout(tmp_path / "dump", samples)
    folder = write_checkpoint(tmp_path / "toy-instruct", CHATML)
    assert word(ask(prompts, rollout_dump=str(tmp_path / "dump"), hf_checkpoint=str(folder))) == "ok:matches"


def conversation(*turns: tuple[str, str]) -> list[dict[str, str]]:
    """Return messages of (role, content)."""
    return [{"role": role, "content": content} for role, content in turns]


def test_conversations_are_compared_with_their_rendering(tmp_path: Path) -> None:
    """slime#2263: two tool results in two turns, where the template puts them into one; thoughts do not count."""
    made = tokenizer(CHATML)
    messages = conversation(("user", "q"), ("assistant", "call"), ("tool", "A"), ("tool", "B"), ("assistant", "done"))
    head = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
    call = "<think>\n\n</think>\n\ncall<|im_end|>\n"
    one = "<|im_start|>user\n<tool_response>\nA\n</tool_response>\n<tool_response>\nB\n</tool_response><|im_end|>\n"
    two = one.replace("\n<tool_response>\nB", "<|im_end|>\n<|im_start|>user\n<tool_response>\nB")
    end = "<|im_start|>assistant\ndone<|im_end|>\n"
    folder = write_checkpoint(tmp_path / "toy-instruct", CHATML)
    for name, middle, expected in (("one", one, "ok:matches"), ("two", two, "warning:not-as-rendered")):
        samples = [{**sample(made, n, head, call + middle + end), "prompt": messages, "response": ""} for n in range(4)]
        write_rollout(tmp_path / name, samples)
        finding = ask(prompts, rollout_dump=str(tmp_path / name), hf_checkpoint=str(folder))
        assert word(finding) == expected


def test_a_train_dump_is_judged_by_its_tokens(tmp_path: Path) -> None:
    """No text is there, the tokens hold the template twice."""
    made = tokenizer(CHATML)
    rows = [sample(made, n, CHATML.prompt(CHATML.prompt(q)), "4<|im_end|>") for n, q in enumerate(QUESTIONS)]
    train = [
        {"sample_index": n, "tokens": r["tokens"], "response_lengths": r["response_length"]} for n, r in enumerate(rows)
    ]
    write_train(tmp_path / "train", train)
    folder = write_checkpoint(tmp_path / "toy-instruct", CHATML)
    assert word(ask(prompts, train_dump=str(tmp_path / "train"), hf_checkpoint=str(folder))) == "problem:double"


@FAMILY
def test_without_the_tokenizer_nothing_is_right_and_nothing_proven(family: Family, tmp_path: Path) -> None:
    """Markers of a published family show a doubled template as a warning; ordinary prompts stay unknown."""
    made = tokenizer(family)
    for name, double, expected in (("once", False, "unknown"), ("twice", True, "warning:double")):
        texts = [family.prompt(family.prompt(q)) if double else family.prompt(q) for q in QUESTIONS]
        write_rollout(tmp_path / name, [sample(made, n, text, "Four.") for n, text in enumerate(texts)])
        assert word(ask(prompts, rollout_dump=str(tmp_path / name))) == expected


def test_a_vocabulary_that_is_not_read_is_named(tmp_path: Path) -> None:
    """A tiktoken folder: the template is rendered, the prompt's text is used, and raw prompts are only a warning."""
    made = tokenizer(CHATML)
    folder = write_checkpoint(tmp_path / "toy-instruct", CHATML)
    (folder / "tokenizer.json").rename(folder / "tiktoken.model")
    for name, wrap, expected in (("raw", str, "warning:missing"), ("right", CHATML.prompt, "ok:matches")):
        write_rollout(tmp_path / name, [sample(made, n, wrap(q), "Four.") for n, q in enumerate(QUESTIONS)])
        assert word(ask(prompts, rollout_dump=str(tmp_path / name), hf_checkpoint=str(folder))) == expected
    rows = [{**sample(made, n, "q", "a"), "prompt": conversation(("user", "q"))} for n in range(3)]
    write_rollout(tmp_path / "lists", rows)
    finding = ask(prompts, rollout_dump=str(tmp_path / "lists"), hf_checkpoint=str(folder))
    assert word(finding) == "unknown"
    assert "tiktoken" in finding.summary.en


@pytest.mark.parametrize(
    "template", ["{{ ''.__class__ }}", "{% for", "{{ raise_exception('no') }}", "{{ 'a' * 10**10 }}", "constant"]
)
def test_a_template_that_cannot_be_used_is_unknown(template: str, tmp_path: Path) -> None:
    """An unsafe, broken, refusing, exploding or constant template answers nothing."""
    texts = [CHATML.prompt(question) for question in QUESTIONS]
    assert word(asked(tmp_path, CHATML, texts, chat_template=template)) == "unknown"


@pytest.mark.parametrize("name", ["coherent", "old", "kl-zero", "one-zero-mlp", "garbled"])
def test_recorded_dumps_are_silent(name: str) -> None:
    """Without their tokenizers nothing is claimed of them."""
    assert word(ask(prompts, rollout_dump=str(DUMPS / name))) == "unknown"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(hostile_text, min_size=1, max_size=3))
def test_hostile_prompts_are_shown_as_safe_text(texts: list[str], tmp_path: Path) -> None:
    """Control sequences and surrogates reach neither words nor tables."""
    made = tokenizer(CHATML)
    safe = [text.encode("utf-8", "replace").decode() for text in texts]
    samples = [
        {**sample(made, n, CHATML.prompt(s), "x"), "prompt": t}
        for n, (t, s) in enumerate(zip(texts, safe, strict=True))
    ]
    write_rollout(tmp_path / "dump", samples)
    folder = write_checkpoint(tmp_path / "toy-instruct", CHATML)
    finding = ask(prompts, rollout_dump=str(tmp_path / "dump"), hf_checkpoint=str(folder))
    assert is_safe(finding.summary.en + "".join(cell for table in finding.tables for row in table.rows for cell in row))


@pytest.mark.parametrize(
    "broken",
    [
        {"tokens": "no list"},
        {"tokens": [1.5, -3]},
        {"response_length": 10**9},
        {"response_length": None},
        {"prompt": [{"role": 1}]},
        {"prompt": [{"role": "user", "content": [{"type": "image"}]}]},
        {"prompt": None},
        {"response": 7},
        {"loss_mask": "x"},
    ],
)
def test_broken_samples_are_left_out(broken: dict[str, Any], tmp_path: Path) -> None:
    """Fields of other types than slime writes never raise, and the good samples still answer."""
    made = tokenizer(CHATML)
    good = [sample(made, n, CHATML.prompt(q), "4<|im_end|>") for n, q in enumerate(QUESTIONS)]
    write_rollout(tmp_path / "dump", [*good, {**good[0], **broken}])
    folder = write_checkpoint(tmp_path / "toy-instruct", CHATML)
    assert word(ask(prompts, rollout_dump=str(tmp_path / "dump"), hf_checkpoint=str(folder))) == "ok:matches"
