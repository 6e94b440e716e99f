"""Whether the parallel sizes divide the model and the GPUs of the trainer.

Megatron refuses otherwise: world size by TP x PP x CP (training/arguments.py, validate_args), attention heads by
TP, experts by EP. The trainer's world size is actor nodes x GPUs a node. Uneven pipelines and expert groups have
rules that differ between versions and are left to the log.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.settings import Given, Settings, not_told, number, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable
from runbook.probe import Progress, probe

_Rule = tuple[str, str, float, float, tuple[Given | None, ...]]


@probe(
    "launch.parallel_layout",
    needs="launch|log",
    answers=("valid", "invalid"),
    en="Do the parallel sizes divide the model and the trainer's GPUs?",
    zh="并行度能整除模型和训练侧的 GPU 数吗？",
)
def parallel_layout(evidence: Evidence, report: Progress) -> Finding:
    """Check every division whose two sides are known."""
    del report
    settings = read_settings(evidence)
    if switched(settings, "debug-rollout-only")[0]:
        return not_applicable(
            "Megatron is not started (--debug-rollout-only).", "没有启动 Megatron（--debug-rollout-only）。"
        )
    rules = list(_rules(settings))
    for en, zh, whole, part, lines in rules:
        if part > 0 and whole % part:
            return found(
                Verdict.PROBLEM,
                "invalid",
                f"{en} {whole:g} cannot be divided by {part:g}: Megatron stops at start.",
                f"{zh} {whole:g} 不能被 {part:g} 整除：Megatron 启动时会报错退出。",
                citations=tuple(line.citation for line in lines if line is not None),
            )
    if not rules:
        return not_told("The parallel sizes are not known.", "不知道并行度。")
    shown = tuple(line.citation for line in rules[0][-1] if line is not None)
    return found(
        Verdict.OK,
        "valid",
        f"{len(rules)} division(s) of the layout hold.",
        f"并行布局的 {len(rules)} 项整除关系成立。",
        citations=shown,
    )


def _rules(settings: Settings) -> Iterator[_Rule]:
    """Yield (what is divided in two languages, dividend, divisor, lines) where both are certain."""

    def size(flag: str, default: float | None = 1) -> tuple[float | None, Given | None]:
        value, line = number(settings, flag, default)
        return (None, line) if line is not None and line.default else (value, line)

    tensor, pipeline, context, expert = (
        size(f"{name}-parallel-size") for name in ("tensor-model", "pipeline-model", "context", "expert-model")
    )
    nodes, each, experts = size("actor-num-nodes"), size("actor-num-gpus-per-node", 8), size("num-experts", None)
    world = nodes[0] * each[0] if nodes[0] and each[0] else None
    if world and tensor[0] and pipeline[0] and context[0]:
        lines = (nodes[1], each[1], tensor[1], pipeline[1], context[1])
        yield "The trainer's GPU count", "训练 GPU 数", world, tensor[0] * pipeline[0] * context[0], lines
    if experts[0] and expert[0]:
        yield "The number of experts", "expert 数", experts[0], expert[0], (experts[1], expert[1])
    heads = size("num-attention-heads", None)
    if heads[0] and tensor[0]:
        yield "The number of attention heads", "注意力头数", heads[0], tensor[0], (heads[1], tensor[1])
