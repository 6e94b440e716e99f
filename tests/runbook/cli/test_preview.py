"""`export --preview` prints what would leave and writes nothing; the numbers drop lines, and they stay."""

from __future__ import annotations

import argparse
import json
import os
import stat
import zipfile
from pathlib import Path

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.cli.preview import as_json, as_text, marked, numbers
from runbook.ticket.preview import Line, Mark, preview
from tests.helpers import HOSTILE, is_safe
from tests.runbook import small
from tests.runbook.cli.world import World
from tests.runbook.ticket.sample import sample, walked_state

SECRET = "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return the small world with one session in which a proof and a note of a person stand."""
    made = World(tmp_path)
    run = made.log(small.GARBLED)
    made("run", "small", run, "--sessions", made.sessions, stdin=f"n call mueller@corp.example.net, key {SECRET}\nno\n")
    return made


def _session(world: World) -> Path:
    (folder,) = [path for path in world.sessions.iterdir() if (path / "journal.jsonl").exists()]
    return folder


def _lines(world: World, *words: object) -> list[dict[str, object]]:
    done = world("export", _session(world).name, "--sessions", world.sessions, "--preview", "--json", *words)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, object]] = json.loads(done.stdout)["lines"]
    return found


def _number(world: World, words: str) -> object:
    return next(line["number"] for line in _lines(world) if words in str(line["text"]))


def test_the_preview_writes_nothing(world: World) -> None:
    """Every line is printed with its number below its heading; the session's folder stays as it was."""
    before = {path: path.read_bytes() for path in _session(world).rglob("*") if path.is_file()}
    done = world("export", _session(world).name, "--sessions", world.sessions, "--preview")
    assert done.returncode == 0
    assert "nothing was written" in done.stderr
    assert {path: path.read_bytes() for path in _session(world).rglob("*") if path.is_file()} == before
    printed = done.stdout.splitlines()
    assert printed[0] == "Problem"
    assert printed[1].split()[0] == "1"
    assert SECRET not in done.stdout
    assert "mueller" not in done.stdout
    (note,) = (line for line in printed if line.strip() == "call ‹mail-1›, key ‹secret-1›")
    assert "a person" in printed[printed.index(note) - 1]


def test_the_preview_as_data_says_where_what_is_hidden_stands(world: World) -> None:
    """Each line has its places, whose words it is, and the spans of its pseudonyms with their kinds."""
    note = next(line for line in _lines(world) if str(line["text"]).startswith("call "))
    assert (note["origin"], note["section"], note["dropped"]) == ("person", "problem", False)
    text = str(note["text"])
    marks = note["marks"]
    assert isinstance(marks, list)
    assert [(text[m["start"] : m["end"]], m["kind"]) for m in marks] == [("mail-1", "mail"), ("secret-1", "secret")]


def test_a_dropped_line_is_in_no_ticket_any_more_until_it_is_taken_back(world: World) -> None:
    """--drop is remembered with the session, marked in the preview, and --keep takes it back; numbers stay."""
    export = ("export", _session(world).name, "--sessions", world.sessions)
    number = _number(world, "load: not loaded")
    done = world(*export, "--drop", number, "--output", world.folder / "one.md")
    assert done.returncode == 0
    kept = _session(world) / "choices.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text())["drop"] == ["load: not loaded"]
    later = world(*export, "--output", "-")
    for text in ((world.folder / "one.md").read_text(), later.stdout):
        assert "load: not loaded" not in text
        assert "left out by the sender" in text
    assert [line["number"] for line in _lines(world) if line["dropped"]] == [number]
    assert "LEFT OUT" in world(*export, "--preview").stdout
    back = world(*export, "--keep", number, "--output", "-")
    assert "load: not loaded" in back.stdout
    assert json.loads(kept.read_text())["drop"] == []


def test_a_preview_of_a_drop_remembers_nothing(world: World) -> None:
    """--drop with --preview shows what would be left out, and the next ticket still has it."""
    number = _number(world, "load: not loaded")
    assert [line["number"] for line in _lines(world, "--drop", number) if line["dropped"]] == [number]
    assert not any(line["dropped"] for line in _lines(world))
    assert not (_session(world) / "choices.json").exists()


def test_a_hidden_word_is_hidden_in_later_tickets_too(world: World) -> None:
    """--hide is remembered like a drop; numbers given beside it are those of the preview before it."""
    export = ("export", _session(world).name, "--sessions", world.sessions, "--output", "-")
    number = _number(world, "load: not loaded")
    for words in (("--hide", "garbled", "--drop", number), ()):
        done = world(*export, *words)
        assert "garbled" not in done.stdout
        assert "load: not loaded" not in done.stdout
        assert "hidden-1" in done.stdout


def test_a_word_that_tickets_are_written_with_can_be_shown_again(world: World) -> None:
    """A hidden word that stands in a heading refuses every ticket, and the way back is said and works."""
    export = ("export", _session(world).name, "--sessions", world.sessions, "--output", "-")
    (_session(world) / "choices.json").write_text('{"hide": ["Timeline"]}')
    refused = world(*export)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--unhide" in refused.stderr
    assert "a word that you chose to hide" in refused.stderr
    done = world(*export, "--unhide", "timeline")
    assert done.returncode == 0
    assert "Timeline" in done.stdout
    assert world(*export).returncode == 0


def test_a_choice_that_refuses_the_ticket_is_not_remembered(world: World) -> None:
    """After a refused --hide the next export is written as before."""
    export = ("export", _session(world).name, "--sessions", world.sessions, "--output", "-")
    assert world(*export, "--hide", "Timeline").returncode == 2
    assert not (_session(world) / "choices.json").exists()
    assert world(*export).returncode == 0


def test_a_preview_can_take_a_hidden_word_back(world: World) -> None:
    """--unhide beside --preview is kept, so that the next ticket shows the word."""
    kept = _session(world) / "choices.json"
    kept.write_text('{"hide": ["garbled", "other"]}')
    _lines(world, "--unhide", "Garbled")
    assert json.loads(kept.read_text())["hide"] == ["other"]


def test_the_preview_of_a_bundle_has_every_line_of_it(world: World) -> None:
    """Lines of the ticket keep their numbers; after them come journal and excerpts, and each can be dropped."""
    ticket, bundle = _lines(world), _lines(world, "--format", "bundle")
    assert [line["text"] for line in bundle[: len(ticket)]] == [line["text"] for line in ticket]
    more = bundle[len(ticket) :]
    assert {line["section"] for line in more} == {"journal", "excerpts"}
    shown = {str(line["text"]) for line in bundle}
    export = ("export", _session(world).name, "--sessions", world.sessions, "--format", "bundle")
    whole = world.folder / "whole.zip"
    assert world(*export, "--output", whole).returncode == 0
    kept = _excerpt_lines(whole)
    assert len(kept) > 1
    assert {line for line in kept if line.strip()} <= shown
    gone = next(line for line in more if line["section"] == "excerpts")
    less = world.folder / "less.zip"
    assert world(*export, "--output", less, "--drop", gone["number"]).returncode == 0
    assert gone["text"] in kept
    assert gone["text"] not in _excerpt_lines(less)


def _excerpt_lines(bundle: Path) -> list[str]:
    with zipfile.ZipFile(bundle) as archive:
        return [
            json.loads(line)[4]
            for name in archive.namelist()
            if name.startswith("excerpts/")
            for line in archive.read(name).splitlines()[1:]
        ]


def test_the_run_can_be_dropped_from_a_bundle(world: World) -> None:
    """The path of the run is a line of the preview like any other: the bundle is written and does not hold it."""
    (root,) = [line for line in _lines(world) if line["about"] == "run"]
    assert str(root["text"]).endswith("run0")
    made = world.folder / "b.zip"
    done = world("export", _session(world).name, "--sessions", world.sessions, "--format", "bundle",
                 "--output", made, "--drop", root["number"])  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    with zipfile.ZipFile(made) as archive:
        assert not [name for name in archive.namelist() if str(root["text"]).encode() in archive.read(name)]
    opened = world("open", made, "--plain")
    assert opened.returncode != 2
    assert "job.log" in opened.stdout


def test_a_note_that_is_dropped_in_the_timeline_is_gone_from_the_problem(world: World) -> None:
    """The line "Note: X" and the note X are one thing to a person: either number takes both away."""
    lines = _lines(world)
    (whole,) = [line for line in lines if str(line["text"]).startswith("Note: call ")]
    note = str(whole["text"]).removeprefix("Note: ")
    assert note in [line["text"] for line in lines]
    done = world("export", _session(world).name, "--sessions", world.sessions, "--output", "-", "--format", "json",
                 "--drop", whole["number"])  # fmt: skip
    assert done.returncode == 0
    assert note not in done.stdout


def test_the_numbers_of_a_run_are_those_of_the_session_that_its_preview_names(world: World) -> None:
    """A run is a new session each time: --drop is refused, and the preview, which is in no ledger, says what to do."""
    run = world.log(small.GARBLED)
    for option in ("--drop", "--keep"):
        refused = world("export", run, "--sessions", world.sessions, option, "3")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "--preview" in refused.stderr
    before = {path.name for path in world.sessions.iterdir()}
    done = world("export", run, "--sessions", world.sessions, "--preview")
    (new,) = {path.name for path in world.sessions.iterdir()} - before
    assert done.returncode == 0
    assert f"export {new} --format markdown --drop" in done.stderr


@pytest.mark.parametrize("command", [("export",), ("send", "--to", "github:kitchen/bread")])
def test_what_is_no_run_leaves_no_session(world: World, command: tuple[str, ...]) -> None:
    """A bundle is refused with what opens it, a folder without evidence in words; neither becomes a session."""
    made = world.folder / "m.zip"
    world("export", _session(world).name, "--sessions", world.sessions, "--format", "bundle", "--output", made)
    empty = world.folder / "empty"
    empty.mkdir()
    before = sorted(path.name for path in world.sessions.iterdir())
    for path, said in ((made, "slime-runbook open"), (empty, "no evidence")):
        done = world(*command, path, "--sessions", world.sessions)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert sorted(path.name for path in world.sessions.iterdir()) == before


@pytest.mark.parametrize(
    "words", [("--drop", "99999"), ("--keep", "1-99999"), ("--drop", "0"), ("--drop", "a"), ("--json",)]
)
def test_what_is_no_line_is_wrong_usage(world: World, words: tuple[str, ...]) -> None:
    """An unknown number is an error that says how many lines there are; nothing is written or remembered."""
    done = world("export", _session(world).name, "--sessions", world.sessions, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert not list(_session(world).glob("ticket*"))
    assert not (_session(world) / "choices.json").exists()


def test_a_session_that_can_only_be_read_is_exported_with_choices_for_once(world: World) -> None:
    """Where choices cannot be kept that is said, and the ticket leaves without what was dropped."""
    number = _number(world, "load: not loaded")
    (_session(world) / "choices.json.later").touch()
    folder = _session(world)
    os.chmod(folder, 0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write everywhere")
        done = world("export", folder.name, "--sessions", world.sessions, "--drop", number, "--output", "-")
        assert "this ticket only" in done.stderr
        assert "load: not loaded" not in done.stdout
    finally:
        os.chmod(folder, 0o700)


def test_in_chinese(world: World) -> None:
    """Headings, kinds and words are Chinese; what comes from evidence is as it is."""
    done = world("export", _session(world).name, "--sessions", world.sessions, "--preview", "--lang", "zh")
    assert done.stdout.startswith("问题\n")
    assert "证据" in done.stdout
    assert "load: not loaded" in done.stdout
    assert "没有写入任何文件" in done.stderr


def test_copying_offers_the_ticket_and_names_the_file(world: World) -> None:
    """At a terminal the ticket is offered to its clipboard; the words name the file and claim nothing."""
    output = world.folder / "copied.md"
    program, *words = world.command(
        "export", _session(world).name, "--sessions", world.sessions, "--copy", "--output", output
    )
    environment = {**world.environment, "TERM": "xterm-256color"}
    process = pexpect.spawn(program, words, env=environment, cwd=str(world.folder), encoding="utf-8", timeout=60)
    shown = process.read()
    assert "\x1b]52;c;" in shown
    assert "offered to the terminal's clipboard" in shown
    assert output.name in shown
    assert output.exists()


def test_copying_without_a_terminal_says_that_only_the_file_has_it(world: World) -> None:
    """In a pipe of no terminal nothing is offered; to stdout alone, and of a bundle, copying is wrong usage."""
    export = ("export", _session(world).name, "--sessions", world.sessions, "--copy")
    done = world(*export, "--output", world.folder / "t.md", TERM="dumb")
    assert done.returncode == 0
    assert "no terminal" in done.stderr
    assert "t.md" in done.stderr
    for words in (("--output", "-"), ("--format", "bundle")):
        refused = world(*export, *words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "--copy" in refused.stderr


@given(st.lists(st.tuples(st.integers(1, 999), st.integers(0, 20)), min_size=1, max_size=5))
def test_numbers_are_read_as_people_write_them(ranges: list[tuple[int, int]]) -> None:
    """Numbers and ranges, parted by commas, in the order given."""
    written = ",".join(f"{first}-{first + more}" if more else str(first) for first, more in ranges)
    assert numbers(written) == tuple(n for first, more in ranges for n in range(first, first + more + 1))


@pytest.mark.parametrize("words", ["", "0", "-3", "3-", "3-1", "x", "1,,2", "1.5", "9-99999999"])
def test_what_is_no_number_is_refused(words: str) -> None:
    """Neither nothing, nor a range that goes down or never ends."""
    with pytest.raises(argparse.ArgumentTypeError):
        numbers(words)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_lines_are_printed_safely(hostile: str) -> None:
    """No control character of a line reaches the terminal, in text or in JSON."""
    line = Line(1, "problem", hostile, "title", (hostile,), f"user-1 {hostile}", "evidence", (Mark(0, 6, "user"),))
    printed = [*as_text([line], (), language="en", ascii_only=False), marked(line, ascii_only=True)]
    assert all(is_safe(text) for text in printed)
    assert printed[-1].startswith("<user-1> ")
    assert all(is_safe(text) for text in as_json([line], (), session="s", language="en").splitlines())


def test_headings_stand_above_their_lines_once() -> None:
    """The text names each section once, in the order of the ticket."""
    lines = preview(sample(walked_state()))
    printed = list(as_text(lines, {lines[0].text}, language="en", ascii_only=True))
    headings = [line.strip() for line in printed if line.strip() and not line.startswith(" ")]
    assert headings[:3] == ["Problem", "Standing", "Evidence lines"]
    assert len(headings) == len(set(headings))
    assert "LEFT OUT" in printed[1]
    assert sum("LEFT OUT" in line for line in printed) == 1
