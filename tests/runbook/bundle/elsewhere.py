"""A place where nothing of a session is: an import path without any package of probes or flows, another home.

Processes that open a bundle there show that it needs nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[3]
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
NO_NETWORK = ("unshare", "--net")


class Elsewhere:
    """Such a place in `folder`, which everybody may read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o755)
        for name in ("site", "home", "home/tmp", "cwd"):
            (folder / name).mkdir()
        for name in ("home", "home/tmp"):
            (folder / name).chmod(0o777)
        for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
            if not entry.name.startswith(("slime_runbook", "__editable__", "__pycache__")):
                (folder / "site" / entry.name).symlink_to(entry)
        for ours in ("runbook", "tests"):
            (folder / "site" / ours).symlink_to(ROOT / ours)
        home = folder / "home"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PYTHONPATH": str(folder / "site"),
            "PYTHONDONTWRITEBYTECODE": "1",
            **{f"XDG_{name}_HOME": str(home / name) for name in ("STATE", "CACHE", "CONFIG", "DATA")},
        }

    def take(self, bundle: Path) -> Path:
        """Return the bundle as a colleague got it: a copy that everybody may read."""
        there = self.folder / "handed-over.zip"
        shutil.copyfile(bundle, there)
        there.chmod(0o644)
        return there

    def run(self, module: str, *words: object, around: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run a module there, with `around` before it, in a folder that stays empty."""
        done = subprocess.run(
            [*around, sys.executable, "-S", "-m", module, *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=self.folder / "cwd",
            env=self.environment,
            timeout=180,
        )
        assert not list((self.folder / "cwd").iterdir())
        return done

    @property
    def left_behind(self) -> list[str]:
        """Return the names of all files that were written into home and its folders."""
        return [str(path.relative_to(self.folder)) for path in (self.folder / "home").rglob("*") if path.is_file()]


def works(*words: str) -> bool:
    """Return whether a command does what it should here."""
    try:
        return subprocess.run(words, capture_output=True, check=False, timeout=20).returncode == 0
    except OSError:
        return False
