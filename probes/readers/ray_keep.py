"""What is kept of a live cluster: its answers and the fetched log of its job, in a private folder of this user.

An answer of a live cluster is gone a moment later, so what a finding cites is kept as it came, and probes that ask the
same within FRESH seconds share one answer. The folder is `ray/` below the tool's cache; it is the owner's alone, what
is older than DAYS is removed when something new comes, and it may be deleted at any time. Where it cannot be written,
answers are used all the same and cited by their address. Invariants: files appear whole, with mode 0600; a file that a
finding may cite is never written again, but for a log, which only grows; one question to a cluster is on its way at a
time, and questions keep PAUSE seconds apart, also between processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

FRESH = 10.0
"""Seconds for which an answer counts as of now: all probes of one triage see one state."""
PAUSE = 0.1
"""Seconds between two questions to one cluster."""
CUT_NAME = ".middle-not-fetched.log"
"""How the name of a fetched log ends whose middle is missing."""
DAYS = 14.0
"""Days after which what was kept is removed."""


@dataclass(frozen=True)
class Cluster:
    """A cluster by the address of its dashboard; `folder` is where its answers and logs are kept."""

    url: str

    @cached_property
    def folder(self) -> str:
        """Return the folder, which need not be there; no name of a machine is in its name, for paths are cited."""
        import platformdirs

        root = os.environ.get("SLIME_RUNBOOK_CACHE") or platformdirs.user_cache_dir("slime-runbook", appauthor=False)
        return os.path.join(root, "ray", hashlib.sha256(self.url.encode()).hexdigest()[:12])


def is_cut(path: str) -> bool:
    """Return whether a file is a fetched log whose middle is missing."""
    return path.endswith(CUT_NAME)


def plain(name: str) -> str:
    """Return a file name for what a server may have named; two names that differ stay different."""
    kept = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:80].strip("-")
    return kept if kept == name else f"{kept}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def prepare(folder: str) -> bool:
    """Make a folder for its owner alone; return whether it can be written."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@contextlib.contextmanager
def turn(cluster: Cluster, until: float) -> Iterator[None]:
    """Wait for this process's turn to ask a cluster, at most until `until` (monotonic seconds), and hold it."""
    prepare(cluster.folder)
    with held(os.path.join(cluster.folder, "turn"), until, PAUSE):
        yield


@contextlib.contextmanager
def held(path: str, until: float, pause: float = 0.0) -> Iterator[None]:
    """Hold a lock file, which is let go at least `pause` seconds before anybody gets it again.

    Where it cannot be written, or another holds it until `until`, the work is done all the same.
    """
    descriptor = -1
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if descriptor >= 0:
            _lock(descriptor, until, pause)
        yield
    finally:
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.utime(descriptor)
            os.close(descriptor)


def _lock(descriptor: int, until: float, pause: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until - 1.0:
                return
            time.sleep(0.02)
            continue
        except OSError:
            return
        status = os.fstat(descriptor)
        rest = pause - (time.time() - status.st_mtime)
        if 0 < rest <= pause:
            time.sleep(rest)
        return


def write(path: str, content: bytes) -> bool:
    """Write a file that appears whole, for its owner alone; return whether it is there."""
    draft = f"{path}.{secrets.token_hex(4)}"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        return False
    return True


def append(path: str, content: bytes) -> bool:
    """Append to a file that is there; return whether all of it is there now."""
    try:
        with open(path, "ab") as file:
            file.write(content)
    except OSError:
        return False
    return True


def fresh(cluster: Cluster, name: str, now: float) -> str:
    """Return the youngest kept answer of that name that is of now, "" where there is none. now: epoch seconds."""
    for moment in _moments(cluster):
        if not 0 <= now - _time(moment) <= FRESH:
            break
        path = os.path.join(cluster.folder, moment, name)
        if os.path.isfile(path):
            return path
    return ""


def keep(cluster: Cluster, name: str, content: bytes, now: float) -> str:
    """Keep an answer that came at `now` and return its path, "" where it cannot be kept."""
    prune(cluster, now)
    folder = os.path.join(cluster.folder, f"{now:.3f}")
    path = os.path.join(folder, name)
    return path if prepare(folder) and write(path, content) else ""


def _moments(cluster: Cluster) -> list[str]:
    """Return the names of the folders of answers, the youngest first."""
    try:
        return sorted((name for name in os.listdir(cluster.folder) if _time(name)), key=_time, reverse=True)
    except OSError:
        return []


def _time(name: str) -> float:
    return float(name) if re.fullmatch(r"\d{9,11}\.\d{3}", name) else 0.0


def prune(cluster: Cluster, now: float) -> None:
    """Remove what is older than DAYS: folders of answers by their name, logs by their last growth."""
    oldest = now - DAYS * 86400
    for moment in reversed(_moments(cluster)):
        if _time(moment) >= oldest:
            break
        shutil.rmtree(os.path.join(cluster.folder, moment), ignore_errors=True)
    jobs = os.path.join(cluster.folder, "jobs")
    with contextlib.suppress(OSError):
        for name in os.listdir(jobs):
            path = os.path.join(jobs, name)
            if os.stat(path).st_mtime < oldest:
                shutil.rmtree(path, ignore_errors=True)
