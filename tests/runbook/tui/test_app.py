"""The app, driven by keys over a real desk and real probes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runbook.evidence import Item
from runbook.session import events as ev
from runbook.tui.app import RunbookApp
from runbook.tui.dialogs import Export, Keys
from runbook.tui.linespane import Lines, LinesPane
from runbook.tui.nodepane import NodePane
from runbook.tui.rows import Rows
from runbook.tui.start import StartScreen
from runbook.tui.treepane import TreePane
from runbook.tui.walk import WalkScreen
from runbook.walk import By
from tests.runbook.tui import kitchen
from tests.runbook.tui.driving import ROOT, a_desk, drawn, settle


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
    """While a probe runs the keys work, its line counts, after three seconds it says so, and `c` ends it at once."""
    with a_desk(ev.FlowStarted("soup"), answers=False) as desk:
        app = RunbookApp(desk, "soup")
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            end = time.monotonic() + 15
            while "still running" not in drawn(app) and time.monotonic() < end:
                await pilot.pause(0.1)
            text = drawn(app)
            assert "still running" in text
            assert "loaves" in text
            began = time.monotonic()
            await pilot.press("question_mark")
            assert isinstance(app.screen, Keys)
            assert time.monotonic() - began < 1.0
            await pilot.press("escape", "c")
            await settle(pilot, 5)
            assert "cancelled" in drawn(app)
            assert "timed out" in drawn(app)


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


async def test_missing_evidence_is_the_recommended_action_and_adding_it_asks_again(tmp_path: Path) -> None:
    """Enter at an unknown node asks for the slot it lacks; what was added is in evidence as given."""
    (tmp_path / "scale.txt").write_text("900 g\n")
    with a_desk(ev.FlowStarted("bread"), ev.Answered("bread", "oven-hot", "hot", By.PERSON, "ann")) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            assert "Add evidence: scale printout" in drawn(app)
            await pilot.press("enter")
            await pilot.pause(0.1)
            assert "Path for scale printout" in drawn(app)
            await pilot.press("escape")
            desk.append(ev.EvidenceAdded((Item("scale", str(tmp_path / "scale.txt"), kitchen.both("given"), "given"),)))
            await settle(pilot)
            assert "Choose an answer" in drawn(app)


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
    """`y` at a leaf writes the command into a file, and the words do not say that the clipboard took it."""
    with a_desk(ev.FlowStarted("bread"), ev.Answered("bread", "oven-hot", "cold", By.PROBE)) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await settle(pilot)
            await pilot.press("y")
            await settle(pilot)
            text = drawn(app)
            assert "if it allows" in text
            assert app.clipboard == "oven --on \\\n  --celsius 230"


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


async def test_export_shows_what_happened() -> None:
    """The export dialog ends with a path or with the reason why nothing was written, and Esc leaves it."""
    with a_desk() as desk:
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("x", "enter")
            await pilot.pause(1.0)
            text = drawn(app)
            assert "written to" in text or "nothing was written" in text
            assert [type(screen) for screen in app.screen_stack] == [StartScreen, Export]
            await pilot.press("escape")
            assert [type(screen) for screen in app.screen_stack] == [StartScreen]


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
