"""What holds for every test: no test writes into the home folder, and hypothesis judges by result, not by time.

Nor does a test depend on who runs it, where: names, logins, terminal and zone of the machine are out of sight.
"""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "runbook",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize=True,  # a check that fails says something about the change at hand, not about luck
)
settings.register_profile("explore", settings.get_profile("runbook"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "runbook"))


_TERMINAL = ("NO_COLOR", "FORCE_COLOR", "LC_ALL", "LC_MESSAGES", "COLUMNS", "TMUX", "STY")
_OURS = ("SLIME_RUNBOOK_CACHE", "SLIME_RUNBOOK_SESSIONS", "SLIME_RUNBOOK_WHO")


@pytest.fixture(autouse=True)
def _own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test its own state and cache folders, a neutral terminal, and UTC."""
    home = tmp_path_factory.mktemp("xdg")
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    for name in (*_TERMINAL, *_OURS, *(name for name in os.environ if name.startswith("RAY_AUTH_"))):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
