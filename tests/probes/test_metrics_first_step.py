"""How large the log-probs of step one are."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_first_step import first_step
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, rollout, word


@pytest.mark.parametrize("name", [*HEALTHY, "garbled-after-update", "kl-nonzero"])
def test_ordinary_first_steps_are_small(name: str) -> None:
    """Rollout 0 decides, whatever became of the later ones."""
    assert word(ask(first_step, DATA / f"{name}.log")) == "ok:small"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.3, "ok:small"),
        (0.8, "warning:slightly-large"),
        (1.6, "warning:slightly-large"),
        (7.4, "warning:extremely-large"),
    ],
)
def test_the_size_decides(tmp_path: Path, value: float, expected: str) -> None:
    """Up to 0.8 is small, beyond three nats extreme; size alone is never more than a warning."""
    assert word(ask_text(first_step, tmp_path, rollout(0, log_probs=-value))) == expected


def test_the_trainers_value_comes_first(tmp_path: Path) -> None:
    """Where the engine is ordinary and the trainer is not, the trainer is judged and the engine named."""
    finding = ask_text(first_step, tmp_path, rollout(0, rollout_log_probs=-0.4, ref_log_probs=-7.0))
    assert word(finding) == "warning:extremely-large"
    assert "0.4" in finding.summary.en
    assert len(finding.measurements) == 2


def test_the_engines_value_is_enough(tmp_path: Path) -> None:
    """With neither actor nor reference printed, the engine's mean is judged."""
    assert word(ask_text(first_step, tmp_path, rollout(0, rollout_log_probs=-0.9))) == "warning:slightly-large"


@pytest.mark.parametrize("line", [rollout(5, log_probs=-7.0), rollout(0, raw_reward=0.5)])
def test_no_first_step_is_unknown(tmp_path: Path, line: str) -> None:
    """A later rollout, or one without log-probs, is not judged."""
    assert word(ask_text(first_step, tmp_path, line)) == "unknown"
