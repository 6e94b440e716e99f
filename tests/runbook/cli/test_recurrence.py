"""Tests of what sessions know of each other: the ledger, `sessions fixed`, `sessions diff` and `backtest`."""

from __future__ import annotations

import datetime as dt
import json
import zipfile
from pathlib import Path

import pytest

from runbook.ledger.store import LEDGER
from runbook.session.opening import read_session
from tests.helpers import is_safe
from tests.runbook import small
from tests.runbook.cli.world import World


@pytest.fixture
def world(world: World) -> World:
    """Return the small world in a zone in which it is noon: what happens in a test is of one day."""
    west = dt.datetime.now(dt.timezone.utc).hour - 12
    world.environment["TZ"] = f"NOON{west:+d}"
    return world


LOADED = b"start\ntext: garbled\nload: loaded\n"


def kept(world: World) -> list[str]:
    """Return the ids of the sessions, oldest first."""
    return sorted(path.name for path in world.sessions.iterdir() if path.is_dir())


def walk(world: World, content: bytes = small.GARBLED, stdin: str = "\n\n") -> str:
    """Walk the small flow over a new run and return the session's id."""
    before = set(kept(world)) if world.sessions.exists() else set()
    world("run", "small", world.log(content), "--sessions", world.sessions, stdin=stdin)
    (id,) = set(kept(world)) - before
    return id


def test_a_fault_that_comes_again_is_said(world: World) -> None:
    """The second session, and a triage, hear of the first and of what fixed it; a triage enters nothing."""
    first = walk(world)
    assert "seen" not in world("sessions", "show", first, "--sessions", world.sessions).stdout
    fixed = world("sessions", "fixed", first, "gave the right folder", "--sessions", world.sessions)
    assert (fixed.returncode, fixed.stdout) == (0, "")
    run = world.log(small.GARBLED)
    done = world("run", "small", run, "--sessions", world.sessions, stdin="\n\n")
    assert f"seen once before, today; fixed last time by: gave the right folder (session {first})" in done.stdout
    size = (world.sessions / LEDGER).stat().st_size
    triage = world("triage", run, "--sessions", world.sessions)
    assert "seen once before, today; fixed last time by: gave the right folder" in triage.stdout, "the run is this one"
    third = world.log(small.GARBLED)
    assert "seen 2 times today" in world("triage", third, "--sessions", world.sessions).stdout
    assert "今天见过 2 次" in world("triage", third, "--sessions", world.sessions, "--lang", "zh").stdout
    assert (world.sessions / LEDGER).stat().st_size == size
    assert "seen" not in world("triage", run).stdout, "another folder of sessions knows nothing"
    assert "fixed by: gave the right folder" in world("sessions", "show", first, "--sessions", world.sessions).stdout


def test_the_json_of_triage_has_it_only_where_there_is_something(world: World) -> None:
    """Without an earlier session the keys are the same as ever; with one, `seen` names cause, times and fix."""
    run = world.log(small.GARBLED)
    alone = json.loads(world("triage", run, "--json", "--sessions", world.sessions).stdout)
    assert "seen" not in alone
    first = walk(world)
    world("sessions", "fixed", first, "--cause", "not-loaded", "the folder", "--sessions", world.sessions)
    (seen,) = json.loads(world("triage", run, "--json", "--sessions", world.sessions).stdout)["seen"]
    assert (seen["cause"], seen["times"], seen["other_lines"], seen["session"]) == ("not-loaded", 1, 0, first)
    assert (seen["fixed"], seen["fixed_in"]) == ("the folder", first)


def test_an_export_of_a_run_is_a_session_like_any_other(world: World) -> None:
    """It enters its cause, and its ticket says what others know, with a date."""
    first = walk(world)
    done = world("export", world.log(small.GARBLED), "--format", "json", "--output", "-", "--sessions", world.sessions)
    (line,) = json.loads(done.stdout)["seen"]
    assert line.startswith("The checkpoint was not loaded: seen once before, on 20")
    assert first in line
    assert len((world.sessions / LEDGER).read_text().splitlines()) == 2


def test_a_ledger_that_cannot_be_written_is_told_once(world: World) -> None:
    """The walk and its exit code are what they were."""
    world.sessions.mkdir()
    (world.sessions / LEDGER).mkdir()
    done = world("run", "small", world.log(small.GARBLED), "--sessions", world.sessions, stdin="\n\n")
    assert done.returncode == 1
    assert done.stderr.count("cannot be written") == 1
    assert "cause: not-loaded" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--cause", "buffer", "x"), "did not find that cause"),
        (("",), "needs words"),
        ((" \x1b[2J ",), "needs words"),
    ],
)
def test_what_cannot_have_fixed_it(world: World, words: tuple[str, ...], told: str) -> None:
    """A cause that the session did not find, and no words, are refused; nothing is recorded."""
    first = walk(world)
    size = (world.sessions / LEDGER).stat().st_size
    done = world("sessions", "fixed", first, *words, "--sessions", world.sessions)
    assert done.returncode == 2
    assert told in done.stderr
    assert (world.sessions / LEDGER).stat().st_size == size


def test_the_fix_of_what_no_evidence_confirms_is_kept_in_the_session(world: World) -> None:
    """A walk that ended at a cause by answers can say what fixed it; others do not hear of it, and that is said."""
    first = walk(world, LOADED, "\n\nyes\n")
    done = world(
        "sessions", "fixed", first, "--cause", "buffer", "kept it", "--sessions", world.sessions, "--who", "ann"
    )
    assert done.returncode == 0, done.stderr
    assert "no other one will hear" in done.stderr
    (fix,) = read_session(small.catalog(), str(world.sessions / first)).state.fixes
    assert (fix.cause, fix.words, fix.who) == ("buffer", "kept it", "ann")


def test_hostile_words_do_not_reach_a_terminal(world: World) -> None:
    """What a person wrote as the fix, and what anybody wrote into the ledger, is drawn without control characters."""
    first = walk(world)
    world("sessions", "fixed", first, "say \x1b[2J\x1b]0;x\x07 it", "--sessions", world.sessions)
    with (world.sessions / LEDGER).open() as file:
        entry = json.loads(file.readline())
    entry |= {"run": "", "session": "\x1b[2Jevil\u202e", "root": "[/x]\n\nnew line"}
    with (world.sessions / LEDGER).open("a") as file:
        file.write(json.dumps(entry) + "\n")
    done = world("triage", world.log(small.GARBLED), "--sessions", world.sessions)
    assert "seen 2 times today" in done.stdout
    assert all(is_safe(line) for line in done.stdout.split("\n"))


def test_two_sessions_are_compared(world: World) -> None:
    """What became of causes and findings is told in 80 columns; a session does not differ from itself."""
    first, second = walk(world), walk(world, LOADED, "q\n")
    done = world("sessions", "diff", first[:-2], second, "--sessions", world.sessions)
    assert done.returncode == 3
    assert "confirmed → ruled out: not-loaded" in done.stdout
    assert "small.load  problem: not-loaded → ok: loaded" in done.stdout
    assert "Answers" not in done.stdout, "the second was not walked"
    assert max(map(len, done.stdout.splitlines()[2:])) <= 80
    same = world("sessions", "diff", first, first, "--sessions", world.sessions)
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "nothing differs")
    chinese = world("sessions", "diff", first, second, "--sessions", world.sessions, "--lang", "zh", "--ascii")
    assert "已确认 -> 已排除: not-loaded" in chinese.stdout


def test_the_difference_as_json(world: World) -> None:
    """Scripts get every part under its name, with both sides."""
    first, second = walk(world), walk(world, LOADED, "q\n")
    done = world("sessions", "diff", first, second, "--json", "--sessions", world.sessions)
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["before"], answer["after"]) == (1, first, second)
    assert {"what": "not-loaded", "before": "confirmed", "after": "ruled_out"} in answer["causes"]
    assert [one["probe"] for one in answer["findings"]] == ["small.load"]
    assert set(answer) == {
        "schema", "before", "after", "causes", "findings", "evidence", "answers", "runs", "flows", "notes", "version"
    }  # fmt: skip


def test_runs_are_compared_without_a_session(world: World) -> None:
    """Two folders are triaged in memory: nothing is kept."""
    runs = [world.log(small.GARBLED), world.log(small.FINE)]
    done = world("sessions", "diff", *runs, "--sessions", world.sessions)
    assert done.returncode == 3
    assert "small.text  warning: no → ok: yes" in done.stdout
    assert not world.sessions.exists()


def test_two_runs_of_one_session_are_compared(world: World) -> None:
    """The first run is run-1; a run that the session does not have is named with those that it has."""
    fine = world.log(b"start\ntext: fine\n")
    first = walk(world, LOADED, f"\n\nr {fine}\nq\n")
    done = world("sessions", "diff", f"{first}:run-1", f"{first}:run-2", "--sessions", world.sessions)
    assert done.returncode == 3, done.stderr
    assert "small.text  warning: no → ok: yes" in done.stdout
    wrong = world("sessions", "diff", f"{first}:run-7", first, "--sessions", world.sessions)
    assert wrong.returncode == 2
    assert "run-1, run-2" in wrong.stderr


def test_a_bundle_is_compared_with_its_session(world: World) -> None:
    """What was exported says what the session says."""
    first = walk(world)
    bundle = world.folder / "b.zip"
    world("export", first, "--format", "bundle", "--output", bundle, "--sessions", world.sessions)
    done = world("sessions", "diff", first, bundle, "--json", "--sessions", world.sessions)
    answer = json.loads(done.stdout)
    assert (answer["causes"], answer["findings"], answer["answers"]) == ([], [], [])


def other_flows(world: World) -> Path:
    """Return a folder with the small flow in which the loaded checkpoint is no question any more."""
    folder = world.folder / "mine"
    folder.mkdir()
    text = (small.FLOWS / "small.yaml").read_text().replace("not-loaded: not-loaded}", "not-loaded: unsure}")
    text = text.replace("  not-loaded:\n    cause", "  spare:\n    cause").replace(
        "no: load}", "no: load, maybe: spare}"
    )
    (folder / "small.yaml").write_text(text)
    return folder


def test_kept_sessions_are_read_again(world: World) -> None:
    """Nothing moves under the same flows; under others each leaf is told with its node and why, and a sum."""
    first = walk(world)
    same = world("backtest", world.sessions)
    assert (same.returncode, same.stdout) == (0, "1 session, 0 moved, 0 could not be read again\n")
    done = world("backtest", world.sessions, "--flows", other_flows(world))
    assert done.returncode == 3
    assert done.stdout.splitlines()[0] == first
    assert "  not-loaded: confirmed → ruled out" in done.stdout
    assert "    small/load: not-loaded leads to unsure now, not to not-loaded" in done.stdout
    assert "  walk small: not-loaded → unsure" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 session, 1 moved, 0 could not be read again"


def test_a_backtest_as_json_and_without_a_session(world: World) -> None:
    """Scripts get what moved; a session that cannot be read is no success; no folder is bad usage."""
    first = walk(world)
    (world.sessions / "20200101-000000-bad").mkdir()
    (world.sessions / "20200101-000000-bad" / "journal.jsonl").write_text("\x1b[2Jno journal\n")
    done = world("backtest", world.sessions, "--json", "--flows", other_flows(world))
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["sessions"], answer["by_walks_only"]) == (1, 2, [])
    assert {(one["session"], one["id"], one["node"]) for one in answer["moved"]} >= {(first, "not-loaded", "load")}
    assert [one["session"] for one in answer["not_read"]] == ["20200101-000000-bad"]
    assert world("backtest", world.sessions).returncode == 3
    assert world("backtest", world.folder / "gone").returncode == 2
    empty = world("backtest")
    assert (empty.returncode, empty.stdout) == (0, "no session is kept yet\n")
    (world.folder / "none").mkdir()
    wrong = world("backtest", world.folder / "none")
    assert wrong.returncode == 2
    assert "there is no session in it" in wrong.stderr


def test_what_fixed_it_leaves_redacted(world: World) -> None:
    """In a ticket and in a bundle, the words of the fix hold no token; the session has them as they were said."""
    first = walk(world)
    token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
    world("sessions", "fixed", first, f"exported HF_TOKEN={token}", "--sessions", world.sessions)
    assert token in (world.sessions / first / "journal.jsonl").read_text()
    ticket = world("export", first, "--format", "json", "--output", "-", "--sessions", world.sessions).stdout
    assert "exported HF_TOKEN=" in ticket
    bundle = world.folder / "b.zip"
    world("export", first, "--format", "bundle", "--output", bundle, "--sessions", world.sessions)
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name).decode(errors="replace") for name in archive.namelist()}
    assert any("exported HF_TOKEN=" in text for text in members.values())
    for text in (ticket, (world.sessions / LEDGER).read_text(), *members.values()):
        assert token not in text
