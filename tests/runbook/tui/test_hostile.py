"""Hostile text through every widget: nothing of it is obeyed, nothing of it is lost, nothing crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from runbook.evidence import Item
from runbook.finding import Citation, Curve, Finding, Grid, Measurement, Plot, Table, Verdict
from runbook.flow.model import Node
from runbook.session import events as ev
from runbook.session.store import SessionInfo
from runbook.text import Text
from runbook.tui.app import RunbookApp
from runbook.tui.dialogs import Choose, Keys
from tests.helpers import HOSTILE, is_safe
from tests.runbook.tui import kitchen
from tests.runbook.tui.driving import ROOT, a_desk, drawn, settle

SHOWN = "[rank7] x[/rank0] [red]y[/red] [@click=app.quit]z[/] $ink-bad"
EVIL = SHOWN + "".join(HOSTILE)
WORDS = Text(EVIL, EVIL)


def hostile_finding(path: str) -> Finding:
    """Return a finding made without any of the safe builders."""
    citation = Citation(path, 1, 0, EVIL, 3)
    curve = Curve(EVIL, ((0.0, 1.0), (1.0, None), (2.0, 3.0)))
    return Finding(
        Verdict.PROBLEM,
        "cold",
        WORDS,
        citations=(citation,),
        measurements=(Measurement(EVIL, 1.0, EVIL, 2.0, EVIL),),
        tables=(Table(WORDS, (EVIL, EVIL), ((EVIL, EVIL),)),),
        plots=(Plot(WORDS, EVIL, EVIL, (curve, curve), ((1.0, WORDS),), ((2.0, WORDS),)),),
        grids=(Grid(WORDS, (EVIL,), (EVIL,), (EVIL,), ((EVIL, WORDS, "bad"),)),),
        settle_with=WORDS,
        probe="kitchen.oven",
        seconds=1.0,
    )


@pytest.fixture
def evil_log(tmp_path: Path) -> str:
    """Return a log with hostile lines, one of a megabyte and some bytes that are no UTF-8."""
    path = tmp_path / "a[rank0]\u202eb.log"
    body = EVIL.replace("\x00", "").encode("utf-8", "surrogatepass")
    path.write_bytes(
        body + b"\n[rank7] x\n[/rank0]\n" + b"\xff\xfe\x80\n" + b"x" * 1_000_000 + b"\n" + "汉".encode() * 2000 + b"\n"
    )
    return str(path)


async def visit(pilot: Pilot[Any], app: RunbookApp) -> list[str]:
    """Go through all screens and return what each drew."""
    seen = []
    for keys in (
        (),
        ("down",),
        ("down", "down", "down"),
        ("g", "enter"),
        ("e",),
        ("G",),
        ("l", "l"),
        ("escape", "b"),
        ("a",),
        ("escape", "shift+tab", "j", "j"),
        ("L",),
    ):
        await pilot.press(*keys)
        await settle(pilot, 3)
        seen.append(drawn(app))
    return seen


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_hostile_text_is_drawn_and_never_obeyed(
    monkeypatch: pytest.MonkeyPatch, evil_log: str, size: tuple[int, int]
) -> None:
    """Hostile findings, paths, notes, sessions and log lines leave only safe characters on every screen."""
    monkeypatch.chdir(ROOT)
    events = (
        ev.EvidenceAdded((Item(EVIL, EVIL, WORDS, "found"), Item("log", evil_log, WORDS, "given", missing=True))),
        ev.Found(hostile_finding(evil_log)),
        ev.Noted(EVIL, EVIL, "bread", "oven-hot"),
    )
    with a_desk(*events, log=evil_log) as desk:
        app = RunbookApp(desk)
        async with app.run_test(notifications=True, size=size) as pilot:
            await settle(pilot)
            app.start_screen.recent = (SessionInfo("20260101", 0.0, 0.0, EVIL, EVIL, EVIL, EVIL),)
            app.say(EVIL, bad=True)
            seen = await visit(pilot, app)
            assert app.is_running
    for screen in seen:
        assert all(is_safe(line) for line in screen.split("\n"))
    everything = "\n".join(seen)
    for word in SHOWN.split():
        assert word in everything


async def test_hostile_words_in_dialogs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice list over an answer with markup in it draws the brackets as they are."""
    monkeypatch.chdir(ROOT)
    flow = msgspec.structs.replace(
        kitchen.FLOW,
        title=WORDS,
        symptom=WORDS,
        nodes={
            **kitchen.FLOW.nodes,
            "oven-hot": Node(
                question=WORDS,
                note=WORDS,
                answers={"[rank7] x": WORDS},
                branches={"[rank7] x": "all-well", "[/rank0]": "oven-off"},
            ),
        },
    )
    with a_desk(ev.FlowStarted("bread"), catalog=kitchen.catalog(flow)) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(notifications=True, size=(100, 30)) as pilot:
            await settle(pilot)
            await pilot.press("a")
            await settle(pilot)
            assert isinstance(app.screen, Choose)
            text = drawn(app)
            assert "[/rank0]" in text
            assert all(is_safe(line) for line in text.split("\n"))
            await pilot.press("escape", "question_mark")
            await settle(pilot)
            assert isinstance(app.screen, Keys)
