"""What Ray says in the log: a placement group that cannot be met, an actor or a node that died.

A dead actor is a cause of its own only when no fault (CUDA, memory, an exception of the engine, a traceback of that
very process) stands before it; otherwise it is that fault's consequence and the answer is `none`. What the job got
past (`logs`) is history and explains nothing. `actor-died` is a
trainer; the death of any other actor, or of a node, is reported as unknown, with its line. Ray's list of
reasons ("killed by the OOM killer, ray stop --force, SIGSEGV") is the same text every time and no evidence. Actors
that ended because their owner did, or by `ray.kill`, are not deaths. Sources: Ray python/ray/exceptions.py,
slime/ray/placement_group.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from probes import faults, logs, ray_live
from probes.known import known
from probes.logs import Scanned
from probes.readers import joblog
from probes.readers.joblog import Placed
from probes.readers.logscan import Hit
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Verdict, found, unknown
from runbook.probe import Progress, probe

_WAITS = known("waits")
_MET = known("met")
_NO_FIT = known("no-fit")
_DIED = known("died")
_NODE = known("node")
_TRACEBACK = known("traceback")
_CLASS = re.compile(r"^\s*class_name: (\w+)")
_PID = re.compile(r"^\s*pid: (\d+)")
_DEATH = re.compile(rb"(?:worker process|its node) has died(?!.{0,400}INTENDED_[A-Z]{1,20}_EXIT)")
"""An actor's death, but not one that the actor itself asked for (exit_actor and the like)."""


@probe(
    "ray.in_log",
    needs="log|ray",
    answers=("pending", "actor-died", "engine-died", "none"),
    en="Does Ray report a pending placement group or a dead actor?",
    zh="Ray 是否报告了等待中的 placement group 或死亡的 actor？",
    deadline=logs.DEADLINE,
)
def ray_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report a pending placement group, else an actor that died of nothing else in the log, else a lost node."""
    if not evidence.paths("log"):
        return ray_live.alone(evidence)
    signatures = (_WAITS, _MET, _NO_FIT, _DIED, _NODE, _TRACEBACK, faults.ENGINE_EXCEPTION, *faults.CUDA, *faults.OOM)
    scanned = logs.collect(evidence, report, signatures)
    if (group := ray_live.placement(evidence)) is None:
        group = _pending(scanned)
    elif group.answer != "pending":
        group = None
    dead = group or _died(scanned) or ray_live.died(evidence, _told(scanned))
    return dead or _node(scanned) or _none(scanned)


def _pending(scanned: Scanned) -> Finding | None:
    """Report a placement group that was still waiting when its log ended."""
    met = scanned.of(_MET.label)
    waits = [hit for hit in scanned.standing(_WAITS.label) if not _later(scanned, hit, met)]
    if not waits:
        refused = [
            hit
            for hit in scanned.standing(_NO_FIT.label)
            if not any(each.file.stream == hit.file.stream for each in met)
        ]
        if not refused:
            return None
        return found(
            Verdict.WARNING,
            "pending",
            "No node of the cluster can give what the job asks for, and no placement group was met.",
            "集群中没有节点能满足作业的资源请求，placement group 一直未就绪。",
            citations=(joblog.citation(refused[0], len(refused)),),
        )
    last = waits[-1]
    wanted, elapsed, registered, free = (float(group or 0) for group in last.groups)
    never = registered < wanted
    en = (
        f"The job waits for {wanted:.0f} GPUs since {elapsed:.0f} s; Ray knows of {registered:.0f},"
        f" of which {free:.0f} are free."
    )
    zh = f"作业已等待 {wanted:.0f} 张 GPU {elapsed:.0f} 秒；Ray 仅注册 {registered:.0f} 张，空闲 {free:.0f} 张。"
    return found(
        Verdict.PROBLEM if never else Verdict.WARNING,
        "pending",
        en,
        zh,
        citations=(joblog.citation(last, len(waits)),),
        measurements=(Measurement("registered GPUs", registered, "GPU", wanted, "the size of the placement group"),),
    )


def _later(scanned: Scanned, hit: Hit, others: Sequence[Hit]) -> bool:
    """Whether one of the others was printed after a hit."""
    return any(scanned.earlier(hit, other) for other in others)


def _node(scanned: Scanned) -> Finding | None:
    """Report a node or a head that Ray lost."""
    hits = scanned.standing(_NODE.label)
    if not hits:
        return None
    return _elsewhere(
        "Ray lost a node or its head.", "Ray 失去了一个节点或 head。", (joblog.citation(hits[0], len(hits)),)
    )


def _elsewhere(en: str, zh: str, citations: tuple[Citation, ...]) -> Finding:
    """Return the unknown of something that died and is neither a trainer nor an engine."""
    return unknown(
        en,
        zh,
        settle_en="Look into raylet.out, gcs_server.out and dmesg of the node.",
        settle_zh="查看该节点的 raylet.out、gcs_server.out 与 dmesg。",
        slots=("log",),
        citations=citations,
    )


def _died(scanned: Scanned) -> Finding | None:
    """Report the first actor that died while nothing before it in the log explains why."""
    for hit in scanned.standing(_DIED.label)[:20]:
        breath = joblog.context(hit)
        actor, pid, reason = _identity(hit, breath)
        if actor is None or reason is None or _explained(scanned, hit, pid):
            continue
        side = faults.actor_side(actor)
        en = f"The process of {actor} (pid {pid}) vanished without a word of its own in the log."
        zh = f"{actor}（pid {pid}）的进程消失，日志中没有它自己的报错。"
        citations = (joblog.citation(hit), joblog.cite_placed(hit.file, reason))
        if side is None:
            return _elsewhere(en, zh, citations)
        answer = "engine-died" if side == "rollout" else "actor-died"
        return found(Verdict.PROBLEM, answer, en, zh, citations=citations)
    return None


def _identity(hit: Hit, breath: Sequence[Placed]) -> tuple[str | None, int | None, Placed | None]:
    """Return class and pid of the actor an ActorDiedError speaks of, and the line that says its process died."""
    actor, pid, reason = None, None, None
    for place in breath:
        if place.number <= hit.line:
            continue
        said = joblog.parse(place.raw).message
        if match := _CLASS.match(said):
            actor = actor or match[1]
        elif match := _PID.match(said):
            pid = pid or int(match[1])
        elif _DEATH.search(place.raw):
            reason = reason or place
    return actor, pid, reason


def _explained(scanned: Scanned, death: Hit, pid: int | None) -> bool:
    """Whether a fault stands before a death, or the dead process itself printed a traceback."""
    labels = [each.label for each in (*faults.CUDA, *faults.OOM, faults.ENGINE_EXCEPTION)]
    if any(hit.file != death.file or hit.line < death.line for hit in scanned.standing(*labels)):
        return True
    own = (hit for hit in scanned.standing(_TRACEBACK.label) if hit.file != death.file or hit.line < death.line)
    return pid is not None and any(joblog.parse(hit.raw).pid == pid for hit in own)


def _told(scanned: Scanned) -> Callable[[int], bool]:
    """Return whether a fault stands anywhere in the log, or a process with a pid printed a traceback of its own."""
    labels = [each.label for each in (*faults.CUDA, *faults.OOM, faults.ENGINE_EXCEPTION)]
    faulty = bool(scanned.standing(*labels))
    own = {joblog.parse(hit.raw).pid for hit in scanned.of(_TRACEBACK.label)}
    return lambda pid: faulty or pid in own


def _none(scanned: Scanned) -> Finding:
    """Say that Ray reports nothing of its own, naming a death that another fault explains."""
    deaths = scanned.standing(_DIED.label)
    if deaths:
        return found(
            Verdict.OK,
            "none",
            "An actor died, but an earlier fault in the log explains it.",
            "有 actor 死亡，但日志中更早的故障可以解释。",
            citations=(joblog.citation(deaths[0], len(deaths)),),
        )
    return (
        logs.unread(scanned.coverage)
        or scanned.history("none", _DIED.label, _NODE.label)
        or found(
            Verdict.OK,
            "none",
            "Ray reports neither a pending placement group nor a dead actor.",
            "Ray 未报告等待中的 placement group 或死亡的 actor。",
        )
    )
