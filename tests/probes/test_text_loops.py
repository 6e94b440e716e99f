"""A piece repeated without end is found with its beginning; verses, grids and digits are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.text_loops import find_loop


@given(piece=st.text(min_size=1, max_size=30).filter(str.strip), times=st.integers(0, 60), head=st.text(max_size=20))
def test_what_is_returned_really_repeats(piece: str, times: int, head: str) -> None:
    """The piece returned fills the text from its start on; long repetitions of a response cut off are found."""
    text = head + piece * times
    loop = find_loop(text, ended=False)
    if loop is not None:
        whole = loop.piece * (int(loop.repeats) + 2)
        assert whole.endswith(text[loop.start :])
        assert loop.repeats >= 4
    elif len(piece) * times > 300:
        assert times < 8


def test_the_place_where_a_loop_begins_is_told() -> None:
    """The text before the first copy is not part of the loop."""
    head = "We add the two numbers and get "
    loop = find_loop(head + "twelve, " * 30)
    assert loop is not None
    assert loop.piece.strip() == "twelve,"
    assert loop.start in (len(head) - 1, len(head)), "the blank before the first copy fits the loop too"
    assert round(loop.repeats) == 30


@pytest.mark.parametrize(
    ("text", "endless"),
    [
        pytest.param("The answer is 1" + "0" * 100, False, id="a googol"),
        pytest.param("0" * 400, True, id="zeros without end"),
        pytest.param("0." + "142857" * 30, False, id="a repeating decimal"),
        pytest.param("0,0,0,0\n" * 40, False, id="a grid of zeros"),
        pytest.param("0,0,0,0\n" * 400, True, id="a grid without end"),
        pytest.param("!" * 40, True, id="exclamation marks"),
        pytest.param("Done. " * 30, True, id="one word"),
        pytest.param("One reason is this.\n" * 30, True, id="one line"),
        pytest.param("A fine text that is long enough to stand. " * 3, False, id="three times"),
    ],
)
def test_numbers_may_repeat_for_a_while(text: str, endless: bool) -> None:
    """Digits and grids are given more room than words, and not without end."""
    assert (find_loop(text) is not None) is endless


def test_a_loop_at_the_end_of_a_long_response_counts_by_its_length() -> None:
    """Two thousand characters of one phrase are a loop, whatever stands before them."""
    head = "".join(f"Step {n} adds {n * 7} to the sum. " for n in range(400))
    assert len(head) > 9000
    loop = find_loop(head + "and so on " * 250)
    assert loop is not None
    assert abs(loop.start - len(head)) <= 10
    assert find_loop(head + "and so on " * 50) is None
