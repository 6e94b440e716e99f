"""Dumps of this run, and of another model, other sizes or another rollout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from probes.separate_dump_match import dump_match
from tests.probes.asking import word
from tests.probes.scripts import ask, script, write

FLAGS = ("--n-samples-per-prompt 2", "--global-batch-size 8", "--rollout-max-response-len 16", "--rollout-batch-size 4")
REPLAY = (*FLAGS, "--load-debug-rollout-data /d/{rollout_id}.pt")


def sample(index: int, **more: Any) -> dict[str, Any]:
    """Return one sample as slime dumps it: four tokens of prompt, three of response."""
    plain = {"index": index, "tokens": [1, 2, 3, 4, 5, 6, 7], "response": "abc", "response_length": 3, "prompt": "x"}
    return {**plain, **more}


def dump(folder: Path, count: int, rollout: int = 0, **more: Any) -> str:
    """Write a rollout dump of `count` samples and return its path."""
    path = folder / f"{rollout}.pt"
    samples = [sample(index, **more) for index in range(count)]
    torch.save({"rollout_id": rollout, "samples": samples}, path)
    return str(path)


def launch(folder: Path, *flags: str) -> str:
    """Write a script and return its path."""
    return write(folder, "run.sh", script(*flags))


@pytest.mark.parametrize(("largest", "expected"), [(99, "ok:matches"), (100, "problem:other-model")])
def test_token_ids_against_the_vocabulary(tmp_path: Path, largest: int, expected: str) -> None:
    """The last row of a vocabulary of 100 is 99."""
    model = write(tmp_path, "hf/config.json", '{"model_type": "qwen3", "vocab_size": 100}')
    path = dump(tmp_path, 2, tokens=[1, 2, largest, 4, 5, 6, 7])
    assert word(ask(dump_match, rollout_dump=path, hf_checkpoint=str(Path(model).parent))) == expected


@pytest.mark.parametrize(
    ("flags", "count", "more", "expected"),
    [
        (FLAGS, 8, {}, "ok:matches"),
        (FLAGS, 6, {}, "warning:other-sizes"),
        ((*FLAGS, "--dynamic-sampling-filter-path a.b"), 6, {}, "ok:matches"),
        (FLAGS, 8, {"response_length": 17}, "warning:other-sizes"),
        ((*FLAGS, "--custom-generate-function-path a.b"), 8, {"response_length": 17}, "ok:matches"),
        (REPLAY, 8, {}, "ok:matches"),
        (REPLAY, 7, {}, "problem:other-sizes"),
        ((*REPLAY, "--custom-generate-function-path a.b"), 7, {}, "problem:other-sizes"),
        ((*REPLAY, "--use-dynamic-global-batch-size"), 7, {}, "warning:other-sizes"),
        (("--rollout-batch-size ${B}", *FLAGS[:3]), 6, {}, "warning:other-sizes"),
    ],
)
def test_sizes_against_the_flags(
    tmp_path: Path, flags: tuple[str, ...], count: int, more: dict[str, Any], expected: str
) -> None:
    """Four prompts of two samples make eight; a replay needs a global batch; custom functions explain the rest."""
    if "${B}" in flags[0]:
        expected = "unknown"
        flags = (*flags[1:], flags[0])
    finding = ask(dump_match, rollout_dump=dump(tmp_path, count, **more), launch=launch(tmp_path, *flags))
    assert word(finding) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (REPLAY, "warning:no-rollout"),
        ((*REPLAY, "--start-rollout-id 3"), "ok:matches"),
        ((*REPLAY, "--load /ckpt"), "ok:matches"),
    ],
)
def test_the_rollout_to_start_with(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """A replay starts at rollout 0 unless a number or a checkpoint says otherwise; other files may lie elsewhere."""
    finding = ask(dump_match, rollout_dump=dump(tmp_path, 8, rollout=3), launch=launch(tmp_path, *flags))
    assert word(finding) == expected


def test_a_broken_dump_leaves_it_open(tmp_path: Path) -> None:
    """A file that cannot be read says nothing of the run; dump.readable does."""
    path = Path(dump(tmp_path, 8))
    path.write_bytes(path.read_bytes()[:-200])
    assert word(ask(dump_match, rollout_dump=str(path), launch=launch(tmp_path, *FLAGS))) == "unknown"
