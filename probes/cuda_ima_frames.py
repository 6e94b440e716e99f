"""What the log says about where in the engine an illegal memory access happened (debug guide, IMA).

A core dump, cuda-gdb, compute-sanitizer or the driver's own progress lines name the kernel and are believed first.
Otherwise the traceback of the fault is read from the frame that raised outwards: DeepEP, the draft model of
speculative decoding, or the replay of a CUDA graph. CUDA reports such a fault late, at some later call, so the frames
are a lead and not a proof (verdict `warning`) unless launches were blocking in the very process that failed. The
kernels of a captured graph are launched together whatever the variable says (CUDA's documentation), so a frame in a
graph is always a lead.
"""

from __future__ import annotations

from probes import core_dump_age, core_dumps, cuda_first_fault, cuda_told, faults, logs
from probes.blocking import of_every_job
from probes.cuda_first_fault import Seat, Trust, trust
from probes.cuda_told import Told
from probes.readers import joblog
from probes.settings import read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable
from runbook.probe import Progress, probe

_LOOKED_AT = 20

_EN = {
    "deepep": "DeepEP",
    "speculative": "the draft model of speculative decoding",
    "cuda-graph": "the capture or replay of a CUDA graph",
}
_ZH = {"deepep": "DeepEP", "speculative": "投机解码的草稿模型", "cuda-graph": "CUDA graph 的捕获或重放"}


@probe(
    "cuda.ima_frames",
    needs="log|cuda_coredump",
    answers=("cuda-graph", "speculative", "deepep", "kernel-named", "unlocalised"),
    en="What do the log, its traceback and core dumps say about the place of the illegal memory access?",
    zh="日志、调用栈与 core dump 对非法显存访问的位置说明了什么？",
    deadline=logs.DEADLINE,
)
def ima_frames(evidence: Evidence, report: Progress) -> Finding:
    """Name the kernel if anything does, else the part of the engine that the first telling traceback stands in."""
    dumped = _dumped(evidence, report) if evidence.has("cuda_coredump") else None
    if dumped is not None:
        return dumped
    scanned = logs.collect(evidence, report, (faults.IMA, *cuda_told.SIGNATURES))
    hits = scanned.standing(faults.IMA.label)
    said = cuda_told.told(scanned.standing(*(each.label for each in cuda_told.SIGNATURES)))
    named = next((one for one in said if one.kind == "ima" and one.kernel), None)
    if not hits and named is None:
        return logs.unread(scanned.coverage) or not_applicable(
            "The logs show no illegal memory access that ended the job.", "日志中没有使任务中止的非法显存访问。"
        )
    if named is not None:
        return _named(named)
    blocking = of_every_job(read_settings(evidence))
    told = cuda_first_fault.seats(hits)
    for seat, _ in told[:_LOOKED_AT]:
        if seat.part:
            return _located(seat, trust(seat, blocking))
    first = told[0][0]
    graph = " The frames stand outside of any CUDA graph." if first.graph == "eager" else ""
    graph_zh = "调用栈不在 CUDA graph 内。" if graph else ""
    moved = f" They pass through {first.transfer}." if first.transfer else ""
    moved_zh = f"其中有 {first.transfer} 的帧。" if first.transfer else ""
    return found(
        Verdict.PROBLEM,
        "unlocalised",
        f"There is an illegal memory access, and nothing in the log narrows down where it happened.{graph}{moved}",
        f"确有非法显存访问，但日志中没有信息能进一步定位。{graph_zh}{moved_zh}",
        citations=(joblog.citation(hits[0], logs.processes(hits)),),
    )


def _dumped(evidence: Evidence, report: Progress) -> Finding | None:
    """Name the kernel of the first core dump with a bad address; None when no dump holds one."""
    aged = core_dump_age.by_age(core_dumps.read_all(evidence, report), evidence, report)
    dumps = aged.dumps
    case = next((one for one in dumps.cases if core_dumps.kind(one.fault) == "ima" and one.kernel), None)
    if case is None:
        return None
    alike = sum((one.fault.code, one.kernel) == (case.fault.code, case.kernel) for one in dumps.cases)
    en, zh = core_dumps.sentence(case)
    if aged.doubted:
        en, zh = en + core_dump_age.DOUBTED[0], zh + core_dump_age.DOUBTED[1]
    return found(
        Verdict.WARNING if aged.doubted else Verdict.PROBLEM,
        "deepep" if core_dumps.owner(case.kernel) == "DeepEP" else "kernel-named",
        f"A core dump names the kernel: {en}.",
        f"core dump 指明了内核：{zh}。",
        citations=(core_dumps.citation(case, alike),),
        tables=(core_dumps.table(dumps),),
    )


def _named(one: Told) -> Finding:
    """Build the finding for a kernel that a tool names in a log or a text."""
    whose = core_dumps.owner(one.kernel)
    of_en = f"; by its name a kernel of {whose}" if whose else ""
    of_zh = f"；从名字看属于 {whose}" if whose else ""
    what = f" ({one.exception})" if one.exception else ""
    return found(
        Verdict.PROBLEM,
        "deepep" if whose == "DeepEP" else "kernel-named",
        f"The kernel that made the access is named by {one.tool}: {one.kernel[:160]}{one.detail_en}{what}{of_en}.",
        f"{one.tool} 指明了出错的内核：{one.kernel[:160]}{one.detail_zh}{what}{of_zh}。",
        citations=(one.citation,),
    )


def _located(seat: Seat, trusted: Trust) -> Finding:
    """Build the finding for a part of the engine."""
    en = zh = ""
    if trusted is Trust.GRAPH:
        en = " (a lead: a captured graph hides which of its kernels failed; run without graphs to be sure)"
        zh = "（仅为线索：已捕获的 graph 看不出是哪个内核出错，关闭 CUDA graph 运行才能确定）"
    elif trusted is not Trust.BLOCKING:
        hint = "torch itself says that launches were not blocking; " if seat.hinted else ""
        hint_zh = "torch 自己说明 launch 不是同步的；" if seat.hinted else ""
        en = f" (a lead: CUDA reports late, {hint}set CUDA_LAUNCH_BLOCKING=1 to be sure)"
        zh = f"（仅为线索：CUDA 报错滞后，{hint_zh}设置 CUDA_LAUNCH_BLOCKING=1 才能确定）"
    place = seat.place or seat.sign
    told = () if place.number == seat.hit.line else (joblog.citation(seat.hit),)
    name = f", {seat.name}" if seat.name else ""
    return found(
        Verdict.PROBLEM if trusted is Trust.BLOCKING else Verdict.WARNING,
        seat.part,
        f"The traceback of the illegal memory access ({seat.role_en}{name}) stands in {_EN[seat.part]}{en}.",
        f"非法显存访问的调用栈（{seat.role_zh}{name}）位于{_ZH[seat.part]}{zh}。",
        citations=(joblog.cite_placed(seat.hit.file, place), *told),
    )
