"""The samples of a train dump and of a rollout dump of one rollout, joined.

slime's position (`rollout_position`, the sample's place in the rollout dump) joins best, then the sample index; custom
rollouts leave indices empty or equal, so tokens decide between several and join where no index is. Invariants: each
rollout sample is used once; a pair whose tokens differ is kept as such and never compared; what has no partner is
counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from probes.dump_pairs import Aligned, align, token_ids

Sample = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Twin:
    """A train sample with its rollout sample ({} when there is none), aligned, and what groups it with others.

    total: tokens of prompt and response. truncated: by slime's status, None when not told. rank: data-parallel.
    versions: of the weights that generated it, in order.
    """

    pair: Aligned
    train: Sample = field(repr=False)
    rollout: Sample = field(repr=False)
    total: int | None = None
    truncated: bool | None = None
    rank: int | None = None
    versions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Joined:
    """All twins of a rollout. alone: train samples without partner."""

    twins: tuple[Twin, ...]
    alone: int = 0

    @property
    def strangers(self) -> tuple[Twin, ...]:
        """Return the pairs that hold other tokens."""
        return tuple(twin for twin in self.twins if twin.pair.first_other is not None)


def partners(train: list[Sample], rollout: list[Sample]) -> list[Sample]:
    """Return the rollout sample of each train sample, {} where there is none. Raises DumpError as `join` does."""
    spare = _Spare(rollout)
    return [spare.take(sample) or {} for sample in train]


def join(train: list[Sample], rollout: list[Sample]) -> Joined:
    """Join two lists of samples. Raises DumpError for a tensor outside its file."""
    pairs = zip(train, partners(train, rollout), strict=True)
    twins = [_twin(sample, partner, place) for place, (sample, partner) in enumerate(pairs)]
    alone = sum(not twin.rollout for twin in twins) if rollout else 0
    return Joined(tuple(twins), alone)


class _Spare:
    """Rollout samples that have no partner yet."""

    def __init__(self, samples: list[Sample]) -> None:
        self._samples = samples
        self._left = set(range(len(samples)))
        self._indices = _by(samples, lambda sample: _index(sample, "index"))
        self._tokens: dict[Any, list[int]] | None = None

    def take(self, train: Sample) -> Sample | None:
        """Return the partner of a train sample, None when there is none."""
        if not self._samples:
            return None
        mine = _tokens(train)
        position, index = _index(train, "rollout_position"), _index(train, "sample_index")
        found = [position] if position is not None and position in self._left else []
        found += [place for place in self._indices.get(index, ()) if place in self._left] if index is not None else []
        equal = [place for place in found if mine is None or _tokens(self._samples[place]) == mine]
        if not equal and mine is not None and (index is None or not found):
            equal = [place for place in self._of_tokens(mine) if place in self._left]
        chosen = next(iter(equal or found), None)
        if chosen is None:
            return None
        self._left.discard(chosen)
        return self._samples[chosen]

    def _of_tokens(self, ids: bytes) -> list[int]:
        if self._tokens is None:
            self._tokens = _by(self._samples, _tokens)
        return self._tokens.get(ids, [])


def _by(samples: Iterable[Sample], key: Any) -> dict[Any, list[int]]:
    places: dict[Any, list[int]] = defaultdict(list)
    for place, sample in enumerate(samples):
        value = key(sample)
        if value is not None:
            places[value].append(place)
    return places


def _tokens(sample: Sample) -> bytes | None:
    ids = token_ids(sample)
    return None if ids is None else ids.tobytes()


def _index(sample: Sample, name: str) -> int | None:
    value = sample.get(name)
    return value if type(value) is int else None


def _twin(train: Sample, rollout: Sample, place: int) -> Twin:
    ids = token_ids(train)
    if ids is None:
        ids = token_ids(rollout)
    versions = rollout.get("weight_versions")
    named = tuple(str(version)[:40] for version in versions) if isinstance(versions, (list, tuple)) else ()
    return Twin(
        align(train, rollout, place),
        train,
        rollout,
        None if ids is None else len(ids),
        _truncated(train, rollout),
        _index(train, "data_parallel_rank"),
        named,
    )


def _truncated(train: Sample, rollout: Sample) -> bool | None:
    """Return whether generation was cut off; train dumps hold it as 0 or 1, rollout dumps as a status."""
    status = rollout.get("status")
    if isinstance(status, str):
        return status == "truncated"
    flag = train.get("truncated")
    return bool(flag) if isinstance(flag, (int, float)) else None
