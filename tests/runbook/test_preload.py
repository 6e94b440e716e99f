"""What the fork server loads is done once, and nothing that a package brings can stop it."""

from __future__ import annotations

import gc
import runpy
from types import ModuleType
from typing import NoReturn

import pytest

from runbook import catalog
from runbook.ready import Ready


def test_what_a_package_wants_done_is_done_once_and_a_failure_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Ready of every module runs, also behind one that raises; other values are left alone."""
    done: list[str] = []

    def fails() -> NoReturn:
        raise RuntimeError("broken package")

    first, second = ModuleType("first"), ModuleType("second")
    vars(first).update(BROKEN=Ready(fails), GOOD=Ready(lambda: done.append("good")), function=fails)
    vars(second).update(LAST=Ready(lambda: done.append("last")))
    monkeypatch.setattr(catalog, "probe_modules", lambda: ([first, second], ()))
    try:
        runpy.run_module("runbook.preload")
    finally:
        gc.unfreeze()
    assert done == ["good", "last"]
