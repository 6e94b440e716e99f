"""Samples of one rollout, judged: how many are garbled, which, and why.

Used for dumps and for the samples that slime prints into its log, so both answer in the same words. The answer is about
the responses that can be judged: aborted samples and answers of one word are left out of the share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from probes.dumps import index_of, numbers
from probes.readers.dump_errors import DumpError
from probes.readers.rollout_dump import Dump
from probes.text_quality import Judgement, judge
from probes.thresholds import samples as limit
from runbook.text import sanitise

MAX_SAMPLES = 2048
"""Samples judged in one dump, spread evenly."""
EXCERPT = 160
_LEFT_OUT = ("aborted", "failed", "pending")


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
        """Return the beginning of the response as safe text, blanks folded."""
        return sanitise(" ".join(self.text[: EXCERPT * 4].split()), EXCERPT)


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


def judge_dump(dump: Dump) -> Verdicts:
    """Judge the responses of a rollout dump; aborted, failed and pending samples are left out."""
    step = max(1, -(-len(dump.samples) // MAX_SAMPLES))
    chosen = [(place, sample) for place, sample in enumerate(dump.samples) if place % step == 0]
    return Verdicts(
        tuple(
            _judge(sample, place)
            for place, sample in chosen
            if isinstance(sample.get("response"), str) and str(sample.get("status")) not in _LEFT_OUT
        )
    )


def _judge(sample: dict[str, Any], place: int) -> Judged:
    response: str = sample["response"]
    log_prob, length = _mean_log_prob(sample), sample.get("response_length")
    return Judged(
        index_of(sample, place),
        place,
        response,
        str(sample.get("status") or ""),
        length if isinstance(length, int) else 0,
        log_prob,
        judge(response, log_prob),
    )


def _mean_log_prob(sample: dict[str, Any]) -> float | None:
    """Return the mean of the engine's log-probs, zeros of tool output included (they only raise it)."""
    value = sample.get("rollout_log_probs")
    try:
        if isinstance(value, list) and value:
            return float(sum(value)) / len(value)
        values = numbers(sample, "rollout_log_probs")
    except (DumpError, TypeError):
        return None
    return float(values.mean()) if values is not None and len(values) else None
