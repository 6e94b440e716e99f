"""Read lines of a slime job's logs: who printed them, when, and what was said.

One job log mixes slime's logger, bare prints of Megatron, SGLang's logger, Ray's prefixes and colours, and progress
bars that share a line with real text. `parse` takes one raw line apart; `context` gives the lines around a hit that
belong to the same process, which is how a traceback is read when Ray has mixed the lines of many. Nothing here
decides what a line means. Times carry no zone in these logs; they are read as UTC and serve to order lines, no more.
"""

from __future__ import annotations

import calendar
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from probes.readers import logindex, logscan
from probes.readers.logfiles import LogFile, window
from probes.readers.logscan import Coverage, Hit, Signature, signature
from runbook.finding import Citation, cite
from runbook.text import EXCERPT_LIMIT, sanitise

PARSE_LIMIT = 64 * 1024
"""Bytes of a line that are taken apart."""
TAIL_CHARACTERS = 20_000
"""Characters that `ray job submit` prints a second time when a job failed (Ray 2.49 dashboard job_manager)."""
_TAIL_BYTES = TAIL_CHARACTERS * 4 + 1024

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_ANSI_BYTES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_RAY = re.compile(
    r"^\((?P<actor>[A-Za-z_][\w.]*)(?: pid=(?P<pid>\d+))?(?:, ip=(?P<ip>[\w.:]+))?(?: \+\d+[smh]\w*)?\) ?"
)
_REPEATED = re.compile(r" ?\[repeated (\d+)x across cluster\](?: \(Ray deduplicates logs by default\..*)?$")
_RANK = re.compile(r"^\[(rank\d+)\]:\s?")
_STAMP = re.compile(
    r"\[(?P<day>\d{4}-\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)?(?P<rank>(?: [A-Z][A-Za-z]*\d+)*)[^\]\r]{0,40}\] ?"
)
_SOURCE = re.compile(r"^(?P<source>[\w.<>-]+\.pyx?:\d+) - ")
_PLAIN_STAMP = re.compile(r"^(?P<day>\d{4}-\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d)(?:[,.]\d+)?\s+")
_BAR = re.compile(
    r"^\s*(?:[^|\r\[]{0,80}?\d+%\|[^|\r]{0,200}\|[^\[\r]{0,60}|[^|\r\[]{0,80}?\d+\w{0,12} ?)\[[^\]\r]{0,120}\]"
)

TAIL = signature("ray-tail", "last available logs (truncated to 20,000 chars)")
_QUOTED = re.compile(
    rb"(?:First rollout sample|Finish rollout): "  # slime prints whole samples
    rb"|\bobj=\w*GenerateReqInput\("  # SGLang under --log-requests
    rb"|^\++ "  # a shell's trace of its own commands
)
"""What stands before text that is not an event: a model's words, a request, a command."""
_QUOTED_WORDS = (b"rollout", b"ReqInput(")
"""One of these, or a plus at the start, is in whatever _QUOTED finds: looking for them first is ten times as quick."""
_TOLD = re.compile(rb"\b(?:response|answer|prompt|completion|text|metadata)\b['\"]?\s*[:=]| metadata \{")
"""How reward functions and custom rollouts, which print in the RolloutManager, introduce the model's words."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line taken apart.

    actor, pid, ip: from Ray's prefix. rank: "rank3" or SGLang's "DP0 TP1". time: seconds since the epoch, zone
    unknown. source: file and line of a logger, "model.py:918". message: the rest, without colours and progress bars.
    count: how many processes printed it.
    """

    message: str
    actor: str | None = None
    pid: int | None = None
    ip: str | None = None
    rank: str | None = None
    time: float | None = None
    source: str | None = None
    count: int = 1

    @property
    def process(self) -> tuple[str | None, int | None, str | None]:
        """What tells one process from another in a merged log."""
        return (self.actor, self.pid, self.ip)


@dataclass(frozen=True)
class Placed:
    """A raw line with its place: 1-based number and byte offset in the file."""

    number: int
    offset: int
    raw: bytes


@dataclass(frozen=True)
class Frame:
    """A frame of a traceback, or of a stack dump that names file and line."""

    file: str
    line: int
    function: str
    place: Placed


def parse(raw: bytes) -> Line:
    """Take one raw line (without its end) apart; any bytes will do."""
    text = raw[:PARSE_LIMIT].decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    actor, pid, ip, count = None, None, None, 1
    if (prefix := _RAY.match(text)) and (prefix["pid"] or prefix["actor"] in ("raylet", "autoscaler", "gcs_server")):
        actor, ip = prefix["actor"], prefix["ip"]
        pid = int(prefix["pid"]) if prefix["pid"] else None
        text = text[prefix.end() :]
    if "[repeated " in text and (repeated := _REPEATED.search(text)):
        count = max(int(repeated[1][:9]), 1)
        text = text[: repeated.start()]
    rank = None
    if text.startswith("[rank") and (ranked := _RANK.match(text)):
        rank, text = ranked[1], text[ranked.end() :]
    text = _last_words(text)
    time, source = None, None
    if stamp := _STAMP.match(text):
        time, rank = _seconds(stamp["day"], stamp["clock"]), stamp["rank"].strip() or rank
        text = text[stamp.end() :]
        if where := _SOURCE.match(text):
            source, text = where["source"], text[where.end() :]
    elif stamp := _PLAIN_STAMP.match(text):
        time, text = _seconds(stamp["day"], stamp["clock"]), text[stamp.end() :]
    return Line(text, actor, pid, ip, rank, time, source, count)


def _last_words(text: str) -> str:
    """Return what is left to read of a line that carriage returns and progress bars have overwritten."""
    if text.startswith("[") and "\r" not in text:  # no bar begins so: what most lines are
        return text
    words = text
    for piece in reversed(text.split("\r")):
        while bar := _BAR.match(piece):
            piece = piece[bar.end() :]  # noqa: PLW2901 - a piece may begin with several bars
        if piece.strip():
            words = piece
            break
    stripped = words.lstrip()
    return stripped if _STAMP.match(stripped) else words


@lru_cache(maxsize=4096)
def _seconds(date: str, clock: str) -> float | None:
    """Return the time of a stamp, None when its digits are no date. Neighbours in a log mostly share theirs."""
    year, month, day = (int(part) for part in date.split("-"))
    hour, minute, second = (int(part) for part in clock.split(":"))
    if not (year >= 1 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    try:
        return float(calendar.timegm((year, month, day, hour, minute, second)))
    except (ValueError, OverflowError):
        return None


def citation(hit: Hit, count: int | None = None) -> Citation:
    """Return the citation of a hit; `count` is by default how many processes the line itself speaks for.

    Of a line that is longer than an excerpt, the part from the match on is quoted.
    """
    line = parse(hit.raw)
    shown = _from_match(hit) if is_long(hit.raw) else hit.raw
    count = line.count if count is None else count
    return cite(hit.file.path, shown, line=hit.line or None, offset=hit.offset, count=count, time=line.time)


def is_long(raw: bytes) -> bool:
    """Whether a line is longer than an excerpt, in characters that are shown."""
    return len(raw) > EXCERPT_LIMIT and len(sanitise(raw, EXCERPT_LIMIT + 1)) > EXCERPT_LIMIT


def _from_match(hit: Hit) -> bytes:
    """Return the line from the match on; where the match begins inside an escape sequence, from behind it."""
    escape = hit.raw.rfind(b"\x1b", 0, hit.start)
    code = _ANSI_BYTES.match(hit.raw, escape) if escape >= 0 else None
    return hit.text[max(code.end() - hit.start, 0) :] if code else hit.text


def cite_placed(file: LogFile, place: Placed) -> Citation:
    """Return the citation of a line found near a hit."""
    return cite(file.path, place.raw, line=place.number, offset=place.offset, time=parse(place.raw).time)


def scan_job(
    files: Iterable[LogFile],
    signatures: Sequence[Signature],
    coverage: Coverage,
    *,
    progress: Callable[[float], None] | None = None,
    known: Sequence[Signature] = (),
    since: int = 0,
) -> Iterator[Hit]:
    """Scan job logs, leaving out what is not an event of its own.

    Left out are hits inside quoted text (samples, requests, a shell's trace: anything may stand there) and the tail
    that the job client prints a second time when a job failed. known: what to look for in the same pass and to keep
    for the next one (`logindex`). since: byte of each log from which on hits are wanted.
    """
    hits = logindex.scan(files, (*signatures, TAIL), coverage, known=known, progress=progress, since=since)
    return events(hits)


def scan_tail(files: Sequence[LogFile], signatures: Sequence[Signature]) -> Iterator[Hit]:
    """Scan the ends of job logs at once, for a first look (`logscan.scan_tail`)."""
    return events(logscan.scan_tail(files, (*signatures, TAIL)))


def events(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Keep of the hits, which include those of TAIL, those that are events of their own."""
    return without_tail(hit for hit in hits if not _quoted(hit))


def _quoted(hit: Hit) -> bool:
    """Return whether a hit stands in text that somebody quotes rather than in an event of the program."""
    before = hit.raw[: hit.start]
    if (before.startswith(b"+") or any(word in before for word in _QUOTED_WORDS)) and _QUOTED.search(before):
        return True
    return b"(RolloutManager pid=" in before and _TOLD.search(before) is not None


def without_tail(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Drop the hits that only repeat an earlier line after the job client's "last available logs".

    A line of the tail that was not seen before is kept, since the tail may be all that was saved.
    """
    recent: deque[Hit] = deque()
    repeats: list[Hit] = []
    until = -1
    path = ""
    for hit in hits:
        if hit.file.path != path:
            recent.clear()
            path, until = hit.file.path, -1
        if hit.label == TAIL.label:
            repeats, until = list(recent), hit.offset + _TAIL_BYTES
            continue
        if hit.offset <= until and any(old.label == hit.label and old.raw.endswith(hit.raw) for old in repeats):
            continue
        recent.append(hit)
        while recent and recent[0].offset < hit.offset - _TAIL_BYTES:
            recent.popleft()
        yield hit


def context(hit: Hit, before: int = 32 * 1024, after: int = 16 * 1024) -> tuple[Placed, ...]:
    """Return the lines around a hit that are told in the same breath: its traceback, wherever in it the hit stands.

    They are the nearest lines of the same process (or, for a line without a prefix, of no process) up to one that a
    logger has stamped; a stamped line that opens a traceback is taken along. before, after: bytes looked at on
    either side.
    """
    start = max(hit.offset - before, 0)
    data = window(hit.file, start, hit.offset - start + len(hit.raw) + after)
    if start:
        cut = data.find(b"\n", 0, hit.offset - start) + 1
        data, start = data[cut:], start + cut
    head = data[: hit.offset - start]
    place = head.count(b"\n")
    lines, offset = [], start
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), start=hit.line - place):
        lines.append(Placed(number, offset, raw.rstrip(b"\r")))
        offset += len(raw) + 1
    if place >= len(lines):
        return (Placed(hit.line, hit.offset, hit.raw),)
    return _same_breath(lines, place)


def _same_breath(lines: list[Placed], at: int) -> tuple[Placed, ...]:
    """Keep the lines around `at` that belong to its process and run on without a new log record."""
    process = parse(lines[at].raw).process
    taken = [lines[at]]
    if not _opens(lines[at].raw) or parse(lines[at].raw).time is None:
        for line in reversed(lines[:at]):
            parsed = parse(line.raw)
            if parsed.process != process:
                continue
            if parsed.time is not None:
                if _opens(line.raw):
                    taken.insert(0, line)
                break
            taken.insert(0, line)
    for line in lines[at + 1 :]:
        parsed = parse(line.raw)
        if parsed.process != process:
            continue
        if parsed.time is not None:
            break
        taken.append(line)
    return tuple(taken)


def _opens(raw: bytes) -> bool:
    """Whether a stamped line begins a traceback."""
    return b"Traceback (most recent call last)" in raw or b"hit an exception" in raw


_FRAME = re.compile(r'File "(?P<file>[^"]{1,400})", line (?P<line>\d{1,7}),? in (?P<function>\S{1,200})')
_DUMPED = re.compile(r"^\s*(?P<function>[\w.<>]{1,200}) \((?P<file>[^()\s]{1,400}\.pyx?):(?P<line>\d{1,7})\)$")


def frames(lines: Iterable[Placed]) -> tuple[Frame, ...]:
    """Return the frames in `lines`, outermost first as Python prints them."""
    found = []
    for place in lines:
        text = place.raw[:PARSE_LIMIT].decode("utf-8", "replace")
        match = _FRAME.search(text) or _DUMPED.match(parse(place.raw).message)
        if match:
            found.append(Frame(match["file"], int(match["line"]), match["function"], place))
    return tuple(found)


_RECOGNISED = re.compile(
    rb"\((?:\w+)(?: pid=\d+)?(?:, ip=[\w.:]+)?\)"  # a Ray prefix
    rb"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]{0,40}\] "  # slime's, SGLang's or Megatron's stamp
    rb"|(?:critic-step|step|rollout|perf|eval) \d+: \{'"
    rb"|Job submission server address|Running entrypoint for job|-- Runtime env is setting up"
    rb"|\tINFO (?:worker|debugpy)\.py:\d+ -- "  # a Ray driver that was started without the job client
    rb"|^-{10,} arguments -{10,}|^ loading (?:release )?(?:distributed )?checkpoint from "
    rb"|/(?:slime|megatron|sglang)/|\b(?:slime|megatron|sglang)\.[a-z]"
    rb"|^Traceback \(most recent call last\)|^\[rank\d+\]:|^:job_id:|^:actor_name:|\] coredump: ",
    re.MULTILINE,
)


def recognised(file: LogFile) -> bool:
    """Whether the beginning or the end of a file looks like a log of such a job."""
    edge = 64 * 1024
    if _RECOGNISED.search(window(file, 0, edge)):
        return True
    return (
        file.packing == "plain" and file.size > edge and bool(_RECOGNISED.search(window(file, file.size - edge, edge)))
    )
