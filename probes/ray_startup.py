"""What a job that has not begun to train waits for, as Ray's live state tells: its GPUs, or engines that start.

Ray sees that an engine's process is being made or runs its `init`; that a server is ready it does not see, so this
never says that the engines are up. A start is called slow after SLOW seconds of one engine's start-up.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from probes import ray_cluster, ray_placement, ray_tasks
from probes.readers.ray_http import RefusedError
from probes.readers.ray_state import Record
from probes.thresholds import Threshold
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable
from runbook.probe import Progress, probe
from runbook.text import Text

SLOW = Threshold(
    1800.0, "s", "chosen: a large model from a network disk takes ten minutes and more; thrice that is told as slow"
)
_MAKING = ("DEPENDENCIES_UNREADY", "PENDING_CREATION", "RESTARTING")


@probe(
    "ray.startup",
    needs="ray",
    answers=("no-gpus", "starting"),
    en="What does the start of the job wait for, as Ray sees it?",
    zh="从 Ray 看，任务启动在等什么？",
    deadline=ray_cluster.DEADLINE,
)
def startup(evidence: Evidence, report: Progress) -> Finding:  # noqa: ARG001  # a few answers tell no progress
    """Look at placement groups, then at engines that are made or run their init for long."""
    try:
        live = ray_cluster.look(evidence.paths("ray"))
        if not live.job.live:
            return not_applicable(f"Job {live.name} has ended.", f"任务 {live.name} 已经结束。")
        if not ray_cluster.concerns(evidence, live):
            return not_applicable("The logs are not this job's.", "日志不属于该任务。")
        group = ray_placement.standing(live)
        if group.answer == "pending":
            return found(
                group.verdict, "no-gpus", group.summary.en, group.summary.zh, citations=group.citations,
                measurements=group.measurements, tables=group.tables,
            )  # fmt: skip
        actors, tasks = ray_cluster.listed(live, "actors"), ray_tasks.unfinished(live)
    except RefusedError as error:
        return ray_cluster.refused(error)
    slow = _slow(actors.records, tasks.records)
    if slow is None:
        return _quick(actors.gap or tasks.gap)
    record, seconds = slow
    since, since_zh = ray_cluster.ago(seconds)
    return found(
        Verdict.WARNING,
        "starting",
        f"An SGLang engine has been starting for {since}.",
        f"有 SGLang engine 已启动 {since_zh}仍未完成。",
        citations=(record.cite(),),
        measurements=(SLOW.measure("start of an engine", seconds),),
    )


def _quick(gap: Text | None) -> Finding:
    """Return that no engine takes long. gap: why not all engines and tasks were seen."""
    if gap:
        return ray_cluster.partial(gap)
    return not_applicable(
        "Ray sees no engine that takes long to start; whether the servers answer it does not see.",
        "Ray 未看到启动过久的 engine；服务是否就绪它看不到。",
    )


def _slow(actors: Sequence[Record], tasks: Sequence[Record]) -> tuple[Record, float] | None:
    """Return the engine's task that has been starting longest, if that is long."""
    engines = {actor.text("actor_id") for actor in actors if ray_cluster.side(actor) == "rollout"}
    making = {actor.text("actor_id") for actor in actors if actor.text("state") in _MAKING}
    now = time.time()
    begun = [
        (task, now - (task.number("start_time_ms") or task.number("creation_time_ms")) / 1000)
        for task in tasks
        if task.text("actor_id") in engines
        and (task.text("actor_id") in making or task.text("name").endswith((".init", ".__init__")))
        and task.text("state") != "FAILED"
        and (task.number("start_time_ms") or task.number("creation_time_ms"))
    ]
    longest = max(begun, key=lambda pair: pair[1], default=None)
    return longest if longest is not None and longest[1] >= SLOW.value else None
