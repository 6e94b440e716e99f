"""What the log says about where in the engine an illegal memory access happened (debug guide, IMA).

A core dump, cuda-gdb or compute-sanitizer names the kernel and is believed first. Otherwise the traceback of the
fault is read from the frame that raised outwards: DeepEP, the draft model of speculative decoding, or the replay of
a CUDA graph. CUDA reports such a fault late, at some later call, so without CUDA_LAUNCH_BLOCKING=1 (and inside a
captured graph even with it) the frames are a lead and not a proof: the verdict is then `warning`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from probes import faults, logs
from probes.readers import joblog
from probes.readers.joblog import Placed
from probes.readers.logfiles import expand, window
from probes.readers.logscan import Hit, signature
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
_BLOCKING = re.compile(rb"CUDA_LAUNCH_BLOCKING[\"'\\]{0,4}\s{0,2}[=:]\s{0,2}[\"'\\]{0,4}1")
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
            return _located(hit, *where, trusted=_blocking(evidence, breath))
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


def _located(hit: Hit, part: str, place: Placed, *, trusted: bool) -> Finding:
    """Build the finding for a part of the engine."""
    en = "" if trusted else " (a lead: CUDA reports late, set CUDA_LAUNCH_BLOCKING=1 to be sure)"
    zh = "" if trusted else "（仅为线索：CUDA 报错滞后，设置 CUDA_LAUNCH_BLOCKING=1 才能确定）"
    told = () if place.number == hit.line else (joblog.citation(hit),)
    return found(
        Verdict.PROBLEM if trusted else Verdict.WARNING,
        part,
        f"The traceback of the illegal memory access stands in {_EN[part]}{en}.",
        f"非法显存访问的调用栈位于{_ZH[part]}{zh}。",
        citations=(joblog.cite_placed(hit.file, place), *told),
    )


def _blocking(evidence: Evidence, breath: Sequence[Placed]) -> bool:
    """Whether launches were blocking: by the launch script, or because the traceback lacks torch's warning about it."""
    files, _ = expand(evidence.paths("launch"))
    for file in files:
        text = window(file, 0, 1024 * 1024)
        if any(_BLOCKING.search(line) for line in text.split(b"\n") if not line.lstrip().startswith(b"#")):
            return True
    return any(b"DeepEP" in place.raw or b"deep_ep.cpp" in place.raw for place in breath)
