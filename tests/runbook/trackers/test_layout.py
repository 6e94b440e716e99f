"""Tests of fitting a ticket into what a tracker takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.ticket.outgoing import Attachment
from runbook.trackers.layout import COMMENTS_MOST, ROOM, as_comments, marked, new_mark, one_line, pieces, size_of
from tests.helpers import hostile_text, is_safe

LINES = st.lists(st.sampled_from(["a", "word " * 9, "", "```", "~~~~", "````python", "  x", "中文" * 20]), max_size=40)


def test_a_mark_stands_in_the_last_line() -> None:
    """Markdown hides the mark in a comment, other layouts say it plainly; no two marks are equal."""
    assert marked("text\n", "ab12", "markdown") == "text\n\n<!-- slime-runbook ab12 -->\n"
    assert marked("text", "ab12", "jira") == "text\n\nslime-runbook ab12\n"
    assert len({new_mark() for _ in range(100)}) == 100


@given(LINES, st.integers(60, 400))
def test_pieces_say_what_the_text_said(lines: list[str], limit: int) -> None:
    """Pieces are within the limit, and without the fences that a cut adds they are the text."""
    text = "\n".join(lines)
    parts = pieces(text, limit, "text")
    assert "".join(parts) == text
    assert all(len(part) <= limit for part in parts)
    fenced = pieces(text, limit, "markdown")
    assert all(len(part) <= limit for part in fenced)
    words = [line for line in text.split("\n") if line and line.lstrip()[:3] not in ("```", "~~~")]
    kept = [line for part in fenced for line in part.split("\n") if line and line.lstrip()[:3] not in ("```", "~~~")]
    assert "".join(kept) == "".join(words)


def test_a_fence_that_is_cut_is_closed_and_opened_again() -> None:
    """Each piece of a long quotation is a whole fenced block."""
    text = "before\n```text\n" + "".join(f"line {number}\n" for number in range(40)) + "```\nafter\n"
    parts = pieces(text, 120, "markdown")
    assert len(parts) > 2
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert parts[1].startswith("```text\nline ")
    assert parts[1].endswith("\n```")


def test_a_line_beyond_the_limit_is_cut() -> None:
    """A text without line breaks still fits."""
    assert "".join(parts := pieces("x" * 1000, 100, "text")) == "x" * 1000
    assert max(map(len, parts)) <= 100


def test_a_short_text_stays_whole() -> None:
    """Within the limit, or without one, nothing is cut."""
    assert pieces("a\nb", 3, "markdown") == ["a\nb"]
    assert pieces("a" * 10_000, 0, "text") == ["a" * 10_000]


def test_a_file_becomes_fenced_comments() -> None:
    """A file is quoted in a fence that nothing in it closes; the line above says its name and part."""
    file = Attachment("a.md", "text/markdown", b"x\n`````\ny\n")
    assert as_comments(file, 65_000, "markdown", "en") == ["a.md\n\n``````\nx\n`````\ny\n``````"]
    long = Attachment("b.txt", "text/plain", b"0123456789\n" * 200)
    parts = as_comments(long, ROOM + 1200, "markdown", "zh")
    assert parts is not None
    assert [part.split("\n")[0] for part in parts] == ["b.txt，第 1/2 部分", "b.txt，第 2/2 部分"]


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"a\x00b", b"line\n" * 1000 * COMMENTS_MOST, b"`" * 200],
    ids=["bytes", "nul", "long", "ticks"],
)
def test_what_is_no_comment_stays(content: bytes) -> None:
    """What is no text, or would bury the ticket, becomes no comments."""
    assert as_comments(Attachment("a", "x/y", content), 5000, "markdown", "en") is None


@given(hostile_text, st.integers(5, 40))
def test_a_title_is_one_line(title: str, limit: int) -> None:
    """Whatever a title is, it becomes one printable line within the limit, and is never empty."""
    found = one_line(title, limit)
    assert is_safe(found)
    assert 0 < len(found) <= max(limit, len("slime-runbook"))


def test_sizes_are_for_people() -> None:
    """Bytes below a thousand, then kB and MB."""
    assert [size_of(b"x" * count) for count in (0, 999, 1000, 94_100, 1_200_000)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "94.1 kB",
        "1.2 MB",
    ]
