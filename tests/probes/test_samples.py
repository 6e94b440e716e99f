"""The judgements of a rollout's samples add up to one answer."""

from __future__ import annotations

import pytest
from hypothesis import given

from probes.readers.rollout_dump import Dump
from probes.samples import MAX_SAMPLES, judge_dump
from tests.helpers import hostile_text, is_safe
from tests.probes.test_rollout_drawn import SALAD
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


def test_random_ids_show_salad_of_any_script() -> None:
    """Arabic letters in no order read as text; ids of which none repeats say that they were drawn at random."""
    ids = [(n * 7919) % 150001 for n in range(300)]
    sample = {"response": SALAD, "response_length": 300, "status": "completed"}
    assert judge_dump(dump(sample)).samples[0].judgement.kind == "coherent"
    found = judge_dump(dump({**sample, "tokens": [1, 2, 3, *ids]})).samples[0].judgement
    assert found.kind == "garbled"
    assert "drawn at random" in found.why.en
    assert "随机" in found.why.zh


def test_log_probs_that_break_down_show_where_odd_text_begins() -> None:
    """The text of the second half is odd and its log-probs are -6, where the first half has -0.3."""
    odd = " was. multiplepe take= best x, explain toPrefix and,- proud to Social flight ing inflamm below members"
    log_probs = [-0.3] * 192 + [-6.0] * 192
    sample: dict[str, object] = {
        "response": HEALTHY["en-prose"][:220] + odd * 2,
        "status": "completed",
        "response_length": 384,
    }
    assert judge_dump(dump({**sample, "rollout_log_probs": [-0.3] * 384})).samples[0].judgement.kind == "coherent"
    found = judge_dump(dump({**sample, "rollout_log_probs": log_probs})).samples[0].judgement
    assert found.kind == "garbled"
    assert "from token 192 on" in found.why.en
    assert abs(found.start - 220) <= 10
    healthy: dict[str, object] = {
        "response": HEALTHY["en-prose"],
        "status": "completed",
        "rollout_log_probs": log_probs,
    }
    assert judge_dump(dump(healthy)).samples[0].judgement.kind == "coherent"


def test_fields_of_another_type_are_no_evidence() -> None:
    """Words among the log-probs or ids are passed over."""
    sample = {
        "response": HEALTHY["de"],
        "response_length": 200,
        "tokens": ["x"] * 300,
        "rollout_log_probs": ["y", None],
    }
    judged = judge_dump(dump(sample)).samples[0]
    assert (judged.judgement.kind, judged.log_prob) == ("coherent", None)


def test_the_excerpt_shows_the_place_where_it_breaks() -> None:
    """Of a response that breaks late, what is quoted begins shortly before that place."""
    text = HEALTHY["en-prose"] * 2 + " and then" * 300
    judged = judge_dump(dump({"response": text, "status": "truncated"})).samples[0]
    assert abs(judged.judgement.start - 2 * len(HEALTHY["en-prose"])) <= 10
    assert judged.excerpt.startswith("…")
    assert "and then and then" in judged.excerpt


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
