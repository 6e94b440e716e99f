"""Whether a process of the job waits for a debugger, at which address, and how to attach there.

The lines are the same for a breakpoint() and for an exception under RAY_DEBUG_POST_MORTEM=1, whose traceback Ray does
not print before somebody attached (`readers.debugger_lines`). Invariants: a stop counts as waiting only while no line
shows that somebody attached or that the job went on; an address is never guessed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from probes import logs, ray_live
from probes.ray_cluster import table
from probes.readers import joblog, logplace
from probes.readers.debugger_lines import SIGNATURES, Stop, stops
from probes.readers.logfiles import LogFile, window
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text

SHOWN = 12
"""Stops that the table lists."""
_END = 64 * 1024
_LOOPBACK = ("127.", "localhost", "::1")


@probe(
    "ray_debugger.paused",
    needs="log",
    answers=("paused", "paused-legacy", "attached", "none"),
    en="Does a process of the job wait for a debugger?",
    zh="任务里有进程在等待调试器 attach 吗？",
    deadline=logs.DEADLINE,
)
def paused(evidence: Evidence, report: Progress) -> Finding:
    """Pair the lines of each process, and give the address that it printed."""
    scanned = logs.collect(evidence, report, SIGNATURES)
    labels = tuple(each.label for each in SIGNATURES)
    every = stops(scanned.of(*labels))
    standing = [stop for stop in every if scanned.attempts.past(stop.since) is None] if every else []
    waiting = [stop for stop in standing if stop.attached is None]
    if waiting:
        return _waiting(waiting)
    live = ray_live.paused(evidence)
    if live is not None and live.verdict.decides:
        return live
    if attached := [stop for stop in standing if stop.attached is not None]:
        stop = attached[-1]
        return found(
            Verdict.OK,
            "attached",
            f"A debugger attached to {_who(stop)}{_at(stop)}.",
            f"调试器已 attach 到 {_who_zh(stop)}{_at(stop)}。",
            citations=_lines(attached[-3:]),
        )
    return (
        live
        or logs.unread(scanned.coverage)
        or scanned.history("none", *labels)
        or found(Verdict.OK, "none", "No process waits for a debugger.", "没有进程在等待调试器。")
    )


def _waiting(waiting: list[Stop]) -> Finding:
    """Report the processes that wait, with the address of each and the way there."""
    known = [stop for stop in waiting if stop.port] or waiting
    stop = known[0]
    total = max(sum(one.count for one in waiting), len(waiting))
    more = f" {total} processes wait in all." if total > 1 else ""
    more_zh = f"共有 {total} 个进程在等待。" if total > 1 else ""
    since, since_zh = _since(stop)
    where = _at(stop) or " at an address that this log does not tell"
    where_zh = _at(stop) or "（日志没有给出地址）"
    what, what_zh = ("`ray debug`", " `ray debug` ") if stop.legacy else ("debugger", "调试器")
    tables = [_table(waiting)]
    if stop.port:
        tables.append(_way(stop))
    if total > sum(1 for one in waiting if one.port):
        tables.append(_hidden())
    return found(
        Verdict.WARNING,
        "paused-legacy" if stop.legacy else "paused",
        f"The job waits: {_who(stop)} stopped{since} for a {what}{where}.{more}",
        f"任务已暂停：{_who_zh(stop)} {since_zh}停下，等待{what_zh}{where_zh}。{more_zh}",
        citations=_lines(known[:3]),
        tables=tuple(tables),
    )


def _who(stop: Stop) -> str:
    pid = f" (pid {stop.pid})" if stop.pid else ""
    return f"{stop.actor}{pid}" if stop.actor else f"the worker{pid}" if stop.pid else "the driver"


def _who_zh(stop: Stop) -> str:
    pid = f"（pid {stop.pid}）" if stop.pid else ""
    return f"{stop.actor}{pid}" if stop.actor else f"worker{pid}" if stop.pid else "driver"


def _address(stop: Stop) -> str:
    if not stop.port:
        return ""
    if not stop.host:
        return f":{stop.port}"
    return f"[{stop.host}]:{stop.port}" if ":" in stop.host else f"{stop.host}:{stop.port}"


def _at(stop: Stop) -> str:
    return f" at {_address(stop)}" if stop.port else ""


def _since(stop: Stop) -> tuple[str, str]:
    """Return since when, and for how long the log goes on, as far as times stand around the line."""
    start = logplace.time_of(stop.since)
    if start is None:
        return "", ""
    clock = time.strftime("%H:%M:%S", time.gmtime(start))
    end = _last_time(stop.since.file)
    if end is None or end - start < 60:
        return f" after {clock}", f"在 {clock} 之后"
    minutes = f"{(end - start) / 60:.0f}"
    return f" after {clock}, {minutes} min before this log ends,", f"在 {clock} 之后（距日志结束 {minutes} 分钟）"


def _last_time(file: LogFile) -> float | None:
    """Return the last time that a log tells near its end."""
    if file.packing != "plain":
        return None
    start = max(file.size - _END, 0)
    for raw in reversed(window(file, start, _END).split(b"\n")):
        if (told := joblog.parse(raw).time) is not None:
            return told
    return None


def _lines(some: Sequence[Stop]) -> tuple[Citation, ...]:
    hits = [hit for stop in some for hit in (stop.listens, stop.since, stop.attached) if hit is not None]
    return tuple({(hit.file.path, hit.offset): joblog.citation(hit) for hit in hits}.values())


def _table(waiting: list[Stop]) -> Table:
    rows = tuple(
        (
            stop.actor or ("worker" if stop.pid else "driver"),
            str(stop.pid or "-"),
            stop.ip or "-",
            _address(stop) or "-",
            f"{'ray debug' if stop.legacy else 'debugpy'}{f' x{stop.count}' if stop.count > 1 else ''}",
        )
        for stop in waiting[:SHOWN]
    )
    return table(Text("What waits", "等待中的进程"), ("process", "pid", "node", "address", "waits"), rows)


_ADD = Text(
    "Ray Distributed Debugger: add the cluster (dashboard, port 8265)",
    "Ray Distributed Debugger：添加集群（dashboard，端口 8265）",
)
_CLICK = Text("and click the paused task", "然后点击暂停的 task")
_NO_DEDUP = Text(
    "RAY_DEDUP_LOGS=0 in front of the driver: every process then has its own line",
    "在 driver 前加 RAY_DEDUP_LOGS=0：每个进程都会有自己的日志行",
)
_PLACES = (
    Text("on the head node", "在 head 节点上"),
    Text("or by hand, on that node", "或在该节点上手动"),
    Text("(no extension)", "（不用扩展）"),
    Text("from elsewhere", "从别处"),
    Text("reachable?", "是否可达？"),
    Text("on each node", "在每个节点上"),
    Text("for the next run", "下次运行时"),
    _ADD,
    _CLICK,
    _NO_DEDUP,
)
"""What the tables say, in both languages; commands stay as they are."""


def _way(stop: Stop) -> Table:
    """Return how to attach to this very address."""
    host, port = stop.host or stop.ip or "NODE", stop.port
    if stop.legacy:
        rows: tuple[tuple[str, str], ...] = (
            ("on the head node", "RAY_DEBUG=legacy ray debug"),
            ("or by hand, on that node", f"telnet {host} {port}"),
        )
        return table(Text("How to attach", "如何 attach"), ("where", "what"), rows, _PLACES)
    near = host.startswith(_LOOPBACK)
    reached = f"[{host}]" if ":" in host else host
    connect = json.dumps({"host": host, "port": port})
    rows = (
        ("VS Code", _ADD.en),
        ("", _CLICK.en),
        ("launch.json", '{"name": "Ray", "type": "debugpy", "request": "attach",'),
        ("(no extension)", f' "connect": {connect},'),
        ("", ' "pathMappings": [{"localRoot": "${workspaceFolder}",'),
        ("", '                   "remoteRoot": "DIRECTORY_OF_THE_CODE"}]}'),
        ("from elsewhere", f"ssh -L {port}:{reached}:{port} {'THAT_NODE' if near else 'LOGIN_NODE'}"),
        ("", f"and then host 127.0.0.1, port {port}"),
        ("reachable?", f"nc -vz {host} {port}"),
    )
    zh = (*_PLACES, Text(rows[-2][1], f"然后用 host 127.0.0.1、端口 {port}"))
    return table(Text("How to attach", "如何 attach"), ("where", "what"), rows, zh)


def _hidden() -> Table:
    """Return where the addresses of the other processes stand."""
    rows = (
        ("on each node", "grep -a 'Ray debugger is listening' /tmp/ray/session_latest/logs/worker-*.err"),
        ("for the next run", _NO_DEDUP.en),
    )
    title = Text("The other addresses (Ray shows equal lines once)", "其余地址（Ray 会合并相同的日志行）")
    return table(title, ("where", "what"), rows, _PLACES)
