"""Read the lines by which a slime job tells what it does: timers, rollouts, saves, and engines that give up memory.

Each becomes an `Event` of one process, small enough that a run of days stays in memory. slime logs `Timer NAME start`
and `Timer NAME end (elapsed: 2.2s)` on rank 0 of each group of trainers (class Timer, slime/observability/timer.py,
earlier slime/utils/timer.py); a timer is ended on the way out of an exception too, so an end is no success. The rollout
manager prints its first sample and its last; SGLang's HTTP server logs a request once it was answered. Nothing here
decides what the lines mean.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from probes.readers import joblog, logplace, metrics
from probes.readers.joblog import Line
from probes.readers.logfiles import LogFile, window
from probes.readers.logscan import Hit, signature
from runbook.finding import Citation, cite

TIMER = signature("timer", "Timer ", r"Timer (\w{1,80}) (start\b|end \(elapsed: )(?:([\d.]{1,12})s\))?")
ACCESS = signature(
    "memory-access",
    "_memory_occupation HTTP/",
    r'"POST /(release|resume)_memory_occupation HTTP/[\d.]{1,4}" (\d{3})\b',
)
"""uvicorn's access log; the line is printed after the answer, so a request that never returns leaves none."""
ROLLOUT = signature(
    "rollout-sample", ("First rollout sample: ", "Finish rollout: "), r"(First rollout sample|Finish rollout): "
)
SAVE = signature(
    "checkpoint-edge",
    ("saving checkpoint at iteration", "successfully saved checkpoint from iteration"),
    r"(saving|successfully saved) checkpoint (?:at|from) iteration",
)
SIGNATURES = (TIMER, ACCESS, ROLLOUT, SAVE, metrics.METRIC)

WAIT = "train_wait"
"""The inverse timer: open while the trainer waits for a rollout."""
_PID = re.compile(r"worker-[0-9a-f]+-\w+-(\d{1,10})\.(?:out|err)(?:\.|$)")
_TRAINERS = b"'perf/train_time'"
_READ = 64 * 1024


class Process(msgspec.Struct, frozen=True, order=True):
    """Who printed a line, empty where nothing tells. actor: a Ray class. ip: of a node that is not the driver's."""

    actor: str = ""
    pid: int = 0
    ip: str = ""

    @property
    def named(self) -> str:
        """Return the process in one word for a table."""
        place = f"@{self.ip}" if self.ip else ""
        return f"{self.actor or '?'}{f'/{self.pid}' if self.pid else ''}{place}"


class Event(msgspec.Struct, frozen=True, gc=False):
    """One line that tells where a process is.

    kind: "timer", "engine", "rollout", "save" or "metric". name: of the timer; "release" or "resume"; "generate";
    "checkpoint"; "step", "rollout", "perf" (the trainer's), "manager" (the rollout manager's), "eval". edge: "start",
    "end", or "mark" for a line that only says that something was done. time: seconds since the epoch, None where the
    line has none. seconds: that a timer says it took. fine: False for an HTTP answer other than 2xx.
    """

    kind: str
    name: str
    edge: str
    process: Process
    time: float | None
    seconds: float | None
    file: LogFile
    line: int
    offset: int
    fine: bool = True


def event(hit: Hit) -> Event | None:
    """Return the event of a hit of SIGNATURES; None for a metric line that marks nothing."""
    told = _told(hit)
    if told is None:
        return None
    kind, name, edge, seconds, fine = told
    head = joblog.parse(hit.raw[: hit.start + 1])
    return Event(kind, name, edge, _of(head, hit.file), head.time, seconds, hit.file, hit.line, hit.offset, fine)


def process(hit: Hit) -> Process:
    """Return who printed a line: by Ray's prefix, else by the head and the name of a worker's own log."""
    return _of(joblog.parse(hit.raw[: hit.start + 1]), hit.file)


def _of(line: Line, file: LogFile) -> Process:
    if line.actor or line.pid:
        return Process(line.actor or "", line.pid or 0, line.ip or "")
    return of_file(file)


@lru_cache(maxsize=8192)
def of_file(file: LogFile) -> Process:
    """Return the process whose own log a file is, an empty one where it is nobody's."""
    pid = _PID.search(os.path.basename(file.path))
    return Process(logplace.file_actor(file) or "", int(pid[1]) if pid else 0)


def _told(hit: Hit) -> tuple[str, str, str, float | None, bool] | None:
    groups = [(group or b"").decode("utf-8", "replace") for group in hit.groups]
    if hit.label == TIMER.label:
        return "timer", groups[0], "start" if groups[1] == "start" else "end", _number(groups[2]), True
    if hit.label == ACCESS.label:
        return "engine", groups[0], "mark", None, groups[1].startswith("2")
    if hit.label == ROLLOUT.label:
        return "rollout", "generate", "start" if groups[0].startswith("First") else "end", None, True
    if hit.label == SAVE.label:
        return "save", "checkpoint", "start" if groups[0] == "saving" else "end", None, True
    name = groups[0]
    if name == "perf" and metrics.MANAGER_KEY.encode() in hit.text:
        name = "manager"
    elif name == "perf" and _TRAINERS not in hit.text:
        return None
    return ("metric", name, "mark", None, True) if name in ("step", "rollout", "perf", "manager", "eval") else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return events of many logs in the order in which they were printed, each once.

    The order within a log is kept; a line without a time has that of the line before it. The same line in the driver's
    log and in the worker's own counts once. Logs that tell no time at all stay in the given order.
    """
    latest: dict[str, float] = {}
    streams: dict[str, int] = {}
    keyed: list[tuple[float, int, int, Event]] = []
    seen: dict[tuple[object, ...], str] = {}
    for number, each in enumerate(events):
        stream = each.file.stream
        streams.setdefault(stream, len(streams))
        if each.time is not None:
            latest[stream] = max(latest.get(stream, each.time), each.time)
            same = (each.kind, each.name, each.edge, each.process.pid, each.time, each.seconds)
            if each.process.pid and seen.setdefault(same, stream) != stream:
                continue
        keyed.append((latest.get(stream, float("-inf")), streams[stream], number, each))
    if len(streams) > 1:
        keyed.sort(key=lambda key: key[:3])
    return [each for *_, each in keyed]


def citation(each: Event) -> Citation:
    """Return the citation of an event; its line is read again."""
    raw = window(each.file, each.offset, _READ).partition(b"\n")[0].rstrip(b"\r")
    return cite(each.file.path, raw, line=each.line or None, offset=each.offset, time=each.time)


def last_time(files: Iterable[LogFile]) -> float | None:
    """Return the latest time that the ends of the plain logs tell, None where none tells any."""
    return max((time for file in files for time in _times(file)), default=None)


def _times(file: LogFile) -> Iterator[float]:
    if file.packing != "plain":
        return
    for raw in window(file, max(file.size - _READ, 0), _READ).split(b"\n"):
        time = joblog.parse(raw).time
        if time is not None:
            yield time
