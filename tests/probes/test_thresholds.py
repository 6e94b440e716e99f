"""Every threshold has a unit of its own and a source."""

from __future__ import annotations

from probes import thresholds
from probes.thresholds import Threshold

ALL = {name: value for name, value in vars(thresholds).items() if isinstance(value, Threshold)}


def test_every_threshold_names_its_source() -> None:
    """No number without where it comes from; a number of ours says that it was chosen."""
    assert len(ALL) >= 14
    assert all(len(each.source) > 20 for each in ALL.values())


def test_thresholds_of_one_quantity_are_in_order() -> None:
    """Agreement lies below CI's limit, that below the proof; small below extreme; unusual below large."""
    assert thresholds.GAP_AGREE.value < thresholds.GAP_CI.value < thresholds.GAP_PROVEN.value
    assert thresholds.LOGPROB_EQUAL.value < thresholds.LOGPROB_FAR.value
    assert thresholds.LOGPROB_MAGNITUDE.value < thresholds.LOGPROB_EXTREME.value
    assert thresholds.GRAD_UNUSUAL.value < thresholds.GRAD_LARGE.value < thresholds.GRAD_LARGE_SFT.value
    assert thresholds.TRUNCATED_HEALTHY.value < thresholds.TRUNCATED_BROKEN.value


def test_a_measurement_carries_threshold_and_source() -> None:
    """What is measured can be compared by the reader."""
    measured = thresholds.GAP_CI.measure("gap", 0.31)
    assert (measured.value, measured.threshold, measured.unit) == (0.31, 0.1, "nat/token")
    assert measured.source == thresholds.GAP_CI.source
