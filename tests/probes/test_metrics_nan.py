"""The first value that is no number."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_nan import nan
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, rollout, step, table, word


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


def test_a_bad_rollout_is_marked_at_its_own_steps(tmp_path: Path) -> None:
    """With four steps a rollout the NaN of rollout 2 stands before step 8; no step 2 is pointed at."""
    lines = []
    for number in range(4):
        lines.append(rollout(number, log_probs=float("nan") if number == 2 else -0.3))
        lines += [step(4 * number + n, loss=0.1, grad_norm=0.5) for n in range(4)]
    finding = ask_text(nan, tmp_path, *lines)
    assert finding.summary.en == "Not a number from rollout 2 (line 12) on: rollout/log_probs."
    assert [mark[0] for mark in finding.plots[0].marks] == [8.0]


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


@pytest.mark.parametrize(
    ("rows", "expected"),
    [({"fp16": True}, "ok:none"), ({"bf16": True, "fp16": False}, "unknown"), ({}, "unknown")],
)
def test_one_infinite_norm_among_healthy_steps_is_no_fault(
    tmp_path: Path, rows: dict[str, object], expected: str
) -> None:
    """A loss scaler skips such a step; without one it is odd, and a NaN that stays is a problem all the same."""
    norms = [0.5, float("inf"), 0.5, 0.4]
    lines = [step(number, loss=0.1, grad_norm=norm) for number, norm in enumerate(norms)]
    assert word(ask_text(nan, tmp_path, *table(**rows), *lines)) == expected
    last = step(4, loss=float("nan"), grad_norm=float("inf"))
    assert word(ask_text(nan, tmp_path, *table(**rows), *lines, last)) == "problem:nan"
    assert word(ask_text(nan, tmp_path, *table(**rows), *lines, step(4, grad_norm=float("inf")))) == "problem:nan"


def test_a_critic_that_ends_without_a_number_is_no_healthy_run(tmp_path: Path) -> None:
    """The actor's healthy step behind it says nothing of the critic's, whose own next step would."""
    actor = [step(number, grad_norm=0.5) for number in range(3)]
    critic = [
        step(number, **{"critic-grad_norm": value}).replace("- step", "- critic-step")
        for number, value in enumerate((0.5, 0.5, float("inf"), 0.5))
    ]
    scaled = table(fp16=True)
    mixed = [line for pair in zip(critic, actor, strict=False) for line in pair]
    assert word(ask_text(nan, tmp_path, *scaled, *mixed)) == "problem:nan"
    finding = ask_text(nan, tmp_path, *scaled, *mixed, critic[3])
    assert word(finding) == "ok:none"
    assert "in 1 of 4 steps, first at critic-step 2" in finding.summary.en


def test_a_run_in_doubt_is_not_hidden_by_a_healthy_one(tmp_path: Path) -> None:
    """An odd norm in bf16 leaves the log unknown, unless a later run got past that step."""
    odd = [step(number, loss=0.1, grad_norm=norm) for number, norm in enumerate((0.5, float("inf"), 0.5))]
    healthy = [step(number, loss=0.2, grad_norm=0.5) for number in range(3)]
    bf16 = table(bf16=True, fp16=False)
    assert word(ask_text(nan, tmp_path, *bf16, *healthy, *bf16, *odd)) == "unknown"
    assert word(ask_text(nan, tmp_path, *bf16, *odd, *bf16, *healthy)) == "ok:none"


def test_a_later_run_that_got_further_makes_it_history(tmp_path: Path) -> None:
    """What an earlier run of the log showed is told, and the run behind it counts; one that is behind does not."""
    broken = [step(0, loss=0.1), step(1, loss=float("nan")), step(2, loss=float("nan"))]
    healthy = [step(number, loss=0.2) for number in range(4)]
    finding = ask_text(nan, tmp_path, *broken, *healthy)
    assert word(finding) == "warning:none"
    assert "earlier run" in finding.summary.en
    assert "loss" in finding.citations[-1].excerpt
    finding = ask_text(nan, tmp_path, *broken, *healthy[:1])
    assert word(finding) == "problem:nan"
    assert "earlier run" in finding.summary.en
    assert word(ask_text(nan, tmp_path, *healthy, *broken)) == "problem:nan"
