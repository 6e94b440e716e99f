"""Two people on one session: the reader sees what is written and may take it over; the other turns into a reader."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.following import Follower
from runbook.session.journal import JOURNAL, read
from runbook.session.lock import LOCK, holder_of
from runbook.session.opening import follow_session, new_session, open_or_follow, open_session, take_over
from runbook.text import Text
from runbook.tui import handing
from runbook.tui.actions import of_scopes
from runbook.tui.app import RunbookApp
from runbook.tui.dialogs import Choose
from runbook.tui.notedialog import Write
from runbook.tui.notetext import note_block, where_text
from runbook.tui.page import Page
from runbook.tui.wheredialog import Where
from tests.runbook.tui import kitchen
from tests.runbook.tui.driving import ROOT, answered, drawn, items, settle, until


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(handing, "LOOK", 0.05)
    monkeypatch.setenv("SLIME_RUNBOOK_WHO", "ann")


@pytest.fixture
def first(tmp_path: Path) -> Iterator[Desk]:
    """Yield the desk of the one who began a session and still has it."""
    desk = new_session(kitchen.catalog(), str(tmp_path))
    desk.begin("/kitchen")
    desk.append(items())
    answered(desk)
    desk.append(ev.FlowStarted("bread"))
    yield desk
    desk.close()


def a_reader(desk: Desk) -> Desk:
    """Return a desk of somebody else on the same session."""
    other = open_or_follow(kitchen.catalog(), desk.folder)
    assert other.reads
    return other


def words_of(app: RunbookApp) -> str:
    """Return what the screen says, without borders, however its lines are broken."""
    return " ".join("".join(" " if "\u2500" <= sign <= "\u259f" else sign for sign in drawn(app)).split())


def head(app: RunbookApp) -> str:
    """Return the first line of the screen, "" before anything is drawn."""
    return drawn(app).partition("\n")[0]


async def known(app: RunbookApp, pilot: Pilot[Any]) -> None:
    """Wait until the reader knows who holds the session."""
    await until(pilot, lambda: "held by ann" in head(app))


async def test_a_reader_sees_who_holds_it_and_what_they_do(first: Desk) -> None:
    """The head names the holder; an answer, a way back and a note of theirs appear; the reader writes nothing."""
    reader = a_reader(first)
    app = RunbookApp(reader, "bread")
    async with app.run_test(notifications=True, size=(80, 24)) as pilot:
        await known(app, pilot)
        before = (Path(first.folder) / JOURNAL).read_bytes()
        assert "Is the oven hot" in drawn(app) or "oven-hot" in drawn(app)
        first.answer("bread", "hot", "ann")
        await until(
            pilot, lambda: "dough-risen" in reader.state.walk("bread").flow or bool(reader.state.walks["bread"].steps)
        )
        await until(pilot, lambda: app.view().here(kitchen.catalog().flows["bread"]) == "dough-risen")
        first.append(ev.Noted("smells [/rank0] odd", "ann", "bread", "dough-risen"))
        await until(pilot, lambda: "smells [/rank0] odd" in drawn(app))
        assert "ann, " in drawn(app)
        first.append(ev.WentBack("bread", "oven-hot"))
        await until(pilot, lambda: not reader.state.walk("bread").steps)
        after = (Path(first.folder) / JOURNAL).read_bytes()
    assert after.startswith(before)
    assert reader.state == follow_session(kitchen.catalog(), first.folder).state
    reader.close()


@pytest.mark.parametrize("key", ["1", "enter", "a", "b", "n", "r", "c", "plus"])
async def test_keys_that_would_write_say_why_not(first: Desk, key: str) -> None:
    """Every key that would change the session opens nothing, writes nothing, and names the holder and the way out."""
    reader = a_reader(first)
    app = RunbookApp(reader, "bread")
    async with app.run_test(notifications=True, size=(80, 24)) as pilot:
        await known(app, pilot)
        await until(pilot, lambda: len(app.screen_stack) > 1)
        records = len(read(first.folder)[0])
        screens = len(app.screen_stack)
        await pilot.press(key)
        await until(pilot, lambda: "t takes it over" in words_of(app))
        assert len(app.screen_stack) == screens
        assert len(read(first.folder)[0]) == records
        assert app.handing.unwritten == []
    reader.close()


async def test_a_reader_looks_around_without_writing(first: Desk) -> None:
    """Flows are opened, the tree and the evidence looked at, keys that write are dim; the journal stays as it is."""
    reader = a_reader(first)
    app = RunbookApp(reader)
    async with app.run_test(notifications=True, size=(100, 30)) as pilot:
        await known(app, pilot)
        assert "Where we are" in drawn(app)
        assert "Walk: " in drawn(app)
        before = (Path(first.folder) / JOURNAL).read_bytes()
        for key in ("d", "a", "r", "n"):
            await pilot.press(key)
        app.open_flow("bread", "oven-off")
        await pilot.pause(0.2)
        await pilot.press("e", "escape", "shift+tab", "j", "i")
        await until(pilot, lambda: isinstance(app.screen, Where))
        await pilot.press("escape")
        assert (Path(first.folder) / JOURNAL).read_bytes() == before
        assert drawn(app).splitlines()[-1].lstrip().startswith("t take over")
    reader.close()


async def test_taking_over_asks_first_and_then_writes(first: Desk) -> None:
    """`t` names the holder and how long ago they wrote; leaving changes nothing; confirmed, the session is ours."""
    reader = a_reader(first)
    app = RunbookApp(reader, "bread")
    async with app.run_test(notifications=True, size=(80, 24)) as pilot:
        await known(app, pilot)
        await pilot.press("t")
        assert isinstance(app.screen, Choose)
        said = words_of(app)
        assert "Take this session over from ann on" in said
        assert "Last change" in said
        await pilot.press("enter")  # the choice that the cursor rests on changes nothing
        await settle(pilot)
        assert reader.reads
        assert first.held()
        await pilot.press("t", "j", "enter")
        await until(pilot, lambda: not reader.reads)
        await until(pilot, lambda: "read only" not in head(app))
        await settle(pilot)
        await pilot.press("1")
        await until(pilot, lambda: bool(reader.state.walk("bread").steps))
        assert not first.held()
    reader.close()
    records, warnings = read(first.folder)
    assert [record.n for record in records] == list(range(len(records)))
    assert warnings == ()
    assert sum(isinstance(record.event, ev.Answered) for record in records) == 1


async def test_who_is_taken_over_is_told_and_reads_on(first: Desk) -> None:
    """Without a key pressed, the head names the new holder; what they write appears; what one had typed is kept."""
    app = RunbookApp(first, "bread")
    async with app.run_test(notifications=True, size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("n")
        assert isinstance(app.screen, Write)
        await pilot.press(*"ab")
        second = follow_session(kitchen.catalog(), first.folder)
        os.environ["SLIME_RUNBOOK_WHO"] = "bob"
        take_over(second, holder_of(first.folder))
        await until(pilot, lambda: "held by bob" in head(app))
        await until(pilot, lambda: "took" in drawn(app))
        assert app.screen.query_one(TextArea).text == "ab"
        await pilot.press("enter")
        await until(pilot, lambda: app.handing.unwritten == ["note: ab"])
        second.append(ev.Noted("from bob", "bob"))
        await until(pilot, lambda: [note.words for note in first.state.notes] == ["from bob"])
        await pilot.press("i")
        await until(pilot, lambda: "Not written" in drawn(app) and "note: ab" in drawn(app))
        second.close()
        assert first.reads


async def test_a_lock_that_cannot_be_read_is_said_and_the_watch_goes_on(first: Desk) -> None:
    """An error of the disk makes nobody a reader; a session that is then really taken over is noticed all the same."""
    app = RunbookApp(first, "bread")
    async with app.run_test(notifications=True, size=(100, 30)) as pilot:
        await settle(pilot)
        lock = Path(first.folder) / LOCK
        os.rename(lock, f"{lock}.aside")
        lock.mkdir()
        await until(pilot, lambda: "cannot be seen" in words_of(app))
        assert not first.reads
        lock.rmdir()
        os.rename(f"{lock}.aside", lock)
        second = follow_session(kitchen.catalog(), first.folder)
        take_over(second, holder_of(first.folder))
        await until(pilot, lambda: "read only" in head(app))
        second.close()


async def test_the_watch_outlives_what_the_disk_raises(first: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader's first look may fail as the system fails: it is said, and the next look brings the session."""
    turns = iter([OSError(errno.ESTALE, os.strerror(errno.ESTALE))])

    def follower(folder: str) -> Follower:
        for error in turns:
            raise error
        return Follower(folder)

    reader = a_reader(first)
    monkeypatch.setattr(handing, "Follower", follower)
    app = RunbookApp(reader, "bread")
    async with app.run_test(notifications=True, size=(100, 30)) as pilot:
        await until(pilot, lambda: "Stale file handle" in words_of(app))
        await known(app, pilot)
    reader.close()


def test_how_long_ago_is_said_in_both_languages() -> None:
    """Seconds up to two minutes, then minutes; a clock that is behind gives none."""
    assert handing._ago(119.9) == Text("119 s", "119 秒")
    assert handing._ago(120) == Text("2 min", "2 分钟")
    assert handing._ago(-3) == Text("0 s", "0 秒")


async def test_an_answer_that_comes_too_late_is_said(first: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the key is pressed before the loss is noticed, the answer is not written, and is named."""
    monkeypatch.setattr(handing, "CHECK", 1 << 30)
    app = RunbookApp(first, "bread")
    async with app.run_test(notifications=True, size=(100, 30)) as pilot:
        await settle(pilot)
        second = follow_session(kitchen.catalog(), first.folder)
        take_over(second, holder_of(first.folder))
        await pilot.press("1")
        await until(pilot, lambda: app.handing.unwritten == ["answer hot at bread/oven-hot"])
        await until(pilot, lambda: first.reads and "read only" in head(app))
        assert not any(isinstance(record.event, ev.Answered) for record in read(first.folder)[0])
        second.close()


def _writer(folder: str) -> subprocess.Popen[str]:
    """Start a process that holds a session and writes to it until it is killed."""
    command = [sys.executable, "-m", "tests.runbook.session.writer", folder]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def test_a_session_whose_holder_was_killed_is_taken_without_a_question(tmp_path: Path) -> None:
    """The reader of a session whose holder is killed sees that nobody has it; `t` goes on with it at once."""
    made = new_session(kitchen.catalog(), str(tmp_path))
    made.begin("/kitchen")
    made.append(ev.FlowStarted("bread"))
    made.close()
    with _writer(made.folder) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        reader = a_reader(made)
        app = RunbookApp(reader, "bread")
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await known(app, pilot)
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            await until(pilot, lambda: "nobody holds it" in head(app))
            await pilot.press("t")
            await until(pilot, lambda: not reader.reads)
            assert not isinstance(app.screen, Choose)
        reader.close()
    records, _ = read(made.folder)
    assert [record.n for record in records] == list(range(len(records)))


async def test_a_replaced_journal_is_said_and_shown(first: Desk) -> None:
    """When the file is cut back or exchanged, the reader is told, and sees what it holds now."""
    first.append(ev.Noted("one", "ann"))
    reader = a_reader(first)
    app = RunbookApp(reader, "bread")
    async with app.run_test(notifications=True, size=(100, 30)) as pilot:
        await known(app, pilot)
        path = Path(first.folder) / JOURNAL
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        await until(pilot, lambda: reader.state.notes == ())
        await until(pilot, lambda: "shortened" in drawn(app))
    reader.close()


async def test_a_note_of_several_lines_is_written_and_shown_with_author_and_time(first: Desk) -> None:
    """A backslash before Enter begins a line, pasted lines stay lines; node and overview show author and time."""
    app = RunbookApp(first, "bread")
    async with app.run_test(notifications=True, size=(100, 40)) as pilot:
        await settle(pilot)
        await pilot.press("n", *"one", "backslash", "enter", *"two")
        app.screen.query_one(TextArea).insert("\nthree \x1b[2J")
        await pilot.press("enter")
        await until(pilot, lambda: bool(first.state.notes))
        (note,) = first.state.notes
        assert (note.words, note.who, note.flow, note.node) == ("one\ntwo\nthree", "ann", "bread", "oven-hot")
        shown = note_block(app.view(), note, 60).plain.splitlines()
        assert shown[0].startswith("  ann, 20")
        assert shown[0].endswith("UTC  bread/oven-hot")
        assert shown[1:] == ["    one", "    two", "    three"]
        assert "three" in where_text(app.view(), (), 60).plain
        await pilot.press("n", "escape")
        await pilot.press("n", "enter")
        await settle(pilot)
        assert len(first.state.notes) == 1


async def test_a_new_session_starts_as_ever_and_a_resumed_one_says_where_it_stands(first: Desk) -> None:
    """The five lines stand on the start screen of a session that is gone on with, not on that of a new one."""
    async with RunbookApp(first).run_test(size=(100, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, RunbookApp)
        await settle(pilot)
        assert "Where we are" not in drawn(app)
    first.close()
    again = open_session(kitchen.catalog(), first.folder)
    app = RunbookApp(again)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        lines = [line.strip() for line in drawn(app).splitlines()]
        assert "Where we are" in lines
        assert lines[lines.index("Where we are") + 1].startswith("Problem: ")
    again.close()


async def test_what_writes_is_dim_for_a_reader_and_the_words_follow_the_language(first: Desk) -> None:
    """In the foot, keys that write lose their colour and the others keep it; the head speaks the language in force."""
    reader = a_reader(first)
    app = RunbookApp(reader, "bread")
    async with app.run_test(size=(100, 30)) as pilot:
        await known(app, pilot)
        view = app.view()
        styles = {
            action.name: str(Page._key(view, action).spans[0].style)
            for action in of_scopes("walk")
            if action.name in ("answer", "back", "note", "proof", "copy", "export")
        }
        writing = {name for name, style in styles.items() if style == view.ink.dim}
        assert writing == {"answer", "back", "note"}
        await pilot.press("L")
        await until(pilot, lambda: "只读：ann" in head(app))
        await pilot.press("n")
        await until(pilot, lambda: "接管" in drawn(app))
    reader.close()
