"""How slime's job stands, as Ray tells: it runs, waits, ended well, failed or was stopped.

The status of a failed job is no cause by itself; its message is the end of the log again.
"""

from __future__ import annotations

import time

from probes import ray_cluster
from probes.ray_cluster import Live
from probes.readers import ray_jobs
from probes.readers.launch import read_launch_text
from probes.readers.ray_http import RefusedError
from runbook.evidence import Evidence
from runbook.finding import Finding, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

SHOWN = 12
"""Jobs that the table lists."""
_ANSWERS = {
    "RUNNING": ("running", "runs", "正在运行"),
    "PENDING": ("pending", "waits for its driver to start", "在等 driver 启动"),
    "SUCCEEDED": ("succeeded", "ended well", "已成功结束"),
    "FAILED": ("failed", "failed", "已失败"),
    "STOPPED": ("stopped", "was stopped by somebody", "被人停止"),
}


@probe(
    "ray.job",
    needs="ray",
    answers=("running", "pending", "succeeded", "failed", "stopped"),
    en="How does slime's job stand in Ray?",
    zh="slime 任务在 Ray 中处于什么状态？",
    deadline=ray_cluster.DEADLINE,
    over=("succeeded", "failed", "stopped"),
)
def job(evidence: Evidence, report: Progress) -> Finding:  # noqa: ARG001  # a few answers tell no progress
    """Find the job and read its record."""
    try:
        live = ray_cluster.look(evidence.paths("ray"))
        if live.job.status not in _ANSWERS:
            en = f"the status of {live.name} is {sanitise(live.job.status, 40) or 'not told'}"
            zh = f"{live.name} 的状态为 {sanitise(live.job.status, 40) or '未知'}"
            raise RefusedError(Text(en, zh))  # noqa: TRY301  # said as every other reason is
    except RefusedError as error:
        return ray_cluster.refused(error)
    answer, en, zh = _ANSWERS[live.job.status]
    when, when_zh = _when(live)
    said = sanitise(live.job.record.text("message").strip().rpartition("\n")[2], 160) if answer == "failed" else ""
    return found(
        Verdict.WARNING if answer == "failed" else Verdict.OK,
        answer,
        f"Job {live.name} {en}{when}" + (f": {said}" if said else "") + ".",
        f"任务 {live.name} {zh}{when_zh}" + (f"：{said}" if said else "") + "。",
        citations=(live.job.record.cite(),),
        tables=(_command(live), _table(live)),
    )


def _when(live: Live) -> tuple[str, str]:
    if live.job.ended:
        lasted = ray_cluster.ago(live.job.ended - live.job.started)
        return f" after {lasted[0]}", f"，历时 {lasted[1]}"
    if not live.job.started:
        return "", ""
    since = ray_cluster.ago(time.time() - live.job.started)
    return f" since {since[0]}", f"，已 {since[1]}"


def _command(live: Live) -> Table:
    """Return what was submitted, as the launch reader understands it."""
    read = read_launch_text("entrypoint", live.job.entrypoint.encode("utf-8", "replace")).jobs
    flags = (
        Text(f"{len(read[0].flags)} of slime and Megatron", f"slime 与 Megatron 的 {len(read[0].flags)} 个参数")
        if read
        else Text("none that is known", "没有可识别的参数")
    )
    rows = (
        ("entrypoint", sanitise(live.job.entrypoint, 300)),
        ("flags", flags.en),
        ("runtime env", ", ".join(sanitise(name, 60) for name in _variables(live)[:20]) or "-"),
    )
    zh = (flags, Text("entrypoint", "启动命令"), Text("flags", "参数"), Text("runtime env", "运行环境变量"))
    return ray_cluster.table(Text("What was submitted", "提交的内容"), ("what", "value"), rows, zh)


def _variables(live: Live) -> list[str]:
    """Return the names of the variables that the runtime env passes; their values may be secrets."""
    inner = live.job.record.inner("runtime_env").get("env_vars")
    return [str(name) for name in inner] if isinstance(inner, dict) else []


def _table(live: Live) -> Table:
    every = ray_jobs.read_jobs(live.jobs.records)
    rows = tuple(
        (
            sanitise(one.id, 40),
            "this one" if one.id == live.job.id else "slime's" if one.training else "-",
            sanitise(one.status, 20),
            ray_cluster.clock(one.started),
            ray_cluster.clock(one.ended),
        )
        for one in every[:SHOWN]
    )
    title = Text(
        f"Jobs, the newest {len(rows)} of {live.jobs.total}", f"任务（共 {live.jobs.total} 个，最新 {len(rows)} 个）"
    )
    zh = (Text("this one", "本任务"), Text("slime's", "slime 任务"))
    return ray_cluster.table(title, ("job", "which", "status", "began (UTC)", "ended"), rows, zh)
