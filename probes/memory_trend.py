"""Memory over the cycles of a job: what others hold when the trainer wakes, what it holds, what a node has left.

Pure functions over Memory-Usage lines. `used - reserved` on a rank before `wake_up` is what the rollout engine still
holds although it was told to release; growing over cycles it ends in an out-of-memory error some cycles later. The
first cycles are left out, for buffers, caches and communicators are made in them.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from probes.readers.memory_lines import Usage
from probes.thresholds.memory import CYCLES, GROWTH, HOST_FELL, HOST_LEFT, RISING, WARM

BEFORE_WAKE = "before wake_up model"
AFTER_WAKE = "after wake_up model"
_STARTS = (BEFORE_WAKE, "before update_weights", "before offload model")
"""The line that opens a cycle of a rank: the first of these that it prints."""


@dataclass(frozen=True)
class Point:
    """A line with its place: x in cycles, whole numbers where a cycle begins."""

    x: float
    usage: Usage


@dataclass
class Rank:
    """The lines of one rank of one process, in order. cycle: how many have begun."""

    name: str
    points: list[Point] = field(default_factory=list)
    cycle: int = -1
    opens: str = ""

    def series(self, what: str, value: str) -> list[tuple[float, float]]:
        """Return (cycle, GiB) of a value at one place of the cycle."""
        told = [(float(int(point.x)), getattr(point.usage, value)) for point in self.points if point.usage.what == what]
        return [(x, y) for x, y in told if y is not None]


@dataclass(frozen=True)
class Drift:
    """A value that rises over cycles, in GiB. first, last: medians of the first and last third of the cycles.

    cycles: how many were looked at. slope: GiB a cycle, from the first of them to the last.
    """

    first: float
    last: float
    cycles: int
    slope: float


def ranks(lines: Iterable[Usage]) -> list[Rank]:
    """Sort lines into ranks; within a cycle they are spread evenly, as their order is all that matters."""
    found: dict[tuple[object, ...], Rank] = {}
    for each in lines:
        key = (each.process, each.rank if each.rank is not None else each.gpu)
        rank = found.setdefault(key, Rank(_name(each)))
        if each.what in _STARTS and (not rank.opens or _STARTS.index(each.what) < _STARTS.index(rank.opens)):
            rank.opens = each.what
        rank.points.append(Point(0.0, each))
    for rank in found.values():
        _number(rank)
    return list(found.values())


def _name(one: Usage) -> str:
    if one.rank is not None:
        return f"rank {one.rank}"
    return one.process.named if one.gpu is None else f"gpu {one.gpu}"


def _number(rank: Rank) -> None:
    cycles: list[list[Usage]] = [[]]
    for point in rank.points:
        if point.usage.what == rank.opens and cycles[-1]:
            cycles.append([])
        cycles[-1].append(point.usage)
    rank.points = [
        Point(number + at / len(lines), usage) for number, lines in enumerate(cycles) for at, usage in enumerate(lines)
    ]
    rank.cycle = len(cycles) - 1


def rises(series: Sequence[tuple[float, float]]) -> Drift | None:
    """Return how a value drifts upwards over the cycles, None where it does not, or where there are too few."""
    values = [y for _, y in series][int(WARM.value) :]
    if len(values) < CYCLES.value:
        return None
    third = max(len(values) // 3, 1)
    first, last = statistics.median(values[:third]), statistics.median(values[-third:])
    steps = [later - before for before, later in itertools.pairwise(values)]
    rising = sum(step > 0 for step in steps) / len(steps)
    if last - first < GROWTH.value or rising < RISING.value:
        return None
    return Drift(first, last, len(values), (values[-1] - values[0]) / (len(values) - 1))


def falls(lines: Sequence[Usage]) -> tuple[Usage, Usage] | None:
    """Return the fullest and the last line of a node whose available memory fell to little, None where it did not."""
    told = [one for one in lines if one.host_total and one.host_available is not None]
    if not told:
        return None
    first = max(told[: max(len(told) // 2, 1)], key=lambda one: one.host_available or 0.0)
    last = told[-1]
    total, left, had = last.host_total or 1.0, last.host_available or 0.0, first.host_available or 0.0
    return (first, last) if left / total <= HOST_LEFT.value and (had - left) / total >= HOST_FELL.value else None


def left_for(rank: Rank, drift: Drift) -> float | None:
    """Return how many more cycles fit into what was free at the fullest line of the last two cycles."""
    free = [point.usage.free for point in rank.points if point.x >= rank.cycle - 1 and point.usage.free is not None]
    return min(free) / drift.slope if free and drift.slope > 0 else None
