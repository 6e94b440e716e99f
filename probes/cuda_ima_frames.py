"""What the log says about where in the engine an illegal memory access happened (debug guide, IMA).

A core dump, cuda-gdb or compute-sanitizer names the kernel and is believed first. Otherwise the traceback of the
fault is read from the frame that raised outwards: DeepEP, the draft model of speculative decoding, or the replay of
a CUDA graph. CUDA reports such a fault late, at some later call, so the frames are a lead and not a proof (verdict
`warning`) unless CUDA_LAUNCH_BLOCKING=1 reached the very process that failed. The kernels of a captured graph are
launched together whatever the variable says (CUDA's documentation), so a frame in a graph is always a lead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from probes import faults, logs
from probes.blocking import Blocking, of_every_job
from probes.readers import joblog
from probes.readers.joblog import Placed
from probes.readers.logscan import Hit, signature
from probes.settings import read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable, unknown
from runbook.probe import Progress, probe

_NAMED = signature(
    "named",
    ("The exception was triggered at PC ", "<<<(", "=========     at "),
    r"The exception was triggered at PC 0x[0-9a-f]+ +(\S.*?)\s*$"
    r"|^#0 +0x[0-9a-f]+ in (\S.{0,2000}?)<<<\("
    r"|=========     at (?:0x[0-9a-f]+ in )?(\S.{0,2000}?)(?:\+0x[0-9a-f]+)?(?: in .*)?$",
)
_DEEPEP = re.compile(r"deep_?ep|fused_a2a|nvshmem|low_latency_(?:dispatch|combine)", re.IGNORECASE)
_DRAFT = re.compile(
    r"/speculative/(?!.*(?:verify|target))|eagle_draft|draft_extend|forward_draft|multi_layer_eagle|_draft_worker"
)
_DRAFT_CALL = re.compile(r"^(?:draft|forward_draft\w*|draft_forward|draft_extend\w*|capture_for_decode)$")
_GRAPH = re.compile(r"cuda_graph_runner|cuda_graph_backend|torch/cuda/graphs|piecewise_cuda_graph|decode_cuda_graph")
_LOOKED_AT = 20

_EN = {
    "deepep": "DeepEP",
    "speculative": "the draft model of speculative decoding",
    "cuda-graph": "the capture or replay of a CUDA graph",
}
_ZH = {"deepep": "DeepEP", "speculative": "投机解码的草稿模型", "cuda-graph": "CUDA graph 的捕获或重放"}


@probe(
    "cuda.ima_frames",
    needs="log",
    answers=("cuda-graph", "speculative", "deepep", "kernel-named", "unlocalised"),
    en="What do the log and its traceback say about the place of the illegal memory access?",
    zh="日志与调用栈对非法显存访问的位置说明了什么？",
    deadline=logs.DEADLINE,
)
def ima_frames(evidence: Evidence, report: Progress) -> Finding:
    """Name the kernel if anything does, else the part of the engine that the first telling traceback stands in."""
    scanned = logs.collect(evidence, report, (faults.IMA, _NAMED))
    hits = scanned.of(faults.IMA.label)
    if not hits:
        return logs.unread(scanned.coverage) or not_applicable(
            "The logs show no illegal memory access.", "日志中没有非法显存访问。"
        )
    named = scanned.of(_NAMED.label)
    if named:
        kernel = next(filter(None, named[0].groups), b"").decode("utf-8", "replace")
        return found(
            Verdict.PROBLEM,
            "kernel-named",
            f"The kernel that made the access is named: {kernel[:160]}.",
            f"出错的内核已知：{kernel[:160]}。",
            citations=(joblog.citation(named[0]),),
        )
    for hit in hits[:_LOOKED_AT]:
        breath = joblog.context(hit)
        where = _where(hit, breath)
        if where:
            return _located(evidence, hit, breath, *where)
    if evidence.has("cuda_coredump"):
        return unknown(
            "The log does not narrow down the illegal memory access; the core dump may.",
            "日志不能进一步定位非法显存访问；core dump 或许可以。",
            settle_en="Read the core dump.",
            settle_zh="读取 core dump。",
            slots=("cuda_coredump",),
            citations=(joblog.citation(hits[0]),),
        )
    return found(
        Verdict.PROBLEM,
        "unlocalised",
        "There is an illegal memory access, and nothing in the log narrows down where it happened.",
        "确有非法显存访问，但日志中没有信息能进一步定位。",
        citations=(joblog.citation(hits[0], logs.processes(hits)),),
    )


def _where(hit: Hit, breath: Sequence[Placed]) -> tuple[str, Placed] | None:
    """Return the part that a fault's own line or traceback names, and the line that names it."""
    if _DEEPEP.search(joblog.parse(hit.raw).message):
        return "deepep", Placed(hit.line, hit.offset, hit.raw)
    if b"cuda graph failed" in hit.raw:
        return "cuda-graph", Placed(hit.line, hit.offset, hit.raw)
    for frame in faults.innermost_first(breath):
        if _DEEPEP.search(frame.file) or _DEEPEP.search(frame.function):
            return "deepep", frame.place
        if _DRAFT_CALL.match(frame.function) or (_DRAFT.search(frame.file) and "verify" not in frame.function):
            return "speculative", frame.place
        if _GRAPH.search(frame.file):
            return "cuda-graph", frame.place
    return None


def _located(evidence: Evidence, hit: Hit, breath: Sequence[Placed], part: str, place: Placed) -> Finding:
    """Build the finding for a part of the engine."""
    en = zh = ""
    graph = part == "cuda-graph" or any(_GRAPH.search(frame.file) for frame in joblog.frames(breath))
    trusted = not graph and _blocking(evidence, hit, breath)
    if graph:
        en = " (a lead: a captured graph hides which of its kernels failed; run without graphs to be sure)"
        zh = "（仅为线索：已捕获的 graph 看不出是哪个内核出错，关闭 CUDA graph 运行才能确定）"
    elif not trusted:
        en = " (a lead: CUDA reports late, set CUDA_LAUNCH_BLOCKING=1 to be sure)"
        zh = "（仅为线索：CUDA 报错滞后，设置 CUDA_LAUNCH_BLOCKING=1 才能确定）"
    told = () if place.number == hit.line else (joblog.citation(hit),)
    return found(
        Verdict.PROBLEM if trusted else Verdict.WARNING,
        part,
        f"The traceback of the illegal memory access stands in {_EN[part]}{en}.",
        f"非法显存访问的调用栈位于{_ZH[part]}{zh}。",
        citations=(joblog.cite_placed(hit.file, place), *told),
    )


def _blocking(evidence: Evidence, hit: Hit, breath: Sequence[Placed]) -> bool:
    """Whether CUDA_LAUNCH_BLOCKING=1 reached the process that failed, by the launch script.

    An export on the head reaches that machine only; Ray leaves `ip=` out of the prefix of processes on the driver's
    machine alone.
    """
    state = of_every_job(read_settings(evidence))
    if state is Blocking.HEAD:
        line = joblog.parse(hit.raw)
        return line.actor is not None and line.ip is None
    if state is Blocking.TRAINERS:
        return faults.side(hit, breath)[0] == "train"
    return state is Blocking.EVERYWHERE
