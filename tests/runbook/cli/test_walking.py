"""Tests of the commands that keep a session: run, sessions and export."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runbook.session.journal import read
from runbook.session.state import SessionState, replay
from runbook.ticket.export import formats
from runbook.walk import By
from tests.runbook import small
from tests.runbook.cli.world import World

FLOWS = small.catalog().flows
UNCLEAR = b"start\n"


def state_of(world: World) -> SessionState:
    """Return the state of the one session that was kept."""
    (folder,) = [path for path in world.sessions.iterdir() if path.is_dir()]
    records, warnings = read(str(folder))
    assert not warnings
    return replay(records, FLOWS)


def steps_of(world: World) -> list[tuple[str, str, By]]:
    """Return the answered nodes of the one session."""
    return [(step.node, step.answer, step.by) for step in state_of(world).walk("small").steps]


def test_enter_takes_what_the_probes_decided(world: World) -> None:
    """Enter at each question follows the evidence to the cause, which is shown with its proof, fix and exit code 1."""
    done = world("run", "small", world.log(small.GARBLED), "--sessions", world.sessions, stdin="\n\n")
    assert done.returncode == 1
    assert "cause: not-loaded" in done.stdout
    assert "fix: Give the right folder" in done.stdout
    assert steps_of(world) == [("coherent", "no", By.PROBE), ("load", "not-loaded", By.PROBE)]


def test_a_walk_without_questions(world: World) -> None:
    """With --yes-to-probes the evidence walks alone, to the clear leaf with exit code 0."""
    done = world("run", "small", world.log(small.FINE), "--sessions", world.sessions, "--yes-to-probes")
    assert done.returncode == 0
    assert "Nothing wrong" in done.stdout
    assert steps_of(world) == [("coherent", "yes", By.PROBE)]


def test_a_person_may_overrule_by_word_or_number(world: World) -> None:
    """An answer against the probes is the person's; words and numbers mean the same; nonsense is asked again."""
    done = world(
        "run", "small", world.log(small.GARBLED), "--sessions", world.sessions, stdin="perhaps\n9\n0\nno\n1\nq\n"
    )
    assert done.returncode == 3
    assert "not an answer: perhaps" in done.stdout
    assert steps_of(world) == [("coherent", "no", By.PROBE), ("load", "loaded", By.PERSON)]


def test_enter_is_no_answer_where_nothing_is_decided(world: World) -> None:
    """Where the evidence decides nothing, Enter moves nothing and the end of stdin leaves the walk where it stands."""
    done = world("run", "small", world.log(UNCLEAR), "--sessions", world.sessions, stdin="\n\n")
    assert done.returncode == 3
    assert steps_of(world) == []


def test_back_and_notes(world: World) -> None:
    """`b` goes back one node and keeps the answer as stale; `n` keeps a note at the node; b at the start says so."""
    done = world(
        "run", "small", world.log(UNCLEAR), "--sessions", world.sessions,
        stdin="b\nno\nn looks odd [/rank0]\nb\nyes\n",
    )  # fmt: skip
    assert done.returncode == 0
    assert "This is the first node." in done.stdout
    state = state_of(world)
    assert [(s.node, s.answer) for s in state.walk("small").stale] == [("coherent", "no")]
    assert steps_of(world) == [("coherent", "yes", By.PERSON)]
    assert [(note.words, note.flow, note.node) for note in state.notes] == [("looks odd [/rank0]", "small", "load")]


def test_an_experiment_is_shown_as_a_change(world: World) -> None:
    """At an experiment the change to make is shown, and the first run's findings do not answer it."""
    done = world("run", "small", world.log(small.FINE), "--sessions", world.sessions, stdin="no\n\nq\n")
    assert done.returncode == 3
    for change in ("+ --no-offload", "+ --steps 1", "+ export DEBUG=1"):
        assert change in done.stdout
    shown = done.stdout.partition("small / released")[2]
    assert "recommended" not in shown
    assert "small.text" not in shown


def test_garbage_on_stdin(world: World) -> None:
    """Escape sequences, NUL, broken UTF-8 and a long line on stdin are no answers and do no harm."""
    words = "\x1b[2J\n\x00\nn a\x1b[31mb\udcff\n" + "x" * 100_000 + "\nq\n"
    import subprocess

    done = subprocess.run(
        world.command("run", "small", world.log(UNCLEAR), "--sessions", world.sessions),
        input=words.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
        env=world.environment,
        timeout=60,
    )
    assert done.returncode == 3
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stdout + done.stderr
    assert len(state_of(world).notes) == 1


def test_sessions_are_listed_shown_and_resumed(world: World) -> None:
    """A walk that was left is in the list, can be shown, and goes on where it stood; the end is the same."""
    run = world.log(small.GARBLED)
    left = world("run", "small", run, "--sessions", world.sessions, stdin="no\nq\n")
    session = re.search(r"session kept: (\S+)", left.stderr)
    assert session is not None
    listed = world("sessions", "list", "--sessions", world.sessions).stdout
    assert session[1] in listed
    assert str(run) in listed
    shown = world("sessions", "show", session[1], "--sessions", world.sessions)
    assert shown.returncode == 1, "the probe of the node at which the walk stands had proved the cause already"
    assert "coherent" in shown.stdout
    resumed = world("sessions", "resume", session[1], "--plain", "--sessions", world.sessions, stdin="\n")
    assert resumed.returncode == 1
    assert "small / coherent" not in resumed.stdout
    assert "cause: not-loaded" in resumed.stdout
    assert steps_of(world) == [("coherent", "no", By.PROBE), ("load", "not-loaded", By.PROBE)]
    assert world("sessions", "resume", "nonsense", "--sessions", world.sessions).returncode == 2


def test_sessions_need_no_run(world: World) -> None:
    """A session opens where the run is gone: everything shown comes from the journal."""
    run = world.log(small.GARBLED)
    world("run", "small", run, "--sessions", world.sessions, stdin="\n\n")
    (run / "job.log").unlink()
    (folder,) = world.sessions.iterdir()
    shown = world("sessions", "show", folder.name, "--sessions", world.sessions)
    assert shown.returncode == 1
    assert "load: not loaded" in shown.stdout


@pytest.mark.parametrize("format_", formats())
def test_tickets_of_a_session_and_of_a_run(world: World, format_: str) -> None:
    """Either is written where asked, names the cause, and its path is all that stands on stdout."""
    run = world.log(small.GARBLED)
    world("run", "small", run, "--sessions", world.sessions, stdin="\n\n")
    (folder,) = world.sessions.iterdir()
    for number, target in enumerate((folder.name, run)):
        output = world.folder / f"ticket{number}"
        done = world("export", target, "--format", format_, "--output", output, "--sessions", world.sessions)
        assert (done.returncode, done.stdout) == (0, f"{output}\n")
        assert b"not-loaded" in _content(output)


def _content(path: Path) -> bytes:
    if path.is_dir():
        return b"".join(file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file())
    raw = path.read_bytes()
    if raw[:2] in (b"PK", b"\x1f\x8b") or raw[257:262] == b"ustar":
        import tarfile
        import zipfile

        if raw[:2] == b"PK":
            with zipfile.ZipFile(path) as archive:
                return b"".join(archive.read(name) for name in archive.namelist())
        with tarfile.open(path) as packed:
            files = [packed.extractfile(member) for member in packed.getmembers()]
            return b"".join(file.read() for file in files if file is not None)
    return raw


def test_a_ticket_can_go_to_stdout(world: World) -> None:
    """With `--output -` stdout is the ticket and nothing else."""
    done = world("export", world.log(small.GARBLED), "--format", "json", "--output", "-", "--sessions", world.sessions)
    assert done.returncode == 0
    assert "not-loaded" in json.dumps(json.loads(done.stdout))


def test_what_cannot_be_exported(world: World) -> None:
    """What is neither a session nor a run, and an unknown format, are wrong usage."""
    for words in (("nonsense",), (".", "--format", "docx")):
        done = world("export", *words, "--sessions", world.sessions)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr
