"""With what words a job ended that nothing else explains: an uncaught exception, a fatal signal, Ray's "Job failed".

The last resort of triage, so that a death with no known cause is still told first. A lead and never a proof: the
verdict is a warning. Invariants: an exception counts only where nobody can have caught it (a traceback that the process
without Ray's prefix printed, with no word of that process behind it; a logger's or an actor's own traceback may have
been handled) or where the job's end itself is told; a job that got past it has not ended (`logs`). Formats: CPython
(traceback, faulthandler), Ray (RayTaskError; job client cli.py), absl's failure handler, libstdc++, the shell.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from probes import faults, logs
from probes.known import known
from probes.logs import Scanned
from probes.readers import joblog, logfiles, logplace
from probes.readers.joblog import Frame, Placed
from probes.readers.logscan import Hit, signature
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import sanitise

TRACEBACK = known("traceback")
SIGNAL = signature(
    "signal",
    (
        "Fatal Python error: ", " received at time=", "egmentation fault", "terminate called after throwing",
        "Segfault encountered",
    ),
    r"^(?:\([^)]{1,80}\) )?Fatal Python error: (?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating)"
    r"|\*\*\* SIG(?:SEGV|ABRT|BUS|ILL|FPE) received at time="
    r"|\bSegmentation fault(?: \(core dumped\)|\s*$)|Caught signal 11 \(Segmentation fault"
    r"|terminate called after throwing an instance of|!{3,} ?Segfault encountered ?!{3,}",
)  # fmt: skip
FAILED = signature(
    "job-failed",
    ("' failed", "\x1b[22m failed"),
    r"ERR cli\.py:\d+ -- .{0,40}Job '(?:\x1b\[\d+m)?[^']{1,200}'(?:\x1b\[\d+m)? failed",
)
SUCCEEDED = signature(
    "job-succeeded",
    ("' succeeded", "\x1b[22m succeeded"),
    r"SUCC cli\.py:\d+ -- .{0,40}Job '(?:\x1b\[\d+m)?[^']{1,200}'(?:\x1b\[\d+m)? succeeded",
)
_CHAINED = re.compile(
    r"^(?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception):"
)
_RAISED = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?::(?: |$)|$)")
"""The last line of a traceback: the name of a class, and what it says."""
_REMOTE = re.compile(r"^(?:[\w.]+\.)?RayTaskError\((?P<name>\w+)\): .*?ray::(?P<actor>\w+)")
_FOREIGN = re.compile(r"/(?:dist|site)-packages/|/lib/python3|^<|importlib")
_CLIENT = re.compile(r"\t(?:ERR|INFO|SUCC|WARN) cli\.py:")
_BEHIND = 1 << 20
"""Bytes behind an exception in which its process may speak again."""
_LOOKED_AT = 40
"""Tracebacks that are looked at, from the last one backwards."""


@dataclass(frozen=True)
class _Exception:
    """The root exception of a traceback. said: its last line. frame: where it was raised, in the job's own code."""

    place: Placed
    said: str
    frame: Frame | None
    actor: str | None


@probe(
    "job.last_words",
    needs="log",
    answers=("none", "succeeded", "exception", "signal", "failed"),
    en="With what words did the job end?",
    zh="任务结束时最后说了什么？",
    deadline=logs.DEADLINE,
    over=("succeeded", "exception", "signal", "failed"),
)
def last_words(evidence: Evidence, report: Progress) -> Finding:
    """Report the exception, else the signal, else Ray's word that the job failed."""
    scanned = logs.collect(evidence, report, (TRACEBACK, SIGNAL, FAILED, SUCCEEDED))
    failed = scanned.standing(FAILED.label)
    return (
        _exception(scanned, ended=bool(failed))
        or _signal(scanned)
        or _failed(failed)
        or _succeeded(scanned)
        or logs.unread(scanned.coverage)
        or scanned.history("none", FAILED.label, SIGNAL.label)
        or found(Verdict.OK, "none", "No log ends in an exception or a signal.", "没有日志以异常或信号结束。")
    )


def _exception(scanned: Scanned, *, ended: bool) -> Finding | None:
    """Report the last exception that nobody caught; where the job's end is told, any last one."""
    hits = scanned.standing(TRACEBACK.label)[-_LOOKED_AT:]
    spoken = [hit for hit in hits if uncaught(hit)]
    if not spoken and ended:
        spoken = hits
    for hit in reversed(spoken):
        root = _root(hit, joblog.context(hit))
        if root is None:
            continue
        actor = root.actor or joblog.parse(hit.raw).actor or logplace.file_actor(hit.file)
        en_who, zh_who = (
            (f"in {actor}", f"在 {actor} 中") if actor else ("in the driver or the script itself", "在 driver 中")
        )
        where = f"{root.frame.function} ({os.path.basename(root.frame.file)}:{root.frame.line})" if root.frame else ""
        said = sanitise(root.said, 200)
        return found(
            Verdict.WARNING,
            "exception",
            f"The log ends in {said}, raised {en_who}{f', {where}' if where else ''} (line {root.place.number}).",
            f"日志以 {said} 结束，{zh_who}抛出{f'，位于 {where}' if where else ''}（第 {root.place.number} 行）。",
            citations=(
                joblog.cite_placed(hit.file, root.place),
                *((joblog.cite_placed(hit.file, root.frame.place),) if root.frame else ()),
            ),
        )
    return None


def _signal(scanned: Scanned) -> Finding | None:
    hits = scanned.standing(SIGNAL.label)
    if not hits:
        return None
    actor = joblog.parse(hits[0].raw).actor or logplace.file_actor(hits[0].file)
    said = sanitise(joblog.parse(hits[0].text).message, 120)
    en, zh = (f" of {actor}", f"{actor} ") if actor else ("", "")
    return found(
        Verdict.WARNING,
        "signal",
        f"A process{en} was ended by a fatal signal (line {hits[0].line}): {said}",
        f"{zh}进程因致命信号结束（第 {hits[0].line} 行）：{said}",
        citations=(joblog.citation(hits[0], logs.processes(hits)),),
    )


def _failed(hits: Sequence[Hit]) -> Finding | None:
    if not hits:
        return None
    return found(
        Verdict.WARNING,
        "failed",
        f"Ray says that the job failed (line {hits[-1].line}), and the log shows no exception.",
        f"Ray 报告任务失败（第 {hits[-1].line} 行），但日志中没有异常。",
        citations=(joblog.citation(hits[-1]),),
    )


def _succeeded(scanned: Scanned) -> Finding | None:
    hits = scanned.standing(SUCCEEDED.label)
    if not hits:
        return None
    return found(
        Verdict.OK,
        "succeeded",
        f"Ray says that the job succeeded (line {hits[-1].line}).",
        f"Ray 报告任务成功结束（第 {hits[-1].line} 行）。",
        citations=(joblog.citation(hits[-1]),),
    )


def uncaught(hit: Hit) -> bool:
    """Whether a traceback was printed by Python itself as its process ended."""
    line = joblog.parse(hit.raw)
    if line.actor is not None or line.time is not None or not line.message.startswith("Traceback"):
        return False
    last = joblog.context(hit)[-1]
    behind = logfiles.window(hit.file, last.offset + len(last.raw) + 1, _BEHIND + 1)
    if len(behind) > _BEHIND:
        return False
    return not any(_speaks(raw, line.process) for raw in behind.split(b"\n"))


def _speaks(raw: bytes, process: tuple[str | None, int | None, str | None]) -> bool:
    """Whether a line is a log record or a metric of a process, other than the job client's."""
    if _CLIENT.search(raw[:200].decode("utf-8", "replace")):
        return False
    line = joblog.parse(raw)
    return line.process == process and line.time is not None


def _root(hit: Hit, lines: Sequence[Placed]) -> _Exception | None:
    """Return the first exception of a chain, and of one that crossed actors the innermost."""
    frames: list[Placed] = []
    found_one: _Exception | None = None
    actor: str | None = None
    for place in _chain(hit, lines):
        said = joblog.parse(place.raw).message
        if _CHAINED.match(said):
            if found_one is not None:
                break
        elif remote := _REMOTE.match(said):
            actor, frames = remote["actor"], []
            found_one = _Exception(place, said, None, actor)
        elif said.startswith("  "):
            frames.append(place)
        elif _RAISED.match(said) and (found_one is None or actor is not None) and frames:
            found_one = _Exception(place, said, _own(frames), actor)
            frames = []
    return found_one


def _chain(hit: Hit, lines: Sequence[Placed]) -> Sequence[Placed]:
    """Return the lines behind the opening of the first traceback of the chain whose last one `hit` opens."""
    said = [joblog.parse(place.raw).message for place in lines]
    at = next((number for number, place in enumerate(lines) if place.number == hit.line), 0)
    while True:
        before = next((number for number in range(at - 1, -1, -1) if said[number].strip()), 0)
        opening = next((number for number in range(before - 1, -1, -1) if said[number].startswith("Traceback")), None)
        if opening is None or not _CHAINED.match(said[before]):
            return lines[at + 1 :]
        at = opening


def _own(lines: Sequence[Placed]) -> Frame | None:
    """Return the innermost frame outside installed packages, else the innermost."""
    every = faults.innermost_first(lines)
    return next((frame for frame in every if not _FOREIGN.search(frame.file)), every[0] if every else None)
