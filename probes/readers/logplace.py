"""Where a hit belongs: when it was printed, by which process, and in which block of lines.

Lines of a traceback carry no time, the rows of an arguments table no process, and a worker's own log file no prefix at
all; each is told by what stands around it. A time that is not on the line is that of the nearest line before it. Logs
of many files are put into one order by these times. Nothing here decides what a line means.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from probes.readers import arguments, joblog
from probes.readers.joblog import Placed
from probes.readers.logfiles import LogFile, window
from probes.readers.logscan import Hit

LOOK_BACK = 64 * 1024
"""Bytes before a line in which a time, or the beginning of an arguments table, is looked for."""
NEAR = 4096
"""Bytes within which a hit without a time shares that of the hit before it."""
LOOKS = 300
"""Hits without a time that are looked into, before the time of the hit before them has to do."""

_DATED = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_FILE_ACTOR = re.compile(rb"(?::job_id:\w+\n)?:actor_name:(\w+)")
_FILE_PID = re.compile(r"worker-[0-9a-f]+-\w+-(\d{1,10})\.(?:out|err)(?:\.|$)")
_RULER = re.compile(r"-{10,} (?:end of )?arguments -{10,}")
_ROW = re.compile(r"^ {2}[A-Za-z_][\w-]* \.{2,} ")
_STACK = re.compile(r"^(?:#\d{1,4} +\S|frame #\d{1,4}: | {4}\S{1,200} \(\S{1,400}:\d{1,7}\)$)")
"""Frames of gdb and compute-sanitizer, of c10 (NCCL's watchdog) and of py-spy."""
_OPENS = (b"Traceback (most recent call last)", b"hit an exception")


@dataclass(frozen=True)
class Span:
    """A block of lines.

    kind: "traceback" (with what it is chained to), "stack" (of py-spy, gdb or c10), "arguments" (Megatron's table) or
    "server-args" (SGLang's).
    """

    kind: str
    first: Placed
    last: Placed


@dataclass(frozen=True)
class Whereabouts:
    """When, who and in which block; None for what nothing tells.

    time: seconds since the epoch, zone unknown. actor: class of the Ray actor. rank: "rank3" or "DP0 TP1".
    """

    time: float | None
    actor: str | None
    pid: int | None
    ip: str | None
    rank: str | None
    span: Span | None


def whereabouts(hit: Hit) -> Whereabouts:
    """Return where a hit belongs. The log is looked into again around it."""
    line = joblog.parse(hit.raw)
    found = span(hit)
    pid = _FILE_PID.search(os.path.basename(hit.file.path))
    return Whereabouts(
        time_of(hit),
        line.actor or file_actor(hit.file),
        line.pid or (int(pid[1]) if pid else None),
        line.ip,
        line.rank or (joblog.parse(found.first.raw).rank if found else None),
        found,
    )


@lru_cache(maxsize=8192)
def file_actor(file: LogFile) -> str | None:
    """Return the actor whose own log file this is, by the line that Ray writes at its head."""
    head = _FILE_ACTOR.match(window(file, 0, 200))
    return head[1].decode() if head else None


def time_of(hit: Hit) -> float | None:
    """Return the time on the line, else of the nearest line before it, one of the same process where there is one."""
    own = joblog.parse(hit.raw)
    if own.time is not None:
        return own.time
    start = max(hit.offset - LOOK_BACK, 0)
    nearest = None
    for raw in reversed(window(hit.file, start, hit.offset - start).split(b"\n")):
        if not _DATED.search(raw[: joblog.PARSE_LIMIT]):
            continue
        line = joblog.parse(raw)
        if line.time is not None and line.process == own.process:
            return line.time
        nearest = line.time if nearest is None else nearest
    return nearest


def span(hit: Hit) -> Span | None:
    """Return the block of lines that a hit stands in, None where it stands alone."""
    own = Placed(hit.line, hit.offset, hit.raw)
    if b"server_args=ServerArgs(" in hit.raw:
        return Span("server-args", own, own)
    message = joblog.parse(hit.raw).message
    if _RULER.search(message) or _ROW.match(message):
        return _table(hit)
    lines = joblog.context(hit)
    if any(sign in line.raw for line in lines for sign in _OPENS):
        return Span("traceback", lines[0], lines[-1])
    if sum(bool(_STACK.match(joblog.parse(line.raw).message)) for line in lines) > 1:
        return Span("stack", lines[0], lines[-1])
    return None


def _table(hit: Hit) -> Span | None:
    """Return the arguments table around a hit, None where no ruler of its process opens one."""
    process = joblog.parse(hit.raw).process
    start = max(hit.offset - LOOK_BACK, 0)
    before = window(hit.file, start, hit.offset - start + len(hit.raw))
    offset, number = hit.offset, hit.line
    for raw in reversed(before.split(b"\n")):
        line = joblog.parse(raw.rstrip(b"\r"))
        if line.process == process and (ruler := _RULER.search(line.message)):
            if "end of" in ruler[0] and offset != hit.offset:
                return None
            if "end of" not in ruler[0]:
                table = arguments.table(hit.file, number, offset)
                last = max(table.rows.values(), key=lambda row: row.line, default=None)
                begin = Placed(number, offset, raw.rstrip(b"\r"))
                return Span("arguments", begin, Placed(last.line, last.offset, last.raw) if last else begin)
        number -= 1
        offset = start + before.rfind(b"\n", 0, max(offset - start - 1, 0)) + 1
    return None


def in_time_order(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits, given in the order of files and lines, in the order in which they were printed.

    The order within a log, or within the parts of a rotated one, is kept. Where a log tells no time at all there is
    no order across logs, and the given one stays.
    """
    times: dict[str, float] = {}
    last: dict[str, Hit] = {}
    keys: list[float] = []
    looks = LOOKS
    for hit in hits:
        stream, before = hit.file.stream, last.get(hit.file.stream)
        near = before is not None and before.file == hit.file and hit.offset - before.offset < NEAR
        time = joblog.parse(hit.raw).time
        if time is None and not near and looks > 0:
            looks -= 1
            time = time_of(hit)
        if time is None and stream not in times:
            return list(hits)
        times[stream] = max(times.get(stream, float("-inf")), times[stream] if time is None else time)
        last[stream] = hit
        keys.append(times[stream])
    return [hit for _, hit in sorted(zip(keys, hits, strict=True), key=lambda pair: pair[0])]
