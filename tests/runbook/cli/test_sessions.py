"""Tests of `sessions` and `resume`: what is kept, listed, noted, read and handed over on the command line."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from runbook.session import events as ev
from runbook.session.journal import JOURNAL, Journal, read
from runbook.session.lock import LOCK, Holder
from tests.runbook import small
from tests.runbook.cli.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return the small world with one session, begun by ann, in which a walk was left at its first node."""
    made = World(tmp_path)
    made.environment.pop("SLIME_RUNBOOK_SESSIONS", None)
    made("run", "small", made.log(small.GARBLED), "--sessions", made.sessions, "--who", "ann", stdin="q\n")
    return made


def session(world: World) -> Path:
    """Return the folder of the one session."""
    (folder,) = [path for path in world.sessions.iterdir() if path.is_dir()]
    return folder


@contextmanager
def held(world: World, who: str = "bob", host: str = "login-9") -> Iterator[Path]:
    """Have the session held by somebody on another host, who cannot be seen from here."""
    lock = session(world) / LOCK
    lock.write_bytes(msgspec.json.encode(Holder(host, 4711, 1_764_500_000.0, "t", who)))
    yield lock
    lock.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "words",
    [
        ("sessions", "--sessions", "DIR"),
        ("sessions", "list", "--sessions", "DIR"),
        ("sessions", "--sessions", "DIR", "list"),
        ("sessions",),
    ],
)
def test_sessions_are_listed_with_or_without_the_word(world: World, words: tuple[str, ...]) -> None:
    """No action lists; the folder may stand before the action or behind it, or in the environment."""
    given = [str(world.sessions) if word == "DIR" else word for word in words]
    environment = {} if "DIR" in words else {"SLIME_RUNBOOK_SESSIONS": str(world.sessions)}
    done = world(*given, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(session(world).name)
    assert len(done.stdout.splitlines()) == 1


def test_the_list_says_how_old_what_was_found_and_who_has_it(world: World) -> None:
    """A line names flow, first confirmed cause, notes, and the holder; what was never left in good order is a dash."""
    world("sessions", "note", session(world).name, "one", "--sessions", world.sessions)
    with held(world):
        (line,) = world("sessions", "--sessions", world.sessions).stdout.splitlines()
    assert "(just now)" in line
    assert "not-loaded" in line
    assert "1 note" in line
    assert "held by bob on login-9 (process 4711)" in line
    with Journal.create(world.sessions, 2_000_000_000.0) as begun:
        begun.append(ev.Opened("1", {}, "/r"), 1.0)
    line, _ = world("sessions", "--sessions", world.sessions).stdout.splitlines()
    assert re.search(r"\)\s+-\s+-\s+/r$", line)


def test_a_damaged_session_is_listed_with_file_and_remedy(world: World) -> None:
    """The list goes on behind a damaged session and says what can be done."""
    (session(world) / JOURNAL).write_bytes(b"garbage\n")
    done = world("sessions", "--sessions", world.sessions)
    assert done.returncode == 0
    assert f"DAMAGED  {session(world)}/{JOURNAL}, line 1" in done.stdout
    assert "restore it from a copy" in done.stdout


def test_brief_prints_the_lines_and_nothing_else(world: World) -> None:
    """At most five lines, of the problem, the walk, what is out and open, the next action and the last change."""
    done = world("sessions", "show", session(world).name, "--brief", "--sessions", world.sessions)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["Problem:", "Walk:", "Ruled", "Next:", "Last"]
    assert lines[4].endswith("by ann")
    assert done.returncode == 1
    whole = world("sessions", "show", session(world).name, "--sessions", world.sessions).stdout
    assert whole.splitlines()[:7] == [
        "Where we are",
        *(f"  {line}" for line in lines),
        "  nobody has it open",
    ]
    zh = world("sessions", "show", session(world).name, "--brief", "--lang", "zh", "--sessions", world.sessions)
    assert zh.stdout.startswith("问题：")
    plain = world("sessions", "show", session(world).name, "--brief", "--ascii", "--sessions", world.sessions)
    assert plain.stdout.isascii()


@pytest.mark.parametrize(
    ("mode", "words"), [(0o700, "alone reads it"), (0o2770, "may take it over"), (0o750, "alone goes on with it")]
)
def test_show_says_who_can_read_it(world: World, mode: int, words: str) -> None:
    """The rights of the folder are said in words."""
    session(world).chmod(mode)
    assert words in world("sessions", "show", session(world).name, "--sessions", world.sessions).stdout


def test_a_note_is_written_with_author_place_and_lines(world: World) -> None:
    """A note of several lines, from an argument or stdin, is kept and shown with its author, time and node."""
    name = session(world).name
    first = world(
        "sessions",
        "note",
        name,
        "one\ntwo \x1b[2J",
        "--who",
        "Bob B",
        "--flow",
        "small",
        "--node",
        "load",
        "--sessions",
        world.sessions,
    )
    assert first.returncode == 0, first.stderr
    second = world(
        "sessions", "note", name, "-", "--sessions", world.sessions, stdin="three\n\nfour\n", SLIME_RUNBOOK_WHO="eve"
    )
    assert second.returncode == 0, second.stderr
    notes = [record.event for record in read(session(world))[0] if isinstance(record.event, ev.Noted)]
    assert notes == [ev.Noted("one\ntwo", "Bob B", "small", "load"), ev.Noted("three\n\nfour", "eve")]
    shown = world("sessions", "show", name, "--sessions", world.sessions).stdout
    assert re.search(r"\n  Bob B, 20\S+ \S+ UTC  small/load\n    one\n    two\n", shown)
    assert re.search(r"\n  eve, 20\S+ \S+ UTC\n    three\n", shown)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((" ",), "needs words"),
        (("x", "--node", "load"), "of which flow"),
        (("x", "--flow", "nope"), "unknown flow"),
        (("x", "--flow", "small", "--node", "nope"), "no node"),
        (("x", "--who", "\x1b[2J"), "no name"),
        (("x" * 10_001,), "10,001"),
    ],
)
def test_a_note_that_cannot_stand_is_refused(world: World, words: tuple[str, ...], said: str) -> None:
    """Nothing is written, and the reason is named."""
    before = (session(world) / JOURNAL).read_bytes()
    done = world("sessions", "note", session(world).name, *words, "--sessions", world.sessions)
    assert done.returncode == 2
    assert said in done.stderr
    assert (session(world) / JOURNAL).read_bytes() == before


def test_a_held_session_is_left_alone_and_its_holder_named(world: World) -> None:
    """A note and a plain resume are refused by the holder's name, with what can be done; reading works as ever."""
    name, before = session(world).name, (session(world) / JOURNAL).read_bytes()
    with held(world):
        for words in (("sessions", "note", name, "x"), ("resume", name, "--plain")):
            done = world(*words, "--sessions", world.sessions, stdin="q\n")
            assert done.returncode == 2
            assert "bob on login-9 (process 4711)" in done.stderr
        assert "its last record is of 20" in done.stderr
        assert f"resume {name} --read" in done.stderr
        assert f"resume {name} --take-over" in done.stderr
        shown = world("sessions", "show", name, "--sessions", world.sessions)
        assert "held by bob on login-9" in shown.stdout
        assert world("resume", name, "--read", "--sessions", world.sessions).stdout == shown.stdout
        assert (session(world) / JOURNAL).read_bytes() == before
        taken = world("resume", name, "--plain", "--take-over", "--sessions", world.sessions, stdin="q\n")
    assert taken.returncode == 1, taken.stderr
    assert taken.stdout.startswith("Where we are\n  Problem: ")
    records, warnings = read(session(world))
    assert [record.n for record in records] == list(range(len(records)))
    assert warnings == ()


@pytest.mark.parametrize("other", [("--take-over",), ("--attach", "x")])
def test_a_reader_changes_nothing(world: World, other: tuple[str, ...]) -> None:
    """--read with what would write is refused before anything is opened."""
    done = world("resume", session(world).name, "--read", *other, "--sessions", world.sessions)
    assert done.returncode == 2
    assert "a reader changes nothing" in done.stderr


def test_answers_and_notes_of_a_walk_have_the_name_that_was_given(world: World) -> None:
    """--who goes before SLIME_RUNBOOK_WHO; both go before the login name; notes stand at their node in plain text."""
    resume = ("resume", session(world).name, "--plain", "--sessions", world.sessions)
    noted = world(*resume, "--who", "carol", stdin="n loose cable\nq\n", SLIME_RUNBOOK_WHO="dave")
    assert noted.returncode in (1, 3), noted.stderr
    answered = world(*resume, stdin="1\nq\n", SLIME_RUNBOOK_WHO="dave")
    assert "note by carol, 20" in answered.stdout
    events = [record.event for record in read(session(world))[0]]
    assert [event.who for event in events if isinstance(event, ev.Opened)] == ["ann", "carol", "dave"]
    assert [event.who for event in events if isinstance(event, ev.Noted)] == ["carol"]
    assert [event.who for event in events if isinstance(event, ev.Answered)] == ["dave"]


def test_a_shared_folder_makes_shared_sessions_and_tickets_but_no_shared_key(world: World) -> None:
    """In a group's folder journal and ticket are the group's, whatever the umask; the key to the pseudonyms is not."""
    shared = world.folder / "shared"
    shared.mkdir()
    shared.chmod(0o2770)
    before = os.umask(0o077)
    try:
        world("run", "small", world.log(small.GARBLED), "--sessions", shared, stdin="q\n")
        (folder,) = [path for path in shared.iterdir() if path.is_dir()]
        done = world("export", folder.name, "--sessions", shared)
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    modes = {path.name: path.stat().st_mode & 0o7777 for path in folder.iterdir()}
    assert modes.pop("pseudonyms.json") == 0o600
    assert modes == {JOURNAL: 0o660, "ticket-1.md": 0o660}
    assert folder.stat().st_mode & 0o7777 == 0o2770


def test_two_take_overs_by_command_end_in_one_whole_journal(world: World) -> None:
    """Two people take the same session over at once: one journal, whole, in which whoever has it last has written."""
    command = world.command(
        "resume", session(world).name, "--plain", "--take-over", "--sessions", str(world.sessions)
    )  # fmt: skip
    both = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=world.environment, cwd=world.folder,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [one.communicate("n mine\nn mine too\nq\n", timeout=60) for one in both]
    records, warnings = read(session(world))
    assert [record.n for record in records] == list(range(len(records)))
    assert warnings == ()
    notes = sum(isinstance(record.event, ev.Noted) for record in records)
    refusals = ("took this session over", "open elsewhere")  # after it had the session, or before
    told = sum(any(words in error for words in refusals) for _, error in said)
    assert notes >= 2 * (len(both) - told)
    assert notes == 4 or told


@pytest.mark.parametrize("command", ["sessions show", "resume", "sessions fixed", "sessions note", "export", "send"])
def test_every_command_finds_a_session_by_one_rule(world: World, command: str) -> None:
    """What may be several is said so; a bundle has the command that opens it."""
    world("run", "small", world.log(small.GARBLED), "--sessions", world.sessions, stdin="q\n")
    rest = {"send": ("--to", "github:a/b"), "sessions fixed": ("x",), "sessions note": ("x",)}.get(command, ())
    done = world(*command.split(), "20", *rest, "--sessions", world.sessions)
    assert done.returncode == 2
    assert "may be any of 2 sessions" in done.stderr
    first = min(path.name for path in world.sessions.iterdir() if path.is_dir())
    bundle = world.folder / "m.zip"
    world("export", first, "--format", "bundle", "--output", bundle, "--sessions", world.sessions)
    done = world(*command.split(), bundle, *rest, "--sessions", world.sessions)
    assert done.returncode == 2
    assert "slime-runbook open" in done.stderr


def test_a_session_without_a_walk_is_shown_and_goes_on_in_a_flow(world: World) -> None:
    """Plain resume shows it without taking it, also from somebody; --flow begins the walk in the same session."""
    world("export", world.log(small.GARBLED), "--output", "-", "--sessions", world.sessions)
    (name,) = {
        path.name for path in world.sessions.iterdir() if path.is_dir() and b'"type":"flow"' not in _journal(path)
    }
    before = _journal(world.sessions / name)
    for further in ((), ("--take-over",)):
        done = world("resume", name, "--plain", *further, "--sessions", world.sessions)
        assert done.returncode == 1
        assert "Where we are" in done.stdout
        assert f"resume {name} --flow small" in done.stderr
        assert _journal(world.sessions / name) == before
    assert world("resume", name, "--flow", "none", "--sessions", world.sessions).returncode == 2
    count = len(list(world.sessions.iterdir()))
    done = world("resume", name, "--plain", "--flow", "small", "--sessions", world.sessions, stdin="q\n")
    assert done.returncode == 1, done.stderr
    assert any(isinstance(one.event, ev.FlowStarted) for one in read(world.sessions / name)[0])
    assert len(list(world.sessions.iterdir())) == count


def _journal(folder: Path) -> bytes:
    return (folder / JOURNAL).read_bytes()
