"""Whether NCCL failed first: an error of a collective, or the watchdog that gave one up.

NCCL also complains after anything else went wrong: a rank that died leaves the others waiting, memory that ran out or
a bad address surfaces in the next collective. So the answer is `error` or `timeout` only when nothing else that could
explain it stands before it or in its own traceback; else it is `none`. Sources: torch/csrc/distributed/c10d
(NCCLUtils.cpp, ProcessGroupNCCL.cpp), ray/exceptions.py, which names a failed task after its exception. An allocation
that NCCL itself was refused ("Failed to CUDA calloc", slime#956) is memory and no fault of NCCL: the answer stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from probes import faults, logs
from probes.known import known
from probes.logs import Scanned
from probes.readers import joblog
from probes.readers.joblog import Placed
from probes.readers.logscan import Hit
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

ERROR = known("nccl-error")
TIMEOUT = known("nccl-timeout")
_REFUSED = known("nccl-alloc")
_DIED = known("actor-dead")
_TRACEBACK = known("traceback")
_EXPLAINING = (*faults.CUDA, *faults.OOM, faults.ENGINE_EXCEPTION, _DIED)
_LOOKED_AT = 40
"""Tracebacks before the first complaint of NCCL that are read."""

_WORDS = {
    "error": ("A collective failed with an error of NCCL", "集合通信因 NCCL 报错而失败"),
    "timeout": ("NCCL's watchdog gave up a collective that did not end", "NCCL watchdog 放弃了一直没有结束的集合通信"),
}


@probe(
    "nccl.in_log",
    needs="log",
    answers=("none", *_WORDS),
    en="Did NCCL fail, with nothing before it that explains it?",
    zh="NCCL 是否出错，且之前没有可以解释它的故障？",
    deadline=logs.DEADLINE,
)
def nccl_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report NCCL's first complaint unless something else explains it."""
    scanned = logs.collect(evidence, report, (ERROR, TIMEOUT, _REFUSED, *_EXPLAINING, _TRACEBACK))
    complaints = scanned.standing(ERROR.label, TIMEOUT.label)
    if not complaints:
        return (
            logs.unread(scanned.coverage)
            or scanned.history("none", ERROR.label, TIMEOUT.label)
            or found(Verdict.OK, "none", "NCCL reports no error and no timeout.", "NCCL 没有报错，也没有超时。")
        )
    first = complaints[0]
    refused = scanned.standing(_REFUSED.label)
    if refused:
        return unknown(
            f"NCCL was refused memory (line {refused[0].line}); where the memory went the log does not show.",
            f"NCCL 申请显存被拒（第 {refused[0].line} 行）；日志没有显示显存被谁占用。",
            settle_en="Look at the Memory-Usage lines before it, and lower --sglang-mem-fraction-static.",
            settle_zh="查看之前的 Memory-Usage 行，并降低 --sglang-mem-fraction-static。",
            slots=("log",),
            citations=(joblog.citation(refused[0]),),
        )
    before = _explained(scanned, complaints)
    if before is not None:
        return found(
            Verdict.OK,
            "none",
            f"NCCL's complaint (line {first.line}) follows from what stands at line {before.line}.",
            f"NCCL 的报错（第 {first.line} 行）是第 {before.line} 行所述故障的后果。",
            citations=(joblog.citation(before), joblog.citation(first)),
        )
    answer = "timeout" if first.label == TIMEOUT.label else "error"
    alike = [hit for hit in complaints if hit.label == first.label]
    said = joblog.parse(first.text).message[:160]
    en, zh = _WORDS[answer]
    return found(
        Verdict.PROBLEM,
        answer,
        f"{en} (line {first.line}): {said}",
        f"{zh}（第 {first.line} 行）：{said}",
        citations=(joblog.citation(first, logs.processes(alike)),),
    )


def _explained(scanned: Scanned, complaints: Sequence[Hit]) -> Hit | None:
    """Return a fault that does not stand behind NCCL's first complaint, or stands in its traceback."""
    first = complaints[0]
    own = {(first.file.path, place.number) for place in joblog.context(first)}
    for fault in scanned.standing(*(each.label for each in _EXPLAINING)):
        if not scanned.earlier(first, fault) or (fault.file.path, fault.line) in own:
            return fault
    told = {(hit.file.path, hit.line) for hit in complaints}
    tracebacks = [hit for hit in scanned.standing(_TRACEBACK.label) if not scanned.earlier(first, hit)]
    for traceback in tracebacks[:_LOOKED_AT]:
        breath = joblog.context(traceback)
        if not _any_of(traceback, breath, told):
            return traceback
    return tracebacks[_LOOKED_AT] if len(tracebacks) > _LOOKED_AT else None


def _any_of(hit: Hit, breath: Iterable[Placed], told: set[tuple[str, int]]) -> bool:
    return any((hit.file.path, place.number) in told for place in breath)
