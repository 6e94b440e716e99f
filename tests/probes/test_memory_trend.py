"""Drifts of memory over cycles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.memory_trend import BEFORE_WAKE, falls, left_for, ranks, rises
from probes.readers.logfiles import LogFile
from probes.readers.memory_lines import Usage
from probes.readers.timers import Process
from probes.thresholds.memory import CYCLES, GROWTH, WARM

FILE = LogFile("job.log", 1)
FEW = int(WARM.value + CYCLES.value)


def line(what: str, used: float, reserved: float = 1.0, host: float | None = None, rank: int | None = 0) -> Usage:
    """Return a line of memory."""
    return Usage(
        what, rank, 0, Process("T", 7), None, 140.0, 140.0 - used, used, 0.5, reserved, 1000.0, host, 1, FILE, 1, 0
    )


def series(*values: float) -> list[tuple[float, float]]:
    """Return a value for each cycle."""
    return [(float(x), y) for x, y in enumerate(values)]


def test_lines_fall_into_cycles_of_their_rank() -> None:
    """A cycle begins with the line before wake_up; ranks do not mix."""
    lines = [line(what, 5, rank=rank) for _ in range(3) for what in (BEFORE_WAKE, "after x") for rank in (0, 1)]
    found = ranks(lines)
    assert [rank.name for rank in found] == ["rank 0", "rank 1"]
    assert [point.x for point in found[0].points] == [0, 0.5, 1, 1.5, 2, 2.5]
    assert found[0].series(BEFORE_WAKE, "others") == [(0.0, 4.0), (1.0, 4.0), (2.0, 4.0)]


def test_a_steady_rise_is_a_drift() -> None:
    """A GiB and a half a cycle, the first cycles left out."""
    drift = rises(series(50, 50, *(3 + 1.5 * n for n in range(6))))
    assert drift is not None
    assert (drift.first, drift.last, drift.cycles, drift.slope) == (3.75, 9.75, 6, 1.5)


@pytest.mark.parametrize(
    "values",
    [
        [3.0] * 20,
        [3, 3.2, 2.9] * 6,
        [1, 2, 3, 9, 9, 9, 9, 9, 9, 9],
        [20 - n for n in range(10)],
        [3 + 2 * n for n in range(FEW - 1)],
        [3 + n * (GROWTH.value - 0.5) / 20 for n in range(20)],
    ],
)
def test_what_is_no_drift(values: list[float]) -> None:
    """Level, noisy, settling, falling, too short and too small series are none."""
    assert rises(series(*values)) is None


def test_how_many_more_cycles_fit() -> None:
    """What is free at the fullest line of the last cycle, by the slope."""
    lines = [each for n in range(8) for each in (line(BEFORE_WAKE, 4 + n), line("before offload model", 100 + n))]
    (rank,) = ranks(lines)
    drift = rises(rank.series(BEFORE_WAKE, "others"))
    assert drift is not None
    assert left_for(rank, drift) == pytest.approx(33.0)


@pytest.mark.parametrize(
    ("available", "low"),
    [([800, 500, 200, 60], True), ([800, 500, 200, 150], False), ([60, 60, 60, 60], False), ([], False)],
)
def test_a_node_that_runs_low(available: list[float], low: bool) -> None:
    """Only a fall to less than a tenth counts: a node that was always nearly full is not falling."""
    assert (falls([line("x", 1, host=value) for value in available]) is not None) == low


@given(st.lists(st.floats(0, 1e6), max_size=40))
def test_any_series_is_judged(values: list[float]) -> None:
    """A drift is always upwards by at least the threshold."""
    drift = rises(series(*values))
    assert drift is None or drift.last - drift.first >= GROWTH.value
