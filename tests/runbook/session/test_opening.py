"""Sessions for one person and for several: who may use them, who writes, and what happens when that changes."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runbook.catalog import Catalog
from runbook.errors import HeldError, LostError, SessionError
from runbook.session import events as ev
from runbook.session.journal import JOURNAL, Journal, read
from runbook.session.lock import LOCK, holder_of
from runbook.session.log import Memory, Reading, told
from runbook.session.opening import (
    follow_session,
    give_way,
    new_session,
    open_or_follow,
    open_session,
    read_session,
    take_over,
)
from runbook.session.store import SESSIONS
from tests.runbook.session.writer import words

ROOT = Path(__file__).parents[3]
CATALOG = Catalog()


def mode(path: Path) -> int:
    """Return the permission bits of a file or folder, with the bit that hands on its group."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("by", ["option", "environment"])
@pytest.mark.parametrize(
    ("given", "folder", "file"), [(0o700, 0o700, 0o600), (0o750, 0o750, 0o640), (0o2775, 0o2770, 0o660)]
)
def test_a_session_is_for_whom_its_given_folder_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str, given: int, folder: int, file: int
) -> None:
    """In a folder that was given, sessions take its group's rights, journal and lock as well; never the world's."""
    monkeypatch.delenv(SESSIONS, raising=False)
    tmp_path.chmod(given)
    if by == "environment":
        monkeypatch.setenv(SESSIONS, str(tmp_path))
    desk = new_session(CATALOG, str(tmp_path) if by == "option" else None)
    desk.begin("/run")
    made = Path(desk.folder)
    assert mode(made) == folder
    assert {name: mode(made / name) for name in (JOURNAL, LOCK)} == {JOURNAL: file, LOCK: file}
    desk.close()


def test_the_usual_folder_is_its_owners_whatever_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that nobody asked to share are private, also where the state folder is open to a group."""
    monkeypatch.delenv(SESSIONS, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    usual = tmp_path / "slime-runbook" / "sessions"
    usual.mkdir(parents=True)
    usual.chmod(0o770)
    desk = new_session(CATALOG, None)
    assert Path(desk.folder).parent == usual
    assert (mode(Path(desk.folder)), mode(Path(desk.folder) / JOURNAL)) == (0o700, 0o600)
    desk.close()


def test_a_held_session_is_read_and_then_taken_over(tmp_path: Path) -> None:
    """The second is a reader; taking over makes it the writer, and the first can write nothing more and is told."""
    first = new_session(CATALOG, str(tmp_path))
    first.begin("/run")
    second = open_or_follow(CATALOG, first.folder)
    assert (first.reads, second.reads) == (False, True)
    with pytest.raises(LostError, match="only read here"):
        second.append(ev.Noted("no"))
    first.append(ev.Noted("from the first"))
    take_over(second, holder_of(first.folder))
    assert not second.reads
    assert [note.words for note in second.state.notes] == ["from the first"]
    second.append(ev.Noted("from the second"))
    assert not first.held()
    with pytest.raises(LostError, match="took this session over") as lost:
        first.append(ev.Noted("too\nlate"))
    assert lost.value.what == "note: too / late"
    give_way(first)
    assert first.reads
    first.close()
    assert second.held()
    second.close()
    records, warnings = read(first.folder)
    assert [record.n for record in records] == list(range(len(records)))
    assert [record.event.words for record in records if isinstance(record.event, ev.Noted)] == [
        "from the first",
        "from the second",
    ]
    assert warnings == ()
    assert holder_of(first.folder) is None


def test_a_reader_changes_nothing_and_a_free_session_is_gone_on_with(tmp_path: Path) -> None:
    """Reading leaves every byte as it is; what nobody holds is opened for writing, without a question."""
    desk = new_session(CATALOG, str(tmp_path))
    desk.begin("/run")
    desk.close()
    before = (Path(desk.folder) / JOURNAL).read_bytes()
    for opened in (read_session(CATALOG, desk.folder), follow_session(CATALOG, desk.folder)):
        assert opened.reads
        assert opened.resumed
        opened.close()
    assert (Path(desk.folder) / JOURNAL).read_bytes() == before
    again = open_or_follow(CATALOG, desk.folder)
    assert not again.reads
    again.close()


def test_who_was_told_of_another_holder_does_not_take_the_session(tmp_path: Path) -> None:
    """The reader who confirms too late stays a reader and is told who has it by now."""
    first = new_session(CATALOG, str(tmp_path))
    first.begin("/run")
    known = holder_of(first.folder)
    second, third = (follow_session(CATALOG, first.folder) for _ in range(2))
    take_over(second, known)
    with pytest.raises(HeldError, match="open elsewhere"):
        take_over(third, known)
    assert (second.reads, third.reads) == (False, True)
    for desk in (third, second, first):
        desk.close()


def test_a_desk_that_cannot_be_made_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When what a session holds cannot be replayed, it is nobody's afterwards, whoever tried to open it."""
    desk = new_session(CATALOG, str(tmp_path))
    desk.begin("/run")
    desk.close()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("runbook.session.desk.replay", broken)
    with pytest.raises(ZeroDivisionError):
        open_session(CATALOG, desk.folder)
    assert not (Path(desk.folder) / LOCK).exists()
    with pytest.raises(ZeroDivisionError):
        new_session(CATALOG, str(tmp_path))
    assert list(tmp_path.glob(f"*/{LOCK}")) == []


def test_a_take_over_that_fails_leaves_a_reader_and_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the journal cannot be replayed, the reader stays one, knows what it knew, and the session is free."""
    desk = new_session(CATALOG, str(tmp_path))
    desk.begin("/run")
    desk.append(ev.Noted("kept"))
    desk.close()
    reader = follow_session(CATALOG, desk.folder)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr("runbook.session.desk.replay", broken)
        with pytest.raises(ZeroDivisionError):
            take_over(reader, None)
    assert reader.reads
    assert [note.words for note in reader.state.notes] == ["kept"]
    assert not (Path(desk.folder) / LOCK).exists()
    take_over(reader, None)
    assert reader.held()
    reader.close()


def test_a_damaged_session_is_an_error_for_readers_too(tmp_path: Path) -> None:
    """A journal that cannot be read is named with its line, held or not."""
    desk = new_session(CATALOG, str(tmp_path))
    desk.begin("/run")
    with open(Path(desk.folder) / JOURNAL, "ab") as file:
        file.write(b"garbage\nmore\n")
    with pytest.raises(SessionError, match="line 3"):
        open_or_follow(CATALOG, desk.folder)
    desk.close()


def test_what_is_not_written_is_told_in_safe_words() -> None:
    """Every kind of event has words for saying that it is lost; a hostile note is one harmless line."""
    assert told(ev.Noted("a\x1b[2J\nb\u202e")) == "note: a / b"
    assert told(ev.WentBack("f", "n")) == "back to f/n"
    assert told(ev.Left()) == "left"
    assert Memory().held()
    assert not Reading().held()


def test_a_holder_that_was_stopped_and_wakes_writes_nothing(tmp_path: Path) -> None:
    """Stopped at a random moment, also in the middle of a write, and taken over: it wakes, fails, and spoils nothing.

    All that it had acknowledged is there, then what the other one wrote, and nothing else.
    """
    chance = random.Random(17)
    with Journal.create(tmp_path, 1.0) as made:
        folder = made.folder
    known = 0
    for turn in range(12):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.runbook.session.writer", str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            for _ in range(chance.randrange(6)):
                writer.stdout.readline()
            writer.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
            with Journal.open(folder, take_over=True) as other:
                before = len(other.records)
                other.append(ev.Noted(f"taken {turn}"), 2.0)
                writer.send_signal(signal.SIGCONT)
                rest, error = writer.communicate(timeout=60)
                other.append(ev.Noted(f"kept {turn}"), 2.0)
        assert writer.returncode != 0
        assert "LostError" in error
        acknowledged = [int(line) for line in rest.split()]
        records, warnings = read(folder)
        assert warnings == ()
        assert [record.n for record in records] == list(range(before + 2))
        assert all(number < before for number in acknowledged)
        said = [record.event.words for record in records[known:] if isinstance(record.event, ev.Noted)]
        assert said[-2:] == [f"taken {turn}", f"kept {turn}"]
        assert said[:-2] == [words(number) for number in range(known, before)]
        known = len(records)


PEOPLE = {"ann": 61001, "bob": 61002, "eve": 61003}
GROUP = 62000

PERSON = """
import os, sys, getpass, pwd, uuid
from runbook.catalog import Catalog
from runbook.errors import LostError, SessionError
from runbook.session import events as ev
from runbook.session.lock import holder_of
from runbook.session.opening import *
from runbook.session.store import list_sessions
sessions, uid, groups = sys.argv[1], int(sys.argv[2]), [int(group) for group in sys.argv[3:]]
os.setgroups(groups)
os.setgid(uid)
os.setuid(uid)
os.umask(0o077)
desk = None
for line in sys.stdin:
    do, _, rest = line.strip().partition(" ")
    try:
        if do == "new":
            desk = new_session(Catalog(), sessions)
            desk.begin("/run")
            said = desk.folder
        elif do == "list":
            said = " ".join(info.id + ("!" if info.damaged else "") for info in list_sessions(sessions))
        elif do == "read":
            desk = open_or_follow(Catalog(), rest)
            said = f"reads={desk.reads} notes={[note.words for note in desk.state.notes]}"
        elif do == "take":
            take_over(desk, holder_of(desk.folder))
            said = f"reads={desk.reads}"
        elif do == "note":
            desk.append(ev.Noted(rest))
            said = "noted"
        elif do == "held":
            said = str(desk.held())
    except LostError as error:
        said = "lost " + error.what
    except SessionError as error:
        said = "refused " + error.message
    print(said, flush=True)
"""


def hindrance(uid: int) -> str:
    """Return why another account cannot run our code where it lies, "" when it can: a folder above may be private."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chown(folder, uid, uid)
        probe = subprocess.run(
            [sys.executable, "-c", PERSON, folder, str(uid)],
            input="new\nlist\n",
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
    last = (probe.stderr.strip().splitlines() or [""])[-1]
    return last if last.startswith(("ImportError", "ModuleNotFoundError", "PermissionError")) else ""


class Person:
    """A process of another account, which does what it is told, line by line."""

    def __init__(self, uid: int, groups: list[int], sessions: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PERSON, str(sessions), str(uid), *map(str, groups)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def does(self, line: str) -> str:
        """Have it do something and return what it says."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def ends(self) -> None:
        """Let it end."""
        self.process.communicate(timeout=60)


@pytest.fixture
def shared() -> Iterator[Path]:
    """Yield a folder for a group, in a place that other accounts reach."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as two people")
    why = hindrance(PEOPLE["ann"])
    if why:
        pytest.skip(f"another account cannot use this checkout and its packages: {why}")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chown(folder, -1, GROUP)
        os.chmod(folder, 0o2770)
        yield Path(folder)


def test_two_accounts_of_one_group_hand_a_session_over(shared: Path) -> None:
    """The first writes, the second reads, takes over and writes on; the first notices; a stranger sees nothing."""
    ann, bob = (Person(PEOPLE[name], [GROUP], shared) for name in ("ann", "bob"))
    eve = Person(PEOPLE["eve"], [], shared)
    folder = Path(ann.does("new"))
    assert ann.does("note one") == "noted"
    assert bob.does("list") == folder.name
    assert bob.does(f"read {folder}") == "reads=True notes=['one']"
    assert bob.does("note no").startswith("lost")
    assert bob.does("take") == "reads=False"
    assert ann.does("held") == "False"
    assert bob.does("note two") == "noted"
    assert ann.does("note late") == "lost note: late"
    assert {(path.stat().st_gid, mode(path)) for path in folder.iterdir()} == {(GROUP, 0o660)}
    assert (folder.stat().st_gid, mode(folder)) == (GROUP, 0o2770)
    assert eve.does("list").startswith("refused")
    assert eve.does(f"read {folder}").startswith("refused")
    for person in (bob, ann, eve):
        person.ends()
    notes = [record.event.words for record in read(folder)[0] if isinstance(record.event, ev.Noted)]
    assert notes == ["one", "two"]


def test_a_group_that_may_only_read_reads_and_takes_nothing_over(shared: Path) -> None:
    """Where the folder lets its group read, a colleague reads a session, held or left, and is refused the rest."""
    os.chown(shared, PEOPLE["ann"], GROUP)
    os.chmod(shared, 0o750)
    ann, bob = (Person(PEOPLE[name], [GROUP], shared) for name in ("ann", "bob"))
    folder = Path(ann.does("new"))
    ann.does("note one")
    assert (mode(folder), mode(folder / JOURNAL), (folder / JOURNAL).stat().st_gid) == (0o750, 0o640, GROUP)
    assert bob.does(f"read {folder}") == "reads=True notes=['one']"
    assert "Permission denied" in bob.does("take")
    ann.ends()
    (folder / LOCK).unlink(missing_ok=True)
    assert bob.does(f"read {folder}") == "reads=True notes=['one']"
    assert bob.does("take").startswith("refused")
    bob.ends()
