"""What every probe of a live Ray cluster shares: the dashboard, slime's job in it, and the words for what is not known.

The state belongs to one job, the one that `readers.ray_jobs` chooses or the address names. Logs that were given may be
of another job, so what a log and the state say is put together only where the log is this job's (`concerns`): it was
fetched from here, or names the job. Invariant: whatever could not be asked, was cut or is ambiguous is `unknown` with
its reason, never "none".
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from probes import faults
from probes.readers import ray_jobs, ray_log, ray_state
from probes.readers.logfiles import expand, window
from probes.readers.ray_http import Address, RefusedError, read_address
from probes.readers.ray_jobs import Job
from probes.readers.ray_state import Listed, Record
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, unknown
from runbook.text import Text, sanitise

DEADLINE = 120.0
"""Seconds for a probe of a live cluster: a few answers, each of which may take half a minute."""
MANY_LOGS = 64
_HEAD = 64 << 10
"""Bytes at the start of a log in which `ray job submit` names the job."""
_COLUMNS = {
    "GPU": "GPU",
    "CPU": "CPU",
    "task": "task",
    "pid": "pid",
    "address": "地址",
    "asked": "请求",
    "began (UTC)": "开始（UTC）",
    "class": "类",
    "died (UTC)": "掉线（UTC）",
    "ended": "结束",
    "error": "错误",
    "for": "时长",
    "free": "空闲",
    "job": "任务",
    "memory": "内存",
    "most": "最多",
    "node": "节点",
    "number": "数量",
    "of what": "原因",
    "process": "进程",
    "resource": "资源",
    "state": "状态",
    "status": "状态",
    "there": "已有",
    "value": "值",
    "waits": "等待",
    "what": "项目",
    "where": "位置",
    "which": "所属",
    "why, by Ray": "原因（Ray）",
}
"""Chinese words for the columns of tables about a cluster."""


@dataclass(frozen=True)
class Live:
    """A dashboard and slime's job there. jobs: all jobs as it lists them. others: further jobs that may be meant."""

    address: Address
    jobs: Listed
    job: Job
    others: tuple[Job, ...] = ()

    @property
    def name(self) -> str:
        """Return the job's id, safe to draw."""
        return sanitise(self.job.id, 60)


def address_of(paths: Iterable[str]) -> Address:
    """Return the first of these that is the address of a dashboard; raises RefusedError of the first."""
    first: RefusedError | None = None
    for words in paths:
        try:
            return read_address(words)
        except RefusedError as error:
            first = first or error
    raise first or RefusedError(Text("no address was given", "没有给出地址"))


def look(paths: Iterable[str]) -> Live:
    """Return slime's job at the address given; raises RefusedError, also where nobody can tell which it is."""
    address = address_of(paths)
    listed = ray_state.jobs(address)
    every = ray_jobs.read_jobs(listed.records)
    training = every if address.job else [job for job in every if job.training] or _by_actors(address, every)
    job, others = ray_jobs.choose(training, address.job)
    if job is not None:
        return Live(address, listed, job, tuple(others))
    if others:
        names = " or ".join(f"{address.url}/#/jobs/{sanitise(one.id, 60)}" for one in others[:3])
        raise RefusedError(
            Text(
                f"{len(others)} jobs of slime at {address.netloc} began together",
                f"{address.netloc} 上有 {len(others)} 个 slime 任务同时开始",
            ),
            Text(f"say which: --ray {names}", f"请指定：--ray {names.replace(' or ', ' 或 ')}"),
        )
    raise _no_job(address, listed)


def _by_actors(address: Address, every: Sequence[Job]) -> list[Job]:
    """Return the jobs that have trainers or engines, for a job whose entrypoint is a script of somebody's own."""
    if not every:
        return []
    theirs = {actor.text("job_id") for actor in ray_state.listed(address, "actors").records if side(actor)}
    return [job for job in every if job.job and job.job in theirs]


def _no_job(address: Address, listed: Listed) -> RefusedError:
    where = address.netloc
    if address.job:
        what = f"{where} knows no job {sanitise(address.job, 60)}", f"{where} 没有任务 {sanitise(address.job, 60)}"
    elif listed.gap:
        what = (
            f"no job of slime is among those read at {where}: {listed.gap.en}",
            f"在 {where} 读到的任务里没有 slime 任务：{listed.gap.zh}",
        )
    else:
        what = (
            f"none of the {listed.total} jobs that {where} lists is recognised as slime's",
            f"{where} 列出的 {listed.total} 个任务中没有可识别的 slime 任务",
        )
    settle = f"name the job: --ray {address.url}/#/jobs/ID", f"指定任务：--ray {address.url}/#/jobs/ID"
    return RefusedError(Text(*what), Text(*settle))


def side(actor: Record) -> str | None:
    """Return which half of slime's job an actor belongs to: "train", "rollout" or None."""
    return faults.actor_side(actor.text("class_name"))


def listed(live: Live, kind: str, key: str = "job_id") -> Listed:
    """Return what the cluster lists of a kind for the job, whose driver has an id from its ray.init() on."""
    return ray_state.listed(live.address, kind, (key, "=", live.job.job)) if live.job.job else Listed((), 0)


def concerns(evidence: Evidence, live: Live) -> bool:
    """Return whether the logs of the evidence are the live job's: there are none, or one of them is known to be."""
    files, _ = expand(evidence.paths("log"))
    if any(ray_log.is_log_of(file.path, live.address, live.job) for file in files):
        return True
    name = live.job.submission.encode("utf-8", "replace")
    if not name:
        return not files
    return not files or any(
        name in os.fsencode(file.path) or name in window(file, 0, _HEAD) for file in files[:MANY_LOGS]
    )


def refused(error: RefusedError, citations: tuple[Citation, ...] = ()) -> Finding:
    """Return the unknown of a state that could not be asked."""
    return unknown(
        f"Ray's live state is not known: {error.why.en}.",
        f"无法得知 Ray 的实时状态：{error.why.zh}。",
        settle_en=f"{error.settle.en[:1].upper()}{error.settle.en[1:]}.",
        settle_zh=f"{error.settle.zh}。",
        slots=("ray",),
        citations=citations,
    )


def partial(gap: Text, citations: tuple[Citation, ...] = ()) -> Finding:
    """Return the unknown of a list that is not all there is, for what was not found in it."""
    return refused(
        RefusedError(gap, Text("ask again once the cluster is less busy", "等集群空闲一些后重新询问")), citations
    )


def table(title: Text, columns: Sequence[str], rows: Iterable[tuple[str, ...]], zh: Iterable[Text] = ()) -> Table:
    """Return a table in both languages. zh: what cells say otherwise in Chinese. Raises KeyError for a new column."""
    words = [(column, _COLUMNS[column]) for column in columns]
    cells = dict.fromkeys((text.en, text.zh) for text in zh)
    return Table(title, tuple(columns), tuple(rows), tuple(pair for pair in (*words, *cells) if pair[0] != pair[1]))


def ago(seconds: float) -> tuple[str, str]:
    """Return a span of time as people say it; seconds below 0 count as 0."""
    seconds = max(seconds, 0.0)
    if seconds < 120:
        return f"{seconds:.0f} s", f"{seconds:.0f} 秒"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min", f"{seconds / 60:.0f} 分钟"
    return f"{seconds / 3600:.1f} h", f"{seconds / 3600:.1f} 小时"


def clock(seconds: float) -> str:
    """Return a time since the epoch in UTC, "-" for none."""
    return time.strftime("%m-%d %H:%M:%S", time.gmtime(seconds)) if 0 < seconds < 1e11 else "-"
