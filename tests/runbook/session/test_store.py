"""Sessions are found by part of their id and listed from the ends of their journals."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runbook.errors import UsageError
from runbook.session import events as ev
from runbook.session import store
from runbook.session.journal import JOURNAL, Journal
from runbook.session.store import SESSIONS, find, given_dir, list_sessions, sessions_dir


def test_the_folder_of_sessions_follows_xdg_and_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions live under XDG_STATE_HOME unless a folder is given; "~" is the home folder."""
    monkeypatch.delenv(SESSIONS, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sessions_dir() == tmp_path / "state" / "slime-runbook" / "sessions"
    assert sessions_dir("~/shared") == tmp_path / "shared"
    assert sessions_dir("relative") == Path.cwd() / "relative"


def test_a_session_is_found_by_id_prefix_or_last_part(tmp_path: Path) -> None:
    """The whole id, an unambiguous beginning, or the random part names a session; anything else is refused."""
    ids = []
    for now in (1_700_000_000.0, 1_700_000_000.0, 1_800_000_000.0):
        with Journal.create(tmp_path, now) as journal:
            ids.append(journal.id)
    assert find(tmp_path, ids[0]) == tmp_path / ids[0]
    assert find(tmp_path, "2027") == tmp_path / ids[2]
    assert find(tmp_path, ids[1].split("-")[2]) == tmp_path / ids[1]
    with pytest.raises(UsageError, match="2 sessions"):
        find(tmp_path, "2023")
    for wrong in ("", "..", "../x", "1999", "/"):
        with pytest.raises(UsageError):
            find(tmp_path, wrong)


def test_the_list_shows_root_current_flow_holder_and_damage(tmp_path: Path) -> None:
    """The newest comes first; each line tells what the journal's ends tell; a damaged one is listed as such."""
    with Journal.create(tmp_path, 1_700_000_000.0) as old:
        old.append(ev.Opened("0", {}, "/runs/a"), 1.0)
        old.append(ev.FlowStarted("ima"), 2.0)
        old.append(ev.FlowStarted("precision"), 3.0)
        for _ in range(40):
            old.append(ev.Noted("x" * 10_000 + '"type":"flow"'), 4.0)
    with Journal.create(tmp_path, 1_700_000_100.0) as damaged:
        (damaged.folder / JOURNAL).write_bytes(b"garbage\n")
    (tmp_path / "no-session").mkdir()
    with Journal.create(tmp_path, 1_700_000_200.0) as new:
        first, second, third = list_sessions(tmp_path)
        assert (first.id, first.began, first.root, first.current) == (new.id, 1_700_000_200.0, "", "")
        assert "process" in first.locked_by
    assert "line 1" in second.damaged
    assert (third.id, third.root, third.current) == (old.id, "/runs/a", "precision")
    assert (third.locked_by, third.damaged) == ("", "")
    assert abs(third.changed - time.time()) < 60
    assert list_sessions(tmp_path / "nowhere") == []


def test_the_environment_names_the_folder_and_the_command_line_goes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLIME_RUNBOOK_SESSIONS stands in for --sessions, which goes before it."""
    monkeypatch.setenv(SESSIONS, str(tmp_path / "shared"))
    assert sessions_dir() == tmp_path / "shared"
    assert sessions_dir("/mine") == Path("/mine")
    assert (given_dir(), given_dir("/mine")) == (str(tmp_path / "shared"), "/mine")
    monkeypatch.delenv(SESSIONS)
    assert given_dir() == ""


def test_the_list_tells_how_a_session_was_left(tmp_path: Path) -> None:
    """The cause and the notes are those at the last leave, plus the notes since; without a leave they are not known."""
    with Journal.create(tmp_path, 1.0) as left:
        left.append(ev.FlowStarted("ima"), 1.0)
        left.append(ev.Noted("one"), 1.0)
        left.append(ev.Left("ann", "oom", 1), 1.0)
        left.append(ev.Noted("two"), 1.0)
    with Journal.create(tmp_path, 2.0) as clean:
        clean.append(ev.Left("ann", "", 0), 1.0)
    with Journal.create(tmp_path, 3.0) as killed:
        killed.append(ev.Noted("one"), 1.0)
    with Journal.create(tmp_path, 4.0) as older:
        older.append(ev.Left("ann"), 1.0)
    known = {info.id: (info.cause, info.notes) for info in list_sessions(tmp_path)}
    assert known == {left.id: ("oom", 2), clean.id: ("", 0), killed.id: (None, 1), older.id: (None, 0)}


def test_a_list_reads_the_ends_of_journals_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large journal without a turn to any flow no more than the last megabytes are read."""
    with Journal.create(tmp_path, 1.0) as journal:
        journal.append(ev.Noted("x" * 300_000), 1.0)
        journal.append(ev.Left("ann", "oom", 1), 1.0)
    monkeypatch.setattr(store, "_FURTHEST", 1000)
    monkeypatch.setattr(store, "_BLOCK", 500)
    (info,) = list_sessions(tmp_path)
    assert (info.cause, info.notes, info.current) == ("oom", 1, "")


def test_a_damaged_session_names_its_remedy(tmp_path: Path) -> None:
    """What is wrong comes with what can be done about it."""
    with Journal.create(tmp_path, 1.0) as journal:
        (journal.folder / JOURNAL).write_bytes(b"garbage\n")
    (info,) = list_sessions(tmp_path)
    assert str(journal.folder / JOURNAL) in info.damaged
    assert info.remedy == "restore it from a copy"


def test_the_list_tells_the_cause_and_the_fix_of_a_session_that_was_not_left(tmp_path: Path) -> None:
    """What was judged last counts while nobody left; what fixed it is told also after a later leave."""
    stood = ev.Stood("confirmed", "f", "n")
    with Journal.create(tmp_path, 1.0) as journal:
        journal.append(ev.Judged({"a": ev.Stood("possible", "f", "n"), "b": stood}), 1.0)
        journal.append(ev.Judged({"c": stood, "b": stood}), 2.0)
    assert [(one.cause, one.fixed) for one in list_sessions(tmp_path)] == [("c", False)]
    with Journal.open(journal.folder) as again:
        again.append(ev.Fixed("b", "another"), 3.0)
    assert not list_sessions(tmp_path)[0].fixed
    with Journal.open(journal.folder) as again:
        again.append(ev.Fixed("", "all"), 4.0)
        assert list_sessions(tmp_path)[0].fixed
        again.append(ev.Left("ann", "c", 0, fixed=True), 5.0)
    assert [(one.cause, one.fixed) for one in list_sessions(tmp_path)] == [("c", True)]


def test_what_is_not_known_is_told_apart_from_what_may_be_several(tmp_path: Path) -> None:
    """Only an id that no session has is unknown."""
    for _ in range(2):
        Journal.create(tmp_path, 1_700_000_000.0).close()
    with pytest.raises(store.UnknownSessionError):
        find(tmp_path, "1999")
    with pytest.raises(UsageError) as caught:
        find(tmp_path, "2023")
    assert not isinstance(caught.value, store.UnknownSessionError)
