"""The token that ends a turn must stop generation: by the files, the flags, and what the dumps show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probes.template_stop_tokens import stop_tokens
from runbook.finding import Finding
from tests.probes.asking import word
from tests.probes.scripts import ask, script, write
from tests.probes.tiny_tokenizers import (
    CHATML,
    FAMILIES,
    Family,
    sample,
    tokenizer,
    write_checkpoint,
    write_rollout,
)

MADE = tokenizer(CHATML)
END = MADE.token_to_id("<|im_end|>")
DOCUMENT_END = MADE.token_to_id("<|endoftext|>")


def asked(folder: Path, responses: list[str], *flags: str, name: str = "toy-instruct", **changes: Any) -> Finding:
    """Ask about a ChatML checkpoint whose files list only the end of documents, and a rollout with these responses."""
    write_checkpoint(folder / name, CHATML, **{"stops": DOCUMENT_END, **changes})
    slots = {"hf_checkpoint": str(folder / name), "launch": write(folder, "run.sh", script(*flags))}
    if responses:
        rows = [sample(MADE, n, CHATML.prompt("q"), text, status="truncated") for n, text in enumerate(responses)]
        write_rollout(folder / "dump", rows)
        slots["rollout_dump"] = str(folder / "dump")
    return ask(stop_tokens, **slots)


@pytest.mark.parametrize("family", [one for one in FAMILIES if one.name != "glm"], ids=lambda family: family.name)
def test_an_instruct_checkpoint_stops_at_the_end_of_a_turn(family: Family, tmp_path: Path) -> None:
    """generation_config.json lists it. GLM ends a turn with the next one's opener and is left open."""
    folder = write_checkpoint(tmp_path / "toy-instruct", family)
    assert word(ask(stop_tokens, hf_checkpoint=str(folder))) == "ok:configured"


RUN_ON = "It is four.<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>\n"


@pytest.mark.parametrize(
    ("responses", "expected"),
    [
        ([RUN_ON] * 4, "problem:missing"),
        ([RUN_ON] * 2 + ["It goes on and on"] * 2, "problem:missing"),
        ([RUN_ON] + ["It goes on and on"] * 3, "unknown"),
        (["It goes on and on"] * 4, "unknown"),
        ([], "warning:missing"),
    ],
)
def test_a_model_that_writes_its_end_and_is_not_stopped(responses: list[str], expected: str, tmp_path: Path) -> None:
    """Half of the samples prove it; files alone hint at it; samples that never write the end prove nothing."""
    assert word(asked(tmp_path, responses)) == expected


@pytest.mark.parametrize(
    "flag", [f"--rollout-stop-token-ids {END}", f"--rollout-stop-token-ids 7 {END}", "--rollout-stop '<|im_end|>'"]
)
def test_flags_add_stop_tokens(flag: str, tmp_path: Path) -> None:
    """Ids and words of the launch script count as well as the files."""
    assert word(asked(tmp_path, [], flag)) == "ok:configured"


def test_responses_that_end_there_show_that_it_stops(tmp_path: Path) -> None:
    """Whatever the files say, finished responses that end with the end of a turn were stopped there."""
    write_checkpoint(tmp_path / "toy-instruct", CHATML, stops=DOCUMENT_END)
    rows = [sample(MADE, n, CHATML.prompt("q"), "It is four.<|im_end|>") for n in range(4)]
    write_rollout(tmp_path / "dump", rows)
    finding = ask(stop_tokens, hf_checkpoint=str(tmp_path / "toy-instruct"), rollout_dump=str(tmp_path / "dump"))
    assert word(finding) == "ok:configured"


def test_turns_that_the_rollout_function_put_in_are_no_run_on(tmp_path: Path) -> None:
    """Behind the end of a turn stands tool output, which the engine did not draw (log-prob 0, not counted)."""
    write_checkpoint(tmp_path / "toy-instruct", CHATML, stops=DOCUMENT_END)
    rows = []
    for n in range(4):
        one = sample(MADE, n, CHATML.prompt("q"), RUN_ON + "<|im_start|>assistant\nfive", status="truncated")
        drawn = len(MADE.encode("It is four.<|im_end|>").ids)
        behind = one["response_length"] - drawn
        rows.append(
            {**one, "rollout_log_probs": [-0.2] * drawn + [0.0] * behind, "loss_mask": [1] * drawn + [0] * behind}
        )
    write_rollout(tmp_path / "dump", rows)
    finding = ask(stop_tokens, hf_checkpoint=str(tmp_path / "toy-instruct"), rollout_dump=str(tmp_path / "dump"))
    assert word(finding) == "unknown"


def test_a_base_model_ends_with_documents(tmp_path: Path) -> None:
    """Its files list the end of documents alone, which is right for it."""
    assert word(asked(tmp_path, [], name="toy-base", extra={})) == "unknown"


@pytest.mark.parametrize(("stops", "expected"), [(99999, "problem:invalid"), ([END, 99999], "warning:invalid")])
def test_an_end_token_beyond_the_vocabulary(stops: object, expected: str, tmp_path: Path) -> None:
    """No model can draw it; with another one beside it generation may still stop."""
    finding = asked(tmp_path, [], stops=stops)
    assert word(finding) == expected
    assert finding.citations[0].line is not None


def test_a_folder_without_a_tokenizer_is_unknown(tmp_path: Path) -> None:
    """As most weights-only copies are."""
    write(tmp_path / "toy", "config.json", "{}")
    assert word(ask(stop_tokens, hf_checkpoint=str(tmp_path / "toy"))) == "unknown"
