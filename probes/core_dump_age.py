"""Whether core dumps are of the run in hand: folders for dumps are shared, and nobody empties them.

A dump says when it was written, in UTC; a log says when it begins, in a zone that it does not tell. Invariants: a dump
from before the logs begin in every zone is of another run and tells nothing of this one; one that may be so is doubted
only where the logs show neither a CUDA fault nor that a dump was written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from probes import cuda_told, faults, logs
from probes.core_dumps import Case, Dumps
from probes.readers import joblog, logfiles
from runbook.evidence import Evidence
from runbook.probe import Progress

ZONE = 14 * 3600
"""Seconds by which a local clock is ahead of UTC at most (UTC+14)."""
_HEAD = 64 * 1024
"""Bytes of a log in which its first time is looked for."""

OLDER = (
    "The core dump is from before the log begins, so it is of another run",
    "该 core dump 早于日志开始时间，属于另一次运行",
)
DOUBTED = (
    "; but it is older than the log unless the log's clock is ahead of UTC, and the log shows no CUDA fault",
    "；但除非日志所用时区快于 UTC，该 dump 早于日志，且日志中没有 CUDA 故障",
)


@dataclass(frozen=True)
class Aged:
    """Dumps by age. dumps: without those of another run. older: those. doubted: all that are left may be so as well."""

    dumps: Dumps
    older: tuple[Case, ...]
    doubted: bool


def by_age(dumps: Dumps, evidence: Evidence, report: Progress) -> Aged:
    """Take out the dumps of other runs, by the logs of this one."""
    begun = _begun(evidence) if dumps.cases else None
    if begun is None:
        return Aged(dumps, (), doubted=False)
    older = tuple(case for case in dumps.cases if _before(case, begun - ZONE))
    own = tuple(case for case in dumps.cases if not _before(case, begun - ZONE))
    doubted = bool(own) and all(_before(case, begun) for case in own) and not _told(evidence, report)
    return Aged(replace(dumps, cases=own), older, doubted)


def _before(case: Case, time: float) -> bool:
    return case.dump.time is not None and case.dump.time < time


def _begun(evidence: Evidence) -> float | None:
    """Return the earliest time at which a log begins, its zone unknown; None when one of them does not tell."""
    times = []
    for file in logfiles.expand(evidence.paths("log"))[0]:
        lines = logfiles.window(file, 0, _HEAD).split(b"\n")
        time = next((time for raw in lines if (time := joblog.parse(raw).time) is not None), None)
        if time is None:
            return None
        times.append(time)
    return min(times, default=None)


def _told(evidence: Evidence, report: Progress) -> bool:
    """Return whether the logs show a CUDA fault, or that a dump was written."""
    signatures = (*faults.CUDA, cuda_told.WRITING)
    return bool(logs.collect(evidence, report, signatures).standing(*(each.label for each in signatures)))
