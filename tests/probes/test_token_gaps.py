"""Distances are means over the tokens that count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.dump_pairs import Aligned, align
from probes.token_gaps import measure, table

FLOATS = st.lists(st.floats(-20, 0), min_size=1, max_size=30)


def pair(index: int, trainer: Any, engine: Any, mask: Any = None) -> Aligned:
    """Return the two sides of a sample of a train dump."""
    sample = {"sample_index": index, "log_probs": trainer, "rollout_log_probs": engine}
    return align(sample | ({} if mask is None else {"loss_masks": mask}))


def test_tokens_weigh_and_not_samples() -> None:
    """One token that is 1 apart and nine that agree are 0.1 apart on average."""
    gaps = measure([pair(0, [-1.0], [-2.0]), pair(1, [-1.0] * 9, [-1.0] * 9)])
    assert (gaps.mean, gaps.largest, gaps.tokens, gaps.worst.index) == (0.1, 1.0, 10, 0)
    assert gaps.means == pytest.approx((-1.0, -1.1))


def test_what_cannot_be_compared_is_counted() -> None:
    """Unequal lengths and tokens that are not finite are left out and told."""
    gaps = measure([pair(0, [0.0] * 2, [0.0] * 3, [1, 1, 1]), pair(1, [-np.inf, -1.0], [-1.0, -1.0])])
    assert (gaps.unequal, gaps.strange, gaps.tokens, gaps.mean) == (1, 1, 1, 0.0)


@given(first=FLOATS, shift=st.floats(-3, 3), mask=st.lists(st.integers(0, 1), min_size=30, max_size=30))
def test_a_constant_shift_is_measured_on_the_masked_tokens(first: list[float], shift: float, mask: list[int]) -> None:
    """Whatever the mask, every counted token is |shift| apart; none counted means no sample."""
    counted = mask[: len(first)]
    gaps = measure([pair(0, first, [value + shift for value in first], counted)])
    assert gaps.tokens == sum(counted)
    assert len(gaps.samples) == (gaps.tokens > 0)
    if gaps.samples:
        assert gaps.mean == pytest.approx(abs(shift), abs=1e-9)


def test_the_table_names_samples_by_their_index() -> None:
    """Samples without one of the sides are passed over, and the worst stand first."""
    alone = align({"sample_index": 8, "log_probs": [-1.0]})
    shown = table(measure([pair(7, [-1.0], [-1.5]), alone, pair(9, [-1.0], [-3.0])]), "a", "b")
    assert [row[0] for row in shown.rows] == ["9", "7"]
    assert shown.rows[0][2:] == ("2", "2", "-1.000", "-3.000")
