"""Loss masks are held against the turns of their tokens: right ones are silent, each fault is told."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.vocabulary import Vocabulary
from probes.template_loss_mask import loss_mask
from probes.template_samples import View
from probes.template_structure import read_structure
from probes.template_turns import Turns, mask_flaws
from runbook.finding import Finding
from tests.probes.asking import word
from tests.probes.readers.pickles import DUMPS
from tests.probes.scripts import ask, script, write
from tests.probes.tiny_tokenizers import (
    CHATML,
    GLM,
    LLAMA3,
    Family,
    sample,
    tokenizer,
    write_checkpoint,
    write_rollout,
    write_train,
)

Piece = tuple[str, int]
"""Text, and whether the mask counts it."""
HEAD = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
TOOL = "<|im_start|>user\n<tool_response>\n12 degrees\n</tool_response><|im_end|>\n"
OPEN = "<|im_start|>assistant\n"
MESSAGES = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": "call"},
    {"role": "tool", "content": "12 degrees"},
    {"role": "assistant", "content": "done"},
]


def row(pieces: list[Piece], n: int = 0, family: Family = CHATML, head: str = HEAD, **changes: Any) -> dict[str, Any]:
    """Return a sample whose response is made of pieces; the engine drew the counted ones unless changes say so."""
    made = tokenizer(family)
    mask: list[int] = []
    for text, counted in pieces:
        mask += [counted] * len(made.encode(text).ids)
    one = sample(made, n, head, "".join(text for text, _ in pieces))
    assert len(mask) == one["response_length"], "pieces do not merge with each other: tokens are bytes"
    return {**one, "loss_mask": mask, "rollout_log_probs": [-0.3 * value for value in mask], **changes}


def ask_rows(
    folder: Path, rows: list[dict[str, Any]], *, family: Family = CHATML, flags: tuple[str, ...] = ()
) -> Finding:
    """Ask about a rollout dump of these samples."""
    write_rollout(folder / "dump", rows)
    write_checkpoint(folder / "toy-instruct", family)
    launch = {"launch": write(folder, "run.sh", script(*flags))} if flags else {}
    return ask(loss_mask, rollout_dump=str(folder / "dump"), hf_checkpoint=str(folder / "toy-instruct"), **launch)


RIGHT: list[Piece] = [("call<|im_end|>\n", 1), (TOOL + OPEN, 0), ("done<|im_end|>\n", 1)]


@pytest.mark.parametrize(
    "pieces",
    [
        [("done<|im_end|>", 1)],
        RIGHT,
        [("call<|im_end|>", 1), ("\n" + TOOL + OPEN, 0), ("done<|im_end|>", 1)],
        [("call<|im_end|>\n", 0), (TOOL + OPEN, 0), ("done<|im_end|>\n", 1)],
        [("cut off", 1)],
        [("call<|im_end|>\n", 1), (TOOL + OPEN + "<think>\n", 0), ("done<|im_end|>\n", 1)],
    ],
)
def test_right_masks_are_silent(pieces: list[Piece], tmp_path: Path) -> None:
    """One turn, tool output left out, the line break counted or not, an earlier turn left out, a pre-filled thought."""
    assert word(ask_rows(tmp_path, [row(pieces, n) for n in range(4)])) == "ok:right"


@pytest.mark.parametrize("family", [LLAMA3, GLM], ids=lambda family: family.name)
@pytest.mark.parametrize(("counted", "expected"), [(0, "ok:right"), (1, "problem:prompt-trained")])
def test_turns_of_other_families_are_found(family: Family, counted: int, expected: str, tmp_path: Path) -> None:
    """A second question inside the response, left out and counted; the engine did not draw it."""
    prompt = family.prompt("q")
    if family is GLM:
        pieces: list[Piece] = [("\nyes", 1), ("<|user|>\nand now? tell me<|assistant|>", counted), ("\nno", 1)]
    else:
        again = prompt.removeprefix("<|begin_of_text|>")
        pieces = [("yes<|eot_id|>", 1), (again, counted), ("no<|eot_id|>", 1)]
    rows = [row(pieces, n, family, prompt) for n in range(4)]
    drawn = row([(text, 0 if place == 1 else 1) for place, (text, _) in enumerate(pieces)], 0, family, prompt)
    rows = [{**one, "rollout_log_probs": drawn["rollout_log_probs"]} for one in rows]
    assert word(ask_rows(tmp_path, rows, family=family)) == expected


def test_tool_output_that_is_counted_is_a_problem(tmp_path: Path) -> None:
    """The engine did not draw it: slime's examples give such tokens the log-prob 0."""
    wrong: list[Piece] = [("call<|im_end|>\n", 1), (TOOL, 1), (OPEN, 0), ("done<|im_end|>\n", 1)]
    silent = row([("call<|im_end|>\n", 1), (TOOL + OPEN, 0), ("done<|im_end|>\n", 1)])["rollout_log_probs"]
    finding = ask_rows(tmp_path, [row(wrong, n, rollout_log_probs=silent) for n in range(4)])
    assert word(finding) == "problem:tool-output-trained"
    assert "<tool_response>" in finding.citations[0].excerpt


def test_a_turn_that_the_model_made_up_is_its_own(tmp_path: Path) -> None:
    """The engine drew a user's turn (it did not stop): counting it is right, whatever else is wrong."""
    drawn: list[Piece] = [("call<|im_end|>\n" + TOOL + OPEN + "done<|im_end|>\n", 1)]
    assert word(ask_rows(tmp_path, [row(drawn, n) for n in range(4)])) == "ok:right"


def test_without_the_engine_s_log_probs_it_is_a_warning(tmp_path: Path) -> None:
    """Nothing tells whether the model made the turn up."""
    drawn: list[Piece] = [("call<|im_end|>\n" + TOOL + OPEN + "done<|im_end|>\n", 1)]
    rows = [row(drawn, n, rollout_log_probs=None) for n in range(4)]
    assert word(ask_rows(tmp_path, rows)) == "warning:tool-output-trained"


@pytest.mark.parametrize("tag", ["information", "interpreter"])
@pytest.mark.parametrize(("counted", "expected"), [(0, "ok:right"), (1, "problem:tool-output-trained")])
def test_output_in_tags_of_the_rollout_function_is_found(tag: str, counted: int, expected: str, tmp_path: Path) -> None:
    """Search-R1 and retool put results in tags of their own, without a turn; the log-prob 0 tells them."""
    output = f"\n<{tag}>\nParis is the capital\n</{tag}>\n"
    silent = row([("I search.", 1), (output, 0), ("Paris<|im_end|>", 1)])["rollout_log_probs"]
    rows = [
        row([("I search.", 1), (output, counted), ("Paris<|im_end|>", 1)], n, rollout_log_probs=silent)
        for n in range(4)
    ]
    assert word(ask_rows(tmp_path, rows)) == expected


def test_sure_tokens_are_no_tool_output(tmp_path: Path) -> None:
    """A loop that the model is certain of has log-probs of exactly 0 as well."""
    pieces: list[Piece] = [("one ", 1), ("again and again and again ", 1), ("<|im_end|>", 1)]
    values = row([("one ", 1), ("again and again and again ", 0), ("<|im_end|>", 1)])["rollout_log_probs"]
    assert word(ask_rows(tmp_path, [row(pieces, n, rollout_log_probs=values) for n in range(4)])) == "ok:right"


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (RIGHT, "ok:right"),
        ([("call<|im_end|>\n", 1), (TOOL, 1), (OPEN, 0), ("done<|im_end|>\n", 1)], "problem:tool-output-trained"),
        ([("call<|im_end|>\n", 1), (TOOL + OPEN, 1), ("done<|im_end|>\n", 1)], "problem:tool-output-trained"),
        ([("call<|im_end|>\n", 1), (TOOL, 0), (OPEN, 1), ("done<|im_end|>\n", 1)], "problem:off-by-one"),
        ([("call<|im_end|>\n", 1), (TOOL + OPEN, 0), ("d", 0), ("one<|im_end|>\n", 1)], "problem:off-by-one"),
        ([("call<|im_end|>\n<|im_start|>", 1), (TOOL[12:] + OPEN, 0), ("done<|im_end|>\n", 1)], "problem:off-by-one"),
        ([("call", 1), ("<|im_end|>\n" + TOOL + OPEN, 0), ("done", 1), ("<|im_end|>\n", 0)], "warning:off-by-one"),
        ([("call<|im_end|>\n", 1), (TOOL + OPEN + "done<|im_end|>\n", 0)], "warning:assistant-masked"),
    ],
)
def test_masks_of_conversations_that_are_data(pieces: list[Piece], expected: str, tmp_path: Path) -> None:
    """In SFT every turn is known from the data, so what is counted beyond the assistant's is proven."""
    rows = [row(pieces, n, prompt=MESSAGES, response="", rollout_log_probs=None) for n in range(4)]
    finding = ask_rows(tmp_path, rows, flags=("--loss-mask-type qwen",))
    assert word(finding) == expected
    if not expected.startswith("ok"):
        assert "--loss-mask-type is qwen, the template has thoughts: try qwen3" in finding.summary.en


def test_a_turn_that_the_data_leave_out_is_right(tmp_path: Path) -> None:
    """step_loss_mask 0 in a message takes its turn out (slime/utils/mask_utils.py)."""
    messages = [*MESSAGES[:3], {**MESSAGES[3], "step_loss_mask": 0}]
    pieces: list[Piece] = [("call<|im_end|>\n", 1), (TOOL + OPEN + "done<|im_end|>\n", 0)]
    rows = [row(pieces, n, prompt=messages, response="", rollout_log_probs=None) for n in range(4)]
    assert word(ask_rows(tmp_path, rows)) == "ok:right"


@pytest.mark.parametrize(
    ("zeros", "more", "expected"),
    [
        (4, {}, "problem:nothing-trained"),
        (3, {}, "warning:nothing-trained"),
        (1, {}, "ok:right"),
        (4, {"remove_sample": True}, "unknown"),
        (4, {"status": "aborted"}, "unknown"),
    ],
)
def test_masks_of_zeros(zeros: int, more: dict[str, Any], expected: str, tmp_path: Path) -> None:
    """All samples without a counted token train nothing; those that slime takes out itself are not judged."""
    rows = [row([("done<|im_end|>", 0 if n < zeros else 1)], n, **more) for n in range(4)]
    assert word(ask_rows(tmp_path, rows)) == expected


def test_a_mask_of_another_length_is_a_problem(tmp_path: Path) -> None:
    """len(loss_mask) must be response_length."""
    rows = [row([("done<|im_end|>", 1)], n, loss_mask=[1, 1]) for n in range(4)]
    assert word(ask_rows(tmp_path, rows)) == "problem:length"


def test_a_train_dump_is_looked_at_too(tmp_path: Path) -> None:
    """Zeros in loss_masks of every sample; without the tokenizer the rest is unknown."""
    for name, counted, expected in (("zeros", 0, "problem:nothing-trained"), ("ones", 1, "unknown")):
        rows = [
            {"sample_index": n, "tokens": [1, 2, 3], "response_lengths": 2, "loss_masks": [counted] * 2}
            for n in range(3)
        ]
        write_train(tmp_path / name, rows)
        assert word(ask(loss_mask, train_dump=str(tmp_path / name))) == expected


@pytest.mark.parametrize("name", ["coherent", "old", "kl-zero", "one-zero-mlp", "garbled"])
def test_recorded_dumps_are_silent(name: str) -> None:
    """Without their tokenizers the turns are not known."""
    assert word(ask(loss_mask, rollout_dump=str(DUMPS / name))) == "unknown"


MADE = tokenizer(CHATML)
VOCABULARY = Vocabulary(MADE, {n: token.content for n, token in MADE.get_added_tokens_decoder().items()})
STRUCTURE = read_structure(CHATML.template, {}).structure


@given(
    data=st.data(),
    prompt=st.lists(st.integers(0, 300), max_size=20),
    answer=st.lists(st.integers(250, 300), max_size=30),
)
def test_any_tokens_and_masks_are_answered(data: st.DataObject, prompt: list[int], answer: list[int]) -> None:
    """Whatever ids, masks and log-probs a dump holds, a flaw lies inside the response; a mask of zeros has none."""
    assert STRUCTURE is not None
    turns = Turns(STRUCTURE, VOCABULARY)
    mask = data.draw(st.lists(st.integers(0, 1), min_size=len(answer), max_size=len(answer)))
    values = data.draw(st.none() | st.lists(st.sampled_from([0.0, -1.0]), min_size=len(answer), max_size=len(answer)))
    for messages in (None, MESSAGES):
        view = View(0, "x", None, messages, prompt, answer, mask=mask, log_probs=values)
        assert all(0 <= flaw.at < len(answer) for flaw in mask_flaws(view, turns))
        assert mask_flaws(replace(view, mask=[0] * len(answer)), turns) == []
    found = turns.of([*prompt, *answer])
    assert all(one.start < one.content <= one.end for one in found)
    assert all(one.end == two.start for one, two in pairwise(found))
