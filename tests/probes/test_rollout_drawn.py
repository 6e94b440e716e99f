"""Ids that hardly repeat are drawn at random; ids of text repeat, and ids that are not the text's own say nothing."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from probes.rollout_drawn import drawn_at_random

RANDOM = random.Random(9)
ARABIC = "".join(RANDOM.choice("ابتثجحخدذرزسشصضطظعغفقكلمنهوي") for _ in range(6000))
SALAD = " ".join(ARABIC[n : n + 5] for n in range(0, 6000, 5))
PROSE = "We take the sum of the numbers and divide it by how many there are in the list of them. " * 20


def text_ids(count: int) -> list[int]:
    """Return ids that repeat as those of a text do: about 60 % different in 128."""
    return [RANDOM.randrange(30) if RANDOM.random() < 0.5 else RANDOM.randrange(100000) for _ in range(count)]


def random_ids(count: int) -> list[int]:
    """Return ids of a vocabulary of 150,000, none twice."""
    return RANDOM.sample(range(150000), count)


def test_ids_that_never_repeat_are_drawn_at_random() -> None:
    """In any script: 256 different ids of 256, and a text that repeats no word either."""
    found = drawn_at_random(random_ids(256), SALAD)
    assert found is not None
    assert found.share == 0.0
    assert "100%" in found.why.en


def test_ids_of_text_are_left_alone() -> None:
    """Half of the tokens among thirty common ones is far from random."""
    assert drawn_at_random(text_ids(512), SALAD) is None
    assert drawn_at_random(random_ids(100), SALAD) is None


def test_ids_that_do_not_belong_to_the_text_are_not_believed() -> None:
    """Prose that repeats its words under ids that never do, and ids that count up, are placeholders."""
    assert drawn_at_random(random_ids(256), PROSE) is None
    assert drawn_at_random(list(range(1000, 1256)), SALAD) is None


def test_where_it_breaks_is_told() -> None:
    """Text for three quarters, then random: the last window begins there or behind."""
    text = "".join(RANDOM.choice("абвгдежзиклмнопрст ") for _ in range(3000)) + SALAD[:1000]
    found = drawn_at_random([*text_ids(768), *random_ids(256)], text)
    assert found is not None
    assert 0.7 <= found.share <= 0.9


@given(tokens=st.lists(st.integers(0, 500), max_size=400), text=st.text(max_size=200))
def test_any_ids_and_text_are_accepted(tokens: list[int], text: str) -> None:
    """No list of ids breaks it, and the share lies in the response."""
    found = drawn_at_random(tokens, text)
    assert found is None or 0 <= found.share < 1
