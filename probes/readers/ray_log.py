"""Fetches the log of a submitted job into a file that the log readers read like any other.

What the driver prints, Ray keeps on the node of the driver and hands out by /api/v0/logs/file, from the start or the
last N lines; it knows no offsets. So a log up to WHOLE_BYTES is fetched whole, of a longer one the first WHOLE_BYTES
and the last TAIL_BYTES, with a line between them that says so, and a name that tells it too (`ray_keep.is_cut`): who
reads it must not conclude that something is absent. At the next look only the end is asked for, and what is new is
appended where it joins on to what is there. Invariants: a fetched file only grows, so that lines which were cited keep
their numbers; of a job that had ended when its log was fetched nothing is asked again; what was fetched stays evidence
where the cluster does not hand it out any more.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any
from urllib.parse import quote, urlencode

from probes.readers import ray_keep
from probes.readers.ray_http import Address, Answer, RefusedError, get
from probes.readers.ray_jobs import Job
from runbook.text import Text

WHOLE_BYTES = 48 << 20
TAIL_BYTES = 16 << 20
SECONDS = 20.0
"""Seconds for all that is asked for one log: looking for evidence has sixty, with the lists that come before."""
ANCHOR = 64 << 10
"""Bytes at the end of what is there by which the new end is joined on."""
STEPS = (2000, 40_000)
"""Last lines that are asked for to find what is new, one after the other."""
CUT_LINE = b"[slime-runbook: a part of the job's log that stands here was not fetched]\n"
_CURRENT = "current.json"
_GONE = (404, 500)
"""What a dashboard answers where the node of the driver is gone, or a Ray that has no such file."""


class KeptError(RefusedError):
    """A log that was not brought up to date. path: the file with what was fetched of it before."""

    def __init__(self, error: RefusedError, path: str) -> None:
        super().__init__(error.why, error.settle, error.status)
        self.path = path


def is_log_of(path: str, address: Address, job: Job) -> bool:
    """Return whether a file is the fetched log of a job of this cluster."""
    return os.path.dirname(path) == folder_of(address, job)


def folder_of(address: Address, job: Job) -> str:
    """Return the folder of what is fetched of a job."""
    return os.path.join(address.cluster.folder, "jobs", ray_keep.plain(job.id))


def fetch(address: Address, job: Job) -> str:
    """Return the file with the log of a submitted job, fetched or brought up to date; "" while it printed nothing.

    Raises RefusedError, also where nothing can be written; KeptError where a log fetched before is all there is.
    """
    folder, until = folder_of(address, job), time.monotonic() + SECONDS
    if not ray_keep.prepare(folder):
        raise _unwritable(folder)
    with ray_keep.held(os.path.join(folder, "lock"), until):
        now = _current(folder)
        path = os.path.join(folder, str(now.get("name") or "-"))
        if not os.path.isfile(path):
            path = _anew(address, job, folder, until)
        else:
            try:
                path = _renewed(address, job, path, now, until)
            except RefusedError as error:
                raise KeptError(error, path) from None
        if path:
            state = {"name": os.path.basename(path), "ended": job.ended}
            ray_keep.write(os.path.join(folder, _CURRENT), json.dumps(state).encode())
        return path


def _unwritable(folder: str) -> RefusedError:
    return RefusedError(
        Text(f"{folder} cannot be written", f"无法写入 {folder}"),
        Text("set SLIME_RUNBOOK_CACHE to a folder that can be", "用 SLIME_RUNBOOK_CACHE 指定一个可写的目录"),
    )


def _current(folder: str) -> dict[str, Any]:
    """Return what is known of the file that was fetched last."""
    try:
        with open(os.path.join(folder, _CURRENT), "rb") as file:
            state = json.loads(file.read(4096))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _renewed(address: Address, job: Job, path: str, now: dict[str, Any], until: float) -> str:
    """Return the file with what is new of a fetched log: the same one, or another where the two do not join."""
    try:
        if _brought_up(address, job, path, now, until):
            return path
    except RefusedError as error:
        if error.status not in _GONE:
            raise
        new = _news(path, _of_job(address, job, until), whole=True)
        if new is not None and ray_keep.append(path, new):
            return path
    return _anew(address, job, os.path.dirname(path), until) or path


def _brought_up(address: Address, job: Job, path: str, now: dict[str, Any], until: float) -> bool:
    """Append what is new to a fetched log; return whether it is up to date then."""
    if job.ended and now.get("ended") == job.ended:
        return True
    for lines in STEPS:
        tail = _ask(address, job, lines, TAIL_BYTES, until)
        if not tail.ended:
            return False
        whole = tail.body.count(b"\n") < lines
        new = _news(path, tail.body, whole=whole)
        if new is not None:
            return ray_keep.append(path, new)
        if whole:
            return False
    return False


def _news(path: str, tail: bytes, *, whole: bool) -> bytes | None:
    """Return what stands in the end of a log behind what a file holds of it, None where the two do not join.

    whole: `tail` is all of the log.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        if whole and size <= len(tail):  # what repeats itself would be found at its last repetition
            return tail[size:] if tail.startswith(file.read(size)) else None
        file.seek(max(size - ANCHOR, 0))
        anchor = file.read(ANCHOR)
    at = tail.rfind(anchor)
    return tail[at + len(anchor) :] if at >= 0 else None


def _anew(address: Address, job: Job, folder: str, until: float) -> str:
    """Fetch a log from its start into a file that was not there, and return its path."""
    try:
        head = _ask(address, job, -1, WHOLE_BYTES, until)
    except RefusedError as error:
        if error.status not in _GONE:
            raise
        content, cut = _of_job(address, job, until), False
    else:
        content, cut = (head.body, False) if head.ended else _with_tail(address, job, head.body, until)
    if not content:
        return ""
    stem = os.path.join(folder, f"job-driver-{ray_keep.plain(job.submission)}")
    end = ray_keep.CUT_NAME if cut else ".log"
    path = f"{stem}{end}"
    if os.path.exists(path):
        path = f"{stem}-{time.time():.0f}{end}"
    if not ray_keep.write(path, content):
        raise _unwritable(folder)
    return path


def _with_tail(address: Address, job: Job, head: bytes, until: float) -> tuple[bytes, bool]:
    """Return the start of a long log with its end, and whether something between them is missing."""
    mean = max(len(head) // max(head.count(b"\n"), 1), 1)
    for share in (1, 8):
        tail = _ask(address, job, max(TAIL_BYTES // mean // share, 1), 2 * TAIL_BYTES, until)
        if tail.ended:
            at = tail.body.find(head[-ANCHOR:])
            if at >= 0:
                return head + tail.body[at + ANCHOR :], False
            return head[: head.rfind(b"\n") + 1] + CUT_LINE + tail.body, True
    return head[: head.rfind(b"\n") + 1] + CUT_LINE, True


def _ask(address: Address, job: Job, lines: int, limit: int, until: float) -> Answer:
    """Return the last `lines` lines, all for -1, from the node of the driver."""
    node, name = job.record.text("driver_node_id"), f"job-driver-{job.submission}.log"
    query = urlencode([("node_id", node), ("filename", name), ("lines", str(lines)), ("timeout", "20")])
    seconds = max(until - time.monotonic(), 1.0)
    return get(address, f"/api/v0/logs/file?{query}", limit=limit, seconds=seconds, cut=True)


def _of_job(address: Address, job: Job, until: float) -> bytes:
    """Return the log as the job API gives it, whole or not at all: for a Ray that has it nowhere else."""
    answer = get(
        address, f"/api/jobs/{quote(job.submission, safe='')}/logs", limit=WHOLE_BYTES,
        seconds=max(until - time.monotonic(), 1.0),
    )  # fmt: skip
    try:
        logs = json.loads(answer.body)["logs"]
    except (ValueError, TypeError, KeyError, RecursionError):
        logs = None
    if not isinstance(logs, str):
        raise RefusedError(Text("the job's log came in no form of Ray's", "任务日志的格式不是 Ray 的"))
    return logs.encode("utf-8", "replace")
