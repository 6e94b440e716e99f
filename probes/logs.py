"""What every probe of logs shares: which files, how far they were read, and the words for what could not be.

Invariant: absence is only ever reported for logs that were read to their end and look like the logs of a job;
everything else is `unknown` with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from probes.readers import joblog, logfiles, logfollow, logplace
from probes.readers.logindex import WORTH
from probes.readers.logscan import Coverage, Hit, Signature
from probes.signatures import every
from runbook.evidence import Evidence
from runbook.finding import Finding, unknown
from runbook.probe import Progress

KEEP = 2000
"""Hits of one signature that are kept; further ones are counted."""
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
    for hit in stream(evidence, report, signatures, scanned.coverage):
        kept = scanned.hits.setdefault(hit.label, [])
        if len(kept) < KEEP:
            kept.append(hit)
        scanned.counts[hit.label] = scanned.counts.get(hit.label, 0) + 1
    return scanned


def early(evidence: Evidence, signatures: Sequence[Signature]) -> list[Hit]:
    """Return the hits at the ends of the logs, within a second whatever their size.

    They show what is there; only a scan of the whole logs shows that something is absent, or what came first.
    """
    return list(joblog.scan_tail(logfiles.expand(evidence.paths("log"))[0], signatures))


def follow(
    evidence: Evidence,
    signatures: Sequence[Signature],
    *,
    stop: Callable[[], bool],
    poll: float = logfollow.POLL,
    whole: bool = False,
) -> Iterator[Hit]:
    """Yield the hits that the logs of the evidence, and new ones in its folders, show from now on, until `stop()`.

    whole: also what they show already.
    """
    return logfollow.follow(evidence.paths("log"), signatures, stop=stop, poll=poll, whole=whole)


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
