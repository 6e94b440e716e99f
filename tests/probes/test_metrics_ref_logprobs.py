"""Actor against reference at step one, from metric lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_ref_logprobs import ref_logprobs
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, rollout, step, table, word

SAME = table(load="None", ref_load="/ckpt/ref")
OTHER = table(load="/ckpt/sft", ref_load="/ckpt/ref")


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_runs_are_equal(name: str) -> None:
    """In the healthy logs both means of rollout 0 are the same number."""
    assert word(ask(ref_logprobs, DATA / f"{name}.log")) == "ok:equal"


def test_the_real_run_with_another_reference_is_far() -> None:
    """A reference 0.42 away is far; without the arguments it is a warning, since it may be meant."""
    finding = ask(ref_logprobs, DATA / "kl-nonzero.log")
    assert word(finding) == "warning:far"
    assert finding.measurements[0].value == pytest.approx(0.42)


@pytest.mark.parametrize(
    ("apart", "expected"),
    [(0.0, "ok:equal"), (1e-9, "ok:close"), (1e-3, "problem:differ"), (0.42, "problem:far")],
)
def test_the_distance_decides(tmp_path: Path, apart: float, expected: str) -> None:
    """Equal, within CI's limit, beyond it, and beyond anything kernels explain, with both loaded from one place."""
    line = rollout(0, log_probs=-0.5, ref_log_probs=-0.5 - apart)
    assert word(ask_text(ref_logprobs, tmp_path, *SAME, line)) == expected


def test_different_checkpoints_may_differ(tmp_path: Path) -> None:
    """Where the arguments load actor and reference from different places, a distance is no problem."""
    line = rollout(0, log_probs=-0.5, ref_log_probs=-0.6)
    assert word(ask_text(ref_logprobs, tmp_path, *OTHER, line)) == "warning:differ"


@pytest.mark.parametrize(("loss", "expected"), [(0.0, "ok:equal"), (9e-9, "ok:close"), (10.2, "problem:far")])
def test_without_actor_log_probs_the_kl_loss_is_read(tmp_path: Path, loss: float, expected: str) -> None:
    """From v0.3.0 on the actor's mean is usually not printed; kl_loss of step 0 answers instead."""
    lines = [rollout(0, ref_log_probs=-0.24, rollout_log_probs=-0.241), step(0, ppo_kl=0.0, kl_loss=loss)]
    assert word(ask_text(ref_logprobs, tmp_path, *SAME, *lines)) == expected


def test_routing_replay_exempts_the_kl_loss(tmp_path: Path) -> None:
    """With routing replay slime's CI does not ask for a KL of 0 either."""
    rows = table(load="None", ref_load="/r", use_rollout_routing_replay="True")
    assert word(ask_text(ref_logprobs, tmp_path, *rows, step(0, kl_loss=0.01))) == "unknown"


def test_the_engine_is_only_a_rough_yardstick(tmp_path: Path) -> None:
    """Against the engine's mean a reference can only be shown to be far."""
    near, far = (rollout(0, ref_log_probs=value, rollout_log_probs=-0.24) for value in (-0.25, -9.0))
    assert word(ask_text(ref_logprobs, tmp_path, near)) == "unknown"
    assert word(ask_text(ref_logprobs, tmp_path, far)) == "warning:far"


def test_ppo_kl_proves_nothing(tmp_path: Path) -> None:
    """A ppo_kl of 0 is so by construction and answers nothing."""
    assert word(ask_text(ref_logprobs, tmp_path, step(0, ppo_kl=0.0))) == "unknown"


def test_a_resumed_run_has_no_first_step(tmp_path: Path) -> None:
    """A log that begins at rollout 20 says so instead of judging it."""
    finding = ask_text(ref_logprobs, tmp_path, rollout(20, log_probs=-0.5, ref_log_probs=-0.6))
    assert word(finding) == "unknown"
    assert "rollout 20" in finding.summary.en


def test_the_worst_run_of_a_log_counts(tmp_path: Path) -> None:
    """An earlier healthy job in the same log does not hide a later broken one."""
    good, bad = (rollout(0, log_probs=-0.5, ref_log_probs=value) for value in (-0.5, -3.0))
    assert word(ask_text(ref_logprobs, tmp_path, good, bad)) == "warning:far"


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [("low_var_kl", 1e-3, "problem:differ"), ("low_var_kl", 0.02, "problem:far"), ("k1", 0.02, "problem:differ")],
)
def test_a_squared_estimate_stands_for_a_larger_distance(
    tmp_path: Path, kind: str, value: float, expected: str
) -> None:
    """k2 and k3 are half a squared difference: 0.02 of them is 0.2 nat a token."""
    rows = table(load="/ref", ref_load="/ref", kl_loss_type=kind)
    assert word(ask_text(ref_logprobs, tmp_path, *rows, step(0, kl_loss=value))) == expected
