"""Batch sizes that agree, or not, with each other and with the data-parallel size."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_batch import batch
from tests.probes.asking import word
from tests.probes.scripts import ask_script, script, write

EIGHT = ("--actor-num-gpus-per-node 8", "--n-samples-per-prompt 8")
"""With 32 prompts: 256 samples a rollout, and a data-parallel size of 8."""


@pytest.mark.parametrize(
    "flags",
    [
        ("--global-batch-size 256",),
        ("--num-steps-per-rollout 4",),
        ("--num-steps-per-rollout 4", "--global-batch-size 64"),
        ("--global-batch-size 6", "--tensor-model-parallel-size 4"),
        ("--global-batch-size 256", "--over-sampling-batch-size 64"),
        ("--global-batch-size 256", "--rollout-max-context-len 4096", "--rollout-max-prompt-len 4095"),
        (),
    ],
)
def test_sizes_that_agree(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Products and quotients come out as slime computes them."""
    assert word(ask_script(batch, tmp_path, script(*EIGHT, *flags))) == "ok:consistent"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--num-steps-per-rollout 2", "--global-batch-size 64"), "is 128"),
        (("--global-batch-size 12",), "12 cannot be divided by micro batch x data-parallel size 8"),
        (("--global-batch-size 8", "--micro-batch-size 2"), "size 16"),
        (("--global-batch-size 512",), "fewer than the global batch of 512"),
        (("--global-batch-size 256", "--over-sampling-batch-size 16"), "below --rollout-batch-size 32"),
    ],
)
def test_sizes_that_stop(tmp_path: Path, flags: tuple[str, ...], words: str) -> None:
    """Each refusal names its numbers."""
    finding = ask_script(batch, tmp_path, script(*EIGHT, *flags))
    assert word(finding) == "problem:inconsistent"
    assert words in finding.summary.en


@pytest.mark.parametrize(
    ("flags", "versions", "expected"),
    [
        (("--global-batch-size 160",), "slime==0.2.1\n", "problem:inconsistent"),
        (("--global-batch-size 160",), "slime==0.2.2\n", "ok:consistent"),
        (("--global-batch-size 160",), "torch==2\n", "ok:consistent"),
        (("--rollout-max-context-len 10", "--rollout-max-prompt-len 10"), "slime==0.2.0\n", "ok:consistent"),
        (("--rollout-max-context-len 10", "--rollout-max-prompt-len 10"), "slime==0.2.1\n", "problem:inconsistent"),
    ],
)
def test_rules_of_some_releases(tmp_path: Path, flags: tuple[str, ...], versions: str, expected: str) -> None:
    """256 is no multiple of 160: refused up to v0.2.1, cut off later; the prompt rule came with v0.2.1."""
    path = write(tmp_path, "v.txt", versions)
    assert word(ask_script(batch, tmp_path, script(*EIGHT, *flags), versions=path)) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--debug-rollout-only", "--global-batch-size 12"), "not_applicable"),
        (("--global-batch-size 512", "--custom-generate-function-path a.b"), "warning:inconsistent"),
        (("--global-batch-size 512", "--use-dynamic-global-batch-size"), "ok:consistent"),
        (("--global-batch-size ${GBS}",), "unknown"),
        (("--global-batch-size ${GBS:-12}",), "warning:inconsistent"),
    ],
)
def test_what_proves_nothing(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """A rollout function of one's own may yield any number of samples; variables stay open."""
    assert word(ask_script(batch, tmp_path, script(*EIGHT, *flags))) == expected
