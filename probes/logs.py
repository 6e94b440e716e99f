"""What every probe of logs shares: which files, how far they were read, and the words for what could not be.

Invariant: absence is only ever reported for logs that were read to their end and look like the logs of a job;
everything else is `unknown` with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from probes.readers import joblog, logfiles
from probes.readers.logscan import Coverage, Hit, Signature
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
    "damaged": ("is damaged or cut off", "已损坏或被截断"),
    "too-many": ("holds more logs than are read", "日志文件过多"),
}


@dataclass
class Scanned:
    """What a scan found. hits: by label, in order, at most KEEP of each. counts: by label, all of them."""

    coverage: Coverage
    hits: dict[str, list[Hit]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def of(self, *labels: str) -> list[Hit]:
        """Return the hits of these labels in the order of files and lines."""
        order = {file.path: index for index, file in enumerate(self.coverage.files)}
        found = [hit for label in labels for hit in self.hits.get(label, ())]
        return sorted(found, key=lambda hit: (order.get(hit.file.path, 0), hit.line))


def stream(evidence: Evidence, report: Progress, signatures: Sequence[Signature], coverage: Coverage) -> Iterator[Hit]:
    """Yield the hits in every log of the evidence, reporting progress in bytes."""
    files, problems = logfiles.expand(evidence.paths("log"))
    coverage.problems.extend(problems)
    total = float(sum(file.size for file in files))
    yield from joblog.scan_job(
        files, signatures, coverage, progress=lambda done: report(done, max(total, done), "byte")
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
