"""Who is at work, and what a note may be."""

from __future__ import annotations

import pytest
from hypothesis import given

from runbook.errors import UsageError
from runbook.session.people import NAME_LIMIT, NOTE_LIMIT, WHO, author, login_name, named, note_words
from tests.helpers import hostile_text, is_safe


def test_the_name_that_was_given_goes_before_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """SLIME_RUNBOOK_WHO names the author; without it, or when nothing of it can be drawn, it is the login name."""
    monkeypatch.delenv(WHO, raising=False)
    assert author() == login_name() != ""
    monkeypatch.setenv(WHO, "  Ann   Smith ")
    assert author() == "Ann Smith"
    monkeypatch.setenv(WHO, "\x1b[2J \u202e")
    assert author() == login_name()


@given(hostile_text)
def test_a_name_is_one_short_safe_line(words: str) -> None:
    """Whatever was given, a name is one line of at most NAME_LIMIT characters that a terminal draws as it stands."""
    name = named(words * 20)
    assert is_safe(name)
    assert len(name) <= NAME_LIMIT
    assert name == name.strip()


def test_a_note_keeps_its_lines_and_loses_what_terminals_act_upon() -> None:
    """Lines stay lines, blank ones at the ends go, escapes and bidi controls go."""
    assert note_words("\n\none \x1b[31mred\x1b[0m  \n\n  two\u202e\r\n") == "one red\n\n  two"


@pytest.mark.parametrize("words", ["", " \n\t\n", "\x1b[2J"])
def test_a_note_without_words_is_refused(words: str) -> None:
    """Nothing to read is no note."""
    with pytest.raises(UsageError, match="needs words"):
        note_words(words)


def test_a_note_that_is_too_long_is_refused_not_cut() -> None:
    """At the limit it is kept whole, one more is refused with both numbers."""
    assert note_words("x" * NOTE_LIMIT) == "x" * NOTE_LIMIT
    with pytest.raises(UsageError, match="10,001"):
        note_words("x" * (NOTE_LIMIT + 1))
