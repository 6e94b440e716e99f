"""Which process made the first illegal memory access: engine or trainer, and which of its ranks (debug guide, IMA).

The guide's advice (speculative decoding, CUDA graphs, DeepEP in SGLang) is for the engine; a fault in the Megatron
process asks for other steps. Told by Ray's prefix, by the actor that Ray names, or by whose frames the traceback has;
where none of these tells, either half may have made it. What other processes print later is told as its consequence.
"""

from __future__ import annotations

from collections.abc import Sequence

from probes import cuda_first_fault, faults, logs
from probes.blocking import of_every_job
from probes.cuda_first_fault import Seat, trust
from probes.readers import joblog
from probes.settings import read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable, unknown
from runbook.probe import Progress, probe

_LOOKED_AT = 20
"""Processes that are looked at until one says whose the fault is; the later ones are consequences."""


@probe(
    "cuda.ima_process",
    needs="log",
    answers=("rollout", "train"),
    en="Which process made the illegal memory access?",
    zh="非法显存访问发生在哪个进程？",
    deadline=logs.DEADLINE,
)
def ima_process(evidence: Evidence, report: Progress) -> Finding:
    """Name the half of the job that the first fault belongs to, by the first of its lines that tells."""
    scanned = logs.collect(evidence, report, (faults.IMA,))
    hits = scanned.standing(faults.IMA.label)
    if not hits:
        return logs.unread(scanned.coverage) or not_applicable(
            "The logs show no illegal memory access that ended the job.", "日志中没有使任务中止的非法显存访问。"
        )
    told = cuda_first_fault.seats(hits)
    seat = next((each for each, _ in told[:_LOOKED_AT] if each.half), None)
    if seat is None:
        return unknown(
            "The lines around the illegal memory access name neither SGLang nor Megatron.",
            "非法显存访问附近的日志既未提到 SGLang 也未提到 Megatron。",
            settle_en="Give the .err file of the worker that failed, with its traceback.",
            settle_zh="提供出错 worker 的 .err 文件（含调用栈）。",
            slots=("log",),
            citations=(joblog.citation(hits[0], logs.processes(hits)),),
        )
    blocking = of_every_job(read_settings(evidence))
    en, zh = _sentence(seat, trust(seat, blocking).value)
    en_more, zh_more = _others(told, logs.processes(hits))
    proof = joblog.cite_placed(seat.hit.file, seat.sign)
    line = () if seat.sign.number == seat.hit.line else (joblog.citation(seat.hit),)
    return found(
        Verdict.PROBLEM,
        seat.half or "",
        f"{en}{en_more}",
        f"{zh}{zh_more}",
        citations=(proof, *line),
        tables=(cuda_first_fault.table(told, blocking),),
    )


def _sentence(seat: Seat, trusted: tuple[str, str]) -> tuple[str, str]:
    half_en = "the engine (SGLang)" if seat.half == "rollout" else "the trainer (Megatron)"
    half_zh = "推理引擎（SGLang）" if seat.half == "rollout" else "训练进程（Megatron）"
    name = f", {seat.name}" if seat.name else ""
    en = f"The illegal memory access was made in {half_en}: {seat.role_en}{name}."
    zh = f"非法显存访问发生在{half_zh}：{seat.role_zh}{name}。"
    if not (seat.part or seat.graph or seat.transfer):
        return en, zh
    graph = {"replay": ("replay of a CUDA graph", "CUDA graph replay"), "capture": ("capture of a CUDA graph",) * 2}
    graph["eager"] = ("no CUDA graph", "未使用 CUDA graph")
    parts = [graph.get(seat.graph, ("", ""))]
    parts.append((f"{seat.model} model", {"draft": "草稿模型", "target": "主模型"}.get(seat.model, "")))
    parts.append((seat.transfer, seat.transfer))
    where_en = ", ".join(one for one, other in parts if other)
    where_zh = "，".join(other for _, other in parts if other)
    return f"{en} Its traceback ({trusted[0]}): {where_en}.", f"{zh}调用栈（{trusted[1]}）：{where_zh}。"


def _others(told: Sequence[tuple[Seat, int]], printed: int) -> tuple[str, str]:
    """Return how many other processes print it, "" where none does."""
    later = max(printed, len(told)) - 1
    if later < 1:
        return "", ""
    en = f" {later} other process{'es print' if later > 1 else ' prints'} it as well, at that time or later."
    return en, f"另有 {later} 个进程同时或随后打印。"
