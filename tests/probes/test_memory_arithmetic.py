"""What the numbers of an out-of-memory message come to; every expected value is reckoned by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.memory_arithmetic import Known, rows, story, tokens_of
from probes.readers.oom_message import GIB, OomMessage

KNOWN = Known(152064, 2, 1, limit=9216, colocated=True)
FULL = OomMessage(0.5 * GIB, 0.005 * GIB, 0, 80 * GIB, 0.25 * GIB, 78 * GIB, 76 * GIB, 0.25 * GIB)
"""A GPU of 80 GiB that is simply full."""


def asking(tokens: float, size: int = 4) -> OomMessage:
    """Return the message of a request for logits of so many tokens: 152064 / 2 = 76032 numbers each."""
    return replace(FULL, tried=tokens * 76032 * size)


def test_tokens_of_a_request() -> None:
    """2.611 GiB of float32 logits over half of 152064 words are 9216 tokens; without a vocabulary nobody knows."""
    assert tokens_of(2.6105 * GIB, 4, KNOWN) == pytest.approx(9216, rel=1e-3)
    assert tokens_of(2.6105 * GIB, 4, Known()) is None


@pytest.mark.parametrize(
    ("message", "known", "answer", "proven"),
    [
        pytest.param(
            asking(30400), replace(KNOWN, longest=30300, whole=True), "one-sample-too-long", True, id="one sample"
        ),
        pytest.param(
            asking(15200),
            replace(KNOWN, longest=30300, whole=True, context_parallel=2),
            "one-sample-too-long",
            True,
            id="half of it, under CP 2",
        ),
        pytest.param(
            asking(30400, 2), replace(KNOWN, longest=30300, whole=True), "one-sample-too-long", True, id="in bfloat16"
        ),
        pytest.param(
            asking(30400),
            replace(KNOWN, longest=29000),
            "one-sample-too-long",
            False,
            id="a response without its prompt",
        ),
        pytest.param(asking(30400), replace(KNOWN, longest=20000), "unclear", False, id="no sample of that length"),
        pytest.param(
            asking(8000), replace(KNOWN, longest=8000, whole=True), "micro-batch", False, id="a sample within the limit"
        ),
        pytest.param(asking(9200), KNOWN, "micro-batch", True, id="a full micro batch"),
        pytest.param(asking(6000), KNOWN, "micro-batch", False, id="two thirds of one"),
        pytest.param(asking(2000), KNOWN, "unclear", False, id="a small part of one"),
        pytest.param(asking(9200), replace(KNOWN, trainer=False), "unclear", False, id="an engine has no micro batch"),
        pytest.param(
            asking(9200),
            replace(KNOWN, switching=True),
            "unclear",
            False,
            id="no step runs at the switch",
        ),
        pytest.param(replace(FULL, unallocated=5 * GIB), KNOWN, "fragmented", True, id="pieces"),
        pytest.param(
            replace(FULL, tried=0.1 * GIB, unallocated=0.5 * GIB),
            KNOWN,
            "unclear",
            False,
            id="half a GiB in pieces is ordinary",
        ),
        pytest.param(
            replace(FULL, this=40 * GIB), KNOWN, "engine-holds-memory", False, id="39 GiB of others, colocated"
        ),
        pytest.param(
            replace(FULL, this=40 * GIB),
            replace(KNOWN, engine_kept=39.75 * GIB),
            "unclear",
            False,
            id="as much as always",
        ),
        pytest.param(
            replace(FULL, this=40 * GIB),
            replace(KNOWN, engine_kept=3 * GIB),
            "engine-holds-memory",
            False,
            id="more than in other cycles",
        ),
        pytest.param(
            replace(FULL, this=40 * GIB),
            replace(KNOWN, colocated=False),
            "stranger",
            False,
            id="nobody should be there",
        ),
        pytest.param(
            replace(FULL, this=40 * GIB),
            replace(KNOWN, colocated=None),
            "unclear",
            False,
            id="nobody knows who may be there",
        ),
        pytest.param(
            replace(FULL, this=40 * GIB),
            replace(KNOWN, trainer=False),
            "trainer-holds-memory",
            False,
            id="beside an engine",
        ),
        pytest.param(
            FULL, replace(KNOWN, static=0.9, asleep=9 * GIB, switching=True), "does-not-fit", False, id="72 + 9 of 80"
        ),
        pytest.param(
            FULL, replace(KNOWN, static=0.8, asleep=9 * GIB, switching=True), "unclear", False, id="64 + 9 of 80"
        ),
        pytest.param(FULL, Known(), "unclear", False, id="nothing known"),
    ],
)
def test_each_story(message: OomMessage, known: Known, answer: str, proven: bool) -> None:
    """Only numbers that match prove; what is merely plausible is a lead, and everything else unclear."""
    told = story(message, known)
    assert (told.answer, told.proven) == (answer, proven)


def test_the_rows_can_be_reckoned_again() -> None:
    """Each figure has its formula: missing a quarter of a GiB, others 1.75 GiB, and the tokens in both formats."""
    figures = {row.what: (row.formula, row.value) for row in rows(FULL, KNOWN)}
    assert figures["missing"] == ("tried - free", "0.25 GiB")
    assert figures["held by others"] == ("capacity - free - this process", "1.75 GiB")
    assert figures["logits in float32"] == ("tried / (vocabulary / TP x 4)", "1765 tokens")
    assert figures["logits in bfloat16"] == ("tried / (vocabulary / TP x 2)", "3531 tokens")
    assert figures["in pieces"] == ("unallocated / tried", "0.50")


SIZES = st.floats(0, 1e15)
MAYBE = st.none() | SIZES
COUNTS = st.none() | st.integers(1, 10**9)


@given(
    st.builds(OomMessage, SIZES, SIZES, st.none(), MAYBE, MAYBE, MAYBE, MAYBE, MAYBE),
    st.builds(Known, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, st.booleans(), st.none() | st.booleans(), MAYBE),
)
def test_any_numbers_have_a_story(message: OomMessage, known: Known) -> None:
    """Zeros and absurd sizes give an answer and finite rows, never an error."""
    told = story(message, known)
    assert told.off is None or told.off >= 0
    assert all(row.value for row in rows(message, known))
