"""How tests drive the app: a desk over the kitchen's log, real findings, and waiting until all is drawn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from runbook.catalog import Catalog
from runbook.evidence import Item
from runbook.probe import silent
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.tui.app import RunbookApp
from runbook.tui.linespane import LinesPane
from tests.runbook.tui import kitchen

LOG = "tests/data/tui/kitchen.log"
"""Relative, so that pictures are the same everywhere; tests stand in the repository's root."""
ROOT = Path(__file__).parents[3]


def ticking() -> float:
    """Stand in for the clock where a picture shows no time."""
    return 1_700_000_000.0


def items(log: str = LOG) -> ev.EvidenceAdded:
    """Return the kitchen's evidence: its log, and a printout that is named but not there."""
    return ev.EvidenceAdded(
        (
            Item("log", log, kitchen.both("its lines begin like a kitchen log", "其行首与厨房日志一致"), "found"),
            Item("scale", "scale.txt", kitchen.both("the log names it", "日志提到了它"), "named", missing=True),
        )
    )


def answered(desk: Desk, *, slow: bool = True) -> None:
    """Journal what the kitchen's probes find, asked here and now."""
    for probe in (kitchen.oven, kitchen.dough):
        finding = probe.run(desk.state.evidence(), silent)
        desk.append(ev.Found(msgspec.structs.replace(finding, probe=probe.id, seconds=0.2)))
    if slow:
        desk.append(ev.Found(msgspec.structs.replace(kitchen.SLOW_FOUND, probe="kitchen.slow", seconds=12.0)))


@contextmanager
def a_desk(
    *events: ev.Event, catalog: Catalog | None = None, language: str = "en", answers: bool = True, log: str = LOG
) -> Iterator[Desk]:
    """Yield a desk in memory with the kitchen's evidence, `events` after it, and by default all findings."""
    desk = Desk(catalog or kitchen.catalog(), session_id="20260102-030405-abc", language=language, clock=ticking)
    desk.begin("/kitchen")
    desk.append(items(log))
    if answers:
        answered(desk)
    for event in events:
        desk.append(event)
    try:
        yield desk
    finally:
        desk.close()


async def settle(pilot: Pilot[Any], seconds: float = 20.0) -> None:
    """Wait until no probe runs, nothing waits for the desk and everything is drawn."""
    app = pilot.app
    assert isinstance(app, RunbookApp)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await pilot.pause(0.06)
        reading = any(pane.busy for pane in app.screen.query(LinesPane))
        if not app.asking.busy and not app.hands.pending and not reading:
            break
    same, last = 0, ""
    while same < 3 and time.monotonic() < end:
        await asyncio.sleep(0.05)
        await pilot.pause()
        now = drawn(app)
        same, last = (same + 1 if now == last else 0), now


def drawn(app: RunbookApp) -> str:
    """Return the text of the screen, line by line."""
    width, height = app.size
    lines = app.screen._compositor.render_strips()
    return "\n".join(strip.text.ljust(width) for strip in lines[:height])


async def until(pilot: Pilot[Any], condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until a condition holds; the test fails when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        await pilot.pause(0.05)


async def type_in(pilot: Pilot[Any], words: str) -> None:
    """Type words into what has the focus, then Enter."""
    await pilot.press(*words, "enter")


def install_kitchen(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the kitchen an installed package, so that discovery, which runs in a worker, knows its slots."""
    info = site / "kitchen-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kitchen\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[slime_runbook.probes]\nkitchen = tests.runbook.tui.kitchen\n")
    monkeypatch.syspath_prepend(str(site))
