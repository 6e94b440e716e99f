"""The attempts of a job that logs hold: where each began, how far it came, and whether it got past a fault.

A log may hold several starts of a job: it was submitted again into the same file, a supervisor restarted it, an older
log was pasted before a newer one. Told by what only a job's own driver prints once a start (Ray's job client and job
driver, Megatron's arguments table, slime's placement group; none with the prefix of an actor), else by a rollout
number (in a log without rollouts, a step number) that falls. Invariants: an attempt has advanced only by a metric
line of its own, so one that has just begun takes nothing back of what ended the one before; within an attempt a
job goes on only where two further rollouts were done, since an asynchronous job still ends the one at hand after its
engine died; what is not proven by lines is not said. Memory does not grow with the log, only with its starts.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from probes.readers import joblog, logplace, metrics
from probes.readers.logfiles import LogFile, window
from probes.readers.logscan import Hit, signature

STARTED = signature(
    "started",
    ("' submitted successfully", "Running entrypoint for job ", " arguments ---", "Creating placement group with "),
    r"Job '[^']{1,200}' (?:\x1b\[\d+m)?(submitted) successfully|^Running (entrypoint) for job \S"
    r"|-{10,} (arguments) -{10,}|Creating (placement) group with \d+ GPUs",
)
"""Sources: Ray dashboard/modules/job (cli.py, job_manager.py), Megatron training/arguments.py,
slime/ray/placement_group.py."""
SIGNATURES = (STARTED, metrics.METRIC)
STARTS_TIMED = 300
"""Starts whose time is looked for around them; more than that is no log of a job."""

_KINDS = ("rollout", "perf", "step")
"""What a trainer prints for each rollout or step, the surest first."""


@dataclass(frozen=True)
class Mark:
    """A line that tells of a start or of progress.

    kind: "submitted", "entrypoint", "arguments", "placement" or, of progress, "rollout", "step", "perf" (a trainer's)
    or "manager" (the rollout manager's perf). number: of the rollout or step, -1 for a start. time: seconds since the
    epoch, zone unknown, None where nothing tells it.
    """

    file: LogFile
    line: int
    offset: int
    kind: str
    number: int = -1
    time: float | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Return what orders the marks of one stream."""
        return (self.file.part, self.offset)

    @property
    def said(self) -> str:
        """Return how the line names its progress, "rollout 7"."""
        return f"{'perf' if self.kind == 'manager' else self.kind} {self.number}"


@dataclass
class Attempt:
    """One start of a job, as one log shows it.

    start: the line that tells of it; None for what stands before the first sign of any start. last: by kind of
    progress, the last mark with another number than the one before it, and that one before it.
    """

    start: Mark | None
    last: dict[str, tuple[Mark | None, Mark]] = field(default_factory=dict)
    signs: set[str] = field(default_factory=set)

    @property
    def advanced(self) -> Mark | None:
        """Return the last sign that this attempt trains, or in a job without trainer that it does rollouts."""
        for kind in _KINDS:
            if kind in self.last:
                return self.last[kind][1]
        before, last = self.last.get("manager", (None, None))
        return last if before else None

    def further(self) -> tuple[Mark, Mark] | None:
        """Return the last marks of two rollouts (of steps, where no rollout is told), None where there are not two."""
        for kind in (*_KINDS, "manager"):
            if kind in self.last:
                before, last = self.last[kind]
                return (before, last) if before else None
        return None

    def add(self, mark: Mark) -> None:
        """Take a mark of progress in; a number that was printed again is no progress."""
        before = self.last.get(mark.kind)
        if before is None:
            self.last[mark.kind] = (None, mark)
        elif before[1].number != mark.number:
            self.last[mark.kind] = (before[1], mark)


@dataclass(frozen=True)
class Past:
    """How a job got past a fault. start: of the attempt that did, None where it is the fault's own. proof: a line."""

    start: Mark | None
    proof: Mark


class _Rising(NamedTuple):
    """Times of some attempts of a log, in order. latest: up to each of them, so that it rises. which: their numbers."""

    latest: list[float]
    which: list[int]

    def behind(self, time: float) -> int | None:
        """Return the number of the first attempt whose time is later than this one."""
        at = bisect.bisect_right(self.latest, time)
        return self.which[at] if at < len(self.which) else None


class _Course(NamedTuple):
    """The attempts of one log, so that what came behind a place or a time is looked up: there may be ten thousands.

    places: where each begins. proven: of each, and of the end, the number of the first from it on that has advanced,
    or how many there are. started: when those that have advanced began. gone_on: when those that did two rollouts had
    done the last but one.
    """

    attempts: Sequence[Attempt]
    places: list[tuple[int, int]]
    proven: list[int]
    started: _Rising
    gone_on: _Rising

    def past(self, place: tuple[int, int]) -> Past | None:
        """Return how a job got past what stands at a place of this log."""
        at = bisect.bisect_right(self.places, place) - 1
        if (number := self.proven[at + 1]) < len(self.attempts):
            later = self.attempts[number]
            return Past(later.start, later.advanced) if later.advanced else None
        further = self.attempts[at].further()
        return Past(None, further[1]) if further and further[0].place > place else None

    def past_in_time(self, time: float, *, silent: bool) -> Past | None:
        """Return how this log shows that the job got past what another printed at a time.

        silent: the log of the fault tells of no start and no progress, as a worker's own does, so that this log may be
        of the same attempt.
        """
        number, same = self.started.behind(time), self.gone_on.behind(time) if silent else None
        if number is not None and (same is None or number <= same):
            start, proof = self.attempts[number].start, self.attempts[number].advanced
            return Past(start, proof) if proof else None
        further = self.attempts[same].further() if same is not None else None
        return Past(None, further[1]) if further else None


def _course(attempts: Sequence[Attempt]) -> _Course:
    """Put the attempts of one log, of which there is at least one, in order for look-ups."""
    proven = [len(attempts)]
    started: list[tuple[float, int]] = []
    gone_on: list[tuple[float, int]] = []
    for number, each in enumerate(attempts):
        further = each.further()
        if each.advanced is not None and each.start is not None and each.start.time is not None:
            started.append((each.start.time, number))
        if further and further[0].time is not None:
            gone_on.append((further[0].time, number))
    for number in reversed(range(len(attempts))):
        proven.append(number if attempts[number].advanced else proven[-1])
    places = [each.start.place if each.start else (-1, -1) for each in attempts]
    return _Course(attempts, places, proven[::-1], _rising(started), _rising(gone_on))


def _rising(times: Sequence[tuple[float, int]]) -> _Rising:
    return _Rising(list(accumulate((time for time, _ in times), max)), [number for _, number in times])


@dataclass
class Attempts:
    """All attempts, by the log (stream) that shows them, in order."""

    streams: dict[str, list[Attempt]] = field(default_factory=dict)

    def past(self, hit: Hit) -> Past | None:
        """Return how the job got past what `hit` tells, None where no line proves that it did."""
        own = self._courses.get(hit.file.stream)
        found = own.past((hit.file.part, hit.offset)) if own else None
        others = [course for stream, course in self._courses.items() if stream != hit.file.stream]
        if found or not others:
            return found
        time = logplace.time_of(hit)
        if time is None:
            return None
        found_there = (course.past_in_time(time, silent=own is None) for course in others)
        return next(filter(None, found_there), None)

    @cached_property
    def _courses(self) -> dict[str, _Course]:
        return {stream: _course(attempts) for stream, attempts in self.streams.items() if attempts}


def read(hits: Iterable[Hit]) -> Attempts:
    """Return the attempts that the hits of SIGNATURES among `hits`, in the order of files and lines, tell of."""
    found = Attempts()
    timed = 0
    for hit in hits:
        if hit.label == STARTED.label:
            if joblog.parse(hit.raw).actor is None:
                timed += 1
                _start(found.streams.setdefault(hit.file.stream, [Attempt(None)]), _started(hit, timed=timed))
        elif hit.label == metrics.METRIC.label and (mark := _progress(hit)) is not None:
            attempts = found.streams.setdefault(hit.file.stream, [Attempt(None)])
            if _falls(attempts[-1], mark):
                attempts.append(Attempt(mark))
            attempts[-1].add(mark)
    return found


def _start(attempts: list[Attempt], mark: Mark) -> None:
    """Begin an attempt, unless the sign belongs to the start that other signs have told of already."""
    current = attempts[-1]
    if current.start is None or current.last or mark.kind in current.signs:
        attempts.append(Attempt(mark))
    attempts[-1].signs.add(mark.kind)


def _falls(current: Attempt, mark: Mark) -> bool:
    """Whether a number tells of another start; steps of rollouts may overlap, so they count only without these."""
    if mark.kind != "rollout" and (mark.kind != "step" or "rollout" in current.last):
        return False
    before = current.last.get(mark.kind)
    return before is not None and mark.number < before[1].number


def _started(hit: Hit, *, timed: int) -> Mark:
    kind = next(filter(None, hit.groups), b"").decode()
    time = (logplace.time_of(hit) or _time_behind(hit)) if timed <= STARTS_TIMED else None
    return Mark(hit.file, hit.line, hit.offset, kind, time=time)


def _time_behind(hit: Hit) -> float | None:
    """Return the first time that is told behind a line."""
    lines = window(hit.file, hit.offset, logplace.LOOK_BACK).split(b"\n")
    return next((time for raw in lines if (time := joblog.parse(raw).time) is not None), None)


def _progress(hit: Hit) -> Mark | None:
    """Return the mark of a metric line, None for kinds that tell nothing of rollouts and steps."""
    kind, number = (hit.groups[0] or b"").decode(), int(hit.groups[1] or b"0")
    if kind == "perf" and b"'perf/step_time'" not in hit.text and b"'perf/train" not in hit.text:
        kind = "manager"
    if kind not in (*_KINDS, "manager"):
        return None
    time = joblog.parse(hit.raw[: hit.start + 1]).time
    return Mark(hit.file, hit.line, hit.offset, kind, number, time)
