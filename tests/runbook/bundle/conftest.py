"""One cooked session for all tests of a process, and a folder in which each test stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runbook.bundle.cooking import cook


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a session; the test stands where its run is, as somebody whose name hides nothing."""
    for name in ("LOGNAME", "SLIME_RUNBOOK_WHO"):
        monkeypatch.setenv(name, "root")
    place = tmp_path / "there"
    place.mkdir()
    monkeypatch.chdir(place)
    return cook(place)
