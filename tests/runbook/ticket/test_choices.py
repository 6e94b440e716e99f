"""What a person chose is kept with the session, for its owner's eyes, and never silently forgotten."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.errors import SessionError
from runbook.ticket.choices import CHOICES_FILE, Choices, choices, remember


def test_a_session_in_which_nothing_was_chosen(tmp_path: Path) -> None:
    """Without a file nothing is hidden or dropped, and reading makes none."""
    assert choices(tmp_path) == Choices()
    assert list(tmp_path.iterdir()) == []


def test_what_is_remembered_comes_back_and_is_private(tmp_path: Path) -> None:
    """Words and texts are kept as they are, in a file of mode 0600; remembering again replaces them."""
    chosen = Choices(("grpo", "张三"), ("a line with “quotes” and \\ and é", "另一行"))
    remember(tmp_path, Choices(("old",), ()))
    remember(tmp_path, chosen)
    assert choices(tmp_path) == chosen
    assert [path.name for path in tmp_path.iterdir()] == [CHOICES_FILE]
    assert stat.S_IMODE((tmp_path / CHOICES_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"drop": [1]}', b"\xff\xfe"])
def test_choices_that_cannot_be_read_are_no_choices_that_are_empty(tmp_path: Path, content: bytes) -> None:
    """A damaged file is an error that names it: what was dropped must not leave because a byte is wrong."""
    (tmp_path / CHOICES_FILE).write_bytes(content)
    with pytest.raises(SessionError, match=CHOICES_FILE):
        choices(tmp_path)


def test_a_folder_in_the_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    """What cannot be opened cannot be read; what cannot be written says so."""
    (tmp_path / CHOICES_FILE).mkdir()
    with pytest.raises(SessionError, match=CHOICES_FILE):
        choices(tmp_path)
    with pytest.raises(SessionError, match=CHOICES_FILE):
        remember(tmp_path, Choices(("x",)))


@given(st.sets(st.text(min_size=1)), st.sets(st.text(min_size=1)), st.lists(st.text(min_size=1)))
def test_a_drop_can_be_taken_back(first: set[str], second: set[str], words: list[str]) -> None:
    """Keeping what was dropped leaves the rest dropped; nothing is kept twice; hidden words stay hidden."""
    chosen = Choices().hiding(*words, "").dropping(first).dropping(second)
    assert set(chosen.drop) == first | second
    assert len(chosen.drop) == len(first | second)
    assert list(chosen.hide) == list(dict.fromkeys(words))
    for word in words:
        assert chosen.hides(word.upper()) == (word.upper().casefold() in {one.casefold() for one in words})
        assert not chosen.showing(word).hides(word)
    assert chosen.showing().hide == chosen.hide
    kept = chosen.keeping(second)
    assert set(kept.drop) == first - second
    assert kept.hide == chosen.hide
