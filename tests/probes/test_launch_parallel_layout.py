"""Parallel sizes that divide, or not, the model and the GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_parallel_layout import parallel_layout
from tests.probes.asking import word
from tests.probes.scripts import ask_script, script


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--actor-num-gpus-per-node 8", "--tensor-model-parallel-size 2"), "ok:valid"),
        (("--actor-num-gpus-per-node 8", "--tensor-model-parallel-size 3"), "problem:invalid"),
        (("--num-experts 8", "--expert-model-parallel-size 3"), "problem:invalid"),
        (("--num-attention-heads 10", "--tensor-model-parallel-size 4"), "problem:invalid"),
        (("--debug-rollout-only", "--tensor-model-parallel-size 3"), "not_applicable"),
        (("--actor-num-nodes ${N:-1}", "--tensor-model-parallel-size 3"), "unknown"),
    ],
)
def test_a_whole_script_tells(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """TP x PP x CP divides the GPUs, TP the heads and EP the experts."""
    assert word(ask_script(parallel_layout, tmp_path, script(*flags))) == expected


def test_quoted_flags_leave_it_open(tmp_path: Path) -> None:
    """Nothing is concluded from what a partial command does not say."""
    assert word(ask_script(parallel_layout, tmp_path, script("--micro-batch-size 1", whole=False))) == "unknown"
