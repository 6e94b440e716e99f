"""Which kind of error ended a load of Megatron, since each kind has its own cure.

What ended the load is found by `megatron.load_log`; here its line is only sorted. Sources: Megatron-LM
megatron/training/checkpointing.py and core/dist_checkpointing, slime/backends/megatron_utils/checkpoint.py and
hf_to_megatron/, transformers' AutoConfig. A line of none of these kinds is `other` and no proof of anything.
"""

from __future__ import annotations

from probes import logs
from probes.known import known
from probes.megatron_load_log import load_log
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable
from runbook.probe import Progress, probe

_KINDS = tuple(
    (known(f"load-{answer}"), answer)
    for answer in ("optimizer", "model-type", "critic-head", "shape", "folder", "files")
)
"""The answer that an entry stands for; the first that fits counts, so the special stands before the general."""

_WORDS = {
    "optimizer": ("the folder has no optimizer or rng state to resume from", "目录里没有可续训的优化器或 rng 状态"),
    "model-type": ("slime cannot convert this kind of model", "slime 不支持转换这类模型"),
    "critic-head": ("the critic's output layer has another shape", "critic 的 output layer 形状不同"),
    "shape": ("a shape or an argument differs from the checkpoint's", "形状或参数与 ckpt 不一致"),
    "folder": ("the folder is not a checkpoint, or it is not there", "目录不是 ckpt，或不存在"),
    "files": ("a file of the checkpoint is missing, short or damaged", "ckpt 的文件缺失、不完整或损坏"),
}


@probe(
    "megatron.load_error",
    needs="log",
    answers=(*_WORDS, "other"),
    en="With which kind of error did the load of the checkpoint fail?",
    zh="ckpt 加载失败的报错属于哪一类？",
    deadline=logs.DEADLINE,
)
def load_error(evidence: Evidence, report: Progress) -> Finding:
    """Sort the line that ended the load."""
    load = load_log.run(evidence, report)
    if not load.verdict.decides:
        return load
    if load.answer != "failed" or not load.citations:
        return not_applicable("The log shows no load that failed.", "日志没有显示加载失败。")
    line = load.citations[0]
    said = line.excerpt.encode()
    kind = next((name for each, name in _KINDS if each.pattern.search(said)), "other")
    en, zh = _WORDS.get(kind, ("the error is none of the known kinds", "报错不属于已知的类型"))
    return found(
        Verdict.WARNING if kind == "other" else Verdict.PROBLEM,
        kind,
        f"{load.summary.en.rstrip('.')} ({en}).",
        f"{load.summary.zh.rstrip('。')}（{zh}）。",
        citations=load.citations,
    )
