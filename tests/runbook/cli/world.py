"""Runs the command in a fresh process that has only the small world of the tests installed.

What is ours is installed for the tests as well, so its distribution is left out of a copy of the import path made of
links; the small world is then found through entry points of its own, as ours is elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[3]

ENTRY_POINTS = """\
[slime_runbook.probes]
small = tests.runbook.small
[slime_runbook.flows]
small = tests.data.flows
"""


class World:
    """The command in the small world, with a folder for runs and one for sessions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions = folder / "sessions"
        site = folder / "site"
        if not site.exists():
            _build(site)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": str(site),
        }

    def log(self, content: bytes, name: str = "job.log") -> Path:
        """Return a new folder of a run with one log in it."""
        run = self.folder / f"run{len(list(self.folder.glob('run*')))}"
        run.mkdir()
        (run / name).write_bytes(content)
        return run

    def command(self, *words: object) -> list[str]:
        """Return the command line."""
        return [sys.executable, "-S", "-m", "runbook.cli.main", *map(str, words)]

    def __call__(self, *words: object, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            self.command(*words),
            input=stdin,
            capture_output=True,
            encoding=environment.get("PYTHONIOENCODING", "utf-8"),
            check=False,
            cwd=self.folder,
            env={**self.environment, **environment},
            timeout=60,
        )


def _build(site: Path) -> None:
    site.mkdir()
    installed = Path(sysconfig.get_paths()["purelib"])
    for entry in installed.iterdir():
        if not entry.name.startswith(("slime_runbook", "__editable__", "__pycache__")):
            (site / entry.name).symlink_to(entry)
    for ours in ("runbook", "tests"):  # not the folder itself: a build leaves entry points of ours in it
        (site / ours).symlink_to(ROOT / ours)
    info = site / "small-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
