"""slime's and Megatron's own comparison of MODEL_ARGS with the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.megatron_args_in_log import args_in_log
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, word


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "AssertionError: hf_validate_args failed: hidden_size in hf config 2560 is not equal to hidden_size 4096",
            "hidden_size in hf config 2560",
        ),
        (
            "AssertionError: num_layers value from checkpoint (36) is not equal to the input argument value (28).",
            "num_layers value from checkpoint (36)",
        ),
    ],
)
def test_a_named_argument_is_a_mismatch(tmp_path: Path, line: str, said: str) -> None:
    """Both programs name the argument and the two values, which the summary repeats."""
    finding = ask_text(args_in_log, tmp_path, line)
    assert word(finding) == "problem:mismatch"
    assert said in finding.summary.en


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_has_no_complaint(name: str) -> None:
    """A log read to its end without such a line has no complaint."""
    assert word(ask(args_in_log, DATA / f"{name}.log")) == "ok:no-complaint"


def test_a_text_that_is_no_job_log_proves_no_absence(tmp_path: Path) -> None:
    """Absence is only said of logs of a job."""
    path = tmp_path / "notes.log"
    path.write_text("nothing here\n")
    assert word(ask(args_in_log, path)) == "unknown"
