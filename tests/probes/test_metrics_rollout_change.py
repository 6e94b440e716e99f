"""Rollouts that stay healthy, break after the update, later, or were never good."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_rollout_change import rollout_change
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, manager, rollout, word


def _good(number: int) -> list[str]:
    return [manager(number, truncated_ratio=0.1, repetition_frac=0.0), rollout(number, rollout_log_probs=-0.3)]


def _bad(number: int) -> list[str]:
    return [manager(number, truncated_ratio=1.0, repetition_frac=1.0), rollout(number, rollout_log_probs=-4.0)]


@pytest.mark.parametrize("name", [*HEALTHY, "kl-nonzero", "nan"])
def test_steady_runs_are_steady(name: str) -> None:
    """Several rollouts without two signs of broken text."""
    assert word(ask(rollout_change, DATA / f"{name}.log")) == "ok:steady"


def test_the_real_broken_update_is_told_and_tabled() -> None:
    """Rollout 0 is healthy, 1 to 3 are broken; the table shows both side by side."""
    finding = ask(rollout_change, DATA / "garbled-after-update.log")
    assert word(finding) == "warning:broken-after-update"
    assert finding.citations[0].count == 3
    assert [row[0] for row in finding.tables[0].rows] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([*_good(0), *_bad(1), *_bad(2)], "warning:broken-after-update", id="after the first update"),
        pytest.param([*_good(0), *_bad(1), *_good(2)], "warning:broken-after-update", id="and good again"),
        pytest.param([*_good(0), *_good(1), *_bad(2)], "warning:broken-later", id="later"),
        pytest.param([*_bad(0), *_bad(1)], "warning:broken-from-start", id="from the start"),
        pytest.param([*_bad(20), *_bad(21)], "warning:broken-later", id="a resumed run cannot show a start"),
        pytest.param([*_good(0)], "unknown", id="one healthy rollout shows no change"),
    ],
)
def test_when_it_broke_is_told(tmp_path: Path, lines: list[str], expected: str) -> None:
    """The first broken rollout and what came before it name the answer."""
    assert word(ask_text(rollout_change, tmp_path, *lines)) == expected


@pytest.mark.parametrize("later", [{"truncated_ratio": 1.0}, {"repetition_frac": 0.9}, {"rollout_log_probs": -5.0}])
def test_one_sign_alone_is_ordinary(tmp_path: Path, later: dict[str, float]) -> None:
    """Long answers, a looping data set or a hot temperature alone do not make a rollout broken."""
    other = {"truncated_ratio": 0.1, "repetition_frac": 0.0, "rollout_log_probs": -0.3} | later
    assert word(ask_text(rollout_change, tmp_path, *_good(0), manager(1, **other), rollout(1, **other))) == "ok:steady"


@pytest.mark.parametrize("printed", [{"raw_reward": 0.5}, {"truncated_ratio": 0.1}, {"response_lengths": 900.0}])
def test_numbers_that_no_two_signs_are_read_from_tell_nothing(tmp_path: Path, printed: dict[str, float]) -> None:
    """Rewards, lengths, or one sign alone could never show a broken rollout, so they show no steady one either."""
    assert word(ask_text(rollout_change, tmp_path, *(rollout(number, **printed) for number in range(4)))) == "unknown"


def test_the_course_of_a_long_run_is_thinned(tmp_path: Path) -> None:
    """A thousand rollouts give a curve of at most 450 points, whose one fall is still there."""
    lines = [rollout(n, truncated=0.1, rollout_log_probs=-2.5 if n == 703 else -0.3) for n in range(1000)]
    finding = ask_text(rollout_change, tmp_path, *lines)
    (curve,) = next(plot for plot in finding.plots if plot.unit == "nat/token").curves
    assert len(curve.points) <= 450
    assert (703.0, -2.5) in curve.points


def test_log_probs_that_fell_far_are_a_sign(tmp_path: Path) -> None:
    """-1.6 is no extreme value, yet 1.3 below the rollout before; with all samples truncated it is two signs."""
    fallen = [manager(1, truncated_ratio=1.0), rollout(1, rollout_log_probs=-1.6)]
    finding = ask_text(rollout_change, tmp_path, *_good(0), *fallen)
    assert word(finding) == "warning:broken-after-update"
    measured = {measure.name: measure.value for measure in finding.measurements}
    assert measured["fall of rollout/rollout_log_probs"] == pytest.approx(1.3)


def test_four_rollouts_are_drawn_with_the_first_broken_one_marked() -> None:
    """Shares and log-probs as they are printed, over the rollouts 0 to 3; rollout 1 is the first broken."""
    plots = ask(rollout_change, DATA / "garbled-after-update.log").plots
    assert plots
    assert all(plot.marks[0][0] == 1.0 for plot in plots)
    assert all([x for x, _ in curve.points] == [0.0, 1.0, 2.0, 3.0] for plot in plots for curve in plot.curves)


@pytest.mark.parametrize(
    ("broken", "expected"),
    [(None, range(8)), (2, range(8)), (200, range(196, 204)), (299, range(292, 300))],
)
def test_the_table_shows_the_rollouts_around_the_first_broken_one(
    broken: int | None, expected: range, tmp_path: Path
) -> None:
    """Of 300 rollouts eight: four before the first broken one and those from there on, as far as there are any."""
    lines = [line for n in range(300) for line in (_good(n) if broken is None or n < broken else _bad(n))]
    finding = ask_text(rollout_change, tmp_path, *lines)
    assert [row[0] for row in finding.tables[0].rows] == [str(number) for number in expected]
