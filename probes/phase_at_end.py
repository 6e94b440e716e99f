"""Which phase of the colocated cycle was open when the job died, or where its log ends (debug guide 2.1).

Told by the frames of the traceback that ended it, for slime's timers are closed on the way out of an exception; else
by the timer that is still open, which is how a killed process leaves it; else by what was last finished and the order
of slime's loop. Only rank 0 of each group of trainers prints timers and Ray hides repeated lines, so a phase that is
not seen is unknown. Whether an open phase hangs is the question of `hang.phase`; here it is only set beside its past.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from probes import faults, logs
from probes.known_hang_timer import ENDED, QUIET, RESTART, TIMES
from probes.known_nccl import ERROR, TIMEOUT
from probes.logs import Scanned
from probes.phase_timeline import PHASES, Span, Timeline, Usual, rows, standing, timeline
from probes.readers import joblog, logplace, timers
from probes.readers.joblog import Frame
from probes.readers.logscan import Coverage, Hit
from probes.readers.timers import WAIT, Event
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

_FAULTS = (ENDED, ERROR, TIMEOUT, *faults.CUDA, *faults.OOM, faults.ENGINE_EXCEPTION)
KEEP = 20_000
"""Events of one log that are kept, the last ones: about a thousand cycles."""
_LOOKED_AT = 12
"""Faults behind the last event whose frames are read."""
UNWOUND = 10.0
"""Seconds before a fault in which a timer may have been closed by the very exception."""
_OWN = re.compile(r"(?:^|/)(?:slime|megatron|sglang)(?:/|_)")
_CALLS = (
    ("wake", re.compile(r"wake_up|reload_process_groups")),
    ("sleep", re.compile(r"sleep|offload|release_memory_occupation|_export_static_state|destroy_process_groups")),
    ("resume", re.compile(r"onload(?:_weights)?|resume_memory_occupation|_import_static_state")),
    ("onload", re.compile(r"onload_kv\w*")),
    ("update", re.compile(r"update_weights\w*|_?update_bucket_weights\w*")),
    ("save", re.compile(r"save_model|save_checkpoint|save_hf_model\w*")),
    ("train-forward", re.compile(r"forward_only|compute_log_prob\w*|compute_ref_log_prob\w*")),
    ("train", re.compile(r"train_actor|train_critic|train_one_step|train_step|async_train|actor_train")),
    ("generate", re.compile(r"generate_rollout\w*|generate_and_rm\w*|eval_rollout\w*|event_loop_\w+")),
)
"""Functions of slime, Megatron and SGLang that belong to one phase."""
_METHODS = {
    "train": "train", "async_train": "train", "generate": "generate", "eval": "generate", "save_model": "save",
    "update_weights": "update", "wake_up": "wake", "sleep": "sleep", "release_memory_occupation": "sleep",
    "init": "start", "__init__": "start",
}  # fmt: skip
"""Methods of slime's actors that belong to one phase, as a RayTaskError names them; `train` holds its own wake_up."""
_WORDS = {
    "start": ("while the job was starting", "启动阶段"),
    "generate": ("while the engines generated", "rollout 生成"),
    "wake": ("while the trainer woke up (wake_up)", "训练进程唤醒（wake_up）"),
    "train-forward": ("in a forward for log-probs, or its data", "计算 log-prob 的 forward（含数据准备）"),
    "train": ("in the train step", "训练 step"),
    "sleep": ("while memory was given up (sleep, release)", "释放显存（sleep、release）"),
    "save": ("while a checkpoint was saved", "保存 ckpt"),
    "resume": ("while the engines took their weights' memory back (resume)", "engine 恢复权重显存（resume）"),
    "update": ("in the weight update", "权重更新"),
    "onload": ("while the engines took KV cache and graphs back", "engine 恢复 KV cache 与 graph（onload）"),
    "between": ("between two phases", "两个阶段之间"),
}


@dataclass
class _Read:
    """What a log holds. events: by log, the last KEEP. faults: in order."""

    events: dict[str, deque[Event]] = field(default_factory=dict)
    scanned: Scanned = field(default_factory=lambda: Scanned(Coverage()))


@dataclass(frozen=True)
class _Place:
    """Where the job was. span: the open phase, None where frames or order tell. proof: of it. by: how it is told."""

    phase: str
    by: str
    span: Span | None = None
    proof: Citation | None = None


@probe(
    "phases.at_end",
    needs="log",
    answers=PHASES,
    en="In which phase was the job when it died, or where its log ends?",
    zh="任务挂掉时（或日志结束处）处于哪个阶段？",
    deadline=logs.DEADLINE,
)
def phases_at_end(evidence: Evidence, report: Progress) -> Finding:
    """Name the phase, and show the last cycle beside the earlier ones."""
    read = _read(evidence, report)
    told = timeline(timers.in_order(each for events in read.events.values() for each in events))
    fault = _fatal(read, told)
    place = _place(read, told, fault)
    if told.last is None and not told.open:
        return logs.unread(read.scanned.coverage) or logs.nothing_said(
            "The log prints no timer, rollout or save.", "日志里没有 Timer、rollout 或保存的记录。"
        )
    now = logplace.time_of(fault) if fault else timers.last_time(read.scanned.coverage.files)
    table = _table(told, now)
    if place is None:
        return _untold(told, fault, table)
    return _found(told, place, fault, now, table)


def _read(evidence: Evidence, report: Progress) -> _Read:
    read = _Read()
    for hit in logs.stream(evidence, report, (*timers.SIGNATURES, RESTART, *_FAULTS), read.scanned.coverage):
        if hit.label == RESTART.label:
            read.events.pop(hit.file.stream, None)
            for hits in read.scanned.hits.values():
                hits[:] = [one for one in hits if one.file.stream != hit.file.stream]
        elif hit.label in _LABELS:
            event = timers.event(hit)
            if event is not None:
                read.events.setdefault(hit.file.stream, deque(maxlen=KEEP)).append(event)
        else:
            read.scanned.hits.setdefault(hit.label, []).append(hit)
            del read.scanned.hits[hit.label][: -logs.KEEP]
    return read


_LABELS = frozenset(each.label for each in timers.SIGNATURES)


def _fatal(read: _Read, told: Timeline) -> Hit | None:
    """Return the first fault behind the last event that moved the job on; one that the job outlived ended nothing."""
    return next(iter(_behind(read, told)), None)


def _behind(read: _Read, told: Timeline) -> Sequence[Hit]:
    hits = read.scanned.standing(*(each.label for each in _FAULTS))
    last = _last_start(told)
    if last is None:
        return hits
    return [hit for hit in hits if _after(hit, last)]


def _last_start(told: Timeline) -> Event | None:
    """Return the last event that only a job that goes on prints: a start, or an engine's answer; metrics come late."""
    starts = [one.start for one in told.spans if one.name != WAIT]
    if told.last is not None and told.last.kind == "engine":
        starts.append(told.last)
    return max(starts, key=lambda one: (one.time or 0.0, one.line), default=None)


def _after(hit: Hit, last: Event) -> bool:
    if hit.file.stream == last.file.stream:
        return (hit.file.part, hit.line) > (last.file.part, last.line)
    at = logplace.time_of(hit)
    return at is not None and last.time is not None and at >= last.time


def _place(read: _Read, told: Timeline, fault: Hit | None) -> _Place | None:
    behind = _behind(read, told) if fault else ()
    for hit in behind[:_LOOKED_AT]:
        for frame in faults.innermost_first(joblog.context(hit)):
            phase = _by_frame(frame, told)
            if phase:
                return _Place(phase, "frames", proof=joblog.cite_placed(hit.file, frame.place))
    inner = [one for one in told.innermost() if one.phase]
    if inner:
        one = inner[0]
        return _Place(one.phase or "", "timer", one, timers.citation(one.start))
    for hit in behind[:_LOOKED_AT]:
        method = next((each for each in faults.remote_methods(joblog.context(hit)) if each in _METHODS), None)
        if method:
            return _Place(_METHODS[method], "frames", proof=joblog.citation(hit))
    if any(one.phase is None for one in told.innermost()):
        return None
    word = standing(told)
    if word is None or (fault is not None and _unwound(told, fault)):
        return None
    return _Place(word, "order", proof=timers.citation(told.last) if told.last else None)


def _by_frame(frame: Frame, told: Timeline) -> str | None:
    """Return the phase a frame belongs to; the engines resume twice, and the order tells which it was."""
    if not _OWN.search(frame.file):
        return None
    phase = next((phase for phase, calls in _CALLS if calls.fullmatch(frame.function)), None)
    if phase == "resume" and standing(told) == "onload":
        return "onload"
    return phase


def _unwound(told: Timeline, fault: Hit) -> bool:
    """Whether the timer that ended last may have been closed by the exception itself."""
    last = told.last
    if last is None or last.edge != "end" or last.kind != "timer":
        return False
    at = logplace.time_of(fault)
    return at is None or last.time is None or at - last.time < UNWOUND


def _found(told: Timeline, place: _Place, fault: Hit | None, now: float | None, table: tuple[Table, ...]) -> Finding:
    en, zh = _WORDS[place.phase]
    usual = told.usual(place.span.process, place.span.name) if place.span else None
    seconds = _open_for(place.span, now)
    cited = (joblog.citation(fault) if fault else None, place.proof)
    citations = tuple(dict.fromkeys(one for one in cited if one is not None))
    beside_en, beside_zh = _beside(place, seconds, usual)
    long = seconds is not None and usual is not None and seconds >= max(QUIET, TIMES * usual.median)
    stalled = fault is None and long and place.phase != "generate"
    numbers = (("open", seconds), ("usual", usual.median if usual else None))
    measured = tuple(Measurement(name, round(value, 1), "s") for name, value in numbers if value is not None)
    head_en = f"The job ended {en}" if fault else f"The log ends {en}"
    head_zh = f"任务结束于{zh}" if fault else f"日志结束于{zh}"
    return found(
        Verdict.WARNING if fault or stalled else Verdict.OK,
        place.phase,
        f"{head_en}{beside_en}.",
        f"{head_zh}{beside_zh}。",
        citations=citations,
        measurements=measured,
        tables=table,
    )


def _open_for(span: Span | None, now: float | None) -> float | None:
    if span is None or now is None or span.start.time is None:
        return None
    return max(now - span.start.time, 0.0)


def _beside(place: _Place, seconds: float | None, usual: Usual | None) -> tuple[str, str]:
    if place.by == "frames":
        return ", by the frames of its traceback", "（依据调用栈）"
    if place.span is None:
        return ", by what was finished last", "（依据最后完成的步骤）"
    name = place.span.name
    if seconds is None:
        return f": {name} is open", f"：{name} 尚未结束"
    if usual is None:
        return f": {name} open for {_took(seconds)}", f"：{name} 已持续 {_took(seconds)}"
    past = _took(usual.median) + (f" ± {_took(usual.spread)}" if usual.count > 1 else "")
    return (
        f": {name} open for {_took(seconds)}, before: {past}, {'once' if usual.count == 1 else f'{usual.count} times'}",
        f"：{name} 已持续 {_took(seconds)}，此前 {past}，共 {usual.count} 次",
    )


def _took(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _untold(told: Timeline, fault: Hit | None, table: tuple[Table, ...]) -> Finding:
    """Say that the log does not tell the phase, keeping what it does tell."""
    finding = logs.nothing_said(
        "The log does not show in which phase the job was: the last timer was closed, perhaps by the fault itself.",
        "日志未显示任务处于哪个阶段：最后一个 Timer 已结束，可能正是被该故障关闭的。",
    )
    cited = (joblog.citation(fault),) if fault else ()
    last = (timers.citation(told.last),) if told.last else ()
    return replace(finding, citations=(*cited, *last), tables=table)


def _table(told: Timeline, now: float | None) -> tuple[Table, ...]:
    lines = tuple(_rows(told, now))
    if not lines:
        return ()
    title = Text("The last cycle (rank 0 of each group prints timers)", "最后一轮（Timer 只由各组 rank 0 打印）")
    return (Table(title, ("process", "phase", "timer", "began", "took", "usual"), lines),)


def _rows(told: Timeline, now: float | None) -> Iterator[tuple[str, ...]]:
    for one, seconds, usual in rows(told, now):
        began = "?" if one.start.time is None else time.strftime("%H:%M:%S", time.gmtime(one.start.time))
        took = "?" if seconds is None else _took(seconds)
        past = "-" if usual is None else f"{_took(usual.median)} ± {_took(usual.spread)} ({usual.count})"
        name = sanitise(one.process.named)
        yield name, one.phase or "?", sanitise(one.name), began, took if one.end else f"open {took}", past
