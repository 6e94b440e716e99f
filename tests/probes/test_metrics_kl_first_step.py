"""Whether the KL is 0 before any update."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_kl_first_step import kl_first_step
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, rollout, step, table, word


@pytest.mark.parametrize(
    ("name", "expected"), [*((name, "ok:zero") for name in HEALTHY), ("kl-nonzero", "warning:nonzero")]
)
def test_real_logs_are_judged_at_step_0(name: str, expected: str) -> None:
    """The healthy logs have a KL loss of exactly 0 there, the other one 0.42."""
    assert word(ask(kl_first_step, DATA / f"{name}.log")) == expected


@pytest.mark.parametrize(("value", "expected"), [(9e-9, "ok:zero"), (-9e-9, "ok:zero"), (-1e-3, "warning:nonzero")])
def test_the_sign_does_not_matter(tmp_path: Path, value: float, expected: str) -> None:
    """k1 may be negative; its size counts, against slime's own limit."""
    assert word(ask_text(kl_first_step, tmp_path, step(0, kl_loss=value))) == expected


def test_ppo_kl_by_construction_is_unknown(tmp_path: Path) -> None:
    """Without kl_loss and without a forward of the actor, ppo_kl 0 proves nothing, and the summary says how to know."""
    finding = ask_text(kl_first_step, tmp_path, rollout(0, rollout_log_probs=-0.2), step(0, ppo_kl=0.0))
    assert word(finding) == "unknown"
    assert finding.settle_with is not None
    assert "--use-kl-loss" in finding.settle_with.en


@pytest.mark.parametrize(("value", "expected"), [(0.0, "ok:zero"), (0.003, "warning:nonzero")])
def test_ppo_kl_counts_where_the_old_log_probs_were_computed(tmp_path: Path, value: float, expected: str) -> None:
    """rollout/log_probs shows a forward of its own, so ppo_kl compares two computations."""
    lines = [rollout(0, log_probs=-0.2), step(0, ppo_kl=value)]
    assert word(ask_text(kl_first_step, tmp_path, *lines)) == expected


def test_rollout_log_probs_as_old_ones_make_ppo_kl_meaningless(tmp_path: Path) -> None:
    """Under --use-rollout-logprobs ppo_kl compares two engines and need not be 0."""
    lines = [*table(use_rollout_logprobs="True"), rollout(0, log_probs=-0.2), step(0, ppo_kl=0.003)]
    assert word(ask_text(kl_first_step, tmp_path, *lines)) == "unknown"


@pytest.mark.parametrize("told", [True, False])
def test_later_steps_of_one_rollout_are_off_policy(tmp_path: Path, told: bool) -> None:
    """With several steps a rollout, by the arguments or by counting, a later ppo_kl is expected."""
    head = table(num_steps_per_rollout=2) if told else []
    lines = [*head, rollout(0, log_probs=-0.2), step(0, ppo_kl=0.0, kl_loss=0.0), step(1, ppo_kl=1e-3, kl_loss=1e-4)]
    lines += [rollout(1, log_probs=-0.2), step(2, ppo_kl=0.0), step(3, ppo_kl=1e-3), rollout(2, log_probs=-0.2)]
    finding = ask_text(kl_first_step, tmp_path, *lines)
    assert word(finding) == "ok:off-policy"
    assert "step 1" in finding.summary.en


def test_one_step_a_rollout_is_not_off_policy(tmp_path: Path) -> None:
    """With one step a rollout the later steps are of other rollouts."""
    lines = [rollout(0, log_probs=-0.2), step(0, ppo_kl=0.0, kl_loss=0.0)]
    lines += [rollout(1, log_probs=-0.2), step(1, ppo_kl=1e-3, kl_loss=1e-4), rollout(2, log_probs=-0.2)]
    assert word(ask_text(kl_first_step, tmp_path, *lines)) == "ok:zero"


def test_a_resumed_run_is_unknown(tmp_path: Path) -> None:
    """A log that begins at step 40 has no first step."""
    assert word(ask_text(kl_first_step, tmp_path, step(40, kl_loss=0.02))) == "unknown"


def test_an_actor_from_another_checkpoint_need_not_start_at_zero(tmp_path: Path) -> None:
    """Where load and ref_load are told and differ, a KL at step 0 says nothing; where they are one folder it does."""
    line = step(0, kl_loss=0.02)
    assert word(ask_text(kl_first_step, tmp_path, *table(load="/trained", ref_load="/ref"), line)) == "unknown"
    assert word(ask_text(kl_first_step, tmp_path, *table(load="/ref", ref_load="/ref"), line)) == "warning:nonzero"
