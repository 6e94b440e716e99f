"""Samples of one rollout, judged: how many are garbled, which, and why.

Used for dumps and for the samples that slime prints into its log, so both answer in the same words. The answer is about
the responses that can be judged: aborted samples and answers of one word are left out of the share.
"""

from __future__ import annotations

import contextlib
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from probes.dumps import index_of, numbers
from probes.readers.dump_errors import DumpError
from probes.readers.rollout_dump import Dump
from probes.rollout_drawn import drawn_at_random
from probes.text_quality import Judgement, judge, odd
from probes.thresholds import samples as limit
from probes.thresholds import text as text_limit
from runbook.text import Text, sanitise

MAX_SAMPLES = 2048
"""Samples judged in one dump, spread evenly."""
EXCERPT = 160
BEFORE = 40
"""Characters shown of the coherent text before the place where a response breaks."""
_LEFT_OUT = ("aborted", "failed", "pending")


class Generated(msgspec.Struct, frozen=True):
    """What a rollout dump tells of a response besides its text.

    status: slime's word, "" when unknown. ids: of the response's tokens as int32, b"" when unknown or too few to judge
    by. log_probs: of the engine as float32, b"" when not recorded.
    """

    status: str = ""
    ids: bytes = b""
    log_probs: bytes = b""

    @property
    def log_prob(self) -> float | None:
        """Return the mean log-prob."""
        values = array("f", self.log_probs)
        return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class Judged:
    """One response.

    index: of the sample, as slime numbers it. place: in the dump. status: slime's word, "" when unknown. log_prob: mean
    over the tokens that the engine drew, as the engine gave it; None when not recorded.
    """

    index: int
    place: int
    text: str
    status: str
    length: int
    log_prob: float | None
    judgement: Judgement

    @property
    def excerpt(self) -> str:
        """Return the beginning of the response, or of what is garbled in it, as safe text, blanks folded."""
        start = max(self.judgement.start - BEFORE, 0)
        shown = " ".join(self.text[start : start + EXCERPT * 4].split())
        return sanitise(f"…{shown}" if start else shown, EXCERPT)


@dataclass(frozen=True)
class Verdicts:
    """All judged responses of one rollout."""

    samples: tuple[Judged, ...]

    def of(self, kind: str) -> tuple[Judged, ...]:
        """Return the samples of a kind of judgement."""
        return tuple(sample for sample in self.samples if sample.judgement.kind == kind)

    @property
    def garbled_share(self) -> float:
        """Return the share of garbled samples among those that were long enough to judge."""
        garbled, fine = len(self.of("garbled")), len(self.of("coherent"))
        return garbled / (garbled + fine) if garbled else 0.0

    @property
    def answer(self) -> str | None:
        """Return coherent, partly-garbled, garbled or empty; None without a single response."""
        if not self.samples:
            return None
        if len(self.of("empty")) >= limit.EMPTY_SHARE.value * len(self.samples):
            return "empty"
        garbled, share = len(self.of("garbled")), self.garbled_share
        if share >= limit.GARBLED_SHARE.value:
            return "garbled"
        lone = garbled < 2 and len(self.samples) > limit.LONE_SAMPLE.value
        return "partly-garbled" if share > limit.PARTLY_SHARE.value and not lone else "coherent"

    @property
    def by_mistake(self) -> float:
        """Return a bound on the probability that healthy text of this many samples is called garbled this often.

        The union bound over the choices of garbled samples, each misjudged with MISJUDGED; 1 without a garbled one.
        """
        garbled, judged = len(self.of("garbled")), len(self.of("garbled")) + len(self.of("coherent"))
        choices = math.lgamma(judged + 1) - math.lgamma(garbled + 1) - math.lgamma(judged - garbled + 1)
        return min(1.0, math.exp(choices + garbled * math.log(limit.MISJUDGED.value)))

    @property
    def empty_share(self) -> float:
        """Return the share of responses that hold nothing."""
        return len(self.of("empty")) / max(len(self.samples), 1)

    @property
    def truncated_share(self) -> float:
        """Return the share of samples that ended at the length limit."""
        return sum(sample.status == "truncated" for sample in self.samples) / max(len(self.samples), 1)

    @property
    def mean_length(self) -> float:
        """Return the mean response length in tokens."""
        return sum(sample.length for sample in self.samples) / max(len(self.samples), 1)

    @property
    def log_prob(self) -> float | None:
        """Return the mean over samples of the engine's mean log-prob, in nats per token; None when not recorded."""
        known = [sample.log_prob for sample in self.samples if sample.log_prob is not None]
        return sum(known) / len(known) if known else None


def judge_dump(dump: Dump, most: int = MAX_SAMPLES) -> Verdicts:
    """Judge at most `most` responses of a rollout dump; aborted, failed and pending samples are left out."""
    step = max(1, -(-len(dump.samples) // most))
    chosen = [(place, sample) for place, sample in enumerate(dump.samples) if place % step == 0]
    judged = (_judge(sample, place) for place, sample in chosen)
    return Verdicts(tuple(one for one in judged if one is not None))


def judge_sample(response: object, told: Generated) -> Judgement | None:
    """Judge one response by its text and by what is told of it; None for no text and for what never got to its end."""
    if not isinstance(response, str) or told.status in _LEFT_OUT:
        return None
    judgement = judge(response, told.log_prob, ended={"completed": True, "truncated": False}.get(told.status))
    if judgement.kind != "coherent":
        return judgement
    return _by_ids(response, array("i", told.ids)) or _by_tail(response, array("f", told.log_probs)) or judgement


def generated_of(sample: dict[str, Any]) -> Generated:
    """Return what a sample of a rollout dump tells of its response."""
    status = str(sample.get("status") or "").encode("utf-8", "backslashreplace").decode()
    return Generated(status, _ids(sample), array("f", _numbers(sample, "rollout_log_probs")).tobytes())


def _judge(sample: dict[str, Any], place: int) -> Judged | None:
    response, told, length = sample.get("response"), generated_of(sample), sample.get("response_length")
    judgement = judge_sample(response, told)
    if judgement is None or not isinstance(response, str):
        return None
    length = length if isinstance(length, int) else 0
    return Judged(index_of(sample, place), place, response, told.status, length, told.log_prob, judgement)


def _by_ids(response: str, ids: Sequence[int]) -> Judgement | None:
    """Judge by the ids of the response's tokens."""
    found = drawn_at_random(ids, response)
    return None if found is None else Judgement("garbled", found.why, start=int(len(response) * found.share))


def _by_tail(response: str, log_probs: Sequence[float]) -> Judgement | None:
    """Judge the end of a response from where the log-probs stay extremely low, when odd text agrees."""
    size = int(limit.TAIL_WINDOW.value)
    start = len(log_probs)
    while start >= size and sum(log_probs[start - size : start]) <= text_limit.DRAWN_AT_RANDOM.value * size:
        start -= size
    if len(log_probs) - start < limit.TAIL_TOKENS.value:
        return None
    place = int(len(response) * start / len(log_probs))
    if not odd(response[place:]):
        return None
    mean = sum(log_probs[start:]) / (len(log_probs) - start)
    why = Text(
        f"no sentences from token {start:,} on; mean log-prob {mean:.1f} there: drawn nearly at random",
        f"从第 {start:,} 个词元起不成句；其平均 log-prob {mean:.1f}：近乎随机采样",
    )
    return Judgement("garbled", why, start=place)


def _ids(sample: dict[str, Any]) -> bytes:
    """Return the ids of a response's tokens as int32; b"" where they are too few to judge by, or no whole numbers."""
    length, tokens = sample.get("response_length"), sample.get("tokens")
    if not isinstance(length, int) or length < text_limit.IDS_WINDOW.value:
        return b""
    if isinstance(tokens, list) and len(tokens) >= length:
        with contextlib.suppress(TypeError, OverflowError):
            return array("i", tokens[-length:]).tobytes()
    ids = _numbers(sample, "tokens")
    if len(ids) < length:
        return b""
    try:
        return array("i", map(int, ids[-length:])).tobytes()
    except (ValueError, OverflowError):
        return b""


def _numbers(sample: dict[str, Any], name: str) -> Sequence[float]:
    """Return a per-token field, a list or a tensor; empty where it is absent or is not numbers.

    Of log-probs the zeros of tool output are included; they only raise the mean.
    """
    value = sample.get(name)
    try:
        if not isinstance(value, list):
            found = numbers(sample, name)
            value = [] if found is None else found.tolist()
        return array("d", value)
    except (DumpError, TypeError, OverflowError):
        return array("d")
