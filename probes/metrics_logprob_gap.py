"""How far trainer and engine are apart on the same tokens, from the metric lines (debug guide 1.2, 1.1).

`train/train_rollout_logprob_abs_diff` is the mean absolute difference per token. Where it is not printed, the
difference of the two means in the `rollout` line is read: it can only be smaller, so it proves a gap but never
agreement of single tokens. Up to slime v0.3.x the metric compares a value with itself under --use-rollout-logprobs,
and says nothing then.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes import logs, metric_runs
from probes.metric_runs import Metrics
from probes.readers import metrics
from probes.readers.metrics import Record, Run
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

_DIFF, _ACTOR, _ENGINE = "train/train_rollout_logprob_abs_diff", "rollout/log_probs", "rollout/rollout_log_probs"
_ORDER = ("agree", "small", "large")


@dataclass(frozen=True)
class _Gap:
    """One printed distance, in nat per token."""

    value: float
    name: str
    record: Record


@probe(
    "metrics.logprob_gap",
    needs="log",
    answers=_ORDER,
    en="Do trainer and engine agree on the log-probs of the same tokens?",
    zh="训练侧与推理侧对相同 token 的 log-probs 是否一致？",
    deadline=logs.DEADLINE,
)
def logprob_gap(evidence: Evidence, report: Progress) -> Finding:
    """Judge the distances of every run in the logs; the worst run counts."""
    read = metric_runs.read(evidence, report, (_DIFF, _ACTOR, _ENGINE))
    findings = [finding for run in read.runs if (finding := _judge(_gaps(run, read)))]
    return metric_runs.worst(findings, _ORDER) or metric_runs.no_metrics(read)


def _gaps(run: Run, read: Metrics) -> list[_Gap]:
    """Return the distances a run prints, in order; those that a flag makes meaningless are left out."""
    gaps = []
    for each in [*run.steps, *run.asserted]:
        table = read.table(each) if each.values.get(_DIFF) == 0.0 else None
        if _DIFF in each.values and not (table and table.true("use_rollout_logprobs")):
            gaps.append(_Gap(each.values[_DIFF], "train_rollout_logprob_abs_diff", each))
    printed = bool(gaps)
    for each in run.rollouts:
        if _ACTOR in each.values and _ENGINE in each.values:
            gap = abs(each.values[_ACTOR] - each.values[_ENGINE])
            if not printed or gap > limits.GAP_CI.value:
                gaps.append(_Gap(gap, "|log_probs - rollout_log_probs|", each))
    finite = [gap for gap in gaps if gap.value == gap.value]
    return sorted(finite, key=lambda gap: gap.record.line)


def _judge(gaps: list[_Gap]) -> Finding | None:
    """Judge the distances of one run; None when there are none."""
    if not gaps:
        return None
    large = [gap for gap in gaps if gap.value > limits.GAP_CI.value]
    if large:
        proven = [gap for gap in gaps if gap.value > limits.GAP_PROVEN.value]
        lasting = len(proven) >= limits.GAP_LASTING.value or (bool(proven) and proven[0] in (gaps[0], gaps[-1]))
        shown = (proven or large)[0]
        healthy = gaps[0].value <= limits.GAP_CI.value
        en = f"Trainer and engine disagree: {shown.name} = {shown.value:.3g} at {_where(shown)}"
        zh = f"训练侧与推理侧不一致：{_where(shown)} {shown.name} = {shown.value:.3g}"
        en += f", {gaps[0].value:.3g} at {_where(gaps[0])}" if healthy else ""
        zh += f"，{_where(gaps[0])} 时为 {gaps[0].value:.3g}" if healthy else ""
        return found(
            Verdict.PROBLEM if lasting else Verdict.WARNING,
            "large",
            f"{en}; {len(large)} of {len(gaps)} lines are above slime's limit.",
            f"{zh}；{len(gaps)} 行中有 {len(large)} 行超过 slime 的限值。",
            citations=(metrics.citation(shown.record, len(large)),),
            measurements=((limits.GAP_PROVEN if proven else limits.GAP_CI).measure(shown.name, shown.value),),
        )
    top = max(gaps, key=lambda gap: gap.value)
    agrees = top.value <= limits.GAP_AGREE.value
    if agrees:
        en, zh = "Trainer and engine agree", "训练侧与推理侧一致"
    else:
        en = "Trainer and engine differ by what fp8 or a mixture of experts explains"
        zh = "训练侧与推理侧之差在 fp8 或 MoE 可解释的范围内"
    return found(
        Verdict.OK,
        "agree" if agrees else "small",
        f"{en}: {top.name} is at most {top.value:.3g} in {len(gaps)} lines.",
        f"{zh}：{len(gaps)} 行中 {top.name} 最大为 {top.value:.3g}。",
        citations=(metrics.citation(top.record),),
        measurements=((limits.GAP_AGREE if agrees else limits.GAP_CI).measure(top.name, top.value),),
    )


def _where(gap: _Gap) -> str:
    """Name the line of a distance."""
    return f"{gap.record.kind} {gap.record.number}" if gap.record.number >= 0 else "the failing step"
