"""debugpy as Ray judges it: a string comparison with 1.8.0."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.ray_debugger_debugpy import debugpy
from tests.probes import asking
from tests.probes.asking import ask_text, word
from tests.probes.scripts import ask, write

REFUSED = (
    "Module 'debugpy>=1.8.0' cannot be loaded. Ray Debugpy Debugger will not work without 'debugpy>=1.8.0' installed. "
    "Install this module using 'pip install debugpy==1.8.0' "
)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.8.0", "ok:right"),
        ("1.8.14", "ok:right"),
        ("1.6.7", "problem:other-version"),
        ("1.10.0", "problem:other-version"),
    ],
)
def test_versions_compare_as_strings(tmp_path: Path, version: str, expected: str) -> None:
    """1.10.0 is smaller than 1.8.0 as a string, so Ray refuses it."""
    assert word(ask(debugpy, versions=write(tmp_path, "v.txt", f"ray==2.49.2\ndebugpy=={version}\n"))) == expected


@pytest.mark.parametrize(("count", "expected"), [(40, "warning:absent"), (3, "unknown")])
def test_absence_needs_a_whole_freeze(tmp_path: Path, count: int, expected: str) -> None:
    """A few quoted versions prove nothing; a whole environment without debugpy does."""
    text = "".join(f"package{n}==1.0\n" for n in range(count))
    assert word(ask(debugpy, versions=write(tmp_path, "v.txt", text))) == expected


def test_rays_complaint_proves_it(tmp_path: Path) -> None:
    """The line that Ray logs when it cannot load debugpy."""
    assert word(ask_text(debugpy, tmp_path, REFUSED)) == "problem:absent"
    assert word(ask_text(debugpy, tmp_path, "debugpy>=1.8.0 is fine")) == "unknown"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("debugpy==1.8.0", "ok:right"),
        ("(pip pid=3) debugpy==1.10.1", "problem:other-version"),
        ("Successfully installed certifi-2025.1.31 debugpy-1.8.0 wheel-0.45", "ok:right"),
        ("Successfully installed debugpy-1.6.3", "problem:other-version"),
        ("Install this module using 'pip install debugpy==1.8.0' ", "unknown"),
        ("Successfully uninstalled debugpy-1.6.3", "unknown"),
        ("not-debugpy==1.6.0", "unknown"),
    ],
)
def test_the_version_may_stand_in_the_log(tmp_path: Path, line: str, expected: str) -> None:
    """What pip printed into the job's log counts; what somebody recommends does not."""
    assert word(ask_text(debugpy, tmp_path, line)) == expected


def test_rays_complaint_weighs_more_than_a_freeze(tmp_path: Path) -> None:
    """A freeze of another machine that has 1.8.0 does not take back that a worker could not load it."""
    versions = write(tmp_path, "v.txt", "ray==2.49.2\ndebugpy==1.8.0\n")
    log = tmp_path / "job.log"
    log.write_text(f"(step pid=4) {REFUSED}\n")
    assert word(asking.ask(debugpy, log, versions=versions)) == "problem:absent"
