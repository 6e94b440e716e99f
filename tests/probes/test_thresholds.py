"""Every threshold has a unit, a source that says who fixed it, and its place in order."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

from probes import thresholds
from probes.thresholds import BEYOND_DOUBT, Threshold, metrics, samples, text
from runbook.finding import Finding, Verdict, cite, found
from tests.helpers import check_citations

TOPICS = [
    importlib.import_module(f"{thresholds.__name__}.{info.name}") for info in pkgutil.iter_modules(thresholds.__path__)
]
ALL = {
    f"{topic.__name__}.{name}": value
    for topic in TOPICS
    for name, value in vars(topic).items()
    if isinstance(value, Threshold)
}


@pytest.mark.parametrize("name", ALL)
def test_every_threshold_names_its_source(name: str) -> None:
    """No number without where it comes from: a program, a guide, public runs, a measurement, or that we chose it."""
    limit = ALL[name]
    assert len(limit.source) > 20
    assert re.match(r"chosen: |beyond doubt: |measured: |slime's CI|public |debug guide", limit.source)


def test_every_topic_is_named_in_the_package() -> None:
    """The docstring of the package is the table of contents."""
    named = set(re.findall(r"`(\w+)`:", thresholds.__doc__ or ""))
    assert named == {topic.__name__.rpartition(".")[2] for topic in TOPICS}


def test_a_limit_beyond_doubt_lies_beyond_the_chosen_one() -> None:
    """What may prove a fault is orders of magnitude away from what is merely odd."""
    assert all(limit.proves for limit in ALL.values() if limit.source.startswith(BEYOND_DOUBT))
    assert not metrics.GRAD_LARGE.proves
    assert metrics.GRAD_IMPOSSIBLE.value >= 1e4 * metrics.GRAD_LARGE_SFT.value > metrics.GRAD_LARGE.value
    assert samples.EMPTY_SURE.value > samples.EMPTY_SHARE.value
    assert samples.SPLIT_SURE.value <= samples.SPLIT_CHANCE.value / 100


def test_thresholds_of_one_quantity_are_in_order() -> None:
    """Agreement lies below CI's limit, that below the proof; small below extreme; unusual below large."""
    assert metrics.GAP_AGREE.value < metrics.GAP_CI.value < metrics.GAP_PROVEN.value
    assert metrics.LOGPROB_EQUAL.value < metrics.REF_CLOSE.value < metrics.LOGPROB_FAR.value
    assert metrics.LOGPROB_MAGNITUDE.value < metrics.LOGPROB_EXTREME.value
    assert metrics.GRAD_UNUSUAL.value < metrics.GRAD_LARGE.value < metrics.GRAD_LARGE_SFT.value
    assert samples.PARTLY_SHARE.value < samples.GARBLED_SHARE.value
    assert text.SALAD_UPPER_LEAST.value < text.SALAD_UPPER_MOST.value
    assert text.SALAD_FUNCTION_WORDS.value < text.FUNCTION_WORDS_ONLY.value


def test_a_measurement_carries_threshold_and_source() -> None:
    """What is measured can be compared by the reader."""
    measured = metrics.GAP_CI.measure("gap", 0.31)
    assert (measured.value, measured.threshold, measured.unit) == (0.31, 0.1, "nat/token")
    assert measured.source == metrics.GAP_CI.source


@pytest.mark.parametrize(
    ("limit", "allowed"), [(metrics.GRAD_LARGE, False), (metrics.GRAD_IMPOSSIBLE, True), (metrics.GAP_PROVEN, True)]
)
def test_a_problem_by_a_limit_of_ours_fails_the_check_of_every_finding(limit: Threshold, allowed: bool) -> None:
    """The check that all tests of probes run refuses it, and takes the same as a warning."""

    def told(verdict: Verdict) -> Finding:
        place = cite(__file__, "a place")
        return found(verdict, "large", "x", "x", citations=(place,), measurements=(limit.measure("norm", 1e9),))

    check_citations(told(Verdict.WARNING))
    if allowed:
        check_citations(told(Verdict.PROBLEM))
    else:
        with pytest.raises(AssertionError, match="a limit of ours"):
            check_citations(told(Verdict.PROBLEM))
