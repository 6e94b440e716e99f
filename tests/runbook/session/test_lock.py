"""One writer at a time: a dead holder is replaced, a living or unseen one is named and respected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from runbook.errors import HeldError, LostError, SessionError
from runbook.private import write_at
from runbook.session import lock as lock_module
from runbook.session.events import Left, Noted
from runbook.session.journal import Journal, read
from runbook.session.lock import LOCK, Holder, Lock, acquire, alive, holder_of
from runbook.session.people import WHO


def _holder(lock: Lock) -> Holder:
    return msgspec.json.decode(lock.content, type=Holder)


def _plant(folder: Path, holder: Holder) -> None:
    (folder / LOCK).write_bytes(msgspec.json.encode(holder))


def _dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_the_lock_names_its_holder_and_goes_away(tmp_path: Path) -> None:
    """The lock file says host, process and time; after release there is nothing left."""
    lock = acquire(str(tmp_path))
    holder = holder_of(str(tmp_path))
    assert holder is not None
    assert holder.pid == os.getpid()
    assert str(os.getpid()) in holder.describe()
    assert lock.held()
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []
    assert not lock.held()


def test_a_living_holder_is_respected_and_named(tmp_path: Path) -> None:
    """A second writer is refused with the first one's process in the message; reading needs no lock."""
    with Journal.create(tmp_path, 0.0) as journal:
        journal.append(Noted("one"), 1.0)
        with pytest.raises(SessionError, match=f"process {os.getpid()}"):
            Journal.open(journal.folder)
        assert len(read(journal.folder)[0]) == 1
        assert journal.append(Left(), 2.0).n == 1


def test_a_dead_holder_on_this_host_is_replaced(tmp_path: Path) -> None:
    """A lock left by a process of this host that is gone is taken without being asked for."""
    first = acquire(str(tmp_path))
    _plant(tmp_path, msgspec.structs.replace(_holder(first), pid=_dead_pid(), token="x"))
    assert holder_of(str(tmp_path)) is None
    assert not first.held()
    second = acquire(str(tmp_path))
    assert second.held()
    assert [entry.name for entry in tmp_path.iterdir()] == [LOCK]


def test_a_reused_process_id_does_not_count_as_the_holder(tmp_path: Path) -> None:
    """A living process with the holder's id but another start time is not the holder."""
    me = _holder(acquire(str(tmp_path)))
    assert alive(me) is True
    assert alive(msgspec.structs.replace(me, start=str(int(me.start) - 1))) is False


def test_a_zombie_is_dead(tmp_path: Path) -> None:
    """A holder that was killed but not yet waited for does not block the session."""
    me = _holder(acquire(str(tmp_path)))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        other = msgspec.structs.replace(me, pid=process.pid, start="")
        assert alive(other) is True
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert alive(other) is False


def test_an_earlier_boot_is_dead_and_another_container_is_not_known(tmp_path: Path) -> None:
    """A holder of an earlier boot is dead; one of another process-id namespace of this host cannot be seen."""
    me = _holder(acquire(str(tmp_path)))
    assert alive(msgspec.structs.replace(me, boot="earlier")) is False
    assert alive(msgspec.structs.replace(me, namespace="pid:[1]")) is None
    assert alive(msgspec.structs.replace(me, host="elsewhere")) is None


def test_another_host_is_named_and_only_taken_over_on_request(tmp_path: Path) -> None:
    """A holder on another host is refused by name; take_over replaces it, and the one replaced can write no more."""
    with Journal.create(tmp_path, 0.0) as journal:
        first = journal.append(Noted("mine"), 1.0)
        me = msgspec.json.decode((journal.folder / LOCK).read_bytes(), type=Holder)
        _plant(journal.folder, msgspec.structs.replace(me, host="login-9", pid=4711, who="ann"))
        with pytest.raises(SessionError, match=r"ann on login-9 \(process 4711\)"):
            Journal.open(journal.folder)
        with Journal.open(journal.folder, take_over=True) as other:
            assert other.records == (first,)
            other.append(Noted("theirs"), 2.0)
            with pytest.raises(SessionError, match="took this session over"):
                journal.append(Noted("lost"), 3.0)
        with pytest.raises(SessionError, match="took this session over"):
            journal.append(Noted("lost"), 3.0)
    assert [record.event for record in read(journal.folder)[0]] == [Noted("mine"), Noted("theirs")]


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b'{"host": 3}'])
def test_a_lock_that_names_nobody_is_not_guessed_at(tmp_path: Path, content: bytes) -> None:
    """An unreadable lock refuses until it is taken over."""
    (tmp_path / LOCK).write_bytes(content)
    with pytest.raises(SessionError, match="does not say by whom"):
        acquire(str(tmp_path))
    assert acquire(str(tmp_path), take_over=True).held()


def test_a_file_system_without_hard_links_is_locked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where links are refused the lock is made by exclusive creation, and still keeps others out."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    lock = acquire(str(tmp_path))
    assert lock.held()
    with pytest.raises(SessionError, match="open elsewhere"):
        acquire(str(tmp_path))


def test_of_many_processes_exactly_one_gets_a_stale_lock(tmp_path: Path) -> None:
    """Six processes race for a dead holder's lock; exactly one wins."""
    me = acquire(str(tmp_path))
    _plant(tmp_path, msgspec.structs.replace(_holder(me), pid=_dead_pid(), token="x"))
    code = (
        "import sys\nfrom runbook.session.lock import acquire\nfrom runbook.errors import HeldError, SessionError\n"
        "input()\n"
        "try:\n    lock = acquire(sys.argv[1])\nexcept SessionError:\n    print('refused')\n"
        "else:\n    print('won' if lock.held() else 'lost')\n"
        "sys.stdout.flush()\ninput()\n"
    )
    assert _raced(code, str(tmp_path)) == ["refused"] * 5 + ["won"]


def test_of_many_who_take_over_at_once_exactly_one_gets_the_session(tmp_path: Path) -> None:
    """Six people were told of the same living holder and confirm at once: one gets it, the others are refused."""
    mine = acquire(str(tmp_path))
    code = (
        "import sys, msgspec\nfrom runbook.session.lock import Holder, acquire\n"
        "from runbook.errors import HeldError\n"
        "told = msgspec.json.decode(sys.argv[2], type=Holder)\ninput()\n"
        "try:\n    lock = acquire(sys.argv[1], take_over=True, instead_of=told)\n"
        "except HeldError:\n    print('refused')\n"
        "else:\n    print('won' if lock.held() else 'lost')\n"
        "sys.stdout.flush()\ninput()\n"
    )
    for _ in range(3):
        holder = (tmp_path / LOCK).read_text()
        assert _raced(code, str(tmp_path), holder) == ["refused"] * 5 + ["won"]
        assert not mine.held()


def _raced(code: str, *arguments: str) -> list[str]:
    """Run six processes that begin at once, and return what they said, sorted; all of them live until all have said."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = [racer.stdout.readline().strip() for racer in racers if racer.stdout is not None]
    for racer in racers:
        racer.communicate("\n")
    return sorted(said)


def test_only_the_holder_that_one_was_told_of_gives_way(tmp_path: Path) -> None:
    """Who was told of one holder does not take the session from another who came in between."""
    first = acquire(str(tmp_path))
    told = _holder(first)
    second = acquire(str(tmp_path), take_over=True, instead_of=told)
    assert second.taken
    with pytest.raises(HeldError, match="open elsewhere"):
        acquire(str(tmp_path), take_over=True, instead_of=told)
    assert second.held()
    assert not first.held()
    assert acquire(str(tmp_path), take_over=True).held()


def test_a_lock_that_is_being_put_back_is_still_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another who came too late moved the lock aside for a moment: its holder looks again before it gives up."""
    lock = acquire(str(tmp_path))
    aside = tmp_path / "aside"
    os.rename(tmp_path / LOCK, aside)

    def put_back(_: float) -> None:
        if aside.exists():
            os.rename(aside, tmp_path / LOCK)

    monkeypatch.setattr("runbook.session.lock.time.sleep", put_back)
    assert lock.held()
    os.unlink(tmp_path / LOCK)
    assert not lock.held()


def hide(path: Path, how: str) -> None:
    """Put what cannot be read in the place of a lock."""
    os.rename(path, f"{path}.aside")
    if how == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)


def show(path: Path) -> None:
    """Put the lock back."""
    (path.rmdir if path.is_dir() else path.unlink)()
    os.rename(f"{path}.aside", path)


@pytest.mark.parametrize("how", ["folder", "loop"])
def test_a_lock_that_cannot_be_read_is_neither_lost_nor_anybody_elses(tmp_path: Path, how: str) -> None:
    """An error of the file system is told as one: nothing is given up, taken or ascribed to somebody for it."""
    lock = acquire(str(tmp_path))
    hide(tmp_path / LOCK, how)
    with pytest.raises(SessionError, match="cannot be seen") as raised:
        lock.held()
    assert "nobody is known" in raised.value.hint
    assert holder_of(str(tmp_path)) is None
    for wish in (False, True):
        with pytest.raises(SessionError, match="cannot lock the session") as refused:
            acquire(str(tmp_path), take_over=wish)
        assert not isinstance(refused.value, HeldError)
    lock.release()
    show(tmp_path / LOCK)
    assert lock.held()


def test_an_event_is_not_written_while_the_lock_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and in the middle of a write it is an error that names no other person; repeated later, it is written."""
    with Journal.create(tmp_path, 0.0) as journal:
        path = journal.folder / LOCK
        hide(path, "folder")
        with pytest.raises(SessionError, match="cannot be seen") as raised:
            journal.append(Noted("early"), 1.0)
        assert not isinstance(raised.value, LostError)
        show(path)

        def hiding(descriptor: int, content: bytes, at: int) -> None:
            write_at(descriptor, content, at)
            hide(path, "folder")

        with monkeypatch.context() as patched:
            patched.setattr("runbook.session.journal.write_at", hiding)
            with pytest.raises(SessionError, match="cannot be seen") as raised:
                journal.append(Noted("half"), 1.0)
        assert not isinstance(raised.value, LostError)
        show(path)
        assert read(journal.folder)[0] == ()
        assert journal.append(Noted("late"), 2.0).n == 0
    assert [record.event for record in read(journal.folder)[0]] == [Noted("late")]


def test_a_process_that_proc_does_not_show_is_not_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hidepid, /proc holds nothing of another user's process: that it lives cannot be seen, so it is respected."""
    me = _holder(acquire(str(tmp_path)))
    shown = lock_module._bytes_of
    monkeypatch.setattr(lock_module, "_bytes_of", lambda path: None if path.endswith("/stat") else shown(path))
    monkeypatch.setattr(lock_module, "_me", lambda: me)
    assert alive(me) is None
    assert alive(msgspec.structs.replace(me, pid=_dead_pid())) is False


def test_the_holder_is_who_gave_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a shared account the lock names the person; a hostile name is one harmless line."""
    monkeypatch.setenv(WHO, "Ann\x1b[2J \u202eSmith\n")
    holder = _holder(acquire(str(tmp_path)))
    assert holder.who == "Ann Smith"
    assert holder.parts()["who"] == "Ann Smith"
    assert holder.describe().startswith("Ann Smith on ")
