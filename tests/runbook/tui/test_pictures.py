"""Pictures of the screens: an engineer finds the proven cause, reads its proof, and hands over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from runbook.finding import Finding, Grid, Verdict
from runbook.session import events as ev
from runbook.session.store import SessionInfo
from runbook.text import Text
from runbook.tui.app import RunbookApp
from runbook.walk import By
from tests.runbook.tui.driving import ROOT, a_desk, settle

SIZES = [(80, 24), (120, 40), (200, 60)]


def cells(size: tuple[int, int]) -> str:
    """Return a size as it stands in a test's name."""
    return f"{size[0]}x{size[1]}"


Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def pressing(*keys: str) -> Callable[[Pilot[Any]], Any]:
    """Return a function that presses keys one after the other and waits until all is drawn."""

    async def press(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)

    return press


def is_picture(compare: Compare, size: tuple[int, int], *keys: str, flow: str | None = None, **desk: Any) -> bool:
    """Return whether the screen after some keys is the kept picture."""
    events = desk.pop("events", ())
    with a_desk(*events, **desk) as one:
        app = RunbookApp(one, flow)
        app.start_screen.recent = (
            SessionInfo("20260101-020304-xyz", 1_699_000_000.0, 1_699_000_000.0, "/kitchen/monday", "bread", "", ""),
        )
        return compare(app, terminal_size=size, run_before=pressing(*keys))


@pytest.mark.parametrize("size", SIZES, ids=cells)
def test_the_start_screen_names_the_proven_cause_first(snap_compare: Compare, size: tuple[int, int]) -> None:
    """Cause, flows, evidence and recent sessions, and below them the proof of the chosen cause."""
    assert is_picture(snap_compare, size)


@pytest.mark.parametrize("size", SIZES, ids=cells)
def test_enter_leads_to_the_cause_with_its_proof_and_fix(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The leaf: why it is confirmed, the fix, the command, and one next action."""
    assert is_picture(snap_compare, size, "enter")


@pytest.mark.parametrize("size", SIZES, ids=cells)
def test_a_check_shows_what_was_measured_and_the_answer_to_accept(snap_compare: Compare, size: tuple[int, int]) -> None:
    """A check with a finding, its citation, measurement, table, the answers and the recommended one."""
    assert is_picture(snap_compare, size, flow="bread", events=(ev.FlowStarted("bread"),))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=cells)
def test_the_evidence_opens_at_the_cited_line(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The log around the cited line, with true line numbers."""
    assert is_picture(snap_compare, size, "e", flow="bread", events=(ev.FlowStarted("bread"),))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=cells)
def test_an_unknown_check_says_why_and_what_would_settle_it(snap_compare: Compare, size: tuple[int, int]) -> None:
    """After a person overruled the probe: unknown with its reason, and the missing evidence as the next action."""
    events = (ev.FlowStarted("bread"), ev.Answered("bread", "oven-hot", "hot", By.PERSON, "ann"))
    assert is_picture(snap_compare, size, flow="bread", events=events)


def test_an_experiment_shows_the_change(snap_compare: Compare) -> None:
    """The flags to add, to take away and to set, and attaching the run as the next action."""
    events = (
        ev.FlowStarted("bread"),
        ev.Answered("bread", "oven-hot", "hot", By.PERSON, "ann"),
        ev.Answered("bread", "dough-risen", "risen", By.PERSON, "ann"),
    )
    assert is_picture(snap_compare, (80, 24), flow="bread", events=events)


def test_back_keeps_the_answer_as_stale(snap_compare: Compare) -> None:
    """After going back the earlier answer is still there, marked stale."""
    events = (ev.FlowStarted("bread"), ev.Answered("bread", "oven-hot", "hot", By.PERSON, "ann"))
    assert is_picture(snap_compare, (80, 24), "b", flow="bread", events=events)


def test_the_keys_of_the_focused_pane(snap_compare: Compare) -> None:
    """Help lists the keys of what has the focus."""
    assert is_picture(snap_compare, (80, 24), "question_mark", flow="bread", events=(ev.FlowStarted("bread"),))


def test_in_chinese(snap_compare: Compare) -> None:
    """The same leaf in Chinese."""
    assert is_picture(snap_compare, (80, 24), "enter", language="zh")


def test_in_ascii_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under NO_COLOR with ASCII signs every status can still be read."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "linux")
    assert is_picture(snap_compare, (80, 24), "enter")


def test_in_light_colours(snap_compare: Compare) -> None:
    """The light theme."""
    assert is_picture(snap_compare, (80, 24), "T")


def test_a_terminal_that_is_too_small(snap_compare: Compare) -> None:
    """The size it needs, and the size it has."""
    assert is_picture(snap_compare, (56, 18))


def test_a_picture_of_cells_shows_the_hole(snap_compare: Compare) -> None:
    """A grid keeps its columns under their labels, each code as it is, with its legend."""
    words = {"=": Text("the same", "相同"), "x": Text("burnt", "烤焦"), ".": Text("empty", "空")}
    roles = {"=": "good", "x": "bad", ".": "warn"}
    grid = Grid(
        Text("Loaves by shelf", "各层面包"),
        ("upper", "middle", "lower"),
        ("left", "centre", "right"),
        ("==x", "=.x", "==="),
        tuple((code, words[code], role) for code, role in roles.items()),
    )
    finding = Finding(
        Verdict.WARNING, "cold", Text("One side burns.", "一侧烤焦。"), grids=(grid,), probe="kitchen.oven"
    )
    events = (ev.FlowStarted("bread"), ev.Found(finding))
    assert is_picture(snap_compare, (80, 24), flow="bread", events=events)
