"""Pictures of the preview: an engineer sees what will leave, leaves a line out, and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from runbook.session import events as ev
from runbook.tui.app import RunbookApp
from runbook.tui.dialogs import Choose
from runbook.tui.preview import PreviewScreen
from tests.runbook.tui.driving import ROOT, a_desk, settle, until
from tests.runbook.tui.test_pictures import Compare, cells

NOTE = "mueller@corp.example.net says: the lamp of gpu-node-017 was off, 灯没有亮"
FACTS = (("ticket by", "0.1.0"), ("Python", "3.11.7"), ("system", "Linux 6.1 x86_64"))
SIZES = [(60, 20), (80, 24), (120, 40), (200, 60)]


@pytest.fixture(autouse=True)
def _the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("runbook.ticket.export.tool_facts", lambda: FACTS)
    monkeypatch.setattr("runbook.ticket.export.local_identity", _identity)


def _identity(people: object, hide: tuple[str, ...]) -> Any:
    from runbook.ticket.redact import Identity

    return Identity((), (), tuple(hide))


def is_picture(
    compare: Compare, size: tuple[int, int], folder: Path, *keys: str, note: str = NOTE, **desk: Any
) -> bool:
    """Return whether the preview after some keys is the kept picture."""

    async def press(pilot: Pilot[Any]) -> None:
        app = pilot.app
        await settle(pilot)
        await pilot.press("x", "enter")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen) and not app.screen.busy)
        for key in keys:
            await pilot.press(key)
            if key == "enter":
                await until(pilot, lambda: isinstance(app.screen, Choose))
            await settle(pilot)
        await settle(pilot)

    with a_desk(ev.Noted(note, "ann"), **desk) as one:
        one.folder = str(folder)
        return compare(RunbookApp(one), terminal_size=size, run_before=press)


@pytest.mark.parametrize("size", SIZES, ids=cells)
def test_the_lines_that_will_leave(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    """The first hidden place is at the cursor, in full below; the line before it is left out."""
    assert is_picture(snap_compare, size, tmp_path, "n", "k", "space")


def test_in_chinese(snap_compare: Compare, tmp_path: Path) -> None:
    """The same in Chinese."""
    assert is_picture(snap_compare, (80, 24), tmp_path, "n", "k", "space", language="zh")


def test_in_ascii_without_colour(snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under NO_COLOR with ASCII signs a hidden place and a dropped line can be told apart."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "linux")
    assert is_picture(snap_compare, (80, 24), tmp_path, "n", "k", "space")


def test_only_what_comes_from_evidence_and_people(snap_compare: Compare, tmp_path: Path) -> None:
    """Without the tool's own words, which the line above the list says."""
    assert is_picture(snap_compare, (80, 24), tmp_path, "o", "n")


def test_its_keys(snap_compare: Compare, tmp_path: Path) -> None:
    """Help lists the keys of the preview before those of the list."""
    assert is_picture(snap_compare, (80, 24), tmp_path, "question_mark")


def test_a_refused_ticket(snap_compare: Compare, tmp_path: Path) -> None:
    """Nothing was written, why, the line behind, and the two ways on."""
    note = "api%2Dkey%3Da1B2c3D4e5F6g7H8i9J0"
    assert is_picture(snap_compare, (80, 24), tmp_path, "enter", note=note)
