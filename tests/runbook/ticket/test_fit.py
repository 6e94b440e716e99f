"""What is too long loses its least telling rows first, and knows how many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runbook.ticket.fit import Block, fit, length


def _text(blocks: list[Block]) -> str:
    return "\n".join(line for block in blocks for line in block.lines(lambda count, _: f"… {count} more"))


def test_what_fits_is_left_alone() -> None:
    """Blocks within the limit are returned as they are."""
    blocks = [Block(("# a",)), Block(("h",), ("r1", "r2"), order=9)]
    assert fit(blocks, 100) == blocks


def test_the_highest_order_goes_first_and_the_floor_stays() -> None:
    """Rows of the least telling block go first, from the end; then those of the next down to its floor."""
    wide = "x" * 99
    blocks = [Block(("a",), (wide,) * 10, order=1, floor=2), Block(("b",), (wide,) * 10, order=5), Block((wide,) * 3)]
    slightly = fit(blocks, 2000)
    assert [len(block.rows) for block in slightly] == [10, 5, 0]
    assert [block.left_out for block in slightly] == [0, 5, 0]
    much = fit(blocks, 700)
    assert [len(block.rows) for block in much] == [2, 0, 0]
    assert much[1].head == ()
    assert "… 10 more" in _text(much)
    assert len(_text(much)) <= 700


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.lists(st.integers(0, 400), max_size=8)), max_size=8),
    st.integers(0, 3000),
)
def test_the_result_fits_or_nothing_more_can_go(shapes: list[tuple[int, int, list[int]]], limit: int) -> None:
    """Either the text is within the limit, or all that may be shortened is at its floor; rows keep their order."""
    blocks = [Block(("h",), tuple("x" * n for n in sizes), order=order, floor=floor) for order, floor, sizes in shapes]
    result = fit(blocks, limit)
    assert len(_text(result)) <= limit or all(len(block.rows) <= max(block.floor, 0) for block in result if block.order)
    for before, after in zip(blocks, result, strict=True):
        assert before.rows[: len(after.rows)] == after.rows
        assert len(after.rows) + after.left_out == len(before.rows)


@given(st.text(max_size=40))
def test_length_is_that_of_the_receivers(text: str) -> None:
    """A character beyond the basic plane counts twice, as for JavaScript and Java; so no receiver counts more."""
    assert length(text) == len(text) + sum(ord(character) > 0xFFFF for character in text)
