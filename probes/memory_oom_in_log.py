"""Which memory ran out, and in which phase of the job (debug guide 2.1).

The four places ask for different cures: the train step (tokens per GPU, recomputation), the moment when trainer and
engine exchange the GPU, the engine (static fraction, KV pool) and the host. The first fault whose place can be told
decides. Told by what the line itself says, by the frames and remote methods of its traceback, then by the trainer's
open timers. Not evidence: Ray's list of possible reasons for a dead worker, retracted requests, torch_memory_saver's
"may not be an issue", what the job got past (`logs`), and the end of a process that is not the job's (`memory_owner`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from probes import faults, logs, ray_live
from probes.logs import Scanned
from probes.memory_owner import Owners
from probes.readers import joblog
from probes.readers.attempts import STARTED
from probes.readers.joblog import Placed
from probes.readers.logscan import Coverage, Hit
from probes.readers.timers import TIMER
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, unknown
from runbook.probe import Progress, probe
from runbook.text import counted

_SWITCH_TIMERS = frozenset({"wake_up", "sleep", "update_weights"})
_TRAIN_TIMERS = frozenset(
    {"train", "actor_train", "log_probs", "ref_log_probs", "teacher_log_probs", "data_preprocess"}
)
_SWITCH_CALL = re.compile(
    r"^(?:wake_up|sleep|offload|onload\w*|resume\w*|pause|release_memory_occupation|update_weights\w*"
    r"|_(?:ex|im)port_static_state|reload_process_groups|clear_memory)$"
)
_SWITCH_WORD = re.compile(rb"(?:resume|release)_memory_occupation|in wake_up$|in update_weights\w*$")
_TRAIN_CALL = re.compile(
    r"^(?:train|train_\w+|async_train|forward_\w+|compute_log_prob\w*|loss_function|policy_loss_function|backward\w*)$"
)
_LOOKED_AT = 50
_NEAR = 4096
"""Bytes on either side of a memory saver's line in which a phase may be named."""

_EN = {
    "train-step": "GPU memory ran out in the train step",
    "colocate-switch": "GPU memory ran out while trainer and engine exchanged the GPU",
    "rollout": "The engine ran out of GPU memory",
    "host": "The node ran out of host memory",
}
_ZH = {
    "train-step": "训练步中显存不足",
    "colocate-switch": "训练与推理切换显卡时显存不足",
    "rollout": "推理引擎显存不足",
    "host": "节点主机内存不足",
}


@dataclass(frozen=True)
class Fault:
    """One line about memory, and the trainer's timers that were open when it was printed.

    nobodys: it tells of a process that may or may not be the job's.
    """

    hit: Hit
    timers: frozenset[str]
    nobodys: bool = False


@dataclass(frozen=True)
class Found:
    """A fault that was placed. place: the probe's answer for it. proof: the line that tells."""

    fault: Fault
    place: str
    proof: Placed


@dataclass
class Memory:
    """What the logs say of memory that ran out.

    faults: the first ones, in the order in which they were printed, that stand and are the job's or nobody's known.
    foreign: kills of processes that are not the job's.
    """

    scanned: Scanned
    faults: list[Fault] = field(default_factory=list)
    foreign: list[Hit] = field(default_factory=list)

    def first(self) -> Found | None:
        """Return the first fault that can be placed."""
        for fault in self.faults:
            placed = _place(fault)
            if placed:
                return Found(fault, *placed)
        return None


@probe(
    "memory.oom_in_log",
    needs="log",
    answers=("train-step", "colocate-switch", "rollout", "host", "none"),
    en="Did memory run out, and in which phase?",
    zh="是否内存或显存不足？发生在哪个阶段？",
    deadline=logs.DEADLINE,
)
def oom_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Place the first memory fault that can be placed; count the processes that printed one of its kind."""
    memory = read_memory(evidence, report)
    found_ = memory.first()
    if found_ is not None:
        return _placed(found_, memory.faults)
    if memory.faults:
        return _unplaced(memory.faults[0].hit)
    if (live := ray_live.host_memory(evidence)) is not None:
        return live
    labels = [each.label for each in faults.OOM]
    return logs.unread(memory.scanned.coverage) or memory.scanned.history("none", *labels) or _none(memory.foreign)


def _placed(one: Found, alike: Sequence[Fault]) -> Finding:
    hit, answer = one.fault.hit, one.place
    ranks = logs.processes([each.hit for each in alike if each.hit.label == hit.label])
    told = () if one.proof.number == hit.line else (joblog.cite_placed(hit.file, one.proof),)
    return found(
        Verdict.PROBLEM,
        answer,
        f"{_EN[answer]} (line {hit.line}; {counted(ranks, 'process', 'processes')}).",
        f"{_ZH[answer]}（第 {hit.line} 行；{ranks} 个进程）。",
        citations=(joblog.citation(hit, ranks), *told),
    )


def _unplaced(hit: Hit) -> Finding:
    """Say that memory ran out, nobody knows where or whose."""
    if hit.label == faults.HOST_OOM.label:
        return unknown(
            f"A process was killed for want of host memory (line {hit.line}); nothing shows that it is the job's.",
            f"有进程因主机内存不足被杀（第 {hit.line} 行），但无法确认它属于本任务。",
            settle_en="Give the driver log, or the worker logs of that node: their names and prefixes hold the pids.",
            settle_zh="提供 driver 日志，或该节点的 worker 日志：文件名和行前缀里有 pid。",
            slots=("log",),
            citations=(joblog.citation(hit),),
        )
    return unknown(
        f"Memory ran out (line {hit.line}), but the log does not show in which phase.",
        f"内存或显存不足（第 {hit.line} 行），但日志未显示所处阶段。",
        settle_en="Give the .err file of the worker that died, with its traceback.",
        settle_zh="提供出错 worker 的 .err 文件（含调用栈）。",
        slots=("log",),
        citations=(joblog.citation(hit),),
    )


def _none(foreign: Sequence[Hit]) -> Finding:
    if foreign:
        return found(
            Verdict.OK,
            "none",
            f"Only a process that is not the job's was killed for want of memory (line {foreign[0].line}).",
            f"因内存不足被杀的只有不属于本任务的进程（第 {foreign[0].line} 行）。",
            citations=(joblog.citation(foreign[0]),),
        )
    return found(
        Verdict.OK,
        "none",
        "No line of the logs says that memory ran out.",
        "日志中没有内存或显存不足的记录。",
    )


def read_memory(evidence: Evidence, report: Progress) -> Memory:
    """Return the first faults that stand, each with the timers that were open then."""
    seen = _seen(evidence, report, coverage := Coverage())
    scanned = Scanned(coverage)
    for fault in seen:
        scanned.hits.setdefault(fault.hit.label, []).append(fault.hit)
    memory = Memory(scanned)
    timers = {(fault.hit.file.path, fault.hit.offset): fault.timers for fault in seen}
    standing = scanned.standing(*(each.label for each in faults.OOM))
    owners = Owners([hit for hit in standing if hit.label == faults.HOST_OOM.label], evidence)
    for hit in standing:
        ours = hit.label != faults.HOST_OOM.label or owners.is_ours(hit)
        if ours is False:
            memory.foreign.append(hit)
        else:
            memory.faults.append(Fault(hit, timers[hit.file.path, hit.offset], nobodys=ours is None))
    return memory


def _seen(evidence: Evidence, report: Progress, coverage: Coverage) -> list[Fault]:
    """Return the first faults, and the last of all, with the timers that were open then.

    A timer that an earlier attempt left open, for it was killed, is none of the next one's.
    """
    seen: list[Fault] = []
    timers: set[str] = set()
    stream = ""
    for hit in logs.stream(evidence, report, (TIMER, STARTED, *faults.OOM), coverage):
        own_start = hit.label == STARTED.label and joblog.parse(hit.raw).actor is None
        if hit.file.stream != stream or own_start:
            stream = hit.file.stream
            timers.clear()
        if hit.label == STARTED.label:
            continue
        if hit.label != TIMER.label:
            seen.append(Fault(hit, frozenset(timers)))
            del seen[_LOOKED_AT:-_LOOKED_AT]
            continue
        name, edge = (group.decode() if group else "" for group in hit.groups[:2])
        if edge == "start":
            timers.add(name)
        else:
            timers.discard(name)
    return seen


def _place(fault: Fault) -> tuple[str, Placed] | None:
    """Return where memory ran out and the line that tells, None when nothing does."""
    own = Placed(fault.hit.line, fault.hit.offset, fault.hit.raw)
    if fault.hit.label == faults.HOST_OOM.label:
        return None if fault.nobodys else ("host", own)
    if fault.hit.label == faults.ENGINE_OOM.label:
        return "rollout", own
    breath = joblog.context(fault.hit)
    side, _ = faults.side(fault.hit, breath)
    if fault.hit.label == faults.SAVER.label:
        return _saver(fault, own, side)
    return next(_cuda(fault, own, side, breath), None)


def _cuda(fault: Fault, own: Placed, side: str | None, breath: Sequence[Placed]) -> Iterator[tuple[str, Placed]]:
    """Yield where a CUDA out-of-memory error happened, by every sign there is, the strongest first."""
    for frame in faults.innermost_first(breath):
        if _SWITCH_CALL.match(frame.function) or "torch_memory_saver" in frame.file:
            yield "colocate-switch", frame.place
        if side == "train" and _TRAIN_CALL.match(frame.function):
            yield "train-step", frame.place
    methods = faults.remote_methods(breath)
    if any(_SWITCH_CALL.match(method) for method in methods):
        yield "colocate-switch", own
    if side == "rollout":
        yield "rollout", own
    if side == "train":
        phase = "train" if any(_TRAIN_CALL.match(method) for method in methods) else _by_timers(fault.timers)
        if phase:
            yield ("train-step" if phase == "train" else "colocate-switch"), own


def _saver(fault: Fault, own: Placed, side: str | None) -> tuple[str, Placed] | None:
    """Place a fatal line of torch_memory_saver, through which all of a colocated trainer's allocations go too."""
    phase = _by_timers(fault.timers)
    if side == "train" and phase == "train":
        return "train-step", own
    near = joblog.context(fault.hit, _NEAR, _NEAR)
    switch = _named(near, _SWITCH_WORD)
    if switch or b"func=resume" in fault.hit.raw or side == "rollout" or phase == "switch":
        return "colocate-switch", switch or own
    return None


def _named(lines: Sequence[Placed], word: re.Pattern[bytes]) -> Placed | None:
    """Return the first line that a pattern is in."""
    return next((line for line in lines if word.search(line.raw)), None)


def _by_timers(timers: frozenset[str]) -> str | None:
    """Return the phase the trainer's open timers tell; the switch is the inner one (slime wakes up inside train)."""
    if timers & _SWITCH_TIMERS:
        return "switch"
    return "train" if timers & _TRAIN_TIMERS else None
