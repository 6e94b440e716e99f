"""Trainer against engine on the same tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_logprob_gap import logprob_gap
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, rollout, step, table, word


def _steps(*gaps: float) -> list[str]:
    return [step(number, train_rollout_logprob_abs_diff=gap) for number, gap in enumerate(gaps)]


@pytest.mark.parametrize("name", [*HEALTHY, "kl-nonzero", "nan"])
def test_healthy_engines_agree(name: str) -> None:
    """A mean difference of 0.012 to 0.014 is what bf16 gives; NaN lines are left out."""
    assert word(ask(logprob_gap, DATA / f"{name}.log")) == "ok:agree"


def test_the_real_broken_update_is_large_and_healthy_before() -> None:
    """The first line beyond the limit is cited, and the summary says that it was good before."""
    finding = ask(logprob_gap, DATA / "garbled-after-update.log")
    assert word(finding) == "problem:large"
    assert finding.citations[0].line == 36
    assert "0.012 at step 0" in finding.summary.en


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        pytest.param((0.011, 0.018, 0.03), "ok:agree", id="bf16"),
        pytest.param((0.041, 0.067), "ok:small", id="fp8 or MoE"),
        pytest.param((0.15, 0.14), "warning:large", id="above CI's limit, below the proof"),
        pytest.param((9.2,), "problem:large", id="at the first step"),
        pytest.param((0.02, 0.3, 0.4), "problem:large", id="for several steps"),
        pytest.param((0.02, 0.02, 0.9, 0.02), "warning:large", id="one step that passed"),
    ],
)
def test_the_distance_and_how_long_it_lasts_decide(tmp_path: Path, gaps: tuple[float, ...], expected: str) -> None:
    """One outlier between healthy steps is a warning; at the start, at the end or twice it is a problem."""
    assert word(ask_text(logprob_gap, tmp_path, *_steps(*gaps))) == expected


def test_the_means_of_the_rollout_line_stand_in(tmp_path: Path) -> None:
    """Without the metric (v0.1.0) the two means are compared."""
    near, far = (rollout(0, log_probs=value, rollout_log_probs=-0.30) for value in (-0.31, -5.0))
    assert word(ask_text(logprob_gap, tmp_path, near)) == "ok:agree"
    assert word(ask_text(logprob_gap, tmp_path, far)) == "problem:large"


def test_a_value_compared_with_itself_says_nothing(tmp_path: Path) -> None:
    """Under --use-rollout-logprobs an exact 0 is meaningless; without the flag it is agreement."""
    assert word(ask_text(logprob_gap, tmp_path, *table(use_rollout_logprobs="True"), *_steps(0.0, 0.0))) == "unknown"
    assert word(ask_text(logprob_gap, tmp_path, *_steps(0.0, 0.0))) == "ok:agree"


def test_a_ci_assertion_shows_the_gap(tmp_path: Path) -> None:
    """The step that CI stops is not printed, but its assertion is."""
    line = "AssertionError: threshold=0.1 log_dict={'train/train_rollout_logprob_abs_diff': 0.31}"
    finding = ask_text(logprob_gap, tmp_path, line)
    assert word(finding) == "problem:large"
    assert "the failing step" in finding.summary.en


@pytest.mark.parametrize(
    ("rows", "gap", "expected"),
    [
        ({"num_experts": 128}, 0.06, "ok:agree"),
        ({"num_experts": 128, "use_rollout_routing_replay": True}, 0.06, "ok:small"),
        ({"num_experts": None}, 0.06, "ok:small"),
        ({"num_experts": None, "sglang_quantization": "fp8"}, 0.06, "ok:agree"),
        ({"true_on_policy_mode": True}, 1e-7, "ok:agree"),
        ({"true_on_policy_mode": True}, 0.01, "warning:small"),
    ],
)
def test_what_agrees_depends_on_the_precision(
    tmp_path: Path, rows: dict[str, object], gap: float, expected: str
) -> None:
    """A mixture of experts or fp8 explains more than dense bf16, aligned kernels nothing."""
    assert word(ask_text(logprob_gap, tmp_path, *table(**rows), *_steps(gap, gap))) == expected


def test_an_assertion_is_told_in_both_languages(tmp_path: Path) -> None:
    """A failing step of slime's CI has no number; its name is a Chinese one in the Chinese sentence."""
    line = "AssertionError: log_dict={'train/train_rollout_logprob_abs_diff': 0.6}"
    finding = ask_text(logprob_gap, tmp_path, line)
    assert "at the failing step" in finding.summary.en
    assert "failing" not in finding.summary.zh
    assert "in 1 of 1 line." in finding.summary.en
