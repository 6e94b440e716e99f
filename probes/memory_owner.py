"""Whose process a line about host memory speaks of: the job's, another's, or nobody can tell.

The kernel and Ray's memory monitor end whatever process they choose, and their lines reach a job's log whoever was
ended. A kill counts for the job when the process bears the name of one of its actors or engines, or when its pid stands
in the job's own logs. A name that any Python program has, with a pid that the logs never show, is nobody's: pids of the
host and of a container differ. Names in the kernel's lines are cut to 15 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from probes import logs
from probes.readers import joblog, logfiles
from probes.readers.logscan import Coverage, Hit, signature
from probes.readers.timers import of_file
from runbook.evidence import Evidence
from runbook.probe import silent

_KERNEL = re.compile(
    rb"Killed process (?P<pid>\d{1,10}),? \((?P<name>[^)]{0,40})\)"
    rb"|oom-kill:constraint=.{0,2000}?\btask=(?P<task>[^,]{1,40}),pid=(?P<taskpid>\d{1,10})"
)
_MONITOR = re.compile(
    rb"Memory on the node .{1,400}?where the (?:task|lease|actor) \((?:.{1,400}?)\bname=(?P<name>[\w.]{1,200})"
    rb"(?:.{0,200}?\bpid=(?P<pid>\d{1,10}))?"
)
_SUMMARY = re.compile(rb"Workers \(tasks / actors\) killed due to memory pressure")
_OWN = re.compile(r"^(?:ray::)?(?:Megatron|FSDPTrain|RolloutMan|RolloutRay|SGLang)|^sglang")
_ANY = re.compile(r"^(?:python[\d.]*|pt_main_thread|pt_data_worker|ray::.*|raylet|gcs_server|_ray_internal\w*)$")
"""Names that the job's processes share with other programs; everything else is foreign by its name."""
_PIDS = 200
"""Pids that are looked for at most."""
DIED = signature(
    "a-death",
    ("ActorDiedError", "WorkerCrashedError", "OutOfMemoryError: ", "A worker died or was killed"),
    r"ActorDiedError: |WorkerCrashedError: |ray\.exceptions\.OutOfMemoryError: |A worker died or was killed",
)
"""What Ray says in the job's own log when one of its processes is gone."""


class Owners:
    """Answers of whom lines about host memory speak; the logs are searched once, and only where a name does not tell.

    hits: all lines that will be asked about.
    """

    def __init__(self, hits: Iterable[Hit], evidence: Evidence) -> None:
        self._evidence = evidence
        self._asked = {told[1] for hit in hits if (told := _kernel(hit) or _monitor(hit)) is not None and told[1]}

    def is_ours(self, hit: Hit) -> bool | None:
        """Return whether a line speaks of a process of the job; None where nothing tells."""
        kernel = _kernel(hit)
        told = kernel or _monitor(hit)
        if told is not None:
            name, pid = told
            if _OWN.match(name) or pid in self._pids:
                return True
            return None if kernel is None or _ANY.match(name) else False
        if _SUMMARY.search(hit.raw):
            return True if self._deaths else None
        return True

    @cached_property
    def _pids(self) -> frozenset[int]:
        """Which of the pids stand in the job's own logs, in the prefix of a line or the name of a worker's log."""
        files, _ = logfiles.expand(self._evidence.paths("log"))
        found = {of_file(file).pid for file in files} & self._asked
        missing = sorted(self._asked - found)[:_PIDS]
        if missing:
            pattern = rf"\bpid=({'|'.join(map(str, missing))})\b"
            seen = signature("pid-seen", tuple(f"pid={pid}" for pid in missing), pattern)
            for hit in logs.stream(self._evidence, silent, (seen,), Coverage()):
                if joblog.parse(hit.raw).actor not in (None, "raylet"):
                    found.add(int(hit.groups[0] or b"0"))
        return frozenset(found)

    @cached_property
    def _deaths(self) -> bool:
        """Whether Ray says that a process of the job is gone."""
        return any(True for _ in logs.stream(self._evidence, silent, (DIED,), Coverage()))


def _kernel(hit: Hit) -> tuple[str, int] | None:
    found = _KERNEL.search(hit.raw)
    if found is None:
        return None
    name, pid = found["name"] or found["task"] or b"", found["pid"] or found["taskpid"]
    return name.decode("utf-8", "replace"), int(pid)


def _monitor(hit: Hit) -> tuple[str, int] | None:
    found = _MONITOR.search(hit.raw)
    return None if found is None else (found["name"].decode(), int(found["pid"] or 0))
