"""What every probe of logs shares: which files, how far they were read, and the words for what could not be.

Invariant: absence is only ever reported for logs that were read to their end and look like the logs of a job;
everything else is `unknown` with its reason. A fault that the job got past (`readers.attempts`) is history: it is told,
and confirms nothing.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from probes import faults
from probes.readers import attempts, joblog, logfiles, logplace, ray_keep
from probes.readers.attempts import Attempts, Mark, Past
from probes.readers.logindex import WORTH
from probes.readers.logscan import Coverage, Hit, Signature
from probes.signatures import every
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, cite, found, unknown
from runbook.probe import Progress

KEEP = 2000
"""Hits of one signature that are kept: the first and, since what ended the job stands there, the last KEEP_LAST."""
KEEP_LAST = 500
DEADLINE = 600.0
"""Seconds for a probe of logs: 10 GB from a slow shared file system."""

_KINDS = {
    "missing": ("is not there", "不存在"),
    "unreadable": ("cannot be read", "无法读取"),
    "not-a-file": ("is no regular file", "不是普通文件"),
    "shrank": ("became shorter while it was read", "读取过程中变短"),
    "grew": ("is still being written", "仍在写入"),
    "changed": ("was overwritten while it was read", "读取过程中被改写"),
    "damaged": ("is damaged or cut off", "已损坏或被截断"),
    "too-many": ("holds more logs than are read", "日志文件过多"),
}


@dataclass
class Scanned:
    """What a scan found.

    hits: by label, in order, at most KEEP of each. counts: by label, all of them. times: of hits, by path and offset,
    where they were needed.
    """

    coverage: Coverage
    hits: dict[str, list[Hit]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    times: dict[tuple[str, int], float | None] = field(default_factory=dict, repr=False)

    def of(self, *labels: str) -> list[Hit]:
        """Return the hits of these labels in the order in which they were printed (`logplace.in_time_order`)."""
        order = {file.path: index for index, file in enumerate(self.coverage.files)}
        found = [hit for label in labels for hit in self.hits.get(label, ())]
        found.sort(key=lambda hit: (order.get(hit.file.path, 0), hit.line))
        several = any(hit.file.stream != found[0].file.stream for hit in found)
        return logplace.in_time_order(found) if several else found

    @cached_property
    def attempts(self) -> Attempts:
        """Return the attempts that the logs hold; they are looked for only where something asks."""
        return read_attempts(self.coverage)

    def standing(self, *labels: str, lasting: Collection[str] = ()) -> list[Hit]:
        """Return the faults of these labels that the job did not get past, in the order in which they were printed.

        What somebody only tells of is no fault (`faults.only_told`). lasting: labels of faults whose harm stays in an
        attempt that goes on, so that only another attempt ends it.
        """
        hits = self.of(*labels)
        return [hit for hit in hits if self._past(hit, lasting) is None and not faults.only_told(hit)]

    def history(self, answer: str, *labels: str, lasting: Collection[str] = ()) -> Finding | None:
        """Return the warning that the job got past the first of these hits, None where there is none of them.

        answer: what the probe answers where nothing of the kind stands.
        """
        for hit in self.of(*labels):
            if (past := self._past(hit, lasting)) is not None and not faults.only_told(hit):
                return _history(answer, hit, past)
        return None

    def _past(self, hit: Hit, lasting: Collection[str]) -> Past | None:
        past = self.attempts.past(hit)
        return None if past and past.start is None and hit.label in lasting else past

    def earlier(self, one: Hit, other: Hit) -> bool:
        """Whether `one` was certainly printed before `other`: by place in one log, by the times of two."""
        if one.file.stream == other.file.stream:
            return (one.file.part, one.line) < (other.file.part, other.line)
        first, second = self._time(one), self._time(other)
        return first is not None and second is not None and first < second

    def _time(self, hit: Hit) -> float | None:
        place = (hit.file.path, hit.offset)
        if place not in self.times:
            self.times[place] = logplace.time_of(hit)
        return self.times[place]


def stream(evidence: Evidence, report: Progress, signatures: Sequence[Signature], coverage: Coverage) -> Iterator[Hit]:
    """Yield the hits in every log of the evidence, reporting progress in bytes."""
    files, problems = logfiles.expand(evidence.paths("log"))
    coverage.problems.extend(problems)
    total = float(sum(file.size for file in files))
    known = every() if any(file.size >= WORTH for file in files) else ()
    yield from joblog.scan_job(
        files, signatures, coverage, progress=lambda done: report(done, max(total, done), "byte"), known=known
    )


def collect(evidence: Evidence, report: Progress, signatures: Sequence[Signature]) -> Scanned:
    """Scan every log of the evidence and keep what was found."""
    scanned = Scanned(Coverage())
    last: dict[str, deque[Hit]] = {}
    for hit in stream(evidence, report, signatures, scanned.coverage):
        kept = scanned.hits.setdefault(hit.label, [])
        if len(kept) < KEEP - KEEP_LAST:
            kept.append(hit)
        else:
            last.setdefault(hit.label, deque(maxlen=KEEP_LAST)).append(hit)
        scanned.counts[hit.label] = scanned.counts.get(hit.label, 0) + 1
    for label, hits in last.items():
        scanned.hits[label] += hits
    return scanned


def trained_on(evidence: Evidence, report: Progress) -> bool:
    """Return whether the logs show a job that got through a training step."""
    scanned = collect(evidence, report, ())
    return any(one.advanced is not None for several in scanned.attempts.streams.values() for one in several)


def read_attempts(coverage: Coverage) -> Attempts:
    """Return the attempts that the logs of a scan hold, for a probe that reads its hits as they come (`stream`)."""
    known = every() if any(file.size >= WORTH for file in coverage.files) else ()
    return attempts.read(joblog.scan_job(coverage.files, attempts.SIGNATURES, Coverage(), known=known))


def standing(hits: Iterable[Hit], found: Attempts) -> list[Hit]:
    """Return the faults among the hits that the job did not get past."""
    return [hit for hit in hits if found.past(hit) is None and not faults.only_told(hit)]


def _history(answer: str, hit: Hit, past: Past) -> Finding:
    """Say that what a hit tells is behind the job."""
    proof, start = past.proof, past.start
    en_on, zh_on = f"{proof.said} stands at {_place(hit, proof)}", proof.said
    if start is not None:
        en = f"In an earlier attempt, at line {hit.line}; the attempt from {_place(hit, start)} goes on ({en_on})."
        zh = f"属于之前的一次运行（第 {hit.line} 行）；从 {_place(hit, start)} 开始的运行继续进行（{zh_on}）。"
    else:
        en = f"The job went on after line {hit.line}: {en_on}."
        zh = f"第 {hit.line} 行之后任务继续运行：{zh_on} 在 {_place(hit, proof)}。"
    told = dict.fromkeys(mark for mark in (start, proof) if mark is not None)
    return found(Verdict.WARNING, answer, en, zh, citations=(joblog.citation(hit), *(_cite(mark) for mark in told)))


def _place(hit: Hit, mark: Mark) -> str:
    """Return where a mark stands, with the name of its log where that is another one."""
    return f"line {mark.line}" if mark.file == hit.file else f"{os.path.basename(mark.file.path)}:{mark.line}"


def _cite(mark: Mark) -> Citation:
    """Return the citation of a mark; its line is read again, and quoted from the metric on where it is long."""
    raw = logfiles.window(mark.file, mark.offset, joblog.PARSE_LIMIT).partition(b"\n")[0].rstrip(b"\r")
    if joblog.is_long(raw):
        raw = raw[max(raw.find(mark.said.encode() + b": {"), 0) :]
    return cite(mark.file.path, raw, line=mark.line, offset=mark.offset, time=mark.time)


def early(evidence: Evidence, signatures: Sequence[Signature]) -> list[Hit]:
    """Return the hits at the ends of the logs, within a second whatever their size.

    They show what is there; only a scan of the whole logs shows that something is absent, or what came first.
    """
    return list(joblog.scan_tail(logfiles.expand(evidence.paths("log"))[0], signatures))


def unread(coverage: Coverage) -> Finding | None:
    """Return why nothing can be said to be absent from these logs, None when they were read and are logs of a job."""
    trouble = [problem for problem in coverage.problems if not problem.harmless]
    if trouble:
        first = trouble[0]
        en, zh = _KINDS[first.kind]
        more = f" (and {len(trouble) - 1} more)" if len(trouble) > 1 else ""
        return unknown(
            f"{first.path} {en}{more}: {first.detail}",
            f"{first.path} {zh}{more}：{first.detail}",
            settle_en="Give a log that can be read to its end.",
            settle_zh="提供可以完整读取的日志。",
            slots=("log",),
        )
    if any(ray_keep.is_cut(file.path) for file in coverage.files):
        return unknown(
            "The log is too long to be fetched whole from Ray's dashboard, so a part of its middle was not read.",
            "日志太长，未能从 Ray dashboard 完整获取，中间部分没有读到。",
            settle_en="Give the whole log: /tmp/ray/session_latest/logs/job-driver-*.log on the node of the driver.",
            settle_zh="提供完整日志：driver 所在节点的 /tmp/ray/session_latest/logs/job-driver-*.log。",
            slots=("log",),
        )
    if not any(joblog.recognised(file) for file in coverage.files):
        return unknown(
            "The log does not look like one of slime, Megatron, SGLang or Ray.",
            "该日志不像 slime、Megatron、SGLang 或 Ray 的日志。",
            settle_en="Give the job's driver log or the workers' .out and .err files.",
            settle_zh="提供作业的 driver 日志或 worker 的 .out 与 .err 文件。",
            slots=("log",),
        )
    return None


def nothing_said(en: str, zh: str) -> Finding:
    """Return the unknown of logs that were read but do not speak of the matter."""
    return unknown(
        en,
        zh,
        settle_en="Give the whole log of the job from its start, or the workers' own .out and .err files.",
        settle_zh="提供作业从头开始的完整日志，或各 worker 的 .out 与 .err 文件。",
        slots=("log",),
    )


def processes(hits: Sequence[Hit]) -> int:
    """Return how many processes printed these hits: distinct pids or ranks, or what Ray's de-duplication counted."""
    names = set()
    repeated = 0
    for hit in hits:
        line = joblog.parse(hit.raw)
        names.add((line.actor, line.pid, line.ip, line.rank))
        repeated += line.count - 1
    return max(len(names) + repeated, 1) if hits else 0
