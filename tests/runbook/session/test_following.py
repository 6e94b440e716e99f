"""A reader sees what is added, once and in order, whatever the file looks like at the moment of a look."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook.errors import SessionError
from runbook.session import events as ev
from runbook.session import following
from runbook.session.following import PATIENCE, Follower
from runbook.session.journal import JOURNAL, Journal, Loaded, encode, load


def _begun(folder: Path, *notes: str) -> Journal:
    journal = Journal.create(folder, 1.0)
    for words in notes:
        journal.append(ev.Noted(words), 2.0)
    return journal


def _words(records: tuple[ev.Record, ...]) -> list[str]:
    return [record.event.words for record in records if isinstance(record.event, ev.Noted)]


def test_what_is_added_comes_once_and_in_order(tmp_path: Path) -> None:
    """What is there at first is given at first; each look brings what came since, and the holder."""
    with _begun(tmp_path, "a") as journal:
        follower = Follower(journal.folder)
        assert _words(follower.records) == ["a"]
        assert follower.look().records == ()
        journal.append(ev.Noted("b"), 3.0)
        journal.append(ev.Noted("c"), 3.0)
        news = follower.look()
        assert _words(news.records) == ["b", "c"]
        assert news.holder is not None
        assert news.holder.pid == os.getpid()
        assert follower.look().records == ()
    news = follower.look()
    assert news.holder is None
    assert (news.said, news.anew) == ((), False)


def test_a_journal_that_goes_away_while_it_is_read_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading the file and asking which one it is, the file may be gone: that is said as any other trouble."""

    def gone(path: str) -> Loaded:
        loaded = load(path)
        os.unlink(path)
        return loaded

    with _begun(tmp_path, "a") as journal:
        monkeypatch.setattr(following, "load", gone)
        with pytest.raises(SessionError, match="cannot be read"):
            Follower(journal.folder)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 400), max_size=40), st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_however_a_file_grows_no_record_is_lost_or_given_twice(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], notes: list[str]
) -> None:
    """The bytes come in pieces of any size: the records are those of the whole file."""
    folder = tmp_path_factory.mktemp("grow")
    with _begun(folder, "first") as journal:
        follower = Follower(journal.folder)
        lines = b"".join(encode(ev.Record(1 + n, 2.0, ev.Noted(words))) for n, words in enumerate(notes))
        seen: list[str] = []
        with open(journal.folder / JOURNAL, "ab", buffering=0) as file:
            for step in [*steps, len(lines)]:
                file.write(lines[:step])
                lines = lines[step:]
                seen += _words(follower.look().records)
    assert seen == notes


def test_a_line_longer_than_a_piece_is_read_with_larger_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record longer than one read comes whole a few looks later, and what follows it is not lost."""
    monkeypatch.setattr(following, "PIECE", 64)
    with _begun(tmp_path) as journal:
        follower = Follower(journal.folder)
        journal.append(ev.Noted("x" * 3000), 3.0)
        journal.append(ev.Noted("y"), 3.0)
        seen: list[str] = []
        for _ in range(12):
            seen += _words(follower.look().records)
    assert seen == ["x" * 3000, "y"]


def test_a_torn_tail_is_waited_for_and_may_become_another_line(tmp_path: Path) -> None:
    """Half a line is no record; when its writer died and the next one cut it off, that one's line is read."""
    journal = _begun(tmp_path, "a")
    follower = Follower(journal.folder)
    with open(journal.folder / JOURNAL, "ab") as file:
        file.write(b'{"n":1,"t":3.0,"event":{"type":"note","words":"never fin')
    assert follower.look().records == ()
    journal.close()
    with Journal.open(journal.folder) as other:
        other.append(ev.Noted("b"), 4.0)
        news = follower.look()
    assert _words(news.records) == ["b"]
    assert news.said == ()


def test_a_page_that_has_not_come_is_waited_for(tmp_path: Path) -> None:
    """Zeros where a line will be, as a network file system may show for a moment, lose nothing."""
    with _begun(tmp_path, "a") as journal:
        follower = Follower(journal.folder)
        line = encode(ev.Record(1, 3.0, ev.Noted("b")))
        path = journal.folder / JOURNAL
        whole = path.read_bytes()
        path.write_bytes(whole + b"\0" * (len(line) - 1) + b"\n")
        assert follower.look().records == ()
        path.write_bytes(whole + line)
        assert _words(follower.look().records) == ["b"]


def test_a_line_that_stays_unreadable_is_said_once(tmp_path: Path) -> None:
    """A damaged record is named after some looks, once, and nothing behind it is shown."""
    with _begun(tmp_path, "a") as journal:
        follower = Follower(journal.folder)
        with open(journal.folder / JOURNAL, "ab") as file:
            file.write(b"garbage\n" + encode(ev.Record(2, 3.0, ev.Noted("c"))))
        looks = [follower.look() for _ in range(PATIENCE * 3)]
    said = [words.en for news in looks for words in news.said]
    assert len(said) == 1
    assert "record 1" in said[0]
    assert not any(news.records for news in looks)


def test_a_journal_that_was_taken_over_goes_on_without_a_word(tmp_path: Path) -> None:
    """Who takes over goes on in another file with the same content: a reader gets the new records alone."""
    with _begun(tmp_path, "a") as journal:
        follower = Follower(journal.folder)
        before = os.stat(journal.folder / JOURNAL).st_ino
        with Journal.open(journal.folder, take_over=True) as other:
            assert os.stat(journal.folder / JOURNAL).st_ino != before
            other.append(ev.Noted("b"), 3.0)
            news = follower.look()
    assert (_words(news.records), news.anew, news.said) == (["b"], False, ())


def test_a_shortened_or_foreign_journal_is_said_and_read_anew(tmp_path: Path) -> None:
    """A journal that was cut, or does not go on from what was read, gives all its records anew, with a word."""
    with _begun(tmp_path, "a", "b") as journal:
        path = journal.folder / JOURNAL
        lines = path.read_bytes().splitlines(keepends=True)
        follower = Follower(journal.folder)
        path.write_bytes(b"".join(lines[:-1]))
        news = follower.look()
        assert (_words(news.records), news.anew) == (["a"], True)
        assert "replaced or shortened" in news.said[0].en
        other = path.with_suffix(".new")
        record = json.loads(lines[1])
        record["event"]["words"] = "other"
        other.write_bytes(lines[0] + json.dumps(record).encode() + b"\n")
        os.replace(other, path)
        news = follower.look()
        assert (_words(news.records), news.anew) == (["other"], True)


def test_a_journal_that_is_gone_is_said_once_and_looked_for_again(tmp_path: Path) -> None:
    """Without the file there is one word, not one a look; when it is back, it is followed again."""
    with _begun(tmp_path, "a") as journal:
        follower = Follower(journal.folder)
        path, aside = journal.folder / JOURNAL, journal.folder / "aside"
        os.rename(path, aside)
        said = [words for _ in range(3) for words in follower.look().said]
        assert len(said) == 1
        assert "cannot follow" in said[0].en
        os.rename(aside, path)
        journal.append(ev.Noted("b"), 3.0)
        assert _words(follower.look().records) == ["b"]
