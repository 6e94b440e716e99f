"""Which phase of the trainer began, never ended, and has been silent since, while the log went on.

slime prints `Timer NAME start` and `Timer NAME end (elapsed: …)` on rank 0 of each group of trainers (class Timer,
slime/observability/timer.py; earlier slime/utils/timer.py). A phase that is open at the end of a log proves nothing,
for the log may have been copied in the midst of it. Silence does, when the other processes went on far longer than
such a phase takes. A fault or a death behind the start in the same log explains the rest, and a new job there begins
anew. Of another log neither says anything, for where it stands between the lines of this one is not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from probes import faults
from probes.known import known
from probes.known_nccl import ERROR, TIMEOUT
from probes.readers import joblog
from probes.readers.logfiles import LogFile, window
from probes.readers.logscan import Hit
from probes.readers.timers import TIMER, WAIT
from runbook.finding import Citation, cite

RESTART = known("restart")
ENDED = known("ended")
SIGNATURES = (TIMER, RESTART, ENDED, ERROR, TIMEOUT, *faults.CUDA, *faults.OOM, faults.ENGINE_EXCEPTION)
"""What a scan for open phases looks for."""
PHASES = (
    ("checkpoint-save", re.compile(r"save_model")),
    ("weight-update", re.compile(r"update_weights|ref_model_update")),
    ("train-step", re.compile(r"train|\w*_train|train_\w+(?<!_wait)|\w*log_probs|data_preprocess")),
    ("rollout", re.compile(WAIT)),
)
"""The answer that a timer's name stands for."""

QUIET = 1800.0
"""Seconds of silence at least: 3 times slime's default of --distributed-timeout-minutes, which ends a collective."""
TIMES = 5.0
"""How much longer than the longest phase of this name that ended in this log."""
QUIET_UNCOMPARED = 7200.0
"""Seconds of silence where no phase of this name ever ended in the log."""
_REST = 4 << 20
"""Bytes at the end of a log that are read line by line."""


@dataclass(frozen=True)
class Phase:
    """An open phase.

    name: of its timer. silence: seconds without a word of its process at the end of the log, 0 where that cannot be
    told. needed: seconds of silence that make it a hang. last: the last line of the log that carries a time.
    """

    name: str
    start: Hit
    silence: float
    needed: float
    last: Citation | None = None

    @property
    def answer(self) -> str | None:
        """Return the phase's answer, None for a timer that stands for no phase of ours (wake_up, sleep)."""
        return next((answer for answer, names in PHASES if names.fullmatch(self.name)), None)


@dataclass
class Timers:
    """What is open while a log is read. Feed it every hit in order.

    open: by log and process, the timers in the order in which they began. longest: seconds by name. seen: whether any
    timer was printed. ended: the last fault that ended open phases, with the name of the innermost.
    """

    open: dict[tuple[object, ...], dict[str, Hit]] = field(default_factory=dict)
    longest: dict[str, float] = field(default_factory=dict)
    seen: bool = False
    ended: tuple[Hit, str] | None = None

    def feed(self, hit: Hit) -> None:
        """Take one hit of SIGNATURES into account."""
        if hit.label == TIMER.label:
            self.seen = True
            self._timer(hit)
        elif hit.label == RESTART.label:
            self._close(hit.file.stream)
            if self.ended is not None and self.ended[0].file.stream == hit.file.stream:
                self.ended = None
        else:
            names = [name for name in self._close(hit.file.stream) if name != WAIT]
            self.ended = (hit, names[-1]) if names else self.ended

    def _close(self, stream: str) -> list[str]:
        """Forget what is open in one log, and return the names; what another log shows has an order of its own."""
        closed = [key for key in self.open if key[0] == stream]
        return [name for key in closed for name in self.open.pop(key)]

    def _timer(self, hit: Hit) -> None:
        name, edge, took = ((group or b"").decode() for group in hit.groups)
        timers = self.open.setdefault((hit.file.stream, *joblog.parse(hit.raw).process), {})
        if edge == "start":
            timers[name] = hit
            return
        timers.pop(name, None)
        try:
            self.longest[name] = max(self.longest.get(name, 0.0), float(took))
        except ValueError:
            return

    def innermost(self) -> list[tuple[str, Hit]]:
        """Return the innermost open timer of each process."""
        return [list(timers.items())[-1] for timers in self.open.values() if timers]


def phase(timers: Timers, name: str, start: Hit, files: Sequence[LogFile]) -> Phase:
    """Return an open timer with the silence behind it. files: all logs, in order."""
    longest = timers.longest.get(name)
    needed = QUIET_UNCOMPARED if longest is None else max(QUIET, TIMES * longest)
    parts = [file for file in files if file.stream == start.file.stream]
    if not parts or parts[-1] != start.file:
        return Phase(name, start, 0.0, needed)
    begin = max(start.offset, start.file.size - _REST) if start.file.packing == "plain" else start.offset
    data = window(start.file, begin, _REST)
    if start.file.packing != "plain" and len(data) == _REST:
        return Phase(name, start, 0.0, needed)
    silence, last = _silence(start, begin, data)
    return Phase(name, start, silence, needed, last)


def _silence(start: Hit, begin: int, data: bytes) -> tuple[float, Citation | None]:
    """Return how long the process of `start` says nothing at the end of `data`, and the last line with a time.

    data: the log from byte `begin` to its end. Times are taken as they rise, for the lines of many processes mix.
    """
    whole = begin == start.offset
    process = joblog.parse(start.raw).process
    now = word = joblog.parse(start.raw).time if whole else None
    last: Citation | None = None
    offset = begin
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), start=start.line):
        if whole or number > start.line:
            line = joblog.parse(raw)
            if line.time is not None and (now is None or line.time >= now):
                now = line.time
                word = now if word is None else word
                last = cite(start.file.path, raw, line=number if whole else None, offset=offset, time=now)
            if line.process == process:
                word = now
        offset += len(raw) + 1
    if now is None or word is None:
        return 0.0, None
    return now - word, last
