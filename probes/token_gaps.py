"""Distances between two log-probs of the same tokens, over the samples of a rollout.

Means are over tokens, not over samples, so that short answers do not weigh more. Invariants: only tokens that the loss
counts enter; a pair of unequal length is left out and counted, and so is a token that is not finite on either side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from probes.dump_pairs import Aligned
from runbook.finding import Table
from runbook.text import Text

FIELDS = {"trainer": "log_probs", "reference": "ref_log_probs", "engine": "rollout_log_probs"}
"""slime's names of the sides of an Aligned."""
_SHOWN = 20


@dataclass(frozen=True)
class Gap:
    """The distances in one sample, in nat.

    place: among the pairs measured. total: sum of |a - b| over `tokens` tokens; first, second: the two sums.
    """

    index: int
    place: int
    tokens: int
    total: float
    largest: float
    first: float
    second: float

    @property
    def mean(self) -> float:
        """Return the mean absolute difference per token."""
        return self.total / max(self.tokens, 1)


@dataclass(frozen=True)
class Nans:
    """The tokens of one sample that are NaN, or +inf, which no log-prob is; first, second: on each side.

    A log-prob of -inf is none of them: of a token that was forced, or that the sampler's cut excludes, it is right.
    """

    index: int
    tokens: int
    first: int
    second: int


@dataclass(frozen=True)
class Gaps:
    """The distances in a dump.

    unequal: samples whose two sides differ in length. strange: tokens that are not finite on either side. nans: the
    samples that hold NaN.
    """

    samples: tuple[Gap, ...]
    unequal: int = 0
    strange: int = 0
    nans: tuple[Nans, ...] = ()

    @property
    def nan(self) -> int:
        """Return how many tokens are NaN on either side."""
        return sum(each.tokens for each in self.nans)

    @property
    def nan_share(self) -> float:
        """Return the share of the tokens that the loss counts that are NaN on either side."""
        return self.nan / max(self.tokens + self.strange, 1)

    @property
    def tokens(self) -> int:
        """Return how many tokens were compared."""
        return sum(gap.tokens for gap in self.samples)

    @property
    def mean(self) -> float:
        """Return the mean absolute difference per token."""
        return sum(gap.total for gap in self.samples) / max(self.tokens, 1)

    @property
    def largest(self) -> float:
        """Return the largest absolute difference of a token."""
        return max((gap.largest for gap in self.samples), default=0.0)

    @property
    def means(self) -> tuple[float, float]:
        """Return the mean log-prob per token of the first and the second side."""
        tokens = max(self.tokens, 1)
        return sum(g.first for g in self.samples) / tokens, sum(g.second for g in self.samples) / tokens

    @property
    def worst(self) -> Gap:
        """Return the sample with the largest mean; there must be one."""
        return max(self.samples, key=lambda gap: gap.mean)


def measure(pairs: Iterable[Aligned], first: str = "trainer", second: str = "engine") -> Gaps:
    """Compare two sides of every pair; they are named as in FIELDS."""
    import numpy as np

    samples, unequal, strange, nans = [], 0, 0, []
    for place, pair in enumerate(pairs):
        one, other = getattr(pair, first), getattr(pair, second)
        if one is None or other is None:
            unequal += any(trouble.field in (FIELDS[first], FIELDS[second]) for trouble in pair.troubles)
            continue
        finite = np.isfinite(one) & np.isfinite(other)
        strange += int((pair.mask & ~finite).sum())
        bad = [pair.mask & ~(np.isfinite(side) | np.isneginf(side)) for side in (one, other)]
        if (either := int((bad[0] | bad[1]).sum())) > 0:
            nans.append(Nans(pair.index, either, int(bad[0].sum()), int(bad[1].sum())))
        counted = finite & pair.mask
        one, other = one[counted], other[counted]
        if len(one):
            apart = np.abs(one - other)
            total, largest = float(apart.sum()), float(apart.max())
            samples.append(Gap(pair.index, place, len(one), total, largest, float(one.sum()), float(other.sum())))
    return Gaps(tuple(samples), unequal, strange, tuple(nans))


def table(gaps: Gaps, first: str, second: str) -> Table:
    """Return the samples with the largest distances."""
    ranked = sorted(gaps.samples, key=lambda gap: -gap.mean)[:_SHOWN]
    rows = tuple(
        (
            str(gap.index),
            str(gap.tokens),
            f"{gap.mean:.3g}",
            f"{gap.largest:.3g}",
            f"{gap.first / gap.tokens:.3f}",
            f"{gap.second / gap.tokens:.3f}",
        )
        for gap in ranked
    )
    columns = ("sample", "tokens", "mean |diff|", "max |diff|", first, second)
    return Table(Text("Samples by distance", "各样本的差距"), columns, rows)
