"""Whether torch inductor read a broken file of its own cache.

Processes that share one cache folder may read a file while another writes it; the reader then gets half a JSON
document (pytorch#119698, pytorch#153791). A JSONDecodeError alone proves nothing, since any broken JSON raises one: it
must come out of inductor, told by the exception that wraps it (torch/_inductor/exc.py, torch/_dynamo/exc.py) or by the
frame of torch/_inductor that called the decoder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from probes import logs
from probes.known import known
from probes.readers import joblog
from probes.readers.joblog import Placed
from probes.readers.logscan import Hit
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, found
from runbook.probe import Progress, probe

LINE = known("json-error")
_WRAPPED = re.compile(r"(?:InductorError|BackendCompilerFailed): (?:backend='inductor' raised:)?")
_INDUCTOR = re.compile(r"(?:^|/)torch/_inductor/")
_DECODER = re.compile(r"(?:^|/)json/(?:__init__|decoder|scanner)\.py$")
_LOOKED_AT = 20


@probe(
    "inductor_cache.in_log",
    needs="log",
    answers=("none", "broken"),
    en="Did torch inductor read a broken file of its cache?",
    zh="torch inductor 是否读到了损坏的缓存文件？",
    deadline=logs.DEADLINE,
)
def inductor_cache_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the first JSONDecodeError that came out of torch inductor."""
    scanned = logs.collect(evidence, report, (LINE,))
    hits = scanned.standing(LINE.label)
    for hit in hits[:_LOOKED_AT]:
        proof = _from_inductor(hit, joblog.context(hit))
        if proof is not None:
            return found(
                Verdict.PROBLEM,
                "broken",
                f"torch inductor could not decode a file of its cache (line {hit.line}): two processes share it.",
                f"torch inductor 无法解析自己的缓存文件（第 {hit.line} 行）：有多个进程共用该缓存。",
                citations=(joblog.citation(hit), *proof),
            )
    return logs.unread(scanned.coverage) or found(
        Verdict.OK,
        "none",
        "No error of torch inductor's cache stands in the log.",
        "日志中没有 torch inductor 缓存的报错。",
    )


def _from_inductor(hit: Hit, breath: Sequence[Placed]) -> tuple[Citation, ...] | None:
    """Return what ties a JSONDecodeError to inductor beside the line itself; None when nothing does."""
    if _WRAPPED.search(joblog.parse(hit.raw).message):
        return ()
    above = [place for place in breath if place.number < hit.line]
    if above and _WRAPPED.search(joblog.parse(above[-1].raw).message):
        return (joblog.cite_placed(hit.file, above[-1]),)
    callers = [frame for frame in reversed(joblog.frames(above)) if not _DECODER.search(frame.file)]
    if callers and _INDUCTOR.search(callers[0].file):
        return (joblog.cite_placed(hit.file, callers[0].place),)
    return None
