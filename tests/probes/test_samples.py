"""The judgements of a rollout's samples add up to one answer."""

from __future__ import annotations

import pytest
from hypothesis import given

from probes.readers.rollout_dump import Dump
from probes.samples import MAX_SAMPLES, judge_dump
from tests.helpers import hostile_text, is_safe
from tests.probes.test_text_quality import GARBLED, HEALTHY


def dump(*samples: dict[str, object]) -> Dump:
    """Return a rollout dump of these samples."""
    return Dump("0.pt", "rollout", "", 0, False, None, [dict(sample) for sample in samples])


def test_shares_and_means_are_over_the_samples() -> None:
    """Truncation, length and log-prob are measured beside the verdicts."""
    verdicts = judge_dump(
        dump(
            {"index": 5, "response": GARBLED["symbols"], "status": "truncated", "response_length": 100},
            {"index": 6, "response": HEALTHY["de"], "response_length": 50, "rollout_log_probs": [-1.0, -2.0]},
            {"index": 7, "response": "42", "response_length": 3, "rollout_log_probs": [-0.5]},
        )
    )
    assert [(sample.index, sample.judgement.kind) for sample in verdicts.samples] == [
        (5, "garbled"), (6, "coherent"), (7, "short"),
    ]  # fmt: skip
    assert verdicts.garbled_share == 0.5
    assert verdicts.truncated_share == pytest.approx(1 / 3)
    assert verdicts.mean_length == 51
    assert verdicts.log_prob == -1.0


def test_samples_of_another_shape_are_left_out() -> None:
    """A response that is no text, and an aborted one, are not judged; without any there is no answer."""
    verdicts = judge_dump(dump({"response": None}, {"response": 3}, {"response": "x", "status": "aborted"}, {}))
    assert verdicts.samples == ()
    assert verdicts.answer is None


def test_a_huge_rollout_is_judged_by_an_even_part() -> None:
    """Of 5,000 samples at most MAX_SAMPLES are judged, from the first to nearly the last."""
    verdicts = judge_dump(dump(*({"index": n, "response": "42"} for n in range(5000))))
    assert len(verdicts.samples) <= MAX_SAMPLES
    assert verdicts.samples[0].index == 0
    assert verdicts.samples[-1].index > 4990


@given(response=hostile_text)
def test_an_excerpt_is_safe_and_short(response: str) -> None:
    """What a model wrote never reaches a terminal raw."""
    for sample in judge_dump(dump({"response": response})).samples:
        assert is_safe(sample.excerpt)
        assert len(sample.excerpt) <= 160
