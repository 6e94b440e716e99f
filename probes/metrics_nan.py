"""Whether a loss, gradient norm or log-prob is NaN or infinite (debug guide 1.3).

Judged are slime's own metric lines and the line with which Megatron stops a run on a NaN gradient
(core/rerun_state_machine.py). Only keys of the optimisation are looked at: a custom metric or a timing may be anything.
"""

from __future__ import annotations

import math

from probes import logs
from probes.readers import joblog, metrics
from probes.readers.logscan import Coverage, Hit, signature
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

_ROLLOUT_KEYS = (
    "log_probs", "ref_log_probs", "rollout_log_probs", "advantages", "returns", "values", "kl", "entropy",
)  # fmt: skip
_STEP_KEYS = (
    "loss", "pg_loss", "entropy_loss", "ppo_kl", "kl_loss", "grad_norm", "train_rollout_logprob_abs_diff", "value_loss",
    "mtp_loss",
)  # fmt: skip
_KEYS = frozenset(
    [f"rollout/{key}" for key in _ROLLOUT_KEYS]
    + [f"train/{key}" for key in _STEP_KEYS]
    + [f"train/critic-{key}" for key in _STEP_KEYS]
)
ABORT = signature(
    "nan-abort",
    ("found NaN in ", "found Inf in ", "Unexpected result nan", "Unexpected result inf"),
    r"Unexpected result (?:nan|-?inf)|(?<!message=')found (?:NaN|Inf) in (?:local|the) (?:grad|loss|norm)",
)


@probe(
    "metrics.nan",
    needs="log",
    answers=("none", "nan"),
    en="Is a loss, gradient or log-prob NaN or infinite?",
    zh="loss、梯度或 log-prob 是否出现 NaN 或无穷？",
    deadline=logs.DEADLINE,
)
def nan(evidence: Evidence, report: Progress) -> Finding:
    """Find the first metric line or abort with a value that is no number; count the lines that follow it."""
    coverage = Coverage()
    first: tuple[Hit, str] | None = None
    bad = judged = 0
    for hit in logs.stream(evidence, report, (metrics.METRIC, metrics.ASSERTED, ABORT), coverage):
        if hit.label == ABORT.label:
            keys = [joblog.parse(hit.text).message[:80]]
        else:
            values = metrics.record(hit, _KEYS).values
            judged += bool(values)
            keys = [key for key, value in values.items() if not math.isfinite(value)]
        if keys:
            bad += 1
            first = first or (hit, ", ".join(keys[:4]))
    if first:
        hit, what = first
        return found(
            Verdict.PROBLEM,
            "nan",
            f"Not a number from line {hit.line} on: {what}.",
            f"自第 {hit.line} 行起出现非数：{what}。",
            citations=(joblog.citation(hit, bad),),
        )
    trouble = logs.unread(coverage)
    if trouble or not judged:
        return trouble or logs.nothing_said(
            "The log prints no loss, gradient norm or log-prob.", "日志没有 loss、梯度范数或 log-prob。"
        )
    return found(
        Verdict.OK,
        "none",
        f"All losses, norms and log-probs are finite in {judged} metric lines.",
        f"{judged} 行指标中的 loss、范数与 log-prob 均为有限值。",
    )
