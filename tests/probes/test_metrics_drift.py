"""Series that leave their band, and many that only look like it."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.metric_plots import thinned
from probes.metrics_drift import drift
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, rollout, step, word

NOISE = [random.Random(7).uniform(-1.0, 1.0) for _ in range(400)]


@pytest.mark.parametrize("name", HEALTHY)
def test_short_runs_are_too_short(name: str) -> None:
    """A run of some steps cannot drift, and that is no doubt about it."""
    assert word(ask(drift, DATA / f"{name}.log")) == "ok:too-short"


def _norms(values: list[float]) -> list[str]:
    return [step(number, pg_loss=0.0, grad_norm=value) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([0.4 + 0.2 * NOISE[n] for n in range(120)], id="noise"),
        pytest.param([9.0 / (n + 1) + 0.3 for n in range(120)], id="warm-up that falls"),
        pytest.param([0.3 + 0.005 * n for n in range(120)], id="a slow rise"),
        pytest.param([0.4] * 60 + [300.0] + [0.4] * 60, id="one spike"),
        pytest.param([0.4] * 60 + [9.0] * 20 + [0.4] * 40, id="a shift that came back"),
        pytest.param([0.4] * 60 + [1.4] * 60, id="a shift within what is healthy"),
    ],
)
def test_healthy_courses_are_steady(tmp_path: Path, values: list[float]) -> None:
    """Noise, warm-up, slow trends, single spikes and shifts within the healthy band are no drift."""
    assert word(ask_text(drift, tmp_path, *_norms(values))) == "ok:steady"


def test_a_lasting_break_is_told_with_its_step(tmp_path: Path) -> None:
    """A norm that jumps at step 70 and stays is found there, and quoted."""
    finding = ask_text(drift, tmp_path, *_norms([0.4 + 0.1 * NOISE[n] for n in range(70)] + [6.0] * 40))
    assert word(finding) == "warning:drifted"
    assert "at step 70" in finding.summary.en
    assert finding.citations[0].excerpt.find("step 70") >= 0
    assert finding.plots[0].marks[0][0] == 70


def test_what_changed_there_is_told(tmp_path: Path) -> None:
    """A save and a traceback between the steps are named; those elsewhere are not."""
    lines = _norms([0.4 + 0.1 * NOISE[n] for n in range(70)] + [6.0] * 40)
    lines.insert(70, "(A pid=1) Traceback (most recent call last):")
    assert "an error" in ask_text(drift, tmp_path, *lines).summary.en
    lines = _norms([0.4 + 0.1 * NOISE[n] for n in range(70)] + [6.0] * 40)
    lines.insert(20, "(A pid=1) Traceback (most recent call last):")
    assert "nothing else" in ask_text(drift, tmp_path, *lines).summary.en


@pytest.mark.parametrize(("fell", "first", "told"), [(35, "rollout 35", True), (70, "step 70", False)])
def test_a_rollout_and_a_step_move_together_by_place(tmp_path: Path, fell: int, first: str, told: bool) -> None:
    """With two steps a rollout, rollout 35 stands at step 70; rollout 70 comes 70 steps later."""
    lines = []
    for number in range(100):
        lines.append(rollout(number, raw_reward=0.6 if number < fell else 0.05))
        lines += [step(2 * number + n, pg_loss=0.0, grad_norm=0.4 if number < 35 else 6.0) for n in (0, 1)]
    finding = ask_text(drift, tmp_path, *lines)
    assert f"left its band at {first}:" in finding.summary.en
    assert ("moved too" in finding.summary.en) == told


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([min(0.2 + 0.01 * n, 0.9) for n in range(90)], "ok:steady", id="rising"),
        pytest.param([0.6] * 50 + [0.05] * 40, "warning:drifted", id="it collapses"),
        pytest.param([0.0] * 90, "ok:steady", id="never any"),
    ],
)
def test_rewards_drift_only_down(tmp_path: Path, values: list[float], expected: str) -> None:
    """A reward that improves is healthy, one that falls to a tenth in a step is not."""
    lines = [rollout(number, raw_reward=value) for number, value in enumerate(values)]
    assert word(ask_text(drift, tmp_path, *lines)) == expected


@given(st.lists(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.none()), max_size=900))
def test_thinning_keeps_the_extremes(values: list[float | None]) -> None:
    """First, last, lowest and highest stay, order stays, and no hole is lost."""
    series = [(float(number), value) for number, value in enumerate(values)]
    kept = thinned(series, 20)
    finite = [value for value in values if value is not None]
    assert list(kept) == sorted(kept, key=lambda point: point[0])
    assert len(kept) <= max(62, len(series) if len(series) <= 60 else 62)
    if finite:
        shown = [value for _, value in kept if value is not None]
        assert (min(shown), max(shown)) == (min(finite), max(finite))
    assert (None in [value for _, value in kept]) == (None in values)
    assert all(point in series for point in kept)
    assert not any(value is not None and math.isnan(value) for _, value in kept)
