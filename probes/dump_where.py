"""Where the difference between trainer and engine sits: at which tokens, or in which samples.

A place is a set of tokens (the first of each response, those beyond a position, those beside context-parallel edges) or
of samples (truncated, long, of one data-parallel rank, of one weight version, a few). Each is measured against all
other tokens. Invariants: a place is only named when its tokens are apart more often than chance gives, several times
further than the rest, and leave the rest as it should be or hold most of the difference; noise with heavy tails, as
bf16 leaves it, names none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.dump_twins import Twin
from probes.thresholds import metrics
from probes.thresholds import places as limit

if TYPE_CHECKING:
    from numpy.typing import NDArray

EDGE = 2
"""Tokens on each side of a context-parallel edge that count as beside it: the token whose log-prob needs the logits of
the slice before, and its neighbours."""
_POSITIONS = 12
_MIN_SAMPLES = 4


@dataclass(frozen=True)
class Place:
    """One place.

    answer: the probe's word. detail: what it is, in English and Chinese. tokens: counted tokens in it. others: those
    elsewhere. samples: how many have tokens in it. inside, outside: mean |diff|. share: of all |diff|. chance: that as
    many of its tokens (or samples) are apart by accident.
    """

    answer: str
    detail: tuple[str, str]
    tokens: int
    samples: int
    inside: float
    outside: float
    share: float
    chance: float
    others: int

    @property
    def stands_out(self) -> bool:
        """Return whether the difference sits there and not elsewhere."""
        return (
            self.tokens >= limit.PLACE_TOKENS.value
            and self.inside > metrics.GAP_CI.value
            and self.inside >= limit.PLACE_RATIO.value * self.outside
            and self.chance <= limit.PLACE_CHANCE.value
        )

    @property
    def tells(self) -> bool:
        """Return whether it stands out and what is left elsewhere is ordinary, or little beside it."""
        explains = self.outside <= metrics.GAP_AGREE.value or self.share >= limit.PLACE_SHARE.value
        return self.stands_out and explains

    @property
    def contrast(self) -> float:
        """Return the sum of squares between inside and outside, which a split at the true place makes largest."""
        return self.tokens * self.others / (self.tokens + self.others) * (self.inside - self.outside) ** 2


@dataclass(frozen=True, eq=False)
class Tokens:
    """All counted tokens of a rollout in one row.

    diff: |trainer - engine|. held: place in the arrays of its sample. response, sequence, left: its place in the
    response and in the whole sequence, and the tokens behind it; -1 in a context-parallel slice, whose place
    is not known. sample: number of its twin.
    """

    held: NDArray[Any]
    diff: NDArray[Any]
    response: NDArray[Any]
    sequence: NDArray[Any]
    left: NDArray[Any]
    sample: NDArray[Any]
    twins: tuple[Twin, ...]

    @property
    def mean(self) -> float:
        """Return the mean |diff| per token."""
        return float(self.diff.mean()) if len(self.diff) else 0.0


def flatten(twins: tuple[Twin, ...]) -> Tokens:
    """Return the counted tokens of twins that hold the same tokens."""
    import numpy as np

    parts: list[list[Any]] = [[], [], [], [], [], []]
    for number, twin in enumerate(twins):
        pair = twin.pair
        places = np.flatnonzero(pair.counted)
        known = pair.prompt_length is not None
        parts[0].append(pair.diff[places])
        parts[1].append(places if known else np.full(len(places), -1))
        parts[2].append(places + (pair.prompt_length or 0) if known else np.full(len(places), -1))
        parts[3].append(pair.length - 1 - places if known else np.full(len(places), -1))
        parts[4].append(np.full(len(places), number))
        parts[5].append(places)
    rows = [np.concatenate(part) if part else np.zeros(0) for part in parts]
    return Tokens(rows[5], rows[0], rows[1], rows[2], rows[3], rows[4].astype(int), twins)


def places_of(tokens: Tokens, cp_size: int | None) -> list[Place]:
    """Return every place measured: those that stand out first, and of them the one that splits the tokens best."""
    found = [_measure(tokens, *candidate) for candidate in _candidates(tokens, cp_size)]
    told = [place for place in found if place is not None]
    return sorted(told, key=lambda place: (not place.tells, -place.contrast))


Candidate = tuple[str, tuple[str, str], Any]


def _candidates(tokens: Tokens, cp_size: int | None) -> Iterator[Candidate]:
    import numpy as np

    yield "first-token", ("at the first token of each response", "每条 response 的第一个 token"), tokens.response == 0
    yield "tail", ("at the last token of each response", "每条 response 的最后一个 token"), tokens.left == 0
    if cp_size is not None and cp_size > 1:
        yield from _edges(tokens, cp_size)
    yield from _positions(tokens)
    totals = np.array([twin.total if twin.total is not None else -1 for twin in tokens.twins])
    for bound in _bounds(tokens, totals):
        words = (f"in samples of {bound} tokens and more", f"长度不小于 {bound} 个 token 的样本")
        yield "long-samples", words, (totals >= bound)[tokens.sample]
    cut = np.array([twin.truncated is True for twin in tokens.twins])
    yield "truncated", ("in truncated samples", "被截断的样本"), cut[tokens.sample]
    yield from _few(tokens)
    yield from _groups(
        tokens, "one-rank", lambda twin: twin.rank, ("on data-parallel rank {}", "data parallel rank {}")
    )
    words = ("in samples of weight version {}", "权重版本为 {} 的样本")
    yield from _groups(tokens, "weight-version", lambda twin: ",".join(dict.fromkeys(twin.versions)) or None, words)


def _few(tokens: Tokens) -> Iterator[Candidate]:
    """Yield the samples that are far apart, where they are few."""
    import numpy as np

    count = len(tokens.twins)
    means = _means(tokens)
    far = means > max(metrics.GAP_CI.value, limit.PLACE_RATIO.value * float(np.median(means)) if count else 0.0)
    if 0 < int(far.sum()) <= max(1, int(limit.FEW_SAMPLES.value * count)):
        names = ", ".join(str(tokens.twins[place].pair.index) for place in np.flatnonzero(far)[:8])
        several = "s" if int(far.sum()) > 1 else ""
        yield "few-samples", (f"in sample{several} {names}", f"样本 {names}"), far[tokens.sample]


def _groups(tokens: Tokens, answer: str, key: Callable[[Twin], Any], words: tuple[str, str]) -> Iterator[Candidate]:
    import numpy as np

    keys = [key(twin) for twin in tokens.twins]
    for value in dict.fromkeys(keys):
        if value is not None and 1 < len(set(keys)) <= max(len(keys) // 2, 2):
            chosen = np.array([one == value for one in keys])
            yield answer, (words[0].format(value), words[1].format(value)), chosen[tokens.sample]


def _edges(tokens: Tokens, cp_size: int) -> Iterator[Candidate]:
    """Yield the tokens beside the edges of context-parallel chunks, and those of each rank's chunks."""
    import numpy as np

    totals = np.array([twin.total or 0 for twin in tokens.twins])[tokens.sample]
    size = np.maximum((totals + 2 * cp_size - 1) // (2 * cp_size), 1)
    logit = tokens.sequence - 1  # the log-prob of a token comes from the position before it
    offset = logit % size
    inner = (logit >= size - EDGE) & (tokens.sequence > 0)
    beside = inner & ((offset < EDGE) | (offset >= size - EDGE)) & (size > 4 * EDGE)
    detail = (
        f"within {EDGE} tokens of a context-parallel edge (size {cp_size})",
        f"CP（{cp_size}）切片边界前后 {EDGE} 个 token",
    )
    yield "cp-boundary", detail, beside
    number = logit // size
    for rank in range(cp_size):
        held = ((number == rank) | (number == 2 * cp_size - 1 - rank)) & (tokens.sequence > 0)
        yield "cp-boundary", (f"in the slices of context-parallel rank {rank}", f"CP rank {rank} 的切片"), held


def _positions(tokens: Tokens) -> Iterator[Candidate]:
    """Yield the tokens from a position of the sequence on, at round numbers and where the difference rises most."""
    import numpy as np

    if not len(tokens.sequence) or int(tokens.sequence.max()) < 2 * _POSITIONS:
        return
    last = int(tokens.sequence.max())
    order = np.argsort(tokens.sequence, kind="stable")
    rising = np.cumsum((tokens.diff - tokens.mean)[order])
    bends = {int(tokens.sequence[order][int(np.argmin(rising))]) + 1} if len(rising) else set()
    rounds = {1 << power for power in range(8, 21) if 1 << power < last}
    for bound in sorted(bends | rounds):
        words = (f"from position {bound} of the sequence on", f"序列第 {bound} 个位置之后")
        yield "after-position", words, tokens.sequence >= bound


def _bounds(tokens: Tokens, totals: NDArray[Any]) -> list[int]:
    """Return lengths that split the samples: the powers of two between, and where the difference rises most."""
    import numpy as np

    known = np.flatnonzero(totals >= 0)
    if len(known) < 2 * _MIN_SAMPLES:
        return []
    means = _means(tokens)
    order = known[np.argsort(totals[known], kind="stable")]
    rising = np.cumsum((means - means[known].mean())[order])
    bend = int(np.argmin(rising)) + 1
    wanted = {1 << power for power in range(8, 21)} | ({int(totals[order[bend]])} if bend < len(order) else set())
    return sorted(bound for bound in wanted if totals[known].min() < bound <= totals[known].max())


def _means(tokens: Tokens) -> NDArray[Any]:
    """Return the mean |diff| of each sample."""
    import numpy as np

    count = len(tokens.twins)
    sizes = np.bincount(tokens.sample, minlength=count)
    return np.asarray(np.bincount(tokens.sample, tokens.diff, count) / np.maximum(sizes, 1))


def _measure(tokens: Tokens, answer: str, detail: tuple[str, str], inside: NDArray[Any]) -> Place | None:
    """Return a place with its measures; None where it holds no token or every token."""
    import numpy as np

    count = int(inside.sum())
    if not 0 < count < len(inside):
        return None
    total = float(tokens.diff.sum())
    within = float(tokens.diff[inside].sum())
    outside = (total - within) / (len(inside) - count)
    apart = tokens.diff > limit.ONE_TOKEN.value
    of_samples = answer in ("long-samples", "truncated", "one-rank", "weight-version")
    samples = len(np.unique(tokens.sample[inside]))
    if of_samples:
        means = _means(tokens)
        members = np.zeros(len(means), dtype=bool)
        members[np.unique(tokens.sample[inside])] = True
        far, all_far = int((means[members] > limit.ONE_TOKEN.value).sum()), int((means > limit.ONE_TOKEN.value).sum())
        rate = (all_far - far + 1) / (len(means) - samples + 2)
        chance = _tail(far, samples, rate)
    else:
        far = int(apart[inside].sum())
        rate = (int(apart.sum()) - far + 1) / (len(inside) - count + 2)
        chance = _tail(far, count, rate)
    return Place(
        answer,
        detail,
        count,
        samples,
        within / count,
        outside,
        within / total if total else 0.0,
        chance,
        len(inside) - count,
    )


def _tail(hits: int, tries: int, rate: float) -> float:
    """Return an upper bound on the chance of `hits` or more in `tries` at `rate` each (Chernoff)."""
    share = hits / tries if tries else 0.0
    if share <= rate:
        return 1.0
    if share >= 1.0:
        return float(rate**tries)
    spread = share * math.log(share / rate) + (1 - share) * math.log((1 - share) / (1 - rate))
    return math.exp(-tries * spread)
