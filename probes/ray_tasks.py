"""What the job's tasks do: which wait and for what, which failed and how, which run longest, which a debugger holds.

Ray keeps the latest tasks of a job (100,000 by default) and drops others, so this tells of what is there now and never
that something did not happen. A method that runs as long as the job does (a server loop) is ordinary. Sources: Ray
src/ray/protobuf/common.proto (TaskStatus, ErrorType).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from probes import ray_cluster
from probes.ray_cluster import Live
from probes.readers import ray_state
from probes.readers.ray_http import RefusedError
from probes.readers.ray_state import Listed, Record
from runbook.evidence import Evidence
from runbook.finding import Finding, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text, counted, sanitise

SHOWN = 10
"""Rows of each table."""
_WAITS = {
    "PENDING_ARGS_AVAIL": Text("for the result of another task", "等待其他 task 的结果"),
    "PENDING_NODE_ASSIGNMENT": Text("for resources on a node", "等待节点资源"),
    "PENDING_OBJ_STORE_MEM_AVAIL": Text("for room in the object store", "等待对象存储空间"),
    "PENDING_ARGS_FETCH": Text("for its arguments to arrive", "等待参数到达"),
    "SUBMITTED_TO_WORKER": Text("for its worker to begin", "等待 worker 开始"),
    "PENDING_ACTOR_TASK_ARGS_FETCH": Text("for its arguments to arrive", "等待参数到达"),
    "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY": Text("for the actor's turn", "等待 actor 轮到它"),
}


@probe(
    "ray.tasks",
    needs="ray",
    answers=("paused", "failed", "at-work", "none"),
    en="What do the job's tasks do?",
    zh="任务里的 Ray task 在做什么？",
    deadline=ray_cluster.DEADLINE,
)
def tasks(evidence: Evidence, report: Progress) -> Finding:  # noqa: ARG001  # a few answers tell no progress
    """Sort the tasks that have not finished by what they do."""
    try:
        live = ray_cluster.look(evidence.paths("ray"))
        listed = unfinished(live)
        waiting, gap = held(live, listed)
    except RefusedError as error:
        return ray_cluster.refused(error)
    if waiting:
        return stopped(live, waiting, listed)
    failed = [task for task in listed.records if task.text("state") == "FAILED"]
    if failed:
        first = max(failed, key=_ended)
        kind = sanitise(first.text("error_type"), 60) or "no kind told"
        return found(
            Verdict.WARNING,
            "failed",
            f"{counted(len(failed), 'task')} of {live.name} failed, {_name(first)} last: {kind}.",
            f"{live.name} 有 {len(failed)} 个 task 失败，最近的是 {_name(first)}：{kind}。",
            citations=(first.cite(),),
            tables=_tables(listed),
        )
    if gap:
        return ray_cluster.partial(gap)
    running = [task for task in listed.records if task.text("state").startswith("RUNNING")]
    others = len(listed.records) - len(running)
    if not listed.records:
        return found(
            Verdict.OK, "none", f"No task of {live.name} is under way.", f"{live.name} 当前没有进行中的 task。",
            citations=(live.job.record.cite(),),
        )  # fmt: skip
    return found(
        Verdict.OK,
        "at-work",
        f"{counted(len(running), 'task')} of {live.name} run and {others} wait; none failed.",
        f"{live.name} 有 {len(running)} 个 task 在运行，{others} 个在等待，没有失败的。",
        citations=(listed.records[0].cite(),),
        tables=_tables(listed),
    )


def unfinished(live: Live) -> Listed:
    """Return the job's tasks that have not finished well; raises RefusedError."""
    if not live.job.job:
        return Listed((), 0)
    return ray_state.listed(live.address, "tasks", ("job_id", "=", live.job.job), ("state", "!=", "FINISHED"))


@dataclass(frozen=True)
class Held:
    """A process that a debugger holds: its worker, and the task it runs, None for the driver's own lines."""

    worker: Record
    task: Record | None

    @property
    def who(self) -> str:
        """Return the task and the pid."""
        return f"{_name(self.task) if self.task else 'the driver'} (pid {self.worker.number('pid'):.0f})"

    @property
    def address(self) -> str:
        """Return where its debugger listens, "" where Ray does not tell."""
        host, port = sanitise(self.worker.text("ip"), 60), self.worker.number("debugger_port")
        return (f"[{host}]:{port:.0f}" if ":" in host else f"{host}:{port:.0f}") if host and 0 < port < 65536 else ""


def held(live: Live, tasks: Listed) -> tuple[list[Held], Text | None]:
    """Return the job's processes that a debugger holds, and why there may be more of them; raises RefusedError.

    Ray's debugger marks the worker and not the task (ray/util/debugpy.py: worker_paused_by_debugger).
    """
    workers = ray_state.listed(live.address, "workers", ("num_paused_threads", "!=", "0"))
    theirs = {task.text("worker_id"): task for task in tasks.records if task.text("state").startswith("RUNNING")}
    found_ = []
    for worker in workers.records:
        name = worker.text("worker_id")
        driver = worker.text("worker_type") == "DRIVER" and bool(live.job.job) and name.startswith(live.job.job)
        waits = worker.number("num_paused_threads") > 0 and worker.fields.get("is_alive") is not False
        if waits and (driver or name in theirs):
            found_.append(Held(worker, None if driver else theirs[name]))
    return found_, tasks.gap or workers.gap


def stopped(live: Live, waiting: Sequence[Held], listed: Listed) -> Finding:
    """Return the finding that processes wait for a debugger."""
    first = waiting[0]
    where, where_zh = (f" at {first.address}", f"（{first.address}）") if first.address else ("", "")
    more = f" {len(waiting)} processes wait in all." if len(waiting) > 1 else ""
    more_zh = f"共有 {len(waiting)} 个进程在等待。" if len(waiting) > 1 else ""
    rows = tuple((one.who, one.address or "-") for one in waiting[:SHOWN])
    return found(
        Verdict.WARNING,
        "paused",
        f"The job waits: {first.who} of {live.name} stopped for a debugger{where}.{more}",
        f"任务已暂停：{live.name} 的 {first.who} 停下，等待调试器{where_zh}。{more_zh}",
        citations=tuple(one.worker.cite() for one in waiting[:3]),
        tables=(
            ray_cluster.table(Text("What a debugger holds", "被调试器暂停的进程"), ("process", "address"), rows),
            *_tables(listed),
        ),
    )


def _name(task: Record) -> str:
    return sanitise(task.text("name") or task.text("func_or_class_name"), 80) or "a task"


def _ended(task: Record) -> float:
    return task.number("end_time_ms")


def _tables(listed: Listed) -> tuple[Table, ...]:
    records = listed.records
    waiting = Counter(
        (_name(task), _WAITS[state].en if (state := task.text("state")) in _WAITS else sanitise(state, 40).lower())
        for task in records
        if task.text("state") != "FAILED" and not task.text("state").startswith("RUNNING")
    )
    failed = Counter(
        (_name(task), sanitise(task.text("error_type"), 60) or "-")
        for task in records
        if task.text("state") == "FAILED"
    )
    running = [task for task in records if task.text("state").startswith("RUNNING")]
    tables = []
    if running:
        tables.append(_running(running))
    if waiting:
        tables.append(_counted(Text("What waits, and for what", "等待中的 task 及原因"), "waits", waiting))
    if failed:
        tables.append(_counted(Text("What failed, and how", "失败的 task 及类型"), "error", failed))
    return tuple(tables)


def _counted(title: Text, column: str, rows: Counter[tuple[str, str]]) -> Table:
    cells = tuple((str(count), name, what) for (name, what), count in rows.most_common(SHOWN))
    return ray_cluster.table(title, ("number", "task", column), cells, _WAITS.values() if column == "waits" else ())


def _running(running: Sequence[Record]) -> Table:
    now = time.time()
    longest = sorted(running, key=lambda task: task.number("start_time_ms") or now * 1000)[:SHOWN]
    begun = [task.number("start_time_ms") / 1000 for task in longest]
    spans = [Text(*ray_cluster.ago(now - start)) if start else Text("-", "-") for start in begun]
    rows = [
        (_name(task), span.en, f"{task.number('worker_pid'):.0f}") for task, span in zip(longest, spans, strict=True)
    ]
    return ray_cluster.table(Text("What runs longest", "运行最久的 task"), ("task", "for", "pid"), rows, spans)
