"""The preview on the screen: nothing is written before a person has seen it, and what they drop does not leave."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from runbook.finding import Citation, Finding, Verdict
from runbook.session import events as ev
from runbook.session.opening import new_session, open_or_follow
from runbook.text import Text
from runbook.ticket.choices import Choices, remember
from runbook.ticket.draft import Draft
from runbook.ticket.preview import Line, Mark
from runbook.ticket.redact import Identity
from runbook.tui.app import RunbookApp
from runbook.tui.dialogs import Choose, Export, Written
from runbook.tui.leaving import inside
from runbook.tui.preview import PreviewScreen
from runbook.tui.preview_rows import Shown, detail, find, marked, next_hidden, preview_rows, summary
from runbook.tui.rows import LazyRows, Row
from runbook.tui.start import StartScreen
from tests.helpers import HOSTILE, is_safe
from tests.runbook.ticket.sample import drawn_finding, drawn_state, sample, walked_state
from tests.runbook.tui import kitchen
from tests.runbook.tui.driving import ROOT, a_desk, answered, drawn, items, settle, type_in, until

NOTE = "call mueller@corp.example.net about the oven"


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def screen_of(app: RunbookApp) -> PreviewScreen:
    """Return the preview in front, also below a dialog."""
    return next(screen for screen in app.screen_stack if isinstance(screen, PreviewScreen))


def files_of(folder: str) -> dict[str, bytes]:
    """Return the files of a folder by name."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


async def opened(pilot: Pilot[Any], seconds: float = 20.0) -> PreviewScreen:
    """Open the preview of the first format and wait until its lines are there, no longer than `seconds`."""
    app = pilot.app
    assert isinstance(app, RunbookApp)
    await settle(pilot)
    await pilot.press("x", "enter")
    await until(pilot, lambda: isinstance(app.screen, PreviewScreen) and not app.screen.busy, seconds)
    await settle(pilot)
    return screen_of(app)


def shows(screen: PreviewScreen, words: str, wanted: bool) -> bool:
    """Return whether some line of the preview holds some words, as wanted, and nothing is being made."""
    return not screen.busy and any(words in line.text for line in screen.shown.lines) == wanted


async def go_to(pilot: Pilot[Any], screen: PreviewScreen, words: str) -> Line:
    """Search for some words and return the line at which the cursor then is."""
    await pilot.press("slash")
    await type_in(pilot, words)
    await pilot.pause()
    line = screen.shown.at(screen.rows.cursor)
    assert line is not None
    return line


async def written(pilot: Pilot[Any]) -> list[str]:
    """Wait for the dialog after writing and return its lines."""
    await until(pilot, lambda: isinstance(pilot.app.screen, Written))
    await settle(pilot)
    return str(pilot.app.screen.query_one("#said").render()).split("\n")


async def test_the_quick_way_is_four_keys(tmp_path: Path) -> None:
    """By x, Enter, Enter the ticket is written and named; one more Enter is back where it began."""
    with a_desk() as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(160, 30)) as pilot:
            await settle(pilot)
            await pilot.press("x")
            assert isinstance(app.screen, Export)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, PreviewScreen) and not app.screen.busy)
            assert os.listdir(tmp_path) == []
            await pilot.press("enter")
            ticket = tmp_path / "ticket-1.md"
            assert str(ticket) in " ".join(await written(pilot))
            assert "oven-off" in ticket.read_text()
            assert "ERROR oven: OFF" in ticket.read_text()
            assert desk.state.exports == (("markdown", str(ticket)),)
            await pilot.press("enter")
            assert [type(screen) for screen in app.screen_stack] == [StartScreen]


async def test_leaving_writes_nothing(tmp_path: Path) -> None:
    """Esc in the dialog and Esc in the preview go back one level each, and no file is made."""
    with a_desk() as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await opened(pilot)
            await pilot.press("escape")
            assert [type(screen) for screen in app.screen_stack] == [StartScreen]
            await pilot.press("x", "escape")
            assert [type(screen) for screen in app.screen_stack] == [StartScreen]
            assert os.listdir(tmp_path) == []
            assert desk.state.exports == ()


async def test_a_dropped_line_does_not_leave_and_can_be_taken_back(tmp_path: Path) -> None:
    """Space leaves the line out everywhere and remembers it with the session; Space again takes it back."""
    with a_desk() as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(120, 40)) as pilot:
            screen = await opened(pilot)
            line = await go_to(pilot, screen, "ERROR oven: OFF")
            assert line.count > 1
            before = screen.rows.cursor
            await pilot.press("space")
            await settle(pilot)
            assert screen.rows.cursor == before
            assert "left out" in drawn(app)
            kept = tmp_path / "choices.json"
            assert json.loads(kept.read_text())["drop"] == [line.text]
            await pilot.press("enter")
            await written(pilot)
            ticket = (tmp_path / "ticket-1.md").read_text()
            assert "ERROR oven: OFF" not in ticket
            assert "lines left out by the sender" in ticket
            await pilot.press("escape")
            screen = await opened(pilot)
            assert screen.dropped == {line.text}
            await go_to(pilot, screen, "ERROR oven: OFF")
            await pilot.press("space")
            await settle(pilot)
            assert screen.dropped == frozenset()
            assert json.loads(kept.read_text())["drop"] == []
            await pilot.press("enter")
            await written(pilot)
            assert "ERROR oven: OFF" in (tmp_path / "ticket-2.md").read_text()


async def test_a_word_can_be_hidden_and_stays_hidden(tmp_path: Path) -> None:
    """`h` asks for a word; the lines are redacted anew, and n goes from one hidden place to the next."""
    with a_desk(ev.Noted(NOTE)) as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(120, 40)) as pilot:
            screen = await opened(pilot)
            hidden = [line for line in screen.shown.lines if line.marks]
            assert "call mail-1 about the oven" in [line.text for line in hidden]
            await pilot.press("h")
            await type_in(pilot, "OVEN")
            await until(pilot, lambda: any("hidden-1" in line.text for line in screen.shown.lines))
            assert not any("oven" in line.text.lower() for line in screen.shown.lines if "oven-" not in line.text)
            await pilot.press("g", "n")
            first = screen.rows.cursor
            await pilot.press("n", "N")
            assert screen.rows.cursor == first
            line = screen.shown.at(first)
            assert line is not None
            assert line.marks
            await pilot.press("enter")
            await written(pilot)
            assert "oven" not in (tmp_path / "ticket-1.md").read_text().lower()
            assert json.loads((tmp_path / "choices.json").read_text())["hide"] == ["OVEN"]


async def test_what_the_second_look_finds_leads_back_to_its_line(tmp_path: Path) -> None:
    """A refused ticket is not there; the cursor is at the line, and the next choice hides the word and writes.

    Leaving writes nothing. The word is hidden in the next ticket too.
    """
    key = "a1B2c3D4e5F6g7H8i9J0"
    with a_desk(ev.Noted(f"api%2Dkey%3D{key}")) as desk:  # a key to the second look, one word to the redaction
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            screen = await opened(pilot)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, Choose))
            await settle(pilot)
            assert "Nothing was written" in drawn(app)
            assert "hide 20 characters" in drawn(app)
            line = screen.shown.at(screen.rows.cursor)
            assert line is not None
            assert key in line.text
            await pilot.press("G", "enter")
            await settle(pilot)
            assert app.screen is screen
            assert os.listdir(tmp_path) == []
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, Choose))
            await pilot.press("enter")
            await written(pilot)
            assert key not in (tmp_path / "ticket-1.md").read_text()
            assert "hidden-1" in (tmp_path / "ticket-1.md").read_text()
            await pilot.press("escape")
            await opened(pilot)
            await pilot.press("enter")
            await written(pilot)
            assert key not in (tmp_path / "ticket-2.md").read_text()


async def test_a_hidden_word_of_the_ticket_itself_can_be_taken_back(tmp_path: Path) -> None:
    """A heading's word refuses the ticket; the next choice shows it again and writes, and so does `h` with it."""
    with a_desk() as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(120, 30)) as pilot:
            screen = await opened(pilot)
            await pilot.press("h")
            await type_in(pilot, "environment")
            await until(pilot, lambda: app.leaving.chosen == Choices(("environment",)) and not screen.busy)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, Choose))
            await settle(pilot)
            assert "hide it no longer" in drawn(app)
            assert os.listdir(tmp_path) == ["choices.json"]
            await pilot.press("enter")
            await written(pilot)
            assert "Environment" in (tmp_path / "ticket-1.md").read_text()
            assert json.loads((tmp_path / "choices.json").read_text())["hide"] == []
            await pilot.press("escape")
            screen = await opened(pilot)
            for hidden in (True, False):
                await pilot.press("h")
                await type_in(pilot, "oven")
                await until(pilot, partial(shows, screen, "hidden-1", hidden))


async def test_copying_writes_a_file_and_offers_it_without_a_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`y` writes the ticket as well; the words name the file and say that it was offered, or that it was too long."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("TMUX", raising=False)
    with a_desk() as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(160, 30)) as pilot:
            await opened(pilot)
            await pilot.press("y")
            said = " ".join(await written(pilot))
            assert str(tmp_path / "ticket-1.md") in said
            assert "offered" in said
            assert app.clipboard == (tmp_path / "ticket-1.md").read_text()
            await pilot.press("escape")
            monkeypatch.setenv("TERM", "dumb")
            await opened(pilot)
            await pilot.press("y")
            said = " ".join(await written(pilot))
            assert "only the file has it" in said
            assert "offered" not in said


async def test_another_format_and_only_what_comes_from_outside(tmp_path: Path) -> None:
    """`f` turns to another format of the same lines; `o` takes the tool's own words out of sight, not of the ticket."""
    with a_desk(ev.Noted(NOTE)) as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(120, 40)) as pilot:
            screen = await opened(pilot)
            every = len(screen.shown.entries)
            await pilot.press("o")
            await settle(pilot)
            assert 0 < len(screen.shown.entries) < every
            seen = [screen.shown.at(index) for index in range(len(screen.shown.entries))]
            assert {line.origin for line in seen if line is not None and not line.marks} == {"evidence"}
            assert {line.number for line in screen.shown.lines if line.marks} <= {
                line.number for line in seen if line is not None
            }
            await pilot.press("f")
            await pilot.press(*"jjjjjjjjj"[: screen.formats.index("json")], "enter")
            await settle(pilot)
            assert "json" in drawn(app).splitlines()[1]
            await pilot.press("enter")
            await written(pilot)
            ticket = json.loads((tmp_path / "ticket-1.json").read_text())
            assert ticket["title"]


async def test_what_came_after_the_preview_is_not_in_the_ticket(tmp_path: Path) -> None:
    """What is written is what was looked at, though the session went on."""
    with a_desk() as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await opened(pilot)
            desk.append(ev.Noted("nobody looked at this"))
            await pilot.press("enter")
            await written(pilot)
            assert "nobody looked" not in (tmp_path / "ticket-1.md").read_text()


async def test_another_language_is_another_ticket(tmp_path: Path) -> None:
    """`L` makes the lines anew in the other language; the same lines stay dropped."""
    with a_desk() as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            screen = await opened(pilot)
            line = await go_to(pilot, screen, "ERROR oven: OFF")
            await pilot.press("space", "L")
            await until(pilot, lambda: screen.draft is not None and screen.draft.hidden.language == "zh")
            await settle(pilot)
            assert screen.dropped == {line.text}
            assert "问题" in drawn(app)
            await pilot.press("enter")
            await written(pilot)
            assert "发送者已略去" in (tmp_path / "ticket-1.md").read_text()


async def test_damaged_choices_are_said_and_nothing_can_be_written(tmp_path: Path) -> None:
    """While it is not known what was to be left out, Enter does nothing."""
    (tmp_path / "choices.json").write_text("{")
    with a_desk() as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(160, 30)) as pilot:
            await opened(pilot)
            assert "choices.json" in drawn(app)
            await pilot.press("enter", "y", "space", "h", "escape")
            await settle(pilot)
            assert os.listdir(tmp_path) == ["choices.json"]


async def test_what_another_command_chose_meanwhile_is_seen(tmp_path: Path) -> None:
    """The preview opens with the choices that the session keeps by then."""
    with a_desk() as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            screen = await opened(pilot)
            assert screen.dropped == frozenset()
            await pilot.press("escape")
            remember(tmp_path, Choices((), ("/kitchen",)))
            screen = await opened(pilot)
            assert screen.dropped == {"/kitchen"}


async def test_somebody_who_only_reads_leaves_the_session_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader drops and writes for themselves: the ticket lies where they stand, the session's folder is as it was."""
    first = new_session(kitchen.catalog(), str(tmp_path))
    first.begin("/kitchen")
    first.append(items())
    answered(first)
    reader = open_or_follow(kitchen.catalog(), first.folder)
    assert reader.reads
    before = files_of(first.folder)
    app = RunbookApp(reader)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    async with app.run_test(notifications=True, size=(160, 30)) as pilot:
        screen = await opened(pilot)
        await go_to(pilot, screen, "ERROR oven: OFF")
        await pilot.press("space", "enter")
        folder, name = os.path.split((await written(pilot))[1])
        assert folder == str(here)
        assert os.listdir(here) == [name]
        ticket = files_of(folder)[name].decode()
        assert "ERROR oven: OFF" not in ticket
        assert "oven-off" in ticket
    after = files_of(first.folder)
    after.pop("pseudonyms.json", None)
    assert after == before
    reader.close()
    first.close()
    shutil.rmtree(folder)


async def test_what_is_kept_nowhere_leaves_the_ticket_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an opened bundle the ticket goes to the current folder, and its own empty folder goes with the screen."""
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    for folder in (here, temporary):
        folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with a_desk() as desk:
        assert desk.folder == ""
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(160, 30)) as pilot:
            await opened(pilot)
            monkeypatch.chdir(here)  # the kitchen's own files are where the test stood
            await pilot.press("enter")
            await written(pilot)
            assert os.listdir(here) == ["ticket-1.md"]
            assert not list(temporary.rglob("pseudonyms*"))


@pytest.mark.parametrize("place", ["run", "run/below"])
def test_a_reader_who_stands_in_the_run_leaves_it_as_it_is(tmp_path: Path, place: str) -> None:
    """A folder of the run is no place for a ticket; one beside it is."""
    (tmp_path / "run" / "below").mkdir(parents=True)
    assert inside(str(tmp_path / place), str(tmp_path / "run"))
    assert not inside(str(tmp_path), str(tmp_path / "run"))
    assert not inside(str(tmp_path), "")


async def test_twenty_thousand_lines_cost_what_the_screen_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ticket of that many lines is drawn, searched and gone to its end; only rows in sight are made."""
    excerpts = [*(f"loaf {n}" for n in range(1, 20_000)), "loaf 20000 of ann@corp.example.net"]
    cited = tuple(Citation("/kitchen/log", n, n, excerpt) for n, excerpt in enumerate(excerpts, 1))
    found = Finding(Verdict.PROBLEM, "cold", Text("Many.", "很多。"), cited, probe="kitchen.oven")
    with a_desk(ev.Found(found)) as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            screen = await opened(pilot, 90)
            assert len(screen.shown.lines) > 20_000
            made: list[int] = []
            true = LazyRows.__getitem__

            def counted(rows: LazyRows, index: int) -> Row:
                made.append(index)
                return true(rows, index)

            monkeypatch.setattr(LazyRows, "__getitem__", counted)
            await pilot.press("j", "j", "pagedown", "space")
            await settle(pilot)
            assert len(made) < 2000
            line = await go_to(pilot, screen, "loaf 19999")
            assert line.text == "loaf 19999"
            await pilot.press("n")
            await settle(pilot)
            hidden = screen.shown.at(screen.rows.cursor)
            assert hidden is not None
            assert hidden.text == "loaf 20000 of mail-1"
            await pilot.press("G")
            await settle(pilot)
            assert screen.rows.cursor == len(screen.shown.entries) - 1


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_lines_are_drawn_safely(hostile: str) -> None:
    """Row, strip and head of a line that holds control characters or markup draw none of them."""
    line = Line(
        1,
        "problem",
        hostile,
        "title",
        (hostile,),
        f"user-1 {hostile} [/b] {hostile}",
        "evidence",
        (Mark(0, 6, "user"),),
        3,
    )
    with a_desk() as desk:
        view = RunbookApp(desk).view()
        shown = Shown.of([line])
        rows = preview_rows(view, shown, {line.text})
        drawn_texts = [rows[1].content.plain, rows[1].right.plain, summary(view, "markdown", shown, ()).plain]
        drawn_texts += detail(view, line, 60, 4, out=True).plain.splitlines()
    assert all(is_safe(text) for text in drawn_texts)
    assert "‹user-1›" in drawn_texts[0]
    assert "[/b]" in drawn_texts[0]


def test_a_pseudonym_has_signs_besides_its_colour() -> None:
    """With ASCII signs and without colour it can still be told from the text around it."""
    draft = Draft.of(sample(walked_state()), Identity(("lihua",)))
    line = next(line for line in draft.lines if line.text.startswith("user-1@host-1"))
    with a_desk() as desk:
        view = RunbookApp(desk, ascii_only=True).view()
        assert marked(view, line, 400).plain == "<user-1>@<host-1> saw it twice; ask <mail-1>"
        assert marked(view, line, 20).plain.startswith("<user-1>@<host-1> saw")


def test_searching_goes_round_and_finds_places_too() -> None:
    """The next match after the last is the first; upper and lower case are the same; headings are no match."""
    draft = Draft.of(sample(drawn_state(drawn_finding())), Identity(("lihua",)))
    shown = Shown.of(draft.lines)
    matches = []
    at = -1
    for _ in range(50):
        at = find(shown, "JOB.LOG:48211", at, 1)
        if at in matches:
            break
        matches.append(at)
    lines = [shown.at(index) for index in matches]
    assert matches == sorted(matches)
    assert all(line is not None and any("job.log:48211" in place for place in line.places) for line in lines)
    assert find(shown, "JOB.LOG:48211", matches[0], -1) == matches[-1]
    assert find(shown, "not in this ticket", 0, 1) == -1
    hidden = next_hidden(shown, 0, 1)
    line = shown.at(hidden)
    assert line is not None
    assert line.marks
    assert next_hidden(Shown.of(()), -1, 1) == -1
