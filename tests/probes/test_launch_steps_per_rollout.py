"""Train steps of one rollout, from the batch sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_steps_per_rollout import steps_per_rollout
from tests.probes.asking import word
from tests.probes.scripts import ask, ask_script, script, table, write


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--n-samples-per-prompt 8", "--global-batch-size 256"), "ok:one"),
        (("--n-samples-per-prompt 8", "--global-batch-size 64"), "ok:several"),
        (("--num-steps-per-rollout 4",), "ok:several"),
        (("--global-batch-size $G",), "unknown"),
    ],
)
def test_a_whole_script_tells(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """The steps are rollout batch x samples / global batch, or as given."""
    assert word(ask_script(steps_per_rollout, tmp_path, script(*flags))) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"rollout_batch_size": 8, "n_samples_per_prompt": 8, "global_batch_size": 64}, "ok:one"),
    ],
)
def test_the_table_tells(tmp_path: Path, rows: dict[str, object], expected: str) -> None:
    """The arguments table alone answers as well."""
    assert word(ask(steps_per_rollout, log=write(tmp_path, "job.log", table(**rows)))) == expected


def test_quoted_flags_leave_it_open(tmp_path: Path) -> None:
    """Nothing is concluded from what a partial command does not say."""
    assert word(ask_script(steps_per_rollout, tmp_path, script("--micro-batch-size 1", whole=False))) == "unknown"
