"""Plots of what a run prints over its steps, for the findings of the metrics probes.

Invariant: a long series is thinned by buckets of which the lowest, the highest and any value that is not finite stay,
so that no peak is lost and no line is smoother than what was printed; the first and the last value always stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from probes.readers.metrics import Record
from probes.thresholds import Threshold
from runbook.finding import Curve, Plot
from runbook.text import Text, sanitise

BUCKETS = 150
"""Buckets of a long series: as many as a wide terminal has columns; each keeps up to three points."""

Point = tuple[float, "float | None"]


class Numbered(Protocol):
    """What a plot goes over: a record, or the records of one rollout taken together."""

    @property
    def number(self) -> int:
        """Return the step or rollout, -1 where there is none."""

    @property
    def values(self) -> dict[str, float]:
        """Return the numbers by key."""


def points(records: Iterable[Numbered], key: str) -> list[Point]:
    """Return (number, value) of every record that prints `key`; a value that is not finite becomes None."""
    return [
        (float(each.number), each.values[key] if math.isfinite(each.values[key]) else None)
        for each in records
        if key in each.values and each.number >= 0
    ]


def thinned(series: Sequence[Point], buckets: int = BUCKETS) -> tuple[Point, ...]:
    """Return a series with at most three points a bucket: its lowest, its highest, the first that is not finite."""
    if len(series) <= 3 * buckets:
        return tuple(series)
    kept: set[int] = {0, len(series) - 1}
    for bucket in range(buckets):
        rows = range(bucket * len(series) // buckets, (bucket + 1) * len(series) // buckets)
        finite = [(value, row) for row in rows if (value := series[row][1]) is not None]
        if finite:
            kept |= {min(finite)[1], max(finite)[1]}
        kept |= set([row for row in rows if series[row][1] is None][:1])
    return tuple(series[row] for row in sorted(kept))


def plot(
    title: Text,
    records: Sequence[Record],
    keys: Sequence[str],
    *,
    x: str = "step",
    unit: str = "",
    limits: Sequence[Threshold] = (),
    mark: tuple[float, Text] | None = None,
) -> tuple[Plot, ...]:
    """Return the plot of some keys over the records' numbers; none where no key has two finite points."""
    curves = []
    for key in keys:
        series = points(records, key)
        if sum(value is not None for _, value in series) > 1:
            curves.append(Curve(sanitise(key), thinned(series)))
    if not curves:
        return ()
    lines = tuple((each.value, _limit(each)) for each in limits)
    return (Plot(title, x, unit, tuple(curves), (mark,) if mark else (), lines),)


def _limit(limit: Threshold) -> Text:
    shown = f"{limit.value:g} {limit.unit}".strip()
    return Text(f"limit {shown}", f"阈值 {shown}")


def first_bad(number: float, name: str = "step") -> tuple[float, Text]:
    """Return the mark of the first bad step or rollout."""
    return number, Text(f"{name} {number:g}", f"{name} {number:g}")
