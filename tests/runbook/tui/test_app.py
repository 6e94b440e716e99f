"""The app, driven by keys over a real desk and real probes."""

from __future__ import annotations

import io
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from runbook.finding import Verdict
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import new_session, open_session, read_session
from runbook.tui.app import RunbookApp
from runbook.tui.dialogs import Keys
from runbook.tui.linespane import Lines, LinesPane
from runbook.tui.nodepane import NodePane
from runbook.tui.rows import Rows
from runbook.tui.start import StartScreen
from runbook.tui.treepane import TreePane
from runbook.tui.walk import WalkScreen
from runbook.walk import By
from tests.runbook.tui import kitchen
from tests.runbook.tui.driving import LOG, ROOT, a_desk, drawn, install_kitchen, settle, type_in, until


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def walk_of(app: RunbookApp) -> WalkScreen:
    """Return the walk screen in front."""
    assert isinstance(app.screen, WalkScreen)
    return app.screen


async def test_triage_runs_by_itself_and_enter_goes_to_the_proven_cause() -> None:
    """Probes run by themselves, the cause appears as confirmed, and Enter walks to its leaf."""
    with a_desk(answers=False) as desk:
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            end = time.monotonic() + 20
            while ("", "kitchen.oven") not in desk.state.findings and time.monotonic() < end:
                await pilot.pause(0.1)
            await pilot.pause(0.2)
            assert "confirmed" in drawn(app)
            assert "The oven is off" in drawn(app)
            await pilot.press("enter")
            await pilot.pause(0.4)
            steps = desk.state.walk("bread").steps
            assert [(step.node, step.answer, step.by) for step in steps] == [("oven-hot", "cold", By.PROBE)]
            assert walk_of(app).query_one(NodePane).node == "oven-off"
            assert "Copy the first command" in drawn(app)


async def test_a_slow_probe_shows_its_own_progress_and_is_cancelled() -> None:
    """While a probe runs the keys work, its line counts, after three seconds it says so, and `s` ends it at once."""
    with a_desk(ev.FlowStarted("soup"), answers=False) as desk:
        app = RunbookApp(desk, "soup")
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            end = time.monotonic() + 15
            while "still running" not in drawn(app) and time.monotonic() < end:
                await pilot.pause(0.1)
            text = drawn(app)
            assert "still running" in text
            assert "loaves" in text
            assert "s cancels" in text
            await pilot.press("question_mark")
            assert isinstance(app.screen, Keys)
            assert ("", "kitchen.slow") in desk.jobs(), "the keys are shown while the probe still runs"
            await pilot.press("escape", "s")
            await settle(pilot, 5)
            assert "cancelled" in drawn(app)
            assert desk.state.findings_of()["kitchen.slow"].verdict is Verdict.UNKNOWN


async def test_answers_by_hand_are_a_persons_and_back_makes_them_stale() -> None:
    """A number key answers as a person; back keeps the answer as stale and offers it again."""
    with a_desk(ev.FlowStarted("bread")) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("1")
            await settle(pilot)
            assert [(s.answer, s.by) for s in desk.state.walk("bread").steps] == [("hot", By.PERSON)]
            await pilot.press("2")
            await settle(pilot)
            assert walk_of(app).query_one(NodePane).node == "old-yeast"
            await pilot.press("b")
            await settle(pilot)
            assert [s.node for s in desk.state.walk("bread").stale] == ["dough-risen"]
            assert "stale" in drawn(app)


async def test_two_quick_presses_answer_once() -> None:
    """Enter twice before the journal has been written gives one answer, not an answer to the next node."""
    with a_desk(ev.FlowStarted("bread")) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("enter", "enter", "enter")
            await settle(pilot)
            assert [s.node for s in desk.state.walk("bread").steps] == ["oven-hot"]


async def test_the_tree_looks_ahead_without_changing_the_walk_and_goes_back() -> None:
    """Moving in the tree only shows; Enter on an answered node goes back to it."""
    with a_desk(ev.FlowStarted("bread"), ev.Answered("bread", "oven-hot", "hot", By.PERSON, "ann")) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("shift+tab")
            assert isinstance(app.focused, TreePane)
            await pilot.press("j")
            await pilot.pause(0.1)
            assert walk_of(app).query_one(NodePane).node == "old-yeast"
            assert "Return to dough-risen" in drawn(app)
            assert len(desk.state.walk("bread").steps) == 1
            await pilot.press("g")
            await pilot.pause(0.1)
            await pilot.press("enter")
            await settle(pilot)
            assert desk.state.walk("bread").steps == ()


async def test_evidence_opens_at_the_cited_line_and_esc_leads_back_and_never_quits() -> None:
    """`e` opens the cited line under the cursor; Esc goes up level by level and stays on the start screen."""
    with a_desk(ev.FlowStarted("bread")) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("e")
            await pilot.pause(0.4)
            pane = walk_of(app).query_one(LinesPane)
            assert pane.window is not None
            line = pane.window.lines[pane.query_one(Lines).cursor]
            assert (line.number, line.raw) == (
                120,
                b"[rank7] 03:12:44 ERROR oven: OFF before the dough went in [/rank0]",
            )
            assert "[rank7]" in drawn(app)
            assert "[/rank0]" in drawn(app)
            await pilot.press("escape")
            assert not walk_of(app).has_class("-evidence")
            await pilot.press("escape", "escape", "escape")
            await pilot.pause(0.1)
            assert isinstance(app.screen, StartScreen)
            assert app.is_running


async def test_language_switches_live() -> None:
    """`L` draws everything in Chinese at once, and back."""
    with a_desk() as desk:
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            assert "What was found" in drawn(app)
            await pilot.press("L")
            await pilot.pause(0.1)
            text = drawn(app)
            assert "已确认" in text
            assert "烤箱没有打开" in text
            assert "What was found" not in text


async def test_missing_evidence_is_the_recommended_action_and_adding_it_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enter at an unknown node asks for the slot it lacks; the typed path is taken, and the node's probe reads it."""
    install_kitchen(tmp_path / "site", monkeypatch)
    (tmp_path / "scale.txt").write_text("900 g\n")
    with a_desk(ev.FlowStarted("bread"), ev.Answered("bread", "oven-hot", "hot", By.PERSON, "ann")) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            assert "Add evidence: scale printout" in drawn(app)
            await pilot.press("enter")
            await pilot.pause(0.1)
            assert "Path for scale printout" in drawn(app)
            await type_in(pilot, str(tmp_path / "scale.txt"))
            await until(pilot, lambda: desk.state.findings_of()["kitchen.dough"].answer == "risen")
            await settle(pilot)
            assert [(item.path, item.origin, item.run) for item in desk.state.items if not item.missing][1:] == [
                (str(tmp_path / "scale.txt"), "given", "")
            ]
            assert desk.state.findings_of()["kitchen.dough"].citations[0].excerpt == "900 g"
            assert "Accept risen" in drawn(app)


EXPERIMENT = (
    ev.FlowStarted("bread"),
    ev.Answered("bread", "oven-hot", "hot", By.PERSON, "ann"),
    ev.Answered("bread", "dough-risen", "risen", By.PERSON, "ann"),
)


async def test_attached_runs_have_their_own_names_and_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`t` attaches a run under a new name each time; `+` then adds to that run, whose node is asked again of it."""
    install_kitchen(tmp_path / "site", monkeypatch)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "new.log").write_text("03:00 oven: hot\n")
        (tmp_path / name / "scale.txt").write_text("scale 1.2 kg\n")  # the log is known by no recogniser
    with a_desk(*EXPERIMENT) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await settle(pilot)
            for name in ("one", "two"):
                await pilot.press("t")
                await pilot.pause(0.1)
                await type_in(pilot, str(tmp_path / name))
                await until(pilot, lambda name=name: str(tmp_path / name) in desk.state.runs.values())  # type: ignore[misc]
            await settle(pilot)
            assert desk.state.runs == {"run-2": str(tmp_path / "one"), "run-3": str(tmp_path / "two")}
            assert "attached run: run-3" in drawn(app)
            assert desk.state.findings_of("run-3")["kitchen.oven"].answer is None
            await pilot.press("plus")
            await pilot.pause(0.1)
            await pilot.press("enter")  # the first slot is the log
            await pilot.pause(0.1)
            await type_in(pilot, str(tmp_path / "two" / "new.log"))
            await until(pilot, lambda: desk.state.findings_of("run-3")["kitchen.oven"].answer == "hot")
            assert desk.state.evidence("run-3").paths("log") == (str(tmp_path / "two" / "new.log"),)
            assert desk.state.evidence().paths("log") == (LOG,)


async def test_a_run_that_is_not_there_is_said(tmp_path: Path) -> None:
    """Attaching a path that does not exist attaches nothing and says so; the screen lives on."""
    with a_desk(*EXPERIMENT) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await settle(pilot)
            await pilot.press("t")
            await pilot.pause(0.1)
            await type_in(pilot, str(tmp_path / "gone"))
            await until(pilot, lambda: "no such file" in " ".join(drawn(app).split()))
            assert desk.state.runs == {}
            assert "Attach the new run" in drawn(app)


async def test_an_address_is_taken_as_it_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot of addresses takes HOST:PORT and no path; opened, it says that it is an address; nonsense is refused."""
    install_kitchen(tmp_path / "site", monkeypatch)
    with a_desk() as desk:
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await settle(pilot)
            for words in ("kitchen", "10.0.0.1:6379"):
                await pilot.press("a")
                await pilot.pause(0.1)
                await pilot.press("G", "enter")
                await pilot.pause(0.1)
                await type_in(pilot, words)
                await settle(pilot)
                if words == "kitchen":
                    await until(pilot, lambda: "HOST:PORT" in " ".join(drawn(app).split()))
            await until(pilot, lambda: desk.state.evidence().paths("thermometer") == ("10.0.0.1:6379",))
            await settle(pilot)
            await pilot.press("G", "enter")
            await settle(pilot)
            assert "an address, not a file" in drawn(app)


async def test_an_item_is_taken_out_of_the_evidence() -> None:
    """`d` on an item asks first; then it and what cites it are gone, and the probes are asked again without it."""
    with a_desk() as desk:
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(100, 40)) as pilot:
            await settle(pilot)
            await pilot.press("d")
            await settle(pilot)
            assert "choose an item of the evidence first" in drawn(app)
            await pilot.press("G", "k")  # the log, before the printout
            for key, left in (("G", True), ("g", False)):
                await pilot.press("d")
                await pilot.pause(0.1)
                assert f"Take {LOG} out" in drawn(app)
                await pilot.press(key, "enter")
                await settle(pilot)
                assert bool(desk.state.evidence().paths("log")) is left
            finding = desk.state.findings_of()["kitchen.oven"]
            assert (finding.verdict, finding.citations) == (Verdict.UNKNOWN, ())
            assert "confirmed" not in drawn(app).partition("Where to start")[0].replace("nothing confirmed", "")


async def test_notes_are_kept_at_their_node() -> None:
    """`n` writes a note that stays with the node."""
    with a_desk(ev.FlowStarted("bread")) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("n", *"lamp", "space", *"out", "enter")
            await settle(pilot)
            assert [(note.words, note.flow, note.node) for note in desk.state.notes] == [
                ("lamp out", "bread", "oven-hot")
            ]


async def test_copy_writes_a_named_file_and_claims_nothing(tmp_path: Path) -> None:
    """`y` at a leaf writes the command into a private file, and the words do not say that the clipboard took it."""
    with a_desk(ev.FlowStarted("bread"), ev.Answered("bread", "oven-hot", "cold", By.PROBE)) as desk:
        desk.folder = str(tmp_path)
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await settle(pilot)
            await pilot.press("y")
            await settle(pilot)
            assert "if it allows" in drawn(app)
            assert app.clipboard == "oven --on \\\n  --celsius 230"
            (kept,) = (tmp_path / "commands").iterdir()
            assert kept.name == "bread-oven-off-1.sh"
            assert kept.read_text() == app.clipboard + "\n"
            assert stat.S_IMODE(kept.stat().st_mode) == 0o600


async def test_too_small_says_the_size_it_needs() -> None:
    """Below 60 by 20 the screen says what it needs instead of drawing scraps."""
    with a_desk() as desk:
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(50, 15)) as pilot:
            await settle(pilot)
            text = " ".join(drawn(app).split())
            assert "60 x 20" in text
            assert "50 x 15" in text
            await pilot.resize_terminal(80, 24)
            await pilot.pause(0.1)
            assert "What was found" in drawn(app)


async def test_a_wide_terminal_shows_three_panes_that_follow_each_other() -> None:
    """At 120 columns the evidence of the node is beside it without a key."""
    with a_desk(ev.FlowStarted("bread")) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(120, 40)) as pilot:
            await settle(pilot)
            await pilot.pause(0.3)
            screen = walk_of(app)
            assert screen.query_one(TreePane).region.width > 20
            assert screen.query_one(NodePane).region.width > 30
            assert screen.query_one(LinesPane).region.width > 30
            assert "ERROR oven" in drawn(app).split("│")[-1] or "03:12:44" in drawn(app)


async def test_a_burst_of_findings_is_drawn_in_few_steps() -> None:
    """Two thousand records from another thread cost a handful of redraws, and none is lost."""
    with a_desk(answers=True) as desk:
        app = RunbookApp(desk)
        draws = 0
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            shown = app.refresh_view

            def count() -> None:
                nonlocal draws
                draws += 1
                shown()

            app.refresh_view = count  # type: ignore[method-assign]
            for i in range(2000):
                desk.append(ev.Noted(f"note {i}"))
            await settle(pilot)
            assert len(desk.state.notes) == 2000
            assert 1 <= draws < 20


async def test_a_failing_disk_is_said_and_the_screen_lives() -> None:
    """When the journal cannot be written the words say so and the walk stays where it was."""
    from runbook.errors import SessionError

    with a_desk(ev.FlowStarted("bread")) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await settle(pilot)

            def full(event: ev.Event, now: float) -> ev.Record:
                raise SessionError("/state/journal: no space left", "free some")

            written, desk._log.append = desk._log.append, full  # type: ignore[method-assign]
            await pilot.press("1")
            await settle(pilot)
            desk._log.append = written  # type: ignore[method-assign]
            assert "NOT SAVED" in drawn(app).split("\n", maxsplit=1)[0]
            assert "that did not work" in drawn(app)
            assert desk.state.walk("bread").steps == ()
            await pilot.press("1")
            await settle(pilot)
            assert "NOT SAVED" not in drawn(app)


async def test_lists_move_by_letters_arrows_and_ends() -> None:
    """j, k, g, G and the arrows move the cursor over rows that take it, never onto a heading."""
    with a_desk() as desk:
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            rows = app.screen.query_one("#main", Rows)
            keys = []
            for key in ("g", "j", "down", "k", "G"):
                await pilot.press(key)
                keys.append(rows.key)
            assert keys == ["cause oven-off", "flow bread", "flow soup", "flow bread", "item 1"]


async def test_ascii_signs_and_rules_are_ascii() -> None:
    """In ASCII mode no screen, dialog or notice draws a character beyond ASCII, also where words are cut."""
    with a_desk(ev.FlowStarted("bread"), ev.Noted("x")) as desk:
        app = RunbookApp(desk, "bread", ascii_only=True)
        async with app.run_test(notifications=True, size=(120, 40)) as pilot:
            for keys in ([], ["e"], ["escape", "question_mark"], ["escape", "x"], ["escape", "y"], ["escape"]):
                await pilot.press(*keys)
                await settle(pilot)
                for size in ((120, 40), (61, 20)):
                    await pilot.resize_terminal(*size)
                    await settle(pilot)
                    strange = {character for character in drawn(app) if not character.isascii()}
                    assert strange == set(), keys
            assert "..." in drawn(app)


async def test_a_fault_of_ours_shows_no_data_and_costs_none(tmp_path: Path) -> None:
    """A handler that raises ends the app with a traceback without local values; the journal has all before it."""
    desk = new_session(kitchen.catalog(), str(tmp_path))
    desk.begin("/kitchen")
    app = RunbookApp(desk)
    told = io.StringIO()
    app.error_console = Console(width=100, file=told, force_terminal=False)
    secret = "hf_" + "x" * 30

    def breaks() -> None:
        private = secret
        raise ZeroDivisionError(len(private))

    async def press() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause(0.2)
            app.deeds.note("written before")
            await settle(pilot)
            app.refresh_view = breaks  # type: ignore[method-assign]
            await pilot.press("L")
            await pilot.pause(0.5)

    with pytest.raises(ZeroDivisionError):
        await press()
    desk.close()
    assert "ZeroDivisionError: 33" in told.getvalue()
    assert "breaks" in told.getvalue()
    assert secret not in told.getvalue()
    assert "locals" not in told.getvalue()
    assert "written before" in [note.words for note in read_session(desk.catalog, desk.folder).state.notes]


def kept_sessions(tmp_path: Path) -> tuple[Desk, Desk]:
    """Return an open desk and a closed one whose journal ends in a torn line and whose flow is gone."""
    closed = new_session(kitchen.catalog(), str(tmp_path))
    closed.begin("/monday")
    closed.close()
    with open(f"{closed.folder}/journal.jsonl", "ab") as file:
        file.write(b'{"n":2,"t"')
    desk = new_session(kitchen.catalog(kitchen.FLOW), str(tmp_path))
    desk.begin("/tuesday")
    return desk, closed


def damage(folder: str) -> None:
    """Damage the first record of a journal."""
    path = Path(folder, "journal.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"n":0', b'"n":7'))


async def test_a_session_that_cannot_be_opened_is_said_and_the_screen_stays(tmp_path: Path) -> None:
    """Choosing a damaged session says where it is damaged; the present session goes on."""
    desk, closed = kept_sessions(tmp_path)
    damage(closed.folder)
    app = RunbookApp(desk)
    try:
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await until(pilot, lambda: bool(app.start_screen.recent))
            await settle(pilot)
            await pilot.press("G", "enter")
            await until(pilot, lambda: "damaged" in drawn(app))
            assert app.is_running
            await pilot.press("n")
            await pilot.pause(0.1)
            await type_in(pilot, "on")
            await settle(pilot)
            assert [note.words for note in desk.state.notes] == ["on"]
    finally:
        desk.close()


async def test_a_session_that_is_held_is_opened_for_a_reader(tmp_path: Path) -> None:
    """Choosing a session that somebody else holds ends the app with a desk that only reads it."""
    desk, closed = kept_sessions(tmp_path)
    holder = open_session(desk.catalog, closed.folder)
    app = RunbookApp(desk)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: bool(app.start_screen.recent))
        await settle(pilot)
        await pilot.press("G", "enter")
        await until(pilot, lambda: not app.is_running)
    opened = app.return_value
    assert opened is not None
    assert (opened.reads, opened.state.root) == (True, "/monday")
    assert holder.held()
    for one in (opened, holder, desk):
        one.close()


async def test_a_session_that_is_opened_tells_what_it_lost(tmp_path: Path) -> None:
    """Choosing a session ends the app with its desk; the app over that says the torn line and the flow that is gone."""
    desk, _ = kept_sessions(tmp_path)
    app = RunbookApp(desk)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: bool(app.start_screen.recent))
        await settle(pilot)
        await pilot.press("G", "enter")
        await until(pilot, lambda: app.return_value is not None)
    opened = app.return_value
    assert isinstance(opened, Desk)
    assert opened.state.root == "/monday"
    again = RunbookApp(opened)
    async with again.run_test(notifications=True, size=(100, 30)) as pilot:
        await until(pilot, lambda: len(again._notifications) == 2)
        told = [notice.message for notice in again._notifications]
    assert "was torn" in told[0]
    assert "not there now: soup" in told[1]
    opened.close()
    desk.close()


async def test_the_work_begins_although_the_first_page_is_never_painted() -> None:
    """A key quicker than the first paint covers that page before it is painted: what threads bring is taken anyhow."""

    class Covered(RunbookApp):
        def call_after_refresh(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
            """Leave out what waits for the first paint."""
            return callback == self._begin or super().call_after_refresh(callback, *args, **kwargs)

    with a_desk() as desk:
        app = Covered(desk)
        async with app.run_test() as pilot:
            brought: list[str] = []
            app.inbox.put(lambda: brought.append("here"))
            await until(pilot, lambda: bool(brought))
