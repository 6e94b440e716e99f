"""Which actors of the job died, and of what, by the structured cause that Ray keeps of every death.

An actor that was let go, killed by `ray.kill` or ended with its owner is no fault: at the end of a job all of them are.
What remains is told apart: its process vanished, Ray's memory monitor killed it, its constructor raised, its
environment could not be made, or its node died. Sources: Ray src/ray/protobuf/common.proto (ActorDeathCause); the words
"Worker exit type: INTENDED_..." mean that the actor itself asked for its end. The serialised exception of a constructor
is a pickle and is not opened; its traceback stands in it as text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from probes import ray_cluster
from probes.readers.ray_http import RefusedError
from probes.readers.ray_state import Record
from runbook.evidence import Evidence
from runbook.finding import Finding, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text, counted, sanitise

SHOWN = 20
"""Rows of the table."""
_TRACE = re.compile(rb"Traceback \(most recent call last\)[\t\n\x20-\x7e]{1,20000}")
_NAMED = re.compile(r"[\w.]+(?::|$)")
"""The line of a traceback that names its exception."""
_NAME_CHARS = 300
_KINDS = {
    "vanished": ("its process vanished", "进程消失"),
    "host-oom": ("Ray's memory monitor killed it", "被 Ray 的内存监控杀死"),
    "constructor": ("its constructor raised", "构造函数抛出异常"),
    "environment": ("its runtime env could not be made", "运行环境创建失败"),
    "node": ("its node died", "所在节点掉线"),
    "unschedulable": ("it could not be placed", "无法调度"),
    "other": ("for a reason of another kind", "其他原因"),
}
_CONTEXTS = {
    "oom_context": "host-oom",
    "creation_task_failure_context": "constructor",
    "runtime_env_failed_context": "environment",
    "actor_unschedulable_context": "unschedulable",
}


@dataclass(frozen=True)
class Death:
    """An actor that died of a fault. kind: a key of `_KINDS`. said: Ray's words, safe to draw."""

    actor: Record
    kind: str
    said: str

    @property
    def who(self) -> str:
        """Return class and pid."""
        pid = f" (pid {self.actor.number('pid'):.0f})" if self.actor.number("pid") else ""
        return f"{sanitise(self.actor.text('class_name'), 60) or 'an actor'}{pid}"


@probe(
    "ray.actors",
    needs="ray",
    answers=("none", "trainer-died", "engine-died", "host-oom", "other-died"),
    en="Did an actor of the job die, and of what?",
    zh="任务是否有 actor 死亡？原因是什么？",
    deadline=ray_cluster.DEADLINE,
)
def actors(evidence: Evidence, report: Progress) -> Finding:  # noqa: ARG001  # a few answers tell no progress
    """Group the deaths by class and cause; the one that explains most is told."""
    try:
        live = ray_cluster.look(evidence.paths("ray"))
        listed = ray_cluster.listed(live, "actors")
    except RefusedError as error:
        return ray_cluster.refused(error)
    dead = deaths(listed.records)
    if dead:
        return _died(dead, listed.records)
    if listed.gap:
        return ray_cluster.partial(listed.gap)
    if not listed.records:
        return found(
            Verdict.OK,
            "none",
            f"Job {live.name} has no actor yet.",
            f"任务 {live.name} 还没有 actor。",
            citations=(live.job.record.cite(),),
        )
    return found(
        Verdict.OK,
        "none",
        f"None of the {len(listed.records)} actors of {live.name} died of a fault.",
        f"{live.name} 的 {len(listed.records)} 个 actor 都没有因故障死亡。",
        citations=(listed.records[0].cite(),),
        tables=(_table(dead, listed.records),),
    )


def _died(dead: Sequence[Death], records: Sequence[Record]) -> Finding:
    first = dead[0]
    side = ray_cluster.side(first.actor)
    answer = (
        "host-oom"
        if first.kind == "host-oom"
        else {"train": "trainer-died", "rollout": "engine-died"}.get(side or "", "other-died")
    )
    en, zh = _KINDS[first.kind]
    more = f" {counted(len(dead), 'actor')} died in all." if len(dead) > 1 else ""
    more_zh = f"共 {len(dead)} 个 actor 死亡。" if len(dead) > 1 else ""
    said = f" ({first.said})" if first.said else ""
    return found(
        Verdict.WARNING,
        answer,
        f"{first.who} died: {en}{said}.{more}",
        f"{first.who} 死亡：{zh}{said}。{more_zh}",
        citations=tuple(death.actor.cite() for death in dead[:3]),
        tables=(_table(dead, records),),
    )


def deaths(records: Sequence[Record]) -> list[Death]:
    """Return the actors that died of a fault, first those that explain others: memory, then trainers and engines."""
    found_ = [death for record in records if (death := _death(record)) is not None]
    kinds = list(_KINDS)
    return sorted(
        found_,
        key=lambda death: (death.kind != "host-oom", ray_cluster.side(death.actor) is None, kinds.index(death.kind)),
    )


def _death(actor: Record) -> Death | None:
    cause = actor.inner("death_cause")
    for context, kind in _CONTEXTS.items():
        inner = cause.get(context)
        if isinstance(inner, dict):
            return Death(actor, kind, _said(inner))
    inner = cause.get("actor_died_error_context")
    if not isinstance(inner, dict) or actor.text("state") not in ("DEAD", "RESTARTING"):
        return None
    message = inner.get("error_message")
    said = message if isinstance(message, str) else ""
    if inner.get("reason") == "NODE_DIED":
        return Death(actor, "node", _said(inner))
    if inner.get("reason") != "WORKER_DIED" or "INTENDED_" in said:
        return None
    exit_type = re.search(r"Worker exit type: (\w{1,40})", said)
    return Death(actor, "vanished", exit_type[1] if exit_type else "")


def _said(inner: dict[str, object]) -> str:
    """Return the words of a death: the first sentence of Ray's message, or the last line of a traceback."""
    packed, message = inner.get("serialized_exception"), inner.get("error_message")
    if isinstance(packed, str) and packed:
        try:
            trace = _TRACE.search(base64.b64decode(packed[: 1 << 20], validate=False))
        except (binascii.Error, ValueError):
            trace = None
        lines = trace[0].decode("ascii").rstrip().split("\n") if trace else []
        return sanitise(next((line for line in reversed(lines) if _NAMED.match(line[:_NAME_CHARS])), ""), 160)
    if not isinstance(message, str):
        return ""
    memory = re.search(r"Memory on the node .{0,200}", message)
    return sanitise(memory[0] if memory else message.strip().split("\n")[0], 200).rstrip(".")


def _table(dead: Sequence[Death], records: Sequence[Record]) -> Table:
    """Return the actors by class and how they stand, those that died of a fault first."""
    fault = {id(death.actor): death for death in dead}
    rows: Counter[tuple[bool, str, str, str]] = Counter()
    zh = []
    for record in records:
        death = fault.get(id(record))
        how = ""
        if death is not None:
            words, said = _KINDS[death.kind], f": {death.said}" if death.said else ""
            how = f"{words[0]}{said}"
            zh.append(Text(how, f"{words[1]}{said}"))
        name = sanitise(record.text("class_name"), 40)
        rows[(death is None, name, sanitise(record.text("state"), 30), how or _ending(record))] += 1
    ordered = sorted(rows.items(), key=lambda pair: (pair[0][0], pair[0][1], -pair[1]))[:SHOWN]
    cells = tuple((name, str(count), state, how) for (_, name, state, how), count in ordered)
    title = Text("Actors of the job", "任务的 actor")
    return ray_cluster.table(title, ("class", "number", "state", "of what"), cells, zh)


def _ending(actor: Record) -> str:
    """Return Ray's word for an end that is no fault."""
    inner = actor.inner("death_cause").get("actor_died_error_context")
    said = inner.get("reason") if isinstance(inner, dict) else None
    return sanitise(said, 30).lower().replace("_", " ") if isinstance(said, str) else "-"
