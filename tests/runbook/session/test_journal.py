"""The journal loses nothing but the event being written, whatever happens to the process, the disk or the file."""

from __future__ import annotations

import json
import math
import os
import random
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook import __version__
from runbook.errors import LostError, SessionError
from runbook.evidence import Item
from runbook.finding import Citation, Finding, Measurement, Table, Verdict
from runbook.private import write_at
from runbook.session import events as ev
from runbook.session import journal as journal_module
from runbook.session.journal import JOURNAL, Journal, encode, parse, read
from runbook.session.lock import LOCK
from runbook.text import Text
from runbook.walk import By
from tests.runbook.session.writer import words

FINDING = Finding(
    Verdict.PROBLEM,
    "bad",
    Text("it is bad", "坏了"),
    (Citation("/a/log", 3, 20, 'bad [rank7] \\ " ü', 8, 1.5),),
    (Measurement("gap", math.nan, "nats", math.inf, "a source"),),
    (Table(Text("rows", "行"), ("a", "b"), (("1", "2"),)),),
    probe="a.b",
)
EVENTS: tuple[ev.Event, ...] = (
    ev.Opened("0.1.0", {"f": "abc"}, "/runs/7", "ann"),
    ev.EvidenceAdded((Item("log", "/runs/\udcff.log", Text("given", "给定")),)),
    ev.EvidenceDropped("log", "/runs/7"),
    ev.Found(FINDING),
    ev.FlowStarted("f"),
    ev.Answered("f", "n", "yes", By.PERSON, "ann", ("a.b",)),
    ev.WentBack("f", "n"),
    ev.RunAttached("f", "n", "run-2"),
    ev.Noted("line one\nline two \x00 \u202e"),
    ev.Exported("markdown", "/t.md"),
    ev.Left("ann"),
)


def _session(folder: Path, count: int) -> Path:
    with Journal.create(folder, 1_700_000_000.0) as journal:
        for number in range(count):
            journal.append(ev.Noted(words(number)), float(number))
        return journal.folder


@contextmanager
def _disk_of(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes, as a full disk would not."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_every_kind_of_event_comes_back_as_it_was(tmp_path: Path) -> None:
    """Every kind of event survives the disk, with NaN, infinity and file names that are no UTF-8."""
    with Journal.create(tmp_path, 5.0) as journal:
        written = [journal.append(event, 7.0) for event in EVENTS]
        folder = journal.folder
    records, warnings = read(folder)
    assert repr(list(records)) == repr(written)
    assert [record.n for record in records] == list(range(len(EVENTS)))
    assert warnings == ()


def test_files_are_private_and_the_name_sorts_by_time(tmp_path: Path) -> None:
    """Folder 0700, files 0600, even under a lax umask; ids sort by their time; the header names tool and version."""
    before = os.umask(0)
    try:
        first, second = Journal.create(tmp_path / "s", 1_700_000_000.0), Journal.create(tmp_path / "s", 1_700_000_001.0)
    finally:
        os.umask(before)
    assert stat.S_IMODE(first.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in first.folder.iterdir()} == {0o600}
    assert first.id == first.folder.name
    assert first.id.startswith("20231114-221320-")
    assert first.id < second.id
    header = json.loads((first.folder / JOURNAL).read_bytes().splitlines()[0])
    assert (header["tool"], header["schema"], header["id"]) == ("slime-runbook", 1, first.id)
    assert header["version"] == __version__
    first.close()
    second.close()
    assert {path.name for path in first.folder.iterdir()} == {JOURNAL}


def test_kill_9_at_any_moment_loses_only_the_event_being_written(tmp_path: Path) -> None:
    """Fifty times a writer is killed at a random moment: all acknowledged events are there and the session goes on."""
    chance = random.Random(9)
    folder = _session(tmp_path, 0)
    known = 0
    for _ in range(50):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.runbook.session.writer", str(folder)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            acknowledged = int(writer.stdout.readline())
            for _ in range(chance.randrange(12)):
                acknowledged = int(writer.stdout.readline())
            for _ in range(chance.randrange(4000)):
                pass
            os.kill(writer.pid, signal.SIGKILL)
            rest = writer.stdout.read().split()
            acknowledged = max([acknowledged, *(int(number) for number in rest[:-1])])
        records, _ = read(folder)
        assert len(records) >= acknowledged + 1 > known
        assert [record.n for record in records] == list(range(len(records)))
        assert all(record.event == ev.Noted(words(record.n)) for record in records)
        known = len(records)
    with Journal.open(folder) as journal:
        assert len(journal.records) == known
        assert journal.append(ev.Left(), 0.0).n == known


@pytest.mark.parametrize("cut", [1, 2, 17, 5000])
def test_a_torn_last_line_is_passed_over_and_then_kept_aside(tmp_path: Path, cut: int) -> None:
    """Reading passes over a torn last line; opening cuts it off, keeps its bytes, says so, and writing goes on."""
    folder = _session(tmp_path, 5)
    path = folder / JOURNAL
    data = path.read_bytes()
    start = data.rfind(b"\n", 0, -1) + 1
    path.write_bytes(data[:-cut])
    records, warnings = read(folder)
    assert [record.n for record in records] == [0, 1, 2, 3]
    assert "torn" in warnings[0].en
    assert path.read_bytes() == data[:-cut]
    with Journal.open(folder) as journal:
        assert "torn" in journal.warnings[0].en
        assert journal.append(ev.Noted("on"), 9.0).n == 4
    kept = [entry for entry in folder.iterdir() if ".torn-" in entry.name]
    assert [entry.read_bytes() for entry in kept] == [data[start:-cut]]
    assert stat.S_IMODE(kept[0].stat().st_mode) == 0o600
    assert read(folder)[0][-1].event == ev.Noted("on")
    assert read(folder)[1] == ()


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_cut_at_any_byte_gives_all_whole_records(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Cut at any byte after the header, the journal reads as exactly the records whose lines are whole."""
    folder = tmp_path_factory.mktemp("cut")
    inner = folder / "s"
    inner.mkdir()
    with Journal.create(folder, 1.0) as journal:
        for event in EVENTS:
            journal.append(event, 2.0)
        whole = (journal.folder / JOURNAL).read_bytes()
    header = whole.find(b"\n") + 1
    size = data.draw(st.integers(header, len(whole)))
    (inner / JOURNAL).write_bytes(whole[:size])
    assert len(read(inner)[0]) == whole[header:size].count(b"\n")


def test_a_power_cut_that_leaves_zeros_is_a_torn_line(tmp_path: Path) -> None:
    """Zeros at the end, which file systems leave after a power cut, are cut off like a torn line."""
    folder = _session(tmp_path, 2)
    with (folder / JOURNAL).open("ab") as file:
        file.write(b"\0" * 4096)
    with Journal.open(folder) as journal:
        assert len(journal.records) == 2
        assert journal.append(ev.Left(), 0.0).n == 2


def test_a_damaged_middle_line_names_file_line_and_what_can_be_saved(tmp_path: Path) -> None:
    """Damage before the last line is an error naming the place and what is whole around it; no lock is left."""
    folder = _session(tmp_path, 6)
    path = folder / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"note", b"no\xff", 1).replace(b"{", b"[", 1)
    path.write_bytes(b"".join(lines))
    with pytest.raises(SessionError) as raised:
        read(folder)
    assert raised.value.message.startswith(f"{path}, line 4: ")
    assert raised.value.hint.startswith("2 events before it and 3 after it are whole")
    assert "first 3 lines" in raised.value.hint
    with pytest.raises(SessionError, match="line 4"):
        Journal.open(folder)
    assert not (folder / LOCK).exists()
    path.write_bytes(b"".join(lines[:3]))
    assert len(read(folder)[0]) == 2


def test_a_missing_line_is_damage(tmp_path: Path) -> None:
    """A line that went missing in the middle is noticed by the record numbers."""
    folder = _session(tmp_path, 5)
    path = folder / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(SessionError, match=r"line 3: .*record 1 is expected, this is 2"):
        read(folder)


def test_an_unknown_kind_of_event_is_kept_and_passed_over(tmp_path: Path) -> None:
    """An event of a newer version gives a warning; it stays in the file and later events get the next number."""
    folder = _session(tmp_path, 1)
    newer = b'{"n":1,"t":3.0,"event":{"type":"teleported","to":"mars"}}\n'
    with (folder / JOURNAL).open("ab") as file:
        file.write(newer)
    with Journal.open(folder) as journal:
        assert journal.append(ev.Left(), 4.0).n == 2
    records, warnings = read(folder)
    assert [record.n for record in records] == [0, 2]
    assert "line 3" in warnings[0].en
    assert newer in (folder / JOURNAL).read_bytes()


def test_a_known_kind_with_unknown_fields_is_read(tmp_path: Path) -> None:
    """A field that a newer version added to a known event is ignored."""
    folder = _session(tmp_path, 0)
    with (folder / JOURNAL).open("ab") as file:
        file.write(b'{"n":0,"t":3.0,"event":{"type":"note","words":"w","mood":"calm"}}\n')
    assert read(folder)[0][0].event == ev.Noted("w")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"", "damaged"),
        (b"\x00\x00", "damaged"),
        (b'{"tool":"other","schema":1,"version":"1","id":"x","began":0}', "another tool"),
        (b'{"tool":"slime-runbook","schema":2,"version":"9.9","id":"x","began":0}', "version 9.9"),
    ],
)
def test_what_is_no_journal_of_ours_is_refused(tmp_path: Path, header: bytes, words: str) -> None:
    """A damaged header, another tool's file and a newer format are refused, naming line 1."""
    (tmp_path / JOURNAL).write_bytes(header + b"\n")
    with pytest.raises(SessionError, match=words) as raised:
        read(tmp_path)
    assert "line 1" in raised.value.message


def test_a_full_disk_loses_only_the_event_and_the_session_stays_usable(tmp_path: Path) -> None:
    """Without room the event is refused after a short write, the file is as before, and later writing goes on."""
    folder = _session(tmp_path, 3)
    with Journal.open(folder) as journal:
        before = (folder / JOURNAL).read_bytes()
        with _disk_of(len(before) + 100):
            with pytest.raises(SessionError, match="not written: File too large") as raised:
                journal.append(ev.Noted("y" * 5000), 1.0)
            assert (folder / JOURNAL).read_bytes() == before
            assert "make room" in raised.value.hint
            assert journal.append(ev.Noted("short"), 2.0).n == 3
        assert journal.append(ev.Noted("y" * 5000), 3.0).n == 4
    assert [record.n for record in read(folder)[0]] == [0, 1, 2, 3, 4]


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that takes three bytes at a time still gets whole lines."""
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, content, offset: real(descriptor, content[:3], offset))
    folder = _session(tmp_path, 2)
    assert [record.event for record in read(folder)[0]] == [ev.Noted(words(0)), ev.Noted(words(1))]


def test_an_interrupted_append_leaves_no_trace(tmp_path: Path) -> None:
    """Half a line that an interrupt left behind is gone after the next event."""
    folder = _session(tmp_path, 1)
    with Journal.open(folder) as journal:
        with (folder / JOURNAL).open("ab") as file:
            file.write(b'{"n":1,"t":0,"ev')
        journal.append(ev.Left(), 2.0)
    assert [record.event for record in read(folder)[0]] == [ev.Noted(words(0)), ev.Left()]


def test_a_closed_journal_refuses(tmp_path: Path) -> None:
    """After close nothing can be written, and close may be repeated."""
    journal = Journal.create(tmp_path, 0.0)
    journal.close()
    journal.close()
    with pytest.raises(SessionError, match="closed"):
        journal.append(ev.Left(), 1.0)


def test_a_journal_shortened_by_another_hand_is_noticed(tmp_path: Path) -> None:
    """When the file became shorter than what was written, nothing is written over it."""
    folder = _session(tmp_path, 3)
    with Journal.open(folder) as journal:
        os.truncate(folder / JOURNAL, 10)
        with pytest.raises(SessionError, match="shortened"):
            journal.append(ev.Left(), 1.0)


def test_a_folder_without_a_journal_cannot_be_opened(tmp_path: Path) -> None:
    """A folder that is no session gives an error and no lock file."""
    with pytest.raises(SessionError, match="no journal"):
        Journal.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_a_hostile_line_is_a_record_a_number_or_a_value_error(line: bytes) -> None:
    """No bytes make the parser of a line fail in another way than by ValueError."""
    try:
        found = parse(line)
    except (ValueError, RecursionError):
        return
    assert isinstance(found, int | ev.Record)


odd_names = st.text(st.characters(categories=["Cc", "Lu"]) | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF))
"""Text with the surrogates that stand for the bytes of a file name that is no UTF-8, and for nothing else."""


@given(st.text(), st.floats(), odd_names)
@settings(deadline=None)
def test_any_words_come_back(text: str, number: float, odd: str) -> None:
    """Any text, any float and any file name survive a line, and the line holds exactly one newline."""
    record = ev.Record(0, 1.0, ev.Found(Finding(Verdict.OK, odd, Text(text, odd), (), (Measurement("m", number, ""),))))
    line = encode(record)
    assert line.count(b"\n") == 1
    assert repr(parse(line[:-1])) == repr(record)


def test_deep_nesting_is_damage_not_a_crash(tmp_path: Path) -> None:
    """A line nested deeper than any parser goes is a damaged line."""
    folder = _session(tmp_path, 1)
    with (folder / JOURNAL).open("ab") as file:
        file.write(b"[" * 100_000 + b"\n" + encode(ev.Record(2, 0.0, ev.Left())))
    with pytest.raises(SessionError, match="line 3"):
        read(folder)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_who_is_taken_over_in_the_middle_of_a_write_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The holder is stopped around its write, after it saw that it holds the lock; another takes over and writes.

    What the first then writes reaches a file that nobody reads any more, and it is told; what it wrote before the other
    came is either kept whole, or not there.
    """
    first = Journal.create(tmp_path, 1.0)
    first.append(ev.Noted("acknowledged"), 2.0)
    second: list[Journal] = []
    write = write_at

    def stopped(descriptor: int, content: bytes, offset: int) -> None:
        if not second and moment == "after":
            write(descriptor, content, offset)
        if not second:
            second.append(Journal.open(first.folder, take_over=True))
            second[0].append(ev.Noted("theirs"), 3.0)
            if moment == "after":
                return
        write(descriptor, content, offset)

    monkeypatch.setattr(journal_module, "write_at", stopped)
    with pytest.raises(LostError, match="took this session over") as lost:
        first.append(ev.Noted("torn apart"), 2.0)
    assert lost.value.what == "note: torn apart"
    with pytest.raises(LostError):
        first.append(ev.Noted("again"), 2.0)
    first.close()
    second[0].append(ev.Noted("theirs too"), 3.0)
    second[0].close()
    records, warnings = read(first.folder)
    said = [record.event.words for record in records if isinstance(record.event, ev.Noted)]
    kept = ["acknowledged", "torn apart"] if moment == "after" else ["acknowledged"]
    assert said == [*kept, "theirs", "theirs too"]
    assert [record.n for record in records] == list(range(len(records)))
    assert warnings == ()


def test_what_the_program_does_again_by_itself_is_no_loss(tmp_path: Path) -> None:
    """A finding that cannot be written can be asked for again: no person has to do anything again for it."""
    first = Journal.create(tmp_path, 1.0)
    with Journal.open(first.folder, take_over=True), pytest.raises(LostError) as lost:
        first.append(ev.Found(FINDING), 2.0)
    assert lost.value.what == ""
    assert "finding of a.b" in lost.value.message


def test_two_in_turn_leave_one_whole_journal(tmp_path: Path) -> None:
    """Each takes the session from the other, again and again: one header, one sequence of numbers, everything kept."""
    journal = Journal.create(tmp_path, 1.0)
    for turn in range(6):
        journal.append(ev.Noted(str(turn)), 2.0)
        journal = Journal.open(journal.folder, take_over=True)
    journal.close()
    lines = (journal.folder / JOURNAL).read_bytes().splitlines()
    assert [b'"tool":"slime-runbook"' in line for line in lines] == [True] + [False] * 6
    records, warnings = read(journal.folder)
    assert [(record.n, record.event) for record in records] == [(n, ev.Noted(str(n))) for n in range(6)]
    assert warnings == ()
    assert {path.name for path in journal.folder.iterdir()} == {JOURNAL}
