"""Tests of the commands that keep a session: run, sessions and export."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from runbook.session.journal import read
from runbook.session.state import SessionState, replay
from runbook.ticket.export import formats
from runbook.walk import By
from tests.runbook import small
from tests.runbook.cli.world import World
from tests.runbook.test_runner import wait_for, wait_until_dead

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
    assert done.returncode == 1, "the probe that was overruled had proved its cause"
    assert "not an answer: perhaps" in done.stdout
    assert steps_of(world) == [("coherent", "no", By.PROBE), ("load", "loaded", By.PERSON)]
    proof = done.stdout.partition("Confirmed by evidence")[2]
    assert "not-loaded" in proof
    assert "job.log:3" in proof


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
    assert done.returncode == 3, "a clear leaf that only a person's word reached is not clear by evidence"
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
    (folder,) = [path for path in world.sessions.iterdir() if path.is_dir()]
    shown = world("sessions", "show", folder.name, "--sessions", world.sessions)
    assert shown.returncode == 1
    assert "load: not loaded" in shown.stdout


@pytest.mark.parametrize("format_", formats())
def test_tickets_of_a_session_and_of_a_run(world: World, format_: str) -> None:
    """Either is written where asked, names the cause, and its path is all that stands on stdout."""
    run = world.log(small.GARBLED)
    world("run", "small", run, "--sessions", world.sessions, stdin="\n\n")
    (folder,) = [path for path in world.sessions.iterdir() if path.is_dir()]
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


OTHER = """
flow: other
order: 1
title: {en: Another flow, zh: 另一流程}
symptom: {en: It is odd, zh: 异常}
start: asked
nodes:
  asked:
    question: {en: Is it odd?, zh: 异常吗？}
    probes: [PROBE]
    branches: BRANCHES
  tried:
    question: {en: Is the text coherent with more steps?, zh: 增加步数后是否通顺？}
    change: {set: {--steps: "9"}}
    probes: [small.text]
    branches: {yes: fine, no: base}
  fine:
    clear: {en: Nothing wrong here, zh: 此处无问题}
  base:
    cause: base
    fix: {en: Use the instruct model, zh: 使用 instruct 模型}
"""


def other_flow(world: World, probe: str, branches: str) -> Path:
    """Return a new folder with a second flow whose first node asks `probe`."""
    folder = world.folder / "flows"
    folder.mkdir()
    (folder / "other.yaml").write_text(OTHER.replace("PROBE", probe).replace("BRANCHES", branches))
    return folder


@pytest.mark.parametrize("stdin", ["", "q\n", "tried\nno\n", "tried\nyes\n"])
def test_a_walk_never_ends_without_naming_what_is_proved(world: World, stdin: str) -> None:
    """However a walk through another flow ends, the proven cause is named with its line, and the exit code is 1.

    At the node that nothing decides it is named with the way there, once.
    """
    flows = other_flow(world, "small.none", "{yes: tried, no: tried, tried: tried}")
    run = world.log(small.GARBLED, "a job.log")
    done = world(
        "run", "other", run, "--flows", flows, "--sessions", world.sessions, "--yes-to-probes", stdin=stdin
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.count("confirmed meanwhile: not-loaded (flow small)") == 1
    assert f"go there with: slime-runbook run small {run}" in done.stdout
    proof = done.stdout.partition("Confirmed by evidence")[2]
    assert "a job.log:3" in proof
    assert "load: not loaded" in proof
    assert "fix: Give the right folder" in proof


def test_this_folder_is_kept_by_its_whole_name(world: World) -> None:
    """Without RUN the walk is over this folder, and the session knows it wherever it is opened again."""
    (world.folder / "job.log").write_bytes(small.FINE)
    done = world("run", "small", "--sessions", world.sessions, "--yes-to-probes")
    assert done.returncode == 0
    assert state_of(world).root == str(world.folder)


def test_the_way_there_names_the_evidence_that_was_given(world: World) -> None:
    """Without RUN the command names the files by slot, quoted for a shell."""
    flows = other_flow(world, "small.none", "{yes: tried, no: tried}")
    log = world.log(small.GARBLED, "a job.log") / "a job.log"
    done = world("run", "other", "--log", log, "--flows", flows, "--sessions", world.sessions)
    assert f"slime-runbook run small --log '{log}'" in done.stdout


@pytest.mark.parametrize(
    ("content", "stdin", "code", "said"),
    [
        (small.GARBLED, "\n\n", 1, False),
        (small.FINE, "\n", 0, False),
        (UNCLEAR, "no\nnot-loaded\n", 3, True),
        (UNCLEAR, "yes\n", 3, False),
        (small.FINE, "no\nnot-loaded\n", 3, True),
    ],
    ids=["cause-by-evidence", "clear-by-evidence", "cause-by-word", "clear-by-word", "cause-against-evidence"],
)
def test_the_exit_code_is_what_evidence_says(world: World, content: bytes, stdin: str, code: int, said: bool) -> None:
    """A leaf that evidence reached exits with 1 or 0; one that a person's word alone reached exits with 3."""
    done = world("run", "small", world.log(content), "--sessions", world.sessions, stdin=stdin)
    assert done.returncode == code
    assert ("evidence does not confirm it" in done.stdout) is said


def test_enter_is_offered_only_where_something_is_recommended(world: World) -> None:
    """The prompt names Enter at a decided node and not at an open one, where an empty line is answered in words."""
    decided = world("run", "small", world.log(small.FINE), "--sessions", world.sessions)
    assert "Enter = recommended" in decided.stderr
    undecided = world("run", "small", world.log(UNCLEAR), "--sessions", world.sessions, stdin="\n")
    assert "Enter" not in undecided.stderr
    assert "Nothing is recommended here" in undecided.stdout
    assert "not an answer" not in undecided.stdout


def test_a_new_run_is_attached_to_an_experiment(world: World) -> None:
    """`r PATH` takes the evidence of a new run, asks the node's probes of it and shows them; a second run replaces it.

    A path that is not there attaches nothing, `r` is offered at experiments only, `p` asks again.
    """
    first = world.log(b"start\ntext: garbled\nload: loaded\n")
    garbled, fine = world.log(b"start\ntext: garbled\n", "new.log"), world.log(b"start\ntext: fine\n")
    words = f"r {first}\n\n\np\nr {world.folder / 'gone'}\nr {garbled}\nr {fine}\np\n\n"
    done = world("run", "small", first, "--sessions", world.sessions, stdin=words)
    assert done.returncode == 1, "the second run is coherent without offload, which confirms the buffer"
    assert f"not an answer: r {first}" in done.stdout
    assert "Attach the new run first" in done.stdout
    assert "no such file or folder" in done.stdout
    assert f"{garbled / 'new.log'}:2" in done.stdout
    assert "cause: buffer" in done.stdout
    state = state_of(world)
    assert state.runs == {"run-2": str(garbled), "run-3": str(fine)}
    assert state.attached == {("small", "released"): "run-3"}
    assert [state.findings_of(run)["small.text"].answer for run in ("", "run-2", "run-3")] == ["no", "no", "yes"]
    assert steps_of(world)[-1] == ("released", "yes", By.PROBE)
    prompts = done.stderr.split("answer (")
    assert "r PATH" not in prompts[1]
    assert "r PATH" in prompts[-1]


@pytest.mark.parametrize("command", ["show", "resume", "export"])
def test_every_front_tells_what_a_session_lost(world: World, command: str) -> None:
    """A torn last line and a flow that is gone are told on stderr, whichever command opens the session."""
    flows = other_flow(world, "small.none", "{yes: tried, no: tried}")
    world("run", "small", world.log(UNCLEAR), "--flows", flows, "--sessions", world.sessions)
    (folder,) = [path for path in world.sessions.iterdir() if path.is_dir()]
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"n":99,"t"')
    plain = ["--plain"] if command == "resume" else []
    done = world("sessions", command, folder.name, "--sessions", world.sessions, *plain)
    assert "torn" in done.stderr
    assert "not there now: other" in done.stderr


def test_a_walk_that_was_killed_goes_on(world: World) -> None:
    """Killed with a probe in flight, at five moments: the session is whole, no process stays, resume ends the walk."""
    flows = other_flow(world, "small.slow", "{yes: tried}")
    run = world.log(small.GARBLED)
    for moment in range(5):
        sessions = world.folder / f"sessions-{moment}"
        walking = subprocess.Popen(
            world.command("run", "small", run, "--flows", flows, "--sessions", sessions),
            env=world.environment,
            cwd=world.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        pid = int(wait_for(run / "pid"))  # the other flow's probe, which never answers, runs behind the walk
        time.sleep(0.05 * moment)
        walking.kill()
        walking.communicate()
        wait_until_dead(pid)
        (run / "pid").unlink()
        (folder,) = [path for path in sessions.iterdir() if path.is_dir()]
        records, _ = read(folder)
        assert replay(records, FLOWS).evidence().paths("log") == (str(run / "job.log"),)
        resumed = world("sessions", "resume", folder.name, "--plain", "--sessions", sessions, stdin="\n\n")
        assert resumed.returncode == 1
        assert "cause: not-loaded" in resumed.stdout
        assert [record.n for record in read(folder)[0]] == list(range(len(read(folder)[0])))
