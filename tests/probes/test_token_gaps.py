"""Distances are means over the tokens that count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.token_gaps import Pair, measure, sides, table

FLOATS = st.lists(st.floats(-20, 0), min_size=1, max_size=30)


def test_tokens_weigh_and_not_samples() -> None:
    """One token that is 1 apart and nine that agree are 0.1 apart on average."""
    one: Pair = (0, {}, np.array([-1.0]), np.array([-2.0]))
    nine: Pair = (1, {}, np.full(9, -1.0), np.full(9, -1.0))
    gaps = measure([one, nine])
    assert (gaps.mean, gaps.largest, gaps.tokens, gaps.worst.index) == (0.1, 1.0, 10, 0)
    assert gaps.means == pytest.approx((-1.0, -1.1))


def test_what_cannot_be_compared_is_counted() -> None:
    """Unequal lengths and tokens that are not finite are left out and told."""
    gaps = measure([(0, {}, np.zeros(2), np.zeros(3)), (1, {}, np.array([-np.inf, -1.0]), np.array([-1.0, -1.0]))])
    assert (gaps.unequal, gaps.strange, gaps.tokens, gaps.mean) == (1, 1, 1, 0.0)


@given(first=FLOATS, shift=st.floats(-3, 3), mask=st.lists(st.integers(0, 1), min_size=30, max_size=30))
def test_a_constant_shift_is_measured_on_the_masked_tokens(first: list[float], shift: float, mask: list[int]) -> None:
    """Whatever the mask, every counted token is |shift| apart; none counted means no sample."""
    sample: dict[str, Any] = {"loss_masks": mask[: len(first)]}
    gaps = measure([(0, sample, np.array(first), np.array(first) + shift)])
    assert gaps.tokens == sum(mask[: len(first)])
    assert len(gaps.samples) == (gaps.tokens > 0)
    if gaps.samples:
        assert gaps.mean == pytest.approx(abs(shift), abs=1e-9)


def test_sides_and_table_name_samples_by_their_index() -> None:
    """Samples without one of the sides are passed over, and the worst stand first."""
    samples = [
        {"sample_index": 7, "a": [-1.0], "b": [-1.5]},
        {"sample_index": 8, "a": [-1.0]},
        {"sample_index": 9, "a": [-1.0], "b": [-3.0]},
    ]
    shown = table(measure(sides(samples, "a", "b")), "a", "b")
    assert [row[0] for row in shown.rows] == ["9", "7"]
    assert shown.rows[0][2:] == ("2", "2", "-1.000", "-3.000")
