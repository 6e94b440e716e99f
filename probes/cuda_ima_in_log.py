"""Whether the job died of an illegal memory access, a device-side assert or a failed kernel launch (debug guide, IMA).

The first such fault in the log decides: whatever follows on other ranks, in NCCL's watchdog or in Ray is its
consequence. Out of memory is another question. A launch failure behind DeepGEMM's own assertion about FP8 scales is
that assertion's consequence and is left to `engine.in_log`.
"""

from __future__ import annotations

from probes import faults, logs
from probes.readers import joblog
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable
from runbook.probe import Progress, probe

_WORDS = {
    "ima": ("an illegal memory access", "非法显存访问"),
    "device-assert": ("a device-side assert", "设备端断言失败"),
    "launch-failure": ("a failed kernel launch", "内核启动失败"),
}


@probe(
    "cuda.ima_in_log",
    needs="log",
    answers=("ima", "device-assert", "launch-failure", "none"),
    en="Does the log show an illegal memory access?",
    zh="日志中是否有非法显存访问（IMA）？",
    deadline=logs.DEADLINE,
)
def ima_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the kind of the first CUDA fault, its first line and how many processes printed it."""
    scanned = logs.collect(evidence, report, (*faults.CUDA, faults.CUDA_OOM))
    hits = scanned.of(*(each.label for each in faults.CUDA))
    if not hits:
        return logs.unread(scanned.coverage) or found(
            Verdict.OK,
            "none",
            "The logs show no CUDA fault (illegal access, assert or launch failure).",
            "日志中没有 CUDA 故障（非法访问、断言或启动失败）。",
        )
    first = hits[0]
    if first.label == faults.FP8_SCALE.label:
        return not_applicable(
            f"The first fault (line {first.line}) is DeepGEMM's assertion about FP8 scales; the rest follows from it.",
            f"第一个故障（第 {first.line} 行）是 DeepGEMM 关于 FP8 scale 的断言，其后均为其后果。",
        )
    alike = [hit for hit in hits if hit.label == first.label]
    ranks = logs.processes(alike)
    en, zh = _WORDS[first.label]
    earlier = [hit for hit in scanned.of(faults.CUDA_OOM.label) if scanned.earlier(hit, first)]
    en_more = f" CUDA ran out of memory before it, at line {earlier[0].line}." if earlier else ""
    zh_more = f"此前第 {earlier[0].line} 行曾显存不足。" if earlier else ""
    return found(
        Verdict.PROBLEM,
        first.label,
        f"The first CUDA fault is {en} at line {first.line}; {ranks} processes print one.{en_more}",
        f"第一个 CUDA 故障是第 {first.line} 行的{zh}；共 {ranks} 个进程打印。{zh_more}",
        citations=(joblog.citation(first, ranks), *(joblog.citation(hit) for hit in earlier[:1])),
    )
