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
    assert word(ask_text(rollout_change, tmp_path, *_good(0), manager(1, **later), rollout(1, **later))) == "ok:steady"
