"""Which dumps are read, and how fields of samples are taken."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from probes.dumps import files_of, index_of, numbers, spread
from probes.readers.rollout_dump import DumpFile
from tests.helpers import evidence_of
from tests.probes.readers.pickles import DUMPS


@given(count=st.integers(0, 500), limit=st.integers(3, 20))
def test_the_first_two_and_the_last_dump_are_always_chosen(count: int, limit: int) -> None:
    """At most `limit` dumps, in order and without repetition; all of them where they fit."""
    files = tuple(DumpFile(str(number), "rollout", number) for number in range(count))
    chosen = spread(files, limit)
    assert len(chosen) == len(set(chosen)) <= limit
    assert list(chosen) == sorted(chosen, key=lambda file: file.rollout_id or 0)
    assert set(files[:2]) | set(files[-1:]) <= set(chosen)
    assert len(chosen) >= min(count, limit - 1)


def test_both_slots_are_read_and_content_sorts_them() -> None:
    """A train dump given as a rollout dump is still a train dump, and one file given twice is one."""
    folder = DUMPS / "one-zero-mlp"
    evidence = evidence_of(("rollout_dump", folder), ("train_dump", folder / "train"))
    assert [Path(file.path).name for file in files_of(evidence, "rollout")] == ["0.pt"]
    assert [Path(file.path).name for file in files_of(evidence, "train")] == ["0_0.pt"]


def test_a_field_that_is_not_numbers_is_absent() -> None:
    """None, text and nested lists of unequal length are not log-probs."""
    assert [numbers({"x": value}, "x") for value in (None, "a", [[1], [2, 3]])] == [None, None, None]


def test_the_index_joins_and_the_place_stands_in() -> None:
    """The train dump says sample_index, the rollout dump index; custom rollouts leave both out."""
    assert [index_of(sample, 9) for sample in ({"sample_index": 4}, {"index": 5}, {"index": None})] == [4, 5, 9]
