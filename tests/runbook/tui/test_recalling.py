"""Tests of what the terminal UI says of earlier sessions, and what it leaves for later ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from runbook.ledger import keeping, store
from runbook.session.desk import Desk
from runbook.session.opening import new_session
from runbook.tui.app import RunbookApp
from tests.runbook import small
from tests.runbook.ledger.test_keeping import proof, session
from tests.runbook.tui.driving import drawn, settle, until


def earlier(folder: Path) -> str:
    """Keep a session that confirmed the cause, with what fixed it, and return its id."""
    desk = session(folder, proof("load: not loaded"))
    keeping.remember(desk)
    desk.close()
    store.append(folder, (store.Mended(1.0, desk.session_id, "", "gave the right [folder]"),))
    return desk.session_id


def now(folder: Path) -> Desk:
    """Return the session at hand, in which the same cause is confirmed."""
    return session(folder, proof("load: not loaded"), run="job-13")


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_a_cause_that_was_seen_is_said_where_it_stands(tmp_path: Path, size: tuple[int, int]) -> None:
    """The start screen's detail and the cause's own text say how often, and what fixed it."""
    earlier(tmp_path)
    desk = now(tmp_path)
    app = RunbookApp(desk)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "seen once before" in drawn(app))
        assert "gave the right [folder]" in " ".join(drawn(app).split())
        app.open_flow("small", "not-loaded")
        await settle(pilot)
        await until(pilot, lambda: "seen once before" in drawn(app))
    desk.close()


async def test_what_is_confirmed_is_entered_once_nothing_is_asked(tmp_path: Path) -> None:
    """The ledger has the session's cause while the UI is open, so that a kill later costs nothing."""
    desk = now(tmp_path)
    app = RunbookApp(desk)
    async with app.run_test() as pilot:
        await until(pilot, lambda: len(store.read(tmp_path)) == 1)
        await until(pilot, lambda: desk.state.judged is not None)
        await settle(pilot)
    (entry,) = store.read(tmp_path)
    assert entry.session == desk.session_id
    desk.close()


async def test_trouble_with_the_ledger_is_said_and_the_work_goes_on(tmp_path: Path) -> None:
    """A ledger that cannot be written is named; the screen stays."""
    (tmp_path / store.LEDGER).mkdir()
    desk = now(tmp_path)
    app = RunbookApp(desk)
    async with app.run_test(notifications=True) as pilot:
        await until(pilot, lambda: "ledger.jsonl" in drawn(app).replace("\n", "") or app.recalling.trouble is not None)
        await settle(pilot)
        assert app.is_running
    assert app.recalling.trouble is not None
    desk.close()


async def test_a_session_that_is_kept_nowhere_asks_no_ledger(tmp_path: Path) -> None:
    """In memory nothing is read or written."""
    kept = new_session(small.catalog(), str(tmp_path))
    kept.close()
    desk = Desk(small.catalog())
    desk.append(proof())
    app = RunbookApp(desk)
    async with app.run_test() as pilot:
        await settle(pilot)
        assert app.view().seen == {}
    assert desk.state.judged is None
    desk.close()
