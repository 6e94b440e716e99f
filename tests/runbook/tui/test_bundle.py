"""The terminal UI over a bundle: everything can be looked at, and what needs the cluster says why it cannot be done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.content import Content

from runbook.bundle.form import Excerpt, KeptLine
from runbook.bundle.shelf import Excerpts
from runbook.cli.open import draw
from runbook.evidence import Item
from runbook.finding import Finding, Verdict
from runbook.plain import Plain
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.text import Text, sanitise
from runbook.tui.actions import ACTIONS
from runbook.tui.app import RunbookApp
from runbook.tui.linespane import Lines, LinesPane
from runbook.tui.rows import Rows
from runbook.tui.wishes import OUTSIDE
from runbook.walk import By
from tests.helpers import HOSTILE, is_safe
from tests.runbook.tui import kitchen
from tests.runbook.tui.driving import ROOT, a_desk, drawn, settle

CITED = "tests/data/tui/kitchen.log"


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def excerpts(desk: Desk, around: int = 3) -> Excerpts:
    """Return what would be kept of the cited log: so many lines around the cited one, and the first line."""
    (citation,) = desk.state.findings_of()["kitchen.oven"].citations
    assert citation.line is not None
    kept, offset = [], 0
    lines = (ROOT / citation.path).read_bytes().splitlines(keepends=True)
    for number, raw in enumerate(lines, 1):
        if number == 1 or abs(number - citation.line) <= around:
            kept.append(KeptLine(offset, len(raw), number, False, sanitise(raw.rstrip(b"\n"))))
        offset += len(raw)
    return Excerpts([Excerpt(citation.path, "text", offset, lines=tuple(kept))])


AT_EXPERIMENT = (
    ev.FlowStarted("bread"),
    ev.Answered("bread", "oven-hot", "hot", By.PERSON, "ann"),
    ev.Answered("bread", "dough-risen", "risen", By.PERSON, "ann"),
)


@pytest.mark.parametrize(("start", "keys"), [(None, "ardv"), ("bread", "rsc+tv")], ids=["start", "walk"])
async def test_what_needs_the_cluster_says_why(start: str | None, keys: str) -> None:
    """Each such key says that a bundle holds what was cited; no dialog opens, nothing is asked or recorded."""
    with a_desk(*AT_EXPERIMENT, answers=False) as desk:
        app = RunbookApp(desk, start, kept=Excerpts(()))
        async with app.run_test(notifications=True, size=(110, 40)) as pilot:
            await settle(pilot)
            before, screen = desk.state.revision, app.screen
            for key in keys:
                await pilot.press(key)
                await settle(pilot)
                said = [str(note.message) for note in app._notifications]
                assert said[-1].startswith("nothing to browse: a bundle" if key == "v" else "not in a bundle"), key
                app.clear_notifications()
            assert app.screen is screen
            assert not app.asking.busy
            assert desk.state.revision == before
            assert desk.state.findings_of() == {}


async def test_a_bundle_without_evidence_looks_for_none() -> None:
    """Nothing is searched for, and the head says that this is a bundle."""
    desk = Desk(kitchen.catalog(), session_id="x")
    app = RunbookApp(desk, kept=Excerpts(()))
    async with app.run_test(notifications=True, size=(100, 30)) as pilot:
        await settle(pilot)
        assert "bundle" in drawn(app).splitlines()[0]
        assert "looking" not in drawn(app)
        assert "a bundle: what you answer or note here is not kept" in str([n.message for n in app._notifications])
        assert desk.jobs() == {}
    desk.close()


async def test_answers_and_notes_are_taken_but_nowhere_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader may walk on to see what would come; no file appears anywhere."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with a_desk(ev.FlowStarted("bread")) as desk:
        app = RunbookApp(desk, "bread", kept=excerpts(desk))
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await pilot.press("1")
            await settle(pilot)
            assert [step.answer for step in desk.state.walk("bread").steps] == ["hot"]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_holes_are_drawn_and_passed_over(ascii_only: bool) -> None:
    """The cited line has its true number; what was not kept is one line that says how much, in both languages."""
    with a_desk(ev.FlowStarted("bread")) as desk:
        (citation,) = desk.state.findings_of()["kitchen.oven"].citations
        size = os.stat(CITED).st_size
        kept = excerpts(desk)
        window = kept.open(CITED, citation)
        holes = [line.size for line in window.lines if line.hole]
        assert sum(holes) + sum(line.size for line in window.lines if not line.hole) == size
        app = RunbookApp(desk, "bread", kept=kept, ascii_only=ascii_only)
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("e")
            await settle(pilot)
            shown = drawn(app)
            assert f"line {citation.line:,}" in shown
            for hole in holes:
                assert f"{hole:,} bytes not in the bundle" in shown
            assert not ascii_only or shown.isascii()
            await pilot.press("g")
            await settle(pilot)
            assert app.screen.query_one(Lines).cursor == 0
            await pilot.press("j")
            await settle(pilot)
            assert f"byte {window.lines[1].offset}" in drawn(app)
            assert drawn(app).count(f"{holes[0]:,} bytes not in the bundle") == 2  # in the list, and below it in full
            await pilot.press("G")
            await settle(pilot)
            assert app.screen.query_one(Rows).cursor >= 0
            assert app.screen.query_one(Lines).cursor == len(window.lines) - 1
            await pilot.press(".", "L")
            await settle(pilot)
            assert app.screen.query_one(Lines).cursor == window.at
            assert f"{holes[0]:,} 字节未收入归档" in drawn(app)


async def test_a_file_that_was_not_kept_says_so() -> None:
    """An item of evidence that nobody cited opens to the words that say why there is nothing."""
    with a_desk() as desk:
        app = RunbookApp(desk, kept=Excerpts(()))
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("G", "k", "enter")
            await settle(pilot)
            pane = app.screen.query_one(LinesPane)
            assert pane.window is not None
            assert pane.window.kind == "absent"
            assert "not in the bundle" in drawn(app)


async def test_hostile_lines_of_a_bundle_are_drawn_as_text() -> None:
    """Whatever a bundle's lines hold, nothing reaches the terminal but text."""
    lines, at = [], 0
    for number, piece in enumerate(HOSTILE, 1):
        lines.append(KeptLine(at, 10, number, False, piece * 3))
        at += 10
    with a_desk(ev.FlowStarted("bread")) as desk:
        app = RunbookApp(desk, "bread", kept=Excerpts([Excerpt(CITED, "text", at, lines=tuple(lines))]))
        async with app.run_test(size=(80, 40)) as pilot:
            await settle(pilot)
            await pilot.press("e")
            await settle(pilot)
            assert is_safe(drawn(app).replace("\n", ""))
            assert "[rank7] x" in drawn(app)


def test_the_keys_that_are_refused_are_those_that_are_dim() -> None:
    """Footer, help and refusal agree on what needs the cluster."""
    outside = {action.name.rpartition(".")[2] for action in ACTIONS if action.outside}
    assert outside - {"ask_all"} == OUTSIDE
    assert "ask_all" in outside


async def test_dim_keys_in_footer_and_help() -> None:
    """A key that does nothing here is dim in the footer, and help says so; others are as always."""
    with a_desk() as desk:
        app = RunbookApp(desk, kept=Excerpts(()))
        async with app.run_test(size=(100, 40)) as pilot:
            await settle(pilot)
            keys = app.screen._keys(app.view())  # type: ignore[attr-defined]
            assert isinstance(keys, Content)
            dim = app.ink.dim
            styled = {keys.plain[span.start : span.end]: span.style for span in keys.spans}
            assert styled["a"] == styled["r"] == dim
            assert styled["Enter"] != dim
            await pilot.press("question_mark")
            await settle(pilot)
            assert drawn(app).count("(Not in a bundle.)") >= 2


ODD = (
    ev.FlowStarted("no-such-flow"),
    ev.Answered("bread", "no-such-node", "hot", By.PERSON, "x"),
    ev.Answered("no-such-flow", "a", "b", By.PERSON),
    ev.WentBack("bread", "no-such-node"),
    ev.RunAttached("no-such-flow", "a", "run-2", "r"),
    ev.RunAttached("bread", "no-such-node", "run-3", "r"),
    ev.RunAttached("bread", "oven-off", "run-4", "r"),
    ev.CopyChanged("bread", "no-such-node", "a", "b", "c"),
    ev.Noted("x", "y", "no-such-flow", "no-such-node"),
    ev.Fixed("no-such-cause", "x"),
    ev.EvidenceDropped("no-such-slot", "p"),
    ev.EvidenceAdded((Item("no-such-slot", "", Text("", ""), run="run-9"),)),
    ev.Found(Finding(Verdict.PROBLEM, "no-such-answer", Text("s", "s"), probe="kitchen.oven")),
    ev.Found(Finding(Verdict.OK, "hot", Text("s", "s"), probe="no.such.probe"), "run-9"),
    ev.Judged({"no-such-cause": ev.Stood("odd", "no-such-flow", "x")}, {"no": {"a": ("b", "c")}}, {"no": "x"}),
)


@pytest.mark.parametrize("start", [None, "bread"])
async def test_events_that_name_what_is_not_there_are_drawn_or_passed_over(
    start: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle may say anything: flows, nodes, runs and probes that its catalog lacks end neither screen nor text."""
    with a_desk(*ODD) as desk:
        app = RunbookApp(desk, start, kept=Excerpts(()))
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            for key in ("G", "g", "j", "L"):
                await pilot.press(key)
                await settle(pilot)
            assert app.is_running
        draw(desk, Plain("en"))
        assert "kitchen" in capsys.readouterr().out
