"""Whether the job died of an illegal memory access, a device-side assert or a failed kernel launch (debug guide, IMA).

The first such fault in the log decides: whatever follows on other ranks, in NCCL's watchdog or in Ray is its
consequence. Out of memory is another question. A launch failure behind DeepGEMM's own assertion about FP8 scales is
that assertion's consequence and is left to `engine.in_log`.
"""

from __future__ import annotations

import os

from probes import cuda_classes, cuda_told, faults, logs
from probes.logs import Scanned
from probes.readers import joblog
from probes.readers.logscan import Hit
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable
from runbook.probe import Progress, probe


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
    signatures = (*faults.CUDA, faults.CUDA_OOM, cuda_classes.XID, cuda_told.WRITING)
    scanned = logs.collect(evidence, report, signatures)
    labels = [each.label for each in faults.CUDA]
    hits = scanned.standing(*labels)
    xid = cuda_classes.xid_words(scanned.standing(cuda_classes.XID.label))
    if not hits:
        return logs.unread(scanned.coverage) or scanned.history("none", *labels) or _none(scanned, xid)
    first = hits[0]
    if first.label == faults.FP8_SCALE.label:
        return not_applicable(
            f"The first fault (line {first.line}) is DeepGEMM's assertion about FP8 scales; the rest follows from it.",
            f"第一个故障（第 {first.line} 行）是 DeepGEMM 关于 FP8 scale 的断言，其后均为其后果。",
        )
    alike = [hit for hit in hits if hit.label == first.label]
    ranks = logs.processes(alike)
    en, zh = cuda_classes.words(first)
    many = "one process prints it" if ranks == 1 else f"{ranks} processes print one"
    en, zh = (
        f"The first CUDA fault is {en} at line {first.line}; {many}.",
        f"第一个 CUDA 故障是第 {first.line} 行的{zh}；共 {ranks} 个进程打印。",
    )
    memory = scanned.standing(faults.CUDA_OOM.label)
    earlier = [hit for hit in memory if scanned.earlier(hit, first)][:1]
    if earlier:
        en += f" CUDA ran out of memory before it, at line {earlier[0].line}."
        zh += f"此前第 {earlier[0].line} 行曾显存不足。"
    if xid:
        en, zh = f"{en} Beside it {xid[1]}.", f"{zh}此外，{xid[2]}。"
    written = _written(evidence, scanned)
    if written:
        path = (written.groups[0] or b"").decode("utf-8", "replace")[:300]
        en += f" A core dump was written: give it with --cuda-coredump {path}"
        zh += f"已写出 core dump：请用 --cuda-coredump {path} 提供"
    others = [joblog.citation(hit) for hit in (*earlier, *([xid[0]] if xid else []), *([written] if written else []))]
    table = cuda_classes.table(hits, memory)
    return found(
        Verdict.PROBLEM,
        first.label,
        en,
        zh,
        citations=(joblog.citation(first, ranks), *others),
        tables=(table,) if table else (),
    )


def _none(scanned: Scanned, xid: tuple[Hit, str, str] | None) -> Finding:
    """Say that there is no access fault, and what else of CUDA's there is."""
    if xid and cuda_classes.of_access(xid[0]):
        return found(
            Verdict.WARNING,
            "ima",
            f"No program reports a CUDA fault, but {xid[1]} at line {xid[0].line}; another job may have made it.",
            f"没有程序报告 CUDA 故障，但第 {xid[0].line} 行：{xid[2]}；也可能属于其他任务。",
            citations=(joblog.citation(xid[0]),),
        )
    memory = scanned.standing(faults.CUDA_OOM.label)
    en = f" Memory that ran out (line {memory[0].line}) is another matter." if memory else ""
    zh = f"第 {memory[0].line} 行的显存不足属于另一回事。" if memory else ""
    if xid:
        en, zh = f"{en} But {xid[1]} at line {xid[0].line}.", f"{zh}但第 {xid[0].line} 行{xid[2]}。"
    return found(
        Verdict.OK,
        "none",
        f"The logs show no CUDA fault (illegal access, assert or launch failure).{en}",
        f"日志中没有 CUDA 故障（非法访问、断言或启动失败）。{zh}",
    )


def _written(evidence: Evidence, scanned: Scanned) -> Hit | None:
    """Return the line of the first core dump that was written and was not given, None where there is none."""
    given = {os.path.basename(path) for path in evidence.paths("cuda_coredump")}
    for hit in scanned.of(cuda_told.WRITING.label):
        if os.path.basename((hit.groups[0] or b"").decode("utf-8", "replace")) not in given:
            return hit
    return None
