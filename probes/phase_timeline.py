"""The phases of a colocated cycle, by process, from the events of a job's logs. Pure functions, no file is read here.

A phase is what a timer of slime measures, or what stands between two lines of the rollout manager or of Megatron's
save. The order is never assumed: v0.1.0 to v0.2.4 put the trainer to sleep after the save and HEAD before it,
`train_async.py` neither releases nor resumes, and a critic has its own wake_up and sleep. What is open is told by
starts without ends; only between two phases the order of slime's loop (train.py) tells what comes next. Invariant: what
a log cannot show is None, never "between".
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from probes.readers.timers import WAIT, Event, Process

NAMES = {
    "wake_up": "wake",
    "sleep": "sleep",
    "update_weights": "update",
    "save_model": "save",
    "checkpoint": "save",
    "data_preprocess": "train-forward",
    "log_probs": "train-forward",
    "ref_log_probs": "train-forward",
    "teacher_log_probs": "train-forward",
    "values": "train-forward",
    "actor_train": "train",
    "critic_train": "train",
    "ref_model_update": "train",
    "train": "train",
    "generate": "generate",
}
"""The phase that a timer, the manager's samples or Megatron's save stand for (slime/backends/megatron_utils)."""
PHASES = (
    "start", "generate", "wake", "train-forward", "train", "sleep", "save", "resume", "update", "onload", "between",
)  # fmt: skip
"""All words for where a job is. resume, onload: the engines take their memory back before and after the update."""
KEEP = 400
"""Durations of one timer of one process that are kept for its usual one."""


@dataclass(frozen=True)
class Span:
    """One phase of one process. end: None while it is open. seconds: as the timer printed it, else between its ends.

    seconds is None where nothing tells. cycle: rollouts that had begun before it.
    """

    name: str
    process: Process
    start: Event
    end: Event | None
    seconds: float | None
    cycle: int

    @property
    def phase(self) -> str | None:
        """Return the word for it, None for a timer that stands for no phase we know."""
        return NAMES.get(self.name)


@dataclass(frozen=True)
class Usual:
    """How long a phase took before. median, spread (median absolute deviation): seconds. count: how many ended."""

    median: float
    spread: float
    count: int


@dataclass
class Timeline:
    """What the events of one start of a job say.

    spans: of the last two cycles, in the order in which they began. open: by process, innermost last. took: seconds by
    process and name. last, before_last: the last event that moved the job on, and the last of another kind before it.
    colocated: engines gave memory up. trained: a train step or a weight update was seen. cycle: rollouts seen, or waits
    that ended where the manager prints no samples. sampled: it does.
    """

    spans: list[Span] = field(default_factory=list)
    open: dict[Process, list[Span]] = field(default_factory=dict)
    took: dict[tuple[Process, str], list[float]] = field(default_factory=dict)
    last: Event | None = None
    before_last: Event | None = None
    colocated: bool = False
    trained: bool = False
    cycle: int = 0
    sampled: bool = False

    def usual(self, process: Process, name: str) -> Usual | None:
        """Return how long a phase of a process took before, None where none ended."""
        took = self.took.get((process, name))
        if not took:
            return None
        median = statistics.median(took)
        return Usual(median, statistics.median(abs(one - median) for one in took), len(took))

    def innermost(self) -> list[Span]:
        """Return the innermost open phase of each process, the one that began last first; waiting is no phase."""
        inner = [next((one for one in reversed(spans) if one.name != WAIT), None) for spans in self.open.values()]
        found = [one for one in inner if one is not None]
        return sorted(found, key=lambda one: (one.start.time or 0.0, one.start.line), reverse=True)


def timeline(events: Iterable[Event]) -> Timeline:
    """Fold events, in the order in which they were printed, into a timeline."""
    told = Timeline()
    for each in events:
        _feed(told, each)
    return told


def _feed(told: Timeline, each: Event) -> None:
    if each.edge == "start":
        _begin(told, each)
    elif each.edge == "end":
        _end(told, each)
    if each.kind == "engine" and each.fine:
        told.colocated = True
    if not (each.kind == "timer" and each.name == WAIT):
        last = told.last
        if last is not None and (last.kind, last.name, last.edge) != (each.kind, each.name, each.edge):
            told.before_last = last
        told.last = each
    if each.name in ("actor_train", "critic_train", "update_weights"):
        told.trained = True


def _begin(told: Timeline, each: Event) -> None:
    spans = told.open.setdefault(each.process, [])
    if each.kind == "rollout":
        told.sampled = True
        _next_cycle(told)
    lost = [one for one in spans if one.name == each.name]  # its end was not printed, and it is open no longer
    if lost:
        told.spans = [one for one in told.spans if not any(one is gone for gone in lost)]
    spans[:] = [one for one in spans if one.name != each.name]
    span = Span(each.name, each.process, each, None, None, told.cycle)
    spans.append(span)
    told.spans.append(span)


def _end(told: Timeline, each: Event) -> None:
    if each.name == WAIT and not told.sampled:
        _next_cycle(told)
    spans = told.open.get(each.process, [])
    begun = next((one for one in reversed(spans) if one.name == each.name), None)
    seconds = each.seconds
    if begun is not None:
        spans.remove(begun)
        if seconds is None and each.time is not None and begun.start.time is not None:
            seconds = max(each.time - begun.start.time, 0.0)
        done = Span(begun.name, begun.process, begun.start, each, seconds, begun.cycle)
        told.spans = [done if one is begun else one for one in told.spans]
    if seconds is not None:
        took = told.took.setdefault((each.process, each.name), [])
        took.append(seconds)
        del took[:-KEEP]


def _next_cycle(told: Timeline) -> None:
    """Begin a cycle; keep the spans of the one before it, and those that are open."""
    told.cycle += 1
    told.spans = [one for one in told.spans if one.end is None or one.cycle >= told.cycle - 1]


def standing(told: Timeline) -> str | None:
    """Return the phase the job is in where no process has one open; None where the events do not tell."""
    last = told.last
    if last is None:
        return "start" if told.open else None
    if not told.trained and told.cycle == 0 and (last.kind == "engine" or last.name in ("sleep", "wake_up")):
        return "start"
    if last.kind == "engine":
        return _after_engine(told, last)
    if last.kind == "timer" and last.name == "update_weights":
        return "onload" if told.colocated else "between"
    if last.name in ("sleep", "checkpoint", "save_model") and told.trained:
        return "resume" if told.colocated and last.name == "sleep" else "between"
    return "between"


def _after_engine(told: Timeline, last: Event) -> str:
    """Tell what follows an answer of an engine: a release, a first resume before the update, a second behind it."""
    if not last.fine:
        return "resume" if last.name == "resume" else "between"
    if last.name == "release":
        return "between"
    before = told.before_last
    return "generate" if before is not None and before.name == "update_weights" else "between"


def rows(told: Timeline, now: float | None) -> list[tuple[Span, float | None, Usual | None]]:
    """Return the phases of the last cycle with how long each took, or has taken until `now`, and its usual time.

    A last cycle that has only just begun comes with the one before it.
    """
    own = [one for one in told.spans if one.cycle == told.cycle and one.name != WAIT]
    shown = own if len(own) > 2 else [one for one in told.spans if one.name != WAIT]
    found = []
    for one in shown:
        seconds = one.seconds
        if one.end is None and now is not None and one.start.time is not None:
            seconds = max(now - one.start.time, 0.0)
        usual = told.usual(one.process, one.name)
        if one.end is not None and usual is not None and one.seconds is not None:
            usual = _without(told.took[one.process, one.name], one.seconds)
        found.append((one, seconds, usual))
    return found


def _without(took: Sequence[float], seconds: float) -> Usual | None:
    """Return the usual time by the other durations than one."""
    others = list(took)
    if seconds in others:
        others.remove(seconds)
    if not others:
        return None
    median = statistics.median(others)
    return Usual(median, statistics.median(abs(one - median) for one in others), len(others))
