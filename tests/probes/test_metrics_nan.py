"""The first value that is no number."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_nan import nan
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, rollout, step, word


@pytest.mark.parametrize("name", [*HEALTHY, "kl-nonzero", "garbled-after-update"])
def test_finite_runs_have_none(name: str) -> None:
    """Broken or not, all numbers of these logs are finite."""
    assert word(ask(nan, DATA / f"{name}.log")) == "ok:none"


def test_the_real_run_turns_nan_at_rollout_2() -> None:
    """The first line with a NaN is cited, and how many lines have one."""
    finding = ask(nan, DATA / "nan.log")
    assert word(finding) == "problem:nan"
    assert finding.citations[0].line == 54
    assert finding.citations[0].count == 4
    assert "log_probs" in finding.summary.en


@pytest.mark.parametrize(
    "line",
    [
        step(3, grad_norm=float("nan")),
        step(3, loss=float("inf")),
        rollout(3, advantages=float("-inf")),
        step(3, **{"critic-value_loss": float("nan")}).replace("- step", "- critic-step"),
        "AssertionError: log_dict={'train/kl_loss': nan}",
        "RuntimeError: Rank 3, node h, iteration 0: Unexpected result nan (message='found NaN in local grad')",
    ],
)
def test_every_place_of_a_nan_is_seen(tmp_path: Path, line: str) -> None:
    """Losses, norms, advantages, the critic, CI's assertion and Megatron's abort."""
    assert word(ask_text(nan, tmp_path, line)) == "problem:nan"


@pytest.mark.parametrize(
    "line",
    [
        rollout(3, my_ratio=float("nan"), log_probs=-0.1),
        "[2026-08-21 10:00:00] x.py:1 - check_for_nan_in_loss_and_grad: {'a': nan} step 3: {'train/loss': 0.1}",
    ],
)
def test_other_numbers_may_be_anything(tmp_path: Path, line: str) -> None:
    """A custom metric, or a NaN outside a metric's dictionary, is no NaN of the optimisation."""
    assert word(ask_text(nan, tmp_path, line)) == "ok:none"


def test_no_metrics_at_all_is_unknown() -> None:
    """A log without metric lines cannot say that there is no NaN."""
    assert word(ask(nan, DATA / "loaded.log")) == "unknown"
