"""Values of bash scripts: word splitting, patterns and arithmetic, against rules of the bash manual."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.bash_values import (
    Fragment,
    arithmetic,
    fields,
    known,
    literal,
    replace_pattern,
    show,
    strip_pattern,
)


def test_unquoted_text_is_split_at_blanks_and_quoted_text_is_not() -> None:
    """`a$X` with X="1 2" gives a1 and 2; the same in quotes stays one word."""
    unquoted = (*literal("a", "f", 0), Fragment("1 2", "f", 5, split=True))
    quoted = (*literal("a", "f", 0), Fragment("1 2", "f", 5))
    assert [known(word) for word in fields(unquoted)] == ["a1", "2"]
    assert [known(word) for word in fields(quoted)] == ["a1 2"]


def test_a_word_out_of_a_string_keeps_its_own_offset() -> None:
    """The second word of a split value points at its own byte, also behind a character of several bytes."""
    words = fields((Fragment("é --flag", "f", 10, split=True),))
    assert [word[0].offset for word in words] == [10, 10 + len("é ".encode())]


def test_an_unknown_part_makes_a_word_unknown_but_shown() -> None:
    """`${BASE}/ckpt` has no known text and is still spelled."""
    word = (Fragment(None, "f", 0, shown="${BASE}", reason="unset"), *literal("/ckpt", "f", 7))
    assert known(word) is None
    assert show(word) == "${BASE}/ckpt"


@pytest.mark.parametrize(
    ("op", "pattern", "expected"),
    [("#", "*/", "b/c.tar.gz"), ("##", "*/", "c.tar.gz"), ("%", ".*", "a/b/c.tar"), ("%%", ".*", "a/b/c")],
)
def test_prefixes_and_suffixes_are_removed_as_bash_does(op: str, pattern: str, expected: str) -> None:
    """One sign removes the shortest match, two the longest."""
    assert strip_pattern("a/b/c.tar.gz", op, pattern) == expected


def test_replacement_refuses_wildcards() -> None:
    """A literal pattern is replaced once or everywhere; a wildcard is left unknown."""
    assert replace_pattern("a-b-c", "-", "_", every=False) == "a_b-c"
    assert replace_pattern("a-b-c", "-", "_", every=True) == "a_b_c"
    assert replace_pattern("a-b-c", "*", "_", every=True) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1024 * 1024 * 2", 2097152),
        ("-7 / 2", -3),  # bash truncates towards zero
        ("-7 % 2", -1),
        ("N + 1", 9),
        ("${N}*2", 16),
        ("N > 3 && N < 9", 1),
        ("N == 3 || 0", 0),
        ("EMPTY + 1", 1),
    ],
)
def test_arithmetic_follows_bash(text: str, expected: int) -> None:
    """Integer arithmetic truncates towards zero and an empty variable counts as 0."""
    assert arithmetic(text, {"N": "8", "EMPTY": ""}.get) == expected


@pytest.mark.parametrize("text", ["X + 1", "1 / 0", "open('f')", "2 ** 2 ** 99", "((", "N.real", "1.5", "1 << 99"])
def test_arithmetic_over_the_unknown_is_unknown(text: str) -> None:
    """Unset names, division by zero and anything that is not integer arithmetic give None."""
    assert arithmetic(text, {"N": "8"}.get) is None


@given(st.text(max_size=200))
def test_arithmetic_never_raises(text: str) -> None:
    """Hostile text gives a number or None."""
    result = arithmetic(text, lambda name: name)
    assert result is None or isinstance(result, int)
