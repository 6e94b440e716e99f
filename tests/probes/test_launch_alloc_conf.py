"""expandable_segments where memory must be paused, and where it may stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_alloc_conf import alloc_conf
from tests.probes.asking import word
from tests.probes.scripts import PLACED, ask_script, cited, script, write

INSIDE = ',\\n    \\"PYTORCH_CUDA_ALLOC_CONF\\": \\"expandable_segments:True\\"'
TRAINERS = '--train-env-vars \'{"PYTORCH_CUDA_ALLOC_CONF":"expandable_segments:True"}\''
APART = ("--rollout-num-gpus 8",)
SFT = ("--debug-train-only",)


@pytest.mark.parametrize(
    ("flags", "env", "expected"),
    [
        (PLACED, "", "ok:not-set"),
        (PLACED, ',\\n    \\"PYTORCH_CUDA_ALLOC_CONF\\": \\"max_split_size_mb:64\\"', "ok:not-set"),
        (PLACED, INSIDE, "problem:forbidden"),
        (SFT, INSIDE, "ok:allowed"),
        (APART, INSIDE, "ok:allowed"),
        ((*APART, "--offload-train"), INSIDE, "problem:forbidden"),
        ((*APART, "--offload-rollout"), INSIDE, "problem:forbidden"),
        ((*APART, "--offload-rollout", TRAINERS), "", "ok:allowed"),
        ((*APART, "--offload-train", TRAINERS), "", "problem:forbidden"),
        ((*PLACED, "--no-offload-train", "--no-offload-rollout"), INSIDE, "ok:allowed"),
        ((*PLACED, "--no-offload-train", TRAINERS), "", "ok:allowed"),
        ((*PLACED, "--debug-rollout-only"), INSIDE, "ok:allowed"),
        (("--offload",), INSIDE, "problem:forbidden"),
    ],
)
def test_where_it_may_stand(tmp_path: Path, flags: tuple[str, ...], env: str, expected: str) -> None:
    """It is a fault exactly in processes that pause memory: trainers, engines, or both, by the offload flags."""
    versions = write(tmp_path, "v.txt", "slime==0.2.4\n")
    finding = ask_script(alloc_conf, tmp_path, script(*flags, env=env), versions=versions)
    assert word(finding) == expected
    if expected == "problem:forbidden":
        assert "expandable_segments:True" in " ".join(cited(finding))


@pytest.mark.parametrize("versions", ["slime==0.3.1\n", "torch==2\n"])
def test_other_releases_prove_nothing(tmp_path: Path, versions: str) -> None:
    """From v0.3.1 on the image holds a fork, and an unknown release may be one of those."""
    path = write(tmp_path, "v.txt", versions)
    assert word(ask_script(alloc_conf, tmp_path, script(*PLACED, env=INSIDE), versions=path)) == "unknown"


def test_an_export_may_not_reach_the_processes(tmp_path: Path) -> None:
    """What the shell exports reaches Ray's workers only by way of `ray start`: no proof."""
    versions = write(tmp_path, "v.txt", "slime==0.2.4\n")
    text = script(*PLACED, exports="export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
    assert word(ask_script(alloc_conf, tmp_path, text, versions=versions)) == "unknown"


def test_a_few_quoted_flags_leave_it_open(tmp_path: Path) -> None:
    """Whether memory is paused is not known from a part of the command."""
    versions = write(tmp_path, "v.txt", "slime==0.2.4\n")
    text = script("--num-rollout 1", env=INSIDE, whole=False)
    assert word(ask_script(alloc_conf, tmp_path, text, versions=versions)) == "unknown"
