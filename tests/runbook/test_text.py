"""Tests of runbook.text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.text import Text, counted, sanitise
from tests.helpers import hostile_bytes, hostile_text, is_safe


@given(st.one_of(hostile_text, hostile_bytes), st.none() | st.integers(1, 40))
def test_result_is_safe_to_draw(raw: str | bytes, limit: int | None) -> None:
    """Whatever comes in, one line without control, escape, separator, surrogate or bidi character comes out."""
    text = sanitise(raw, limit)
    assert is_safe(text)
    assert limit is None or len(text) <= limit


@given(hostile_text)
def test_sanitising_twice_changes_nothing(raw: str) -> None:
    """What was sanitised is left as it is."""
    once = sanitise(raw)
    assert sanitise(once) == once


@given(st.text(st.characters(whitelist_categories=["L", "N", "P", "S"]), max_size=30))
def test_ordinary_text_is_kept(raw: str) -> None:
    """Letters, digits, punctuation and signs of any script stay as they are."""
    assert sanitise(raw) == raw
    assert sanitise(raw.encode()) == raw


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("a\x1b]never closed", "a"),
        ("a\x1b", "a"),
        ("a\x9b2Jb", "ab"),
        ("a\tb", "a    b"),
        ("a\r\nb", "ab"),
        ("abc\u202edef", "abcdef"),
        ("[/rank0] [bold]", "[/rank0] [bold]"),
        (b"\xff\xfeok", "\ufffd\ufffdok"),
        ("\ud800x", "x"),
        ("中文 🙂", "中文 🙂"),
    ],
)
def test_examples(raw: str | bytes, expected: str) -> None:
    """Sequences vanish whole, a tab becomes four blanks, broken UTF-8 becomes U+FFFD, markup stays text."""
    assert sanitise(raw) == expected


@pytest.mark.parametrize("unit", ["x", "\x1b[", "\x1b]", "\x1b[0m", "é", "\x00", "\x1b[0;"])
def test_work_is_bounded_by_the_limit(unit: str) -> None:
    """Of a line of a million characters only the beginning is looked at, and the result says that it is cut."""
    line = "start " + unit * 1_000_000
    assert sanitise(line, 10) == sanitise(line[:2000], 10)
    assert sanitise(line, 10).startswith("start")
    assert sanitise(line, 10).endswith("…")


def test_a_count_agrees_with_its_noun() -> None:
    """One is one; none and several take the plural, with an s unless another one is given."""
    assert [counted(number, "step") for number in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]
    assert [counted(number, "process", "processes") for number in (1, 8)] == ["1 process", "8 processes"]


def test_chinese_falls_back_to_english() -> None:
    """`say` gives the asked language, and English where the Chinese words are missing."""
    assert Text("a", "甲").say("zh") == "甲"
    assert Text("a", "甲").say("en") == "a"
    assert Text("a", "").say("zh") == "a"
