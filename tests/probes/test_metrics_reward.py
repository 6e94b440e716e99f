"""Whether any sample gets a reward."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_reward import reward
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, rollout, step, table, word


@pytest.mark.parametrize("name", [*HEALTHY, "garbled-after-update"])
def test_some_reward_is_varied(name: str) -> None:
    """One rollout with a point is enough."""
    assert word(ask(reward, DATA / f"{name}.log")) == "ok:varied"


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "warning:all-zero"), (3, "warning:all-zero"), (19, "warning:all-zero"), (20, "problem:all-zero")],
)
def test_all_zero_is_sure_after_many_rollouts(tmp_path: Path, count: int, expected: str) -> None:
    """A few rollouts without a point may be a hard task, twenty leave nothing to learn from."""
    lines = [rollout(number, raw_reward=0.0, rewards=0.0) for number in range(count)]
    finding = ask_text(reward, tmp_path, *table(use_opd=False), *lines)
    assert word(finding) == expected
    assert finding.citations[0].count == count
    assert word(ask_text(reward, tmp_path, *lines)) == "warning:all-zero"


def test_normalised_rewards_prove_nothing(tmp_path: Path) -> None:
    """rollout/rewards is 0 by construction and not read."""
    assert word(ask_text(reward, tmp_path, rollout(0, rewards=0.0))) == "unknown"


def test_a_supervised_run_has_no_rewards(tmp_path: Path) -> None:
    """Steps with a loss and no policy loss are of a supervised run."""
    lines = [rollout(0, raw_reward=0.0), step(0, loss=1.2, grad_norm=1.0)]
    assert word(ask_text(reward, tmp_path, *lines)) == "not_applicable"
    assert word(ask_text(reward, tmp_path, *lines, step(1, loss=0.1, pg_loss=0.0))) == "warning:all-zero"


def test_a_single_point_ends_the_doubt(tmp_path: Path) -> None:
    """Many rollouts without a point and one with a fraction of one are a hard task."""
    lines = [rollout(number, raw_reward=0.0) for number in range(30)]
    assert word(ask_text(reward, tmp_path, *lines, rollout(30, raw_reward=0.004))) == "ok:varied"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"use_opd": True}, "not_applicable"),
        ({"use_opd": False}, "problem:all-zero"),
        ({"custom_reward_post_process_path": "my.post_process"}, "warning:all-zero"),
        ({"custom_reward_post_process_path": None}, "problem:all-zero"),
    ],
)
def test_rewards_of_zero_by_design_are_no_problem(tmp_path: Path, rows: dict[str, object], expected: str) -> None:
    """With --use-opd slime gives every sample 0; a function of the run's own may do the same."""
    lines = [rollout(number, raw_reward=0.0) for number in range(30)]
    assert word(ask_text(reward, tmp_path, *table(**rows), *lines)) == expected


def test_a_policy_that_learns_has_another_reward(tmp_path: Path) -> None:
    """With a pg_loss that is not 0 advantages differ, so a printed 0 is not what trains; rounding is not learning."""
    rollouts = [rollout(number, raw_reward=0.0) for number in range(30)]
    steps = [step(number, loss=0.1, pg_loss=0.02) for number in range(30)]
    assert word(ask_text(reward, tmp_path, *table(use_opd=False), *rollouts, *steps)) == "unknown"
    steps = [step(number, loss=0.1, pg_loss=1e-9) for number in range(30)]
    assert word(ask_text(reward, tmp_path, *table(use_opd=False), *rollouts, *steps)) == "problem:all-zero"
