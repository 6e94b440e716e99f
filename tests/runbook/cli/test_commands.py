"""Tests of the commands that do not ask: triage, evidence, flows, probes, where, and the command line itself."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from runbook import __version__
from runbook.answer_json import answer_schema
from runbook.cli.main import COMMANDS, SHOW_UI, main
from runbook.exits import ExitCode
from runbook.flow.graph import tree_lines
from runbook.flow.schema import flow_schema, vocabulary_schema
from tests.runbook import small
from tests.runbook.cli.world import World
from tests.runbook.test_runner import wait_for, wait_until_dead

UNCLEAR = b"start\nnothing is said\n"


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the words of stdout, line by line."""
    return [line.strip() for line in done.stdout.splitlines()]


def answer(world: World, *words: object) -> Any:
    """Return the JSON of a triage, which satisfies its schema."""
    found = json.loads(world("triage", *words, "--json").stdout)
    jsonschema.validate(found, answer_schema())
    return found


def test_version_and_help(world: World) -> None:
    """`--version` prints one line; `--help` names every command and exit code; both succeed and need nothing else."""
    assert (world("--version").stdout, world("-V").returncode) == (f"slime-runbook {__version__}\n", 0)
    told = world("--help")
    assert (told.returncode, told.stderr) == (0, "")
    for word in ("triage", "run", "evidence", "flows", "probes", "sessions", "export", "demo", "where"):
        assert f"  {word} " in told.stdout
    for code in ExitCode:
        assert f" {code.value}  " in told.stdout
    helped = world("triage", "--help").stdout
    assert "--dump PATH" in helped
    assert "--head ADDRESS" in helped


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("triag",), "neither a command nor a file"),
        (("triage", "/no/such/run"), "/no/such/run: no such file or folder"),
        (("triage", "--log", "/no/such/log"), "--log /no/such/log"),
        (("triage", "--head", "head"), "write HOST:PORT or http://HOST:PORT"),
        (("triage", "--log", "http://head/x.log"), "this is an address"),
        (("triage", ".", "--nonsense"), "--nonsense"),
        (("triage", ".", "--lang", "fr"), "fr"),
        (("triage", ".", "--flows", "/no/such/flows"), "/no/such/flows"),
        (("run", "nonsense", "."), "unknown flow 'nonsense'"),
        (("run",), "FLOW"),
        (("probes", "run", "nonsense", "."), "unknown probe 'nonsense'"),
        (("flows", "show", "nonsense"), "unknown flow 'nonsense'"),
        (("flows",), "action"),
        (("ui", "."), "terminal"),
        ((".",), "terminal"),
        ((), "terminal"),
        (("evidence", "/no/such/run"), "/no/such/run"),
        ((b"\xff", ), "neither a command nor a file"),
        (("triage", os.fsdecode(b"/no/\xff")), "not UTF-8"),
        (("run", "small", os.fsdecode(b"/no/\xff")), "not UTF-8"),
        (("triage", "a\x1b[2Jb"), "ab: no such file"),
        (("triage", "nul\u2028"), "no such file"),
    ],
    ids=lambda value: ascii(value)[:40],
)  # fmt: skip
def test_wrong_usage_is_told(world: World, words: tuple[str | bytes, ...], told: str) -> None:
    """What cannot be done exits with 2 and says so on stderr, without a traceback; stdout stays empty."""
    done = world(*(os.fsdecode(word) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("content", "code", "standing"),
    [(small.GARBLED, 1, "confirmed"), (small.FINE, 0, "ruled_out"), (UNCLEAR, 3, "possible")],
    ids=["confirmed", "clear", "unclear"],
)  # fmt: skip
def test_triage_answers_with_its_exit_code(world: World, content: bytes, code: int, standing: str) -> None:
    """Triage exits with 1 for a confirmed cause, 0 when all is clear, 3 when it cannot tell; the JSON says the same."""
    run = world.log(content)
    done = world("triage", run, "--json")
    assert (done.returncode, done.stderr) == (code, "")
    found = json.loads(done.stdout)
    jsonschema.validate(found, answer_schema())
    stands = {c["cause"]: c["standing"] for c in found["causes"]} | {
        c["cause"]: "ruled_out" for c in found["ruled_out"]
    }
    assert stands["not-loaded"] == standing
    assert [item["path"] for item in found["evidence"]] == [str(run / "job.log")]
    assert world("triage", run).returncode == code


def test_triage_cites_the_very_line(world: World) -> None:
    """The proof of the confirmed cause is the line in the log, by number and byte."""
    run = world.log(small.GARBLED)
    first = answer(world, run)["causes"][0]
    assert (first["cause"], first["standing"], first["rank"]) == ("not-loaded", "confirmed", 1)
    assert first["citations"] == [
        {"path": str(run / "job.log"), "line": 3, "offset": 20, "excerpt": "load: not loaded", "count": 1}
    ]
    shown = lines(world("triage", run))
    assert f"{run / 'job.log'}:3" in shown
    assert "load: not loaded" in shown
    assert "fix: Give the right folder" in shown


def test_triage_leaves_nothing_behind(world: World) -> None:
    """Neither the run nor the state folder is written to."""
    run = world.log(small.GARBLED)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    world("triage", run)
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    assert not (world.folder / "state").exists()


def test_run_is_this_folder_by_default(world: World) -> None:
    """Without RUN and without evidence by slot, this folder is looked at; with a slot only that."""
    (world.folder / "job.log").write_bytes(small.GARBLED)
    assert [item["slot"] for item in answer(world)["evidence"]] == ["log"]
    other = world.log(small.FINE)
    given = answer(world, "--log", other / "job.log")
    assert [item["path"] for item in given["evidence"]] == [str(other / "job.log")]


def test_slots_can_be_given_repeatedly_and_by_address(world: World) -> None:
    """A slot takes several paths, relative ones too; an address is taken as it stands."""
    run = world.log(small.FINE)
    (run / "more.log").write_bytes(b"start\n")
    relative = os.path.relpath(run / "more.log", world.folder)
    for address in ("http://head:8265", "10.0.0.1:6379"):
        told = answer(world, "--log", run / "job.log", "--log", relative, "--head", address)
        assert [(item["slot"], item["path"]) for item in told["evidence"]] == [
            ("log", str(run / "job.log")),
            ("log", str(run / "more.log")),
            ("head", address),
        ]


def test_the_language_is_chosen_by_option_or_locale(world: World) -> None:
    """`--lang zh` and a Chinese locale give Chinese words; ids and commands stay."""
    run = world.log(small.GARBLED)
    by_option = world("triage", run, "--lang", "zh").stdout
    assert "没有加载 ckpt" in by_option
    assert "not-loaded" in by_option
    assert by_option == world("triage", run, LANG="zh_CN.UTF-8").stdout
    assert "The checkpoint was not loaded" in world("triage", run, "--lang", "en", LANG="zh_CN.UTF-8").stdout


def test_pipes_get_plain_text(world: World) -> None:
    """To a pipe no escape sequence is written, and no line is broken, however long; FORCE_COLOR is respected."""
    deep = world.folder / ("d" * 200)
    deep.mkdir()
    (deep / "job.log").write_bytes(small.GARBLED)
    done = world("triage", deep)
    assert "\x1b" not in done.stdout
    assert f"{deep / 'job.log'}:3" in lines(done)
    assert "\x1b[" in world("triage", deep, FORCE_COLOR="1").stdout


@pytest.mark.parametrize("words", [("triage",), ("evidence",), ("flows", "graph", "small"), ("flows", "show", "small")])
def test_ascii_means_ascii(world: World, words: tuple[str, ...]) -> None:
    """With --ascii, and on a dumb terminal, the signs and rules are ASCII."""
    run = [world.log(small.GARBLED)] if words[0] in ("triage", "evidence") else []
    assert world(*words, *run, "--ascii").stdout.isascii()
    assert world(*words, *run, TERM="dumb").stdout.isascii()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_that_cannot_show_a_character_still_get_the_rest(world: World, encoding: str) -> None:
    """Where stdout cannot encode Chinese, glyphs or what a log says, nothing fails and the rest is readable."""
    run = world.log(small.GARBLED)
    for words in (("triage", run, "--lang", "zh"), ("triage", run), ("triage", run, "--json"), ("flows", "list")):
        done = world(*words, PYTHONIOENCODING=encoding)
        assert "Traceback" not in done.stderr
        assert "small" in done.stdout
    assert "/没有" not in world("triage", "/没有", PYTHONIOENCODING=encoding).stderr


def test_hostile_logs_and_names_do_not_reach_the_terminal(world: World) -> None:
    """Escape sequences in a log line and in a file name are not in the output; the JSON names the true path."""
    name = "job\x1b[2J\n[rank7].log"
    run = world.log(small.FINE, name)
    for words in (("triage", run), ("evidence", run), ("run", "small", run, "--yes-to-probes")):
        done = world(*words)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout + done.stderr
        assert "[rank7].log" in done.stdout or words[0] == "triage"
    assert answer(world, run)["evidence"][0]["path"] == str(run / name)


def test_a_name_that_is_no_text_is_told_on_stderr(world: World) -> None:
    """A log whose name is not UTF-8 is named as not read, and the triage of the rest goes on."""
    run = world.log(small.GARBLED)
    Path(os.fsdecode(os.fsencode(run) + b"/\xff.log")).write_bytes(small.FINE)
    done = world("triage", run, "--json")
    assert done.returncode == 1
    assert "not UTF-8" in done.stderr


def test_the_reader_of_a_pipe_may_leave(world: World) -> None:
    """When what reads stdout ends early, the command ends without a word."""
    command = subprocess.Popen(
        world.command("flows", "schema"),
        env=world.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=world.folder,
    )
    assert command.stdout is not None
    command.stdout.close()
    _, told = command.communicate(timeout=60)
    assert told == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device here that is always full")
@pytest.mark.parametrize("words", [("triage",), ("triage", "--json"), ("evidence",)])
def test_a_full_disk_behind_stdout_is_told_and_confirms_nothing(world: World, words: tuple[str, ...]) -> None:
    """What could not be written is said in words with exit code 2, never with the 1 of a confirmed cause."""
    run = world.log(small.FINE)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            world.command(*words, run), env=world.environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    told = done.stderr.decode()
    assert done.returncode == ExitCode.USAGE
    assert "could not be written: No space left on device" in told
    assert "Traceback" not in told
    assert "Exception ignored" not in told


def test_a_bug_shows_its_traceback_and_confirms_nothing(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """What nobody foresaw exits with 2: Python's own 1 would say that a cause is confirmed."""

    def bug(*_: object) -> int:
        raise TypeError("a bug")

    monkeypatch.setattr("runbook.cli.main._run", bug)
    assert main(["where"]) == ExitCode.USAGE
    assert "TypeError: a bug" in capfd.readouterr().err


@pytest.mark.parametrize("words", [("probes", "run", "small.slow"), ("probes", "run", "small.slow", "--json")])
def test_interrupting_ends_at_once(world: World, words: tuple[str, ...]) -> None:
    """Ctrl-C gives exit code 130, one word on stderr, nothing on stdout, and the probe's process is gone."""
    run = world.log(small.FINE)
    command = subprocess.Popen(
        ["env", "--default-signal=INT", *world.command(*words, "--log", run / "job.log")],  # a shell's `&` ignores it
        env=world.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=world.folder,
    )
    pid = int(wait_for(run / "pid"))
    os.killpg(command.pid, signal.SIGINT)
    out, told = command.communicate(timeout=60)
    assert (command.returncode, out, told) == (130, b"", b"interrupted\n")
    wait_until_dead(pid)


def test_evidence_says_what_was_taken_and_why(world: World) -> None:
    """Every item is shown with its reason, empty slots are named; the JSON has the same; nothing found exits with 3."""
    run = world.log(small.FINE)
    shown = lines(world("evidence", run))
    assert shown[:3] == ["log", str(run / "job.log"), "begins with start"]
    assert shown[-1] == "empty slots: dump, head"
    item = json.loads(world("evidence", run, "--json").stdout)[0]
    assert (item["slot"], item["path"], item["origin"]) == ("log", str(run / "job.log"), "found")
    nothing = world("evidence", world.log(b"no evidence"))
    assert nothing.returncode == 3
    assert "evidence of a known kind" in nothing.stderr


def test_flows_are_listed_and_shown(world: World) -> None:
    """The list names each flow with title and symptom; `show` has every node, branch and leaf."""
    listed = world("flows", "list").stdout
    assert "A small flow" in listed
    assert "The text is odd" in listed
    shown = world("flows", "show", "small").stdout
    for node in small.catalog().flows["small"].nodes:
        assert f"small / {node}" in shown
    assert "yes (coherent) -> all-well" in shown
    assert "asked of: small.load" in shown
    assert "+ --no-offload" in shown


def test_flows_are_drawn(world: World) -> None:
    """The tree is the one of the engine, in either character set; Mermaid begins with its direction."""
    flow = small.catalog().flows["small"]
    assert world("flows", "graph", "small").stdout.splitlines() == tree_lines(flow)
    assert world("flows", "graph", "small", "--ascii").stdout.splitlines() == tree_lines(flow, ascii_only=True)
    assert world("flows", "graph", "small", "--format", "mermaid").stdout.startswith("flowchart TD\n")


def test_schemas_are_printed(world: World) -> None:
    """Editors get the schema of flows and of the vocabulary."""
    assert json.loads(world("flows", "schema").stdout) == json.loads(json.dumps(flow_schema()))
    assert json.loads(world("flows", "schema", "--of", "causes").stdout) == json.loads(json.dumps(vocabulary_schema()))


def test_lint_tells_faults_with_their_place(world: World) -> None:
    """A sound world lints clean; a fault is one line on stdout with file, line and column, and exit code 1."""
    clean = world("flows", "lint")
    assert (clean.returncode, clean.stdout) == (0, "")
    text = (small.FLOWS / "small.yaml").read_text()
    wrong, broken = world.folder / "wrong.yaml", world.folder / "broken.yaml"
    wrong.write_text(text.replace("cause: buffer", "cause: buffers"))
    broken.write_text(text.replace("fix: {en: Keep it", "fixx: {en: Keep it"))
    place = text[: text.index("cause: buffer")].count("\n") + 1
    done = world("flows", "lint", wrong, broken)
    assert done.returncode == 1
    assert sorted(line.partition(": ")[0] for line in done.stdout.splitlines()) == [
        f"{broken}:{place + 1}:5",
        f"{wrong}:{place}:5",
    ]
    assert world("flows", "lint", world.folder / "gone.yaml").returncode == 1
    (world.folder / "causes.yaml").write_text("causes: {buffers: {guide: '1', title: {en: B, zh: 乙}}}\n")
    beside = world("flows", "lint", wrong)
    assert (beside.returncode, beside.stdout) == (0, ""), "the vocabulary beside the file counts"


def test_a_flow_folder_can_be_given(world: World) -> None:
    """`--flows DIR` adds flows, which triage and lint then use."""
    folder = world.folder / "mine"
    folder.mkdir()
    text = (small.FLOWS / "small.yaml").read_text()
    (folder / "x.yaml").write_text(text.replace("flow: small", "flow: mine").replace("A small flow", "My flow"))
    assert "My flow" in world("flows", "list", "--flows", folder).stdout
    assert world("flows", "lint", "--flows", folder).returncode == 0
    told = answer(world, world.log(UNCLEAR), "--flows", folder)
    assert {open_["flow"] for open_ in told["unknown"]} == {"small", "mine"}


def test_a_flow_may_ask_a_probe_that_is_not_there(world: World) -> None:
    """When a probe's module is missing, walks and triage through its flow go on; the node is for the person."""
    folder = world.folder / "mine"
    folder.mkdir()
    text = (
        (small.FLOWS / "small.yaml").read_text().replace("small.text", "gone.text").replace("[small.load]", "[gone.x]")
    )
    (folder / "x.yaml").write_text(text)
    run = world.log(small.GARBLED)
    done = world("triage", run, "--flows", folder)
    assert (done.returncode, done.stderr) == (3, "")
    walked = world("run", "small", run, "--flows", folder, stdin="no\nnot-loaded\n")
    assert walked.returncode == 3
    assert "cause: not-loaded" in walked.stdout
    assert "Traceback" not in walked.stderr


def test_probes_are_listed_and_asked(world: World) -> None:
    """The list has question, needs and answers; asking one shows its finding and exits by its verdict."""
    listed = lines(world("probes", "list"))
    at = listed.index("small.load  Was it loaded?")
    assert listed[at + 1] == "needs log; answers loaded, not-loaded"
    run = world.log(small.GARBLED)
    asked = world("probes", "run", "small.load", run, "--json")
    assert asked.returncode == 1
    assert json.loads(asked.stdout)["citations"][0]["line"] == 3
    assert f"{run / 'job.log'}:3" in lines(world("probes", "run", "small.load", run))
    assert world("probes", "run", "small.load", world.log(small.FINE)).returncode == 0
    assert world("probes", "run", "small.load", world.log(UNCLEAR)).returncode == 3
    without = world("probes", "run", "small.load", "--dump", run / "job.log")
    assert without.returncode == 3
    assert "Give --log PATH." in without.stdout


def test_where_names_the_places(world: World) -> None:
    """Folders and how many flows and probes they hold; --all names each; --sessions moves the sessions."""
    short = world("where").stdout
    assert str(world.folder / "state" / "slime-runbook") in short
    assert f"{os.sep}tests/data/flows\n" in short
    assert "small.yaml" not in short
    assert "tests.runbook.small" not in short
    assert len(short.splitlines()) < 12
    shown = world("where", "--all").stdout
    assert f"{os.sep}tests/data/flows/small.yaml" in shown
    assert "tests.runbook.small" in shown
    assert str(world.sessions) in world("where", "--sessions", world.sessions).stdout


def test_heavy_probes_wait_to_be_asked(world: World) -> None:
    """Triage leaves out what reads bulk data and says so; `--heavy` asks it; a walk asks it at its node on `p` only."""
    folder = world.folder / "mine"
    folder.mkdir()
    text = (small.FLOWS / "small.yaml").read_text().replace("probes: [small.load]", "probes: [small.whole]")
    (folder / "x.yaml").write_text(text)
    run = world.log(small.GARBLED)
    light = world("triage", run, "--flows", folder)
    assert light.returncode == 3
    assert "not asked, they read bulk data (triage --heavy): small.whole" in light.stdout
    heavy = json.loads(world("triage", run, "--flows", folder, "--heavy", "--json").stdout)
    assert [cause["cause"] for cause in heavy["causes"] if cause["standing"] == "confirmed"] == ["not-loaded"]
    walk = ("run", "small", run, "--flows", folder)
    left = world(*walk, stdin="no\n")
    assert left.returncode == 3
    assert "not asked, it reads bulk data: small.whole" in left.stdout
    asked = world(*walk, stdin="no\np\n\n")
    assert asked.returncode == 1
    assert "cause: not-loaded" in asked.stdout


def declared(module: str) -> dict[str, set[str]]:
    """Return the shared options of each form of a command: its words to the names that they are read by."""
    parser = argparse.ArgumentParser()
    importlib.import_module(f"runbook.cli.{module}").add_arguments(parser)
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    forms = nested[0].choices if nested else {"": parser}
    shared = {"flows", "lang", "ascii", "sessions", "heavy"}
    return {word: {action.dest for action in one._actions} & shared for word, one in forms.items()}


class Seen(argparse.Namespace):
    """Parsed options that note which of them are read."""

    def __getattribute__(self, name: str) -> object:
        """Note the name."""
        own = object.__getattribute__(self, "__dict__")
        own.setdefault("_seen", set()).add(name)
        return object.__getattribute__(self, name)


USES = {
    ("triage", ""): ["RUN"],
    ("evidence", ""): ["RUN"],
    ("browse", ""): ["RUN"],
    ("resume", ""): ["SESSION", "--plain"],
    ("run", ""): ["small", "RUN", "--yes-to-probes"],
    ("export", ""): ["RUN", "--format", "json"],
    ("probes", "list"): [],
    ("probes", "run"): ["small.load", "RUN"],
    ("flows", "list"): [],
    ("flows", "lint"): [],
    ("flows", "show"): ["small"],
    ("flows", "graph"): ["small"],
    ("flows", "schema"): [],
    ("sessions", "list"): [],
    ("sessions", "show"): ["SESSION"],
    ("sessions", "fixed"): ["SESSION", "gave the right folder"],
    ("sessions", "diff"): ["SESSION", "SESSION"],
    ("sessions", "note"): ["SESSION", "words"],
    ("sessions", "resume"): ["SESSION", "--plain"],
    ("sessions", "export"): ["SESSION", "--format", "json"],
    ("send", ""): ["RUN", "--to", "github:owner/repo"],
    ("outbox", "list"): [],
    ("outbox", "send"): [],
    ("outbox", "drop"): [],
    ("backtest", ""): ["."],
    ("where", ""): [],
}
"""Each form of each command that needs no terminal, with what makes it do its work."""


def test_every_form_of_every_command_is_held_to_its_options() -> None:
    """The table above misses no command but those that open the UI."""
    forms = {(name, word) for name in COMMANDS if name not in SHOW_UI for word in declared(name)}
    assert forms == set(USES)


OPTIONS_READ = """
import argparse, importlib, sys
from tests.runbook.cli.test_commands import Seen
name, *words = sys.argv[1:]
if __name__ == "__main__":
    module = importlib.import_module(f"runbook.cli.{name}")
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    parsed = parser.parse_args(words, Seen())
    parsed.__dict__["_seen"] = set()
    module.run(parsed)
    print(*sorted(parsed.__dict__["_seen"]), file=sys.stderr)
"""


@pytest.mark.parametrize("form", USES, ids=lambda form: " ".join(form).strip())
def test_a_command_reads_every_option_that_it_declares(world: World, form: tuple[str, str]) -> None:
    """An option that does nothing is not offered: each shared one that a command declares is read when it works."""
    name, word = form
    run = world.log(small.GARBLED)
    world("run", "small", run, "--sessions", world.sessions, stdin="no\n")
    (session,) = [path.name for path in world.sessions.iterdir() if path.is_dir()]
    given = [{"RUN": str(run), "SESSION": session}.get(word, word) for word in USES[form]]
    options = declared(name)[word]
    if "sessions" in options:
        given += ["--sessions", str(world.sessions)]
    command = [sys.executable, "-S", "-c", OPTIONS_READ, name, *([word] if word else []), *given]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=world.folder, env=world.environment, input=""
    )
    assert done.returncode == 0, done.stderr
    assert options <= set(done.stderr.splitlines()[-1].split())
