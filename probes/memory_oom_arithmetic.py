"""Which story the numbers of the first out-of-memory message tell (debug guide 2.1).

The message is taken where `memory.oom_in_log` places the first fault, so that both speak of the same line. Vocabulary,
parallel sizes and token limits come from the arguments table or the launch script, the longest sample from the dump of
that rollout or, without its prompt, from the rollout manager's `perf` line above the fault. A problem is only what the
numbers match; everything else is a lead.
"""

from __future__ import annotations

import statistics
from collections.abc import Sized

from probes import faults, logs
from probes.dumps import Read, dumps_of
from probes.logs import Scanned
from probes.memory_arithmetic import Known, Story, gib, rows, story
from probes.memory_oom_in_log import Found, read_memory
from probes.readers import joblog, memory_lines, metrics
from probes.readers.hf_config import field, read_config
from probes.readers.logscan import Coverage, Hit
from probes.readers.oom_message import GIB, OomMessage, read
from probes.settings import Settings, number, read_settings, switched
from probes.thresholds import Threshold
from probes.thresholds.memory import FITS, LOGITS_MATCH, MICRO_BATCH, OTHERS_LARGE, PIECES, RESPONSE_MATCH
from runbook.evidence import Evidence
from runbook.finding import Finding, Measurement, Table, Verdict, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

_LONGEST = "rollout/response_len/max"
_BEFORE, _AFTER = "before wake_up model", "after offload model"
_DIVISIBLE = 128
"""Megatron's default of --make-vocab-size-divisible-by (megatron/training/arguments.py)."""

_EN = {
    "one-sample-too-long": "one sample is longer than a micro batch may be",
    "micro-batch": "the logits of one micro batch are too large",
    "fragmented": "the memory is there, but in pieces",
    "engine-holds-memory": "other processes, such as an engine that was not released, hold the GPU",
    "trainer-holds-memory": "other processes, such as a trainer that does not sleep, hold the GPU",
    "stranger": "another process holds the GPU, and no engine shares it",
    "does-not-fit": "the engine's static share does not fit beside what stays on the GPU",
    "unclear": "the numbers fit no story that is known",
}
_ZH = {
    "one-sample-too-long": "有一条样本超过了 micro batch 的上限",
    "micro-batch": "单个 micro batch 的 logits 太大",
    "fragmented": "显存总量够，但都是碎片",
    "engine-holds-memory": "其他进程（例如没有释放的 engine）占着显存",
    "trainer-holds-memory": "其他进程（例如没有 sleep 的训练进程）占着显存",
    "stranger": "有别的进程占着这张卡，而 engine 并不共用它",
    "does-not-fit": "engine 的静态份额加上卡上的常驻占用超过了显存总量",
    "unclear": "这些数字与已知的情形都不符",
}


@probe(
    "memory.oom_arithmetic",
    needs="log",
    answers=("none", *_EN),
    en="What do the numbers of the out-of-memory message come to?",
    zh="OOM 报错里的数字说明了什么？",
    deadline=logs.DEADLINE,
)
def oom_arithmetic(evidence: Evidence, report: Progress) -> Finding:
    """Read the first placed message and reckon with it."""
    memory = read_memory(evidence, report)
    first = memory.first()
    if first is None and memory.faults:
        return _no_numbers(memory.faults[0].hit)
    if first is None:
        return logs.unread(memory.scanned.coverage) or _none()
    hit = first.fault.hit
    if hit.label != faults.CUDA_OOM.label:
        return _none(hit)
    message = read(hit.text.decode("utf-8", "replace"))
    if message is None:
        return _no_numbers(hit)
    known = _known(evidence, report, first, memory.scanned)
    return _finding(hit, message, known, story(message, known))


def _none(other: Hit | None = None) -> Finding:
    """Say that torch printed no such message; `other` is the fault of memory that stands first instead."""
    if other is not None:
        return found(
            Verdict.OK,
            "none",
            f"What ran out first (line {other.line}) is not told by a message of torch.",
            f"最先出现的内存故障（第 {other.line} 行）不是 torch 的 OOM 报错。",
            citations=(joblog.citation(other),),
        )
    return found(Verdict.OK, "none", "torch reports no failed allocation.", "torch 没有报告显存分配失败。")


def _no_numbers(hit: Hit) -> Finding:
    return unknown(
        f"The line that says that memory ran out ({hit.line}) gives no numbers to reckon with.",
        f"第 {hit.line} 行只说内存或显存不足，没有可供核算的数字。",
        settle_en="Give the .err file of the worker: torch's own message says what was tried, free and allocated.",
        settle_zh="提供该 worker 的 .err 文件：torch 的原始报错里有申请量、剩余量和已分配量。",
        slots=("log",),
        citations=(joblog.citation(hit),),
    )


def _known(evidence: Evidence, report: Progress, first: Found, scanned: Scanned) -> Known:
    """Gather what the evidence says beside the message."""
    settings = read_settings(evidence)
    longest, rollout, kept, asleep = _in_logs(evidence, report, first.fault.hit, scanned)
    whole = _longest_in_dump(evidence, report, rollout) if rollout is not None else None
    parallel = _whole(settings, "tensor-model-parallel-size", 1)
    return Known(
        _vocabulary(evidence, settings, parallel),
        parallel,
        _whole(settings, "context-parallel-size", 1),
        _whole(settings, "max-tokens-per-gpu"),
        _whole(settings, "log-probs-max-tokens-per-gpu"),
        whole or longest,
        whole is not None,
        switched(settings, "colocate")[0],
        kept,
        faults.side(first.fault.hit, joblog.context(first.fault.hit))[0] != "rollout",
        asleep,
        number(settings, "sglang-mem-fraction-static")[0],
        first.place == "colocate-switch",
    )


def _whole(settings: Settings, flag: str, default: float | None = None) -> int | None:
    value, _ = number(settings, flag, default)
    return int(value) if value is not None and 1 <= value < 1e12 else None


def _vocabulary(evidence: Evidence, settings: Settings, parallel: int | None) -> int | None:
    """Return the rows of the output layer: as the table says, else the model's, padded as Megatron pads them."""
    padded = _whole(settings, "padded-vocab-size")
    if padded is not None:
        return padded
    size = _whole(settings, "vocab-size")
    for folder in evidence.paths("hf_checkpoint") if size is None else ():
        config = read_config(folder)
        told = field(config, "vocab") if config is not None else None
        if told is not None and isinstance(told.value, int) and told.value > 0:
            size = told.value
            break
    if size is None or parallel is None:
        return None
    unit = (_whole(settings, "make-vocab-size-divisible-by") or _DIVISIBLE) * parallel
    return -(-size // unit) * unit


def _in_logs(
    evidence: Evidence, report: Progress, fault: Hit, scanned: Scanned
) -> tuple[int | None, int | None, float | None, float | None]:
    """Return the longest response of the rollout that was trained and its number; then bytes in use, as medians.

    Those are what others held before wake_up, and what the device still held after the trainer's offload.
    """
    longest: tuple[int, int] | None = None
    kept: list[float] = []
    asleep: list[float] = []
    for hit in logs.stream(evidence, report, (metrics.METRIC, memory_lines.USAGE), Coverage()):
        if hit.label == memory_lines.USAGE.label:
            usage = memory_lines.usage(hit)
            if usage.what == _BEFORE and usage.others is not None:
                kept.append(max(usage.others, 0.0) * GIB)
            if usage.what == _AFTER and usage.used is not None:
                asleep.append(usage.used * GIB)
        elif metrics.MANAGER_KEY.encode() in hit.text and scanned.earlier(hit, fault):
            record = metrics.record(hit, frozenset({_LONGEST}))
            value = record.values.get(_LONGEST, 0.0)
            longest = (int(value), record.number) if 1 <= value < 1e12 else longest
    medians = (statistics.median(kept) if kept else None, statistics.median(asleep) if asleep else None)
    return (*(longest or (None, None)), *medians)


def _longest_in_dump(evidence: Evidence, report: Progress, rollout: int) -> int | None:
    """Return the tokens of the longest sample in the dump of a rollout, None without such a dump."""
    lengths = [
        len(tokens)
        for dump in dumps_of(evidence, "rollout", report, Read(), at=rollout)
        for sample in dump.samples
        if isinstance(tokens := sample.get("tokens"), Sized) and not isinstance(tokens, (str, bytes))
    ]
    return max(lengths, default=None)


def _finding(hit: Hit, message: OomMessage, known: Known, told: Story) -> Finding:
    figures = rows(message, known)
    cells = tuple(tuple(sanitise(part) for part in (row.what, row.formula, row.value, row.source)) for row in figures)
    limit = _limit(told, known)
    measured = (limit,) if limit is not None else ()
    numbers_ = [("tried", message.tried), ("free", message.free), ("unallocated", message.unallocated)]
    tokens_en = f" ({told.tokens} tokens of logits in {told.kind})" if told.tokens else ""
    tokens_zh = f"（相当于 {told.tokens} 个 token 的 {told.kind} logits）" if told.tokens else ""
    return found(
        Verdict.PROBLEM if told.proven else Verdict.WARNING,
        told.answer,
        f"torch wanted {gib(message.tried)}{tokens_en}: {_EN[told.answer]} (line {hit.line}).",
        f"torch 要申请 {gib(message.tried)}{tokens_zh}：{_ZH[told.answer]}（第 {hit.line} 行）。",
        citations=(joblog.citation(hit),),
        measurements=(
            *measured,
            *(Measurement(name, round(value / GIB, 3), "GiB") for name, value in numbers_ if value is not None),
        ),
        tables=(Table(Text("The arithmetic", "核算"), ("what", "formula", "value", "source"), cells),),
    )


def _limit(told: Story, known: Known) -> Measurement | None:
    """Return the figure that decided, beside its threshold."""
    if told.off is None:
        return None
    threshold: Threshold = OTHERS_LARGE
    name, value = "held by others", told.off
    if told.answer == "does-not-fit":
        threshold, name = FITS, "needed"
    if told.answer == "fragmented":
        threshold, name = PIECES, "unallocated"
    elif told.answer == "one-sample-too-long":
        threshold, name = (LOGITS_MATCH if known.whole else RESPONSE_MATCH), "off the longest sample"
    elif told.answer == "micro-batch":
        threshold, name = LOGITS_MATCH, "off the limit"
        if not told.proven:
            threshold, name, value = MICRO_BATCH, "filled", 1 - told.off
    return threshold.measure(name, round(value, 4))
