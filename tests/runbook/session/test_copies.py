"""Changed copies of a session: written beside the journal, by a worker, and never over the original."""

from __future__ import annotations

import queue
import stat
from pathlib import Path
from typing import Any

import pytest

from runbook.catalog import load_catalog
from runbook.changing import Changed
from runbook.errors import EvidenceError, RunbookError, SessionError, UsageError
from runbook.evidence import Item
from runbook.session import copies
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import new_session, open_session
from runbook.text import Text

SCRIPT = "#!/bin/bash\nray job submit -- python3 train.py \\\n   --actor-num-nodes 1 \\\n   --colocate\n"
CATALOG = load_catalog()


def desk_with(folder: Path, script: Path | None) -> Desk:
    """Return a kept session whose evidence is a launch script."""
    desk = new_session(CATALOG, str(folder / "sessions"))
    if script is not None:
        desk.append(ev.EvidenceAdded((Item("launch", str(script), Text("given", "给出")),)))
    return desk


def made(desk: Desk, flow: str, node: str) -> ev.CopyChanged | RunbookError:
    """Ask for a changed copy and wait for it, or for the error."""
    heard: queue.Queue[Any] = queue.Queue()
    desk.listen(lambda kind, payload: heard.put(payload) if kind == "error" else None)
    desk.change(flow, node, heard.put)
    result = heard.get(timeout=60)
    assert isinstance(result, ev.CopyChanged | RunbookError)
    return result


def test_copy_is_written_beside_the_journal(tmp_path: Path) -> None:
    """The copy stands in the session's folder with the diff on record; the original is as it was."""
    script = tmp_path / "run.sh"
    script.write_text(SCRIPT)
    desk = desk_with(tmp_path, script)
    try:
        event = made(desk, "ima", "blocking-run")
        assert isinstance(event, ev.CopyChanged)
        copy = Path(event.path)
        assert copy == Path(desk.folder) / "changed" / "ima.blocking-run" / "run.sh"
        assert "CUDA_LAUNCH_BLOCKING" in copy.read_text()
        assert script.read_text() == SCRIPT
        assert [line for line in event.diff.splitlines() if line.startswith("+ray job submit")]
        assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
        assert desk.state.copies["ima", "blocking-run"] == event
        folder = desk.folder
    finally:
        desk.close()
    again = open_session(CATALOG, folder)
    try:
        assert again.state.copies["ima", "blocking-run"] == event
    finally:
        again.close()


def test_nothing_to_change(tmp_path: Path) -> None:
    """Without a launch script, and at a node that asks for no change, the error says what to do."""
    desk = desk_with(tmp_path, None)
    try:
        with pytest.raises(EvidenceError) as caught:
            desk.change("ima", "blocking-run")
        assert caught.value.hint == "give it with --launch"
        with pytest.raises(UsageError):
            desk.change("ima", "ima-present")
    finally:
        desk.close()


def test_script_that_cannot_be_changed(tmp_path: Path) -> None:
    """A launch script without a training command is told as such, and nothing is recorded."""
    script = tmp_path / "run.sh"
    script.write_text("echo hello\n")
    desk = desk_with(tmp_path, script)
    try:
        error = made(desk, "ima", "blocking-run")
        assert isinstance(error, EvidenceError)
        assert str(script) in error.message
        assert desk.state.copies == {}
    finally:
        desk.close()


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A copy that cannot be written names its place."""
    original = tmp_path / "run.sh"
    original.write_text(SCRIPT)
    (tmp_path / "changed").write_text("a file where the folder should be")
    with pytest.raises(SessionError, match="changed"):
        copies.keep(str(tmp_path), "f", "n", Changed(str(original), SCRIPT + "# x\n"))
    with pytest.raises(SessionError, match="gone"):
        copies.keep(str(tmp_path), "f", "n", Changed(str(tmp_path / "gone.sh"), ""))


def test_session_in_memory_keeps_the_diff(tmp_path: Path) -> None:
    """Where a session keeps no files the diff is on record and no path is named."""
    original = tmp_path / "run.sh"
    original.write_text(SCRIPT)
    event = copies.keep(
        "", "f", "n", Changed(str(original), SCRIPT.replace("nodes 1", "nodes 2"), left=(Text("l", "l"),))
    )
    assert event.path == ""
    assert "-   --actor-num-nodes 1 \\" in event.diff.splitlines()
    assert event.left == (Text("l", "l"),)
