"""What a Ray dashboard names: the command of slime's job, and its log, fetched to where the readers can read them.

So an address alone is evidence enough. A launch script or log that is there already is not asked for again. What is
fetched lies in a private folder (`readers.ray_keep`), and the item says where it is from. What cannot be had is told.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from probes import ray_cluster
from probes.ray_cluster import Live
from probes.readers import ray_jobs, ray_keep, ray_log
from probes.readers.ray_http import RefusedError
from probes.readers.ray_log import KeptError
from runbook.evidence import Follower, Item, Reference
from runbook.text import Text, sanitise


def follow_command(item: Item) -> Iterator[Reference | Text]:
    """Yield the job's command as a launch script, and say which job it is where others may be meant."""
    try:
        live = ray_cluster.look((item.path,))
    except RefusedError as error:
        yield _said(error)
        return
    if live.others:
        yield _chosen(live)
    folder = ray_log.folder_of(live.address, live.job)
    content = ray_jobs.written(live.job, live.address)
    end = ".json" if content.startswith(b"{") else ".sh"
    path = os.path.join(folder, f"launch-{ray_keep.plain(live.job.id)}{end}")
    if not _is(path, content) and not (ray_keep.prepare(folder) and ray_keep.write(path, content)):
        yield Text(
            f"the command of {live.name} cannot be kept: {folder} cannot be written; set SLIME_RUNBOOK_CACHE",
            f"无法保存 {live.name} 的命令：{folder} 不可写；请设置 SLIME_RUNBOOK_CACHE",
        )
        return
    status = sanitise(live.job.status, 20)
    yield Reference(
        "launch",
        path,
        Text(
            f"the command of job {live.name} ({status}), as {live.address.netloc} tells it",
            f"{live.address.netloc} 给出的任务 {live.name}（{status}）的命令",
        ),
    )


def follow_output(item: Item) -> Iterator[Reference | Text]:
    """Yield the job's log, fetched or brought up to date."""
    try:
        live = ray_cluster.look((item.path,))
    except RefusedError:
        return  # said with the command
    if not live.job.submission:
        yield Text(
            f"{live.name} was started by hand, so Ray does not keep what its driver printed; give that with --log PATH",
            f"{live.name} 是手工启动的，Ray 没有保存 driver 的输出；请用 --log PATH 提供",
        )
        return
    seconds = time.time()
    try:
        path = ray_log.fetch(live.address, live.job)
    except KeptError as error:
        yield Text(
            f"the log of {live.name} was not brought up to date: {error.why.en}; {error.settle.en}",
            f"未能更新 {live.name} 的日志：{error.why.zh}；{error.settle.zh}",
        )
        path, seconds = error.path, _written(error.path)
    except RefusedError as error:
        yield Text(
            f"the log of {live.name} was not fetched: {error.why.en}; {error.settle.en}",
            f"未能获取 {live.name} 的日志：{error.why.zh}；{error.settle.zh}",
        )
        return
    if not path:
        yield Text(f"job {live.name} has printed nothing yet", f"任务 {live.name} 还没有任何输出")
        return
    yield Reference("log", path, _whence(live, path, seconds))


def _is(path: str, content: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(content) + 1) == content
    except OSError:
        return False


def _written(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0.0


def _said(error: RefusedError) -> Text:
    return Text(f"{error.why.en}; {error.settle.en}", f"{error.why.zh}；{error.settle.zh}")


def _chosen(live: Live) -> Text:
    names = ", ".join(sanitise(one.id, 60) for one in live.others[:3])
    more = len(live.others) - 3
    return Text(
        f"{len(live.others) + 1} jobs of slime may be meant; {live.name}, the newest, is taken. Others: {names}"
        + (f" and {more} more" if more > 0 else "")
        + f"; choose with --ray {live.address.url}/#/jobs/ID",
        f"可能有 {len(live.others) + 1} 个 slime 任务；选用最新的 {live.name}。其他：{names}"
        + (f" 等，另有 {more} 个" if more > 0 else "")
        + f"；可用 --ray {live.address.url}/#/jobs/ID 指定",
    )


def _whence(live: Live, path: str, seconds: float) -> Text:
    """Return where a log is from. seconds: since the epoch, when it was last up to date."""
    at = time.strftime("%H:%M:%S UTC", time.gmtime(seconds))
    cut = ray_keep.is_cut(path)
    return Text(
        f"the log of job {live.name}, fetched from {live.address.netloc} at {at}"
        + ("; its middle was not fetched" if cut else ""),
        f"任务 {live.name} 的日志，{at} 取自 {live.address.netloc}" + ("；中间部分未获取" if cut else ""),
    )


RAY_COMMAND = Follower("ray", follow_command, fills="launch")
RAY_OUTPUT = Follower("ray", follow_output, fills="log")
