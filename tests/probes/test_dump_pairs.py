"""One sample's two sides are aligned per response token, and what does not fit is told, never bent."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from probes.dump_pairs import Trouble, align

TRAIN = {
    "sample_index": 7, "tokens": [10, 11, 1, 2, 3], "response_lengths": 3, "loss_masks": [1, 0, 1],
    "log_probs": [-1.0, -5.0, -2.0], "ref_log_probs": [-1.0, -5.0, -2.5],
}  # fmt: skip
ROLLOUT = {
    "index": 7, "tokens": [10, 11, 1, 2, 3], "response_length": 3, "loss_mask": [1, 0, 1],
    "rollout_log_probs": [-1.0, 0.0, -2.3],
}  # fmt: skip


def test_the_sides_of_a_sample_stand_side_by_side() -> None:
    """Prompt, response tokens, mask and the three log-probs; a masked token is no disagreement."""
    pair = align(TRAIN, ROLLOUT)
    assert (pair.index, pair.length, pair.prompt_length, pair.troubles, pair.first_other) == (7, 3, 2, (), None)
    assert pair.tokens is not None
    assert pair.tokens.tolist() == [1, 2, 3]
    assert pair.mask.tolist() == [True, False, True]
    assert [round(float(value), 6) for value in pair.diff] == [0.0, 5.0, 0.3]
    assert pair.first_disagreement(0.1) == 2
    assert pair.first_disagreement(0.5) is None


def test_other_tokens_are_named_at_their_place_and_never_compared() -> None:
    """The first differing token counts prompt tokens too; a longer sequence differs where the shorter one ends."""
    other = align(TRAIN, ROLLOUT | {"tokens": [10, 11, 1, 9, 3]})
    assert (other.first_other, other.engine) == (3, None)
    assert align(TRAIN, ROLLOUT | {"tokens": [10, 11, 1, 2, 3, 4]}).first_other == 5


def test_fields_of_another_length_are_troubles() -> None:
    """A log-prob too few is left out and told with both lengths."""
    pair = align(TRAIN | {"log_probs": [-1.0, -2.0], "data_parallel_rank": 0}, ROLLOUT)
    assert pair.trainer is None
    assert Trouble("train", "log_probs", 2, 3) in pair.troubles


def test_an_engine_side_that_contradicts_itself_is_told() -> None:
    """Both dumps hold the engine's log-probs of the same tokens; the train dump's are used."""
    pair = align(TRAIN | {"rollout_log_probs": [-1.0, 0.0, -2.9]}, ROLLOUT)
    assert pair.engine is not None
    assert float(pair.engine[2]) == -2.9
    assert [trouble.of_length for trouble in pair.troubles] == [False]


def test_a_context_parallel_slice_is_compared_as_a_slice() -> None:
    """In old dumps all fields of a rank are its slice; no place in the response is claimed for it."""
    pair = align({k: v for k, v in TRAIN.items() if k != "loss_masks"} | {
        "log_probs": [-1.0], "ref_log_probs": [-1.0], "rollout_log_probs": [-1.5]})  # fmt: skip
    assert (pair.sliced, pair.length, pair.prompt_length, pair.tokens) == (True, 1, None, None)
    assert float(pair.diff[0]) == 0.5


def test_nothing_in_is_nothing_out() -> None:
    """An empty sample, or a claim of a trillion tokens, gives an empty pair and no memory is taken."""
    assert align(None, None).length == 0
    assert align({"response_lengths": 10**12, "log_probs": [-1.0], "data_parallel_rank": 0}).length == 1


JUNK: st.SearchStrategy[Any] = (
    st.none() | st.integers(-3, 10**30) | st.text(max_size=3) | st.floats() | st.lists(st.floats(), max_size=5)
    | st.lists(st.none() | st.integers(), max_size=5)
)  # fmt: skip
FIELDS = st.dictionaries(st.sampled_from([*TRAIN, *ROLLOUT, "data_parallel_rank"]), JUNK, max_size=8)


@given(train=FIELDS, rollout=FIELDS)
def test_whatever_the_fields_hold_the_arrays_have_one_length(train: dict[str, Any], rollout: dict[str, Any]) -> None:
    """No junk raises, and every array that is there has `length` entries."""
    pair = align(train, rollout)
    for side in (pair.trainer, pair.reference, pair.engine, pair.tokens, pair.mask, pair.diff, pair.counted):
        assert side is None or len(side) == pair.length
    place = pair.first_disagreement(0.1)
    assert place is None or (pair.counted[place] and pair.diff[place] > 0.1 and not math.isnan(pair.diff[place]))
