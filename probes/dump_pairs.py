"""One sample of a train dump beside the same sample of a rollout dump, aligned per response token.

For whoever compares the two sides or draws them: the probes of log-prob gaps, `dump.join`, a browser of dumps. Pure
and fast: no search, no file but the tensors of the sample itself (an 8192-token sample takes about a millisecond).

    align(train, rollout=None, place=0) -> Aligned       either may be None or {}; samples as `read_dump` gives them
    Aligned.index            int, the sample index that joins the dumps
    Aligned.length           int, response tokens n; every array below has n entries
    Aligned.prompt_length    int | None, tokens before the response
    Aligned.tokens           int64[n] | None, token ids of the response
    Aligned.trainer          float64[n] | None, log_probs (nat; NaN where unknown)
    Aligned.reference        float64[n] | None, ref_log_probs
    Aligned.engine           float64[n] | None, rollout_log_probs
    Aligned.mask             bool[n], tokens that the loss counts (all, when the dumps hold no mask of that length)
    Aligned.diff             float64[n], |trainer - engine|; NaN where a side is missing or not finite
    Aligned.counted          bool[n], mask and both sides finite
    Aligned.troubles         tuple[Trouble, ...], fields of another length than the response, and what contradicts
    Aligned.first_other      int | None, first place of the whole sequence (prompt included) where the token ids differ
    Aligned.first_disagreement(threshold) -> int | None, first counted response token with diff > threshold

Invariants: a field of another length is never stretched or cut to fit; it is left out and told as a Trouble. The
engine's side comes from the train dump, else from the rollout dump, and from there only where both hold the same
tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from probes.dumps import index_of, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAME_NUMBER = 1e-4
"""Nat by which one engine's log-prob may differ between its two dumps: the train dump holds it as float32, and as
bfloat16 only where a custom conversion made it so."""

_TOKENS = 1 << 53
"""Whole numbers below it survive float64; a token id is far below."""
Sample = Mapping[str, Any]


@dataclass(frozen=True)
class Trouble:
    """A field that does not fit its sample. side: "train" or "rollout". length: of the field; wanted: of the response.

    Where length and wanted are equal the values contradict the other dump's (field "rollout_log_probs").
    """

    side: str
    field: str
    length: int
    wanted: int

    @property
    def of_length(self) -> bool:
        """Return whether the length is wrong, rather than the values."""
        return self.length != self.wanted


@dataclass(frozen=True, eq=False)
class Aligned:
    """The two sides of one sample; see the module's text for every field. sliced: a context-parallel slice only."""

    index: int
    length: int
    prompt_length: int | None
    tokens: NDArray[Any] | None
    trainer: NDArray[Any] | None
    reference: NDArray[Any] | None
    engine: NDArray[Any] | None
    mask: NDArray[Any]
    troubles: tuple[Trouble, ...] = ()
    first_other: int | None = None
    sliced: bool = False

    @cached_property
    def diff(self) -> NDArray[Any]:
        """Return |trainer - engine| per response token."""
        return apart(self.trainer, self.engine, self.length)

    @cached_property
    def counted(self) -> NDArray[Any]:
        """Return which response tokens the loss counts and both sides know."""
        import numpy as np

        return np.asarray(self.mask & np.isfinite(self.diff))

    def first_disagreement(self, threshold: float) -> int | None:
        """Return the first counted response token whose two log-probs are further apart than `threshold` nat."""
        import numpy as np

        places = np.flatnonzero(self.counted & (self.diff > threshold))
        return int(places[0]) if len(places) else None


def apart(first: NDArray[Any] | None, second: NDArray[Any] | None, length: int) -> NDArray[Any]:
    """Return |first - second|, NaN where either is missing or not finite."""
    import numpy as np

    if first is None or second is None:
        return np.full(length, np.nan)
    with np.errstate(invalid="ignore"):
        gap = np.abs(first - second)
    return np.where(np.isfinite(gap), gap, np.nan)


def align(train: Sample | None, rollout: Sample | None = None, place: int = 0) -> Aligned:
    """Return the two sides of one sample. place: its position, for samples without an index.

    Raises DumpError for a tensor that lies outside its file.
    """
    import numpy as np

    train, rollout = dict(train or {}), dict(rollout or {})
    mine, theirs = token_ids(train), token_ids(rollout)
    first_other = first_difference(mine, theirs)
    ids = mine if mine is not None else theirs
    sides = {("train", name): numbers(train, name) for name in ("log_probs", "ref_log_probs", "rollout_log_probs")} | {
        ("rollout", "rollout_log_probs"): numbers(rollout, "rollout_log_probs") if first_other is None else None
    }
    length = response_length(train, rollout)
    lengths = {len(values) for (side, _), values in sides.items() if values is not None and side == "train"}
    longest = max([len(values) for values in sides.values() if values is not None], default=0)
    sliced = length is not None and len(lengths) == 1 and max(lengths) < length and "data_parallel_rank" not in train
    if length is None or sliced:
        length = longest
    troubles = []
    if length > max(longest, len(ids) if ids is not None else 0):
        troubles.append(Trouble("train" if train else "rollout", "response_length", length, longest))
        length = longest
    troubles += [] if sliced else _misfits(sides, length)
    for side, sample in (("train", train), ("rollout", rollout)):
        troubles += _misfits({(side, name): numbers(sample, name) for name in ("loss_masks", "loss_mask")}, length)
    fit = {key: values for key, values in sides.items() if values is not None and len(values) == length}
    own, other = fit.get(("train", "rollout_log_probs")), fit.get(("rollout", "rollout_log_probs"))
    if own is not None and other is not None and bool((apart(own, other, length) > SAME_NUMBER).any()):
        troubles.append(Trouble("rollout", "rollout_log_probs", length, length))
    mask = None if sliced else _mask(train, rollout, length)
    whole = ids is not None and not sliced and len(ids) >= length
    return Aligned(
        index_of(train or rollout, place),
        length,
        len(ids) - length if ids is not None and whole else None,
        ids[len(ids) - length :] if ids is not None and whole else None,
        fit.get(("train", "log_probs")),
        fit.get(("train", "ref_log_probs")),
        own if own is not None else other,
        np.ones(length, dtype=bool) if mask is None else mask,
        () if sliced else tuple(troubles),
        first_other,
        sliced,
    )


def token_ids(sample: Sample) -> NDArray[Any] | None:
    """Return the token ids of prompt and response as int64; None when they are absent or no whole numbers."""
    import numpy as np

    ids = numbers(dict(sample), "tokens")
    if ids is None or not bool((np.abs(ids) < _TOKENS).all()):
        return None
    return ids.astype(np.int64)


def first_difference(mine: NDArray[Any] | None, theirs: NDArray[Any] | None) -> int | None:
    """Return the first place where two token sequences differ; where one ends, if it begins the other."""
    import numpy as np

    if mine is None or theirs is None:
        return None
    shared = min(len(mine), len(theirs))
    places = np.flatnonzero(mine[:shared] != theirs[:shared])
    if len(places):
        return int(places[0])
    return None if len(mine) == len(theirs) else shared


def response_length(train: Sample, rollout: Sample) -> int | None:
    """Return how many tokens the response has, as the dumps say, else by the loss mask."""
    for sample, name in ((train, "response_lengths"), (train, "response_length"), (rollout, "response_length")):
        length = sample.get(name)
        if isinstance(length, int) and not isinstance(length, bool) and length >= 0:
            return length
    for sample, name in ((train, "loss_masks"), (train, "loss_mask"), (rollout, "loss_mask")):
        mask = numbers(dict(sample), name)
        if mask is not None:
            return len(mask)
    return None


def _misfits(fields: dict[tuple[str, str], NDArray[Any] | None], wanted: int) -> list[Trouble]:
    return [
        Trouble(side, name, len(values), wanted)
        for (side, name), values in fields.items()
        if values is not None and len(values) != wanted
    ]


def _mask(train: dict[str, Any], rollout: dict[str, Any], length: int) -> NDArray[Any] | None:
    for sample in (train, rollout):
        for name in ("loss_masks", "loss_mask"):
            mask = numbers(sample, name)
            if mask is not None and len(mask) == length:
                return mask > 0
    return None
