"""How far trainer and engine are apart on the same tokens, from the metric lines (debug guide 1.2, 1.1).

`train/train_rollout_logprob_abs_diff` is the mean absolute difference per token. Where it is not printed, the
difference of the two means in the `rollout` line is read: it can only be smaller, so it proves a gap but never
agreement of single tokens. What agrees depends on the precision (`metric_precision`). Up to slime v0.3.x the metric
compares a value with itself under --use-rollout-logprobs, and says nothing then.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from probes import logs, metric_runs
from probes.metric_plots import first_bad, plot
from probes.metric_precision import Precision, precision
from probes.metric_runs import Judged, Metrics
from probes.readers import metrics
from probes.readers.metrics import Record, Run, place
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Plot, Verdict, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, counted

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

    def one(run: Run) -> Judged | None:
        gaps = _gaps(run, read)
        if not gaps:
            return None
        band = precision(read.table(gaps[0].record))
        finding = msgspec.structs.replace(_judge(gaps, band), plots=_plots(run, gaps, band))
        return Judged(run, finding, next((gap.record.number for gap in gaps if gap.value > limits.GAP_CI.value), 0))

    return metric_runs.judge(read, one, _ORDER) or _by_itself(read) or metric_runs.no_metrics(read)


def _by_itself(read: Metrics) -> Finding | None:
    """Say that the only distances printed are of values compared with themselves; None where none are."""
    found_ = (each for run in read.runs for each in [*run.steps, *run.asserted] if _DIFF in each.values)
    each = next(found_, None)
    if each is None:
        return None
    return unknown(
        "train_rollout_logprob_abs_diff is 0 by construction: with --use-rollout-logprobs slime up to v0.3.x compares"
        " the engine's log-probs with themselves.",
        "train_rollout_logprob_abs_diff 恒为 0：slime v0.3.x 及以前在 --use-rollout-logprobs 下"
        "拿推理侧的 log-prob 与自身相比。",
        settle_en="Run once with --get-mismatch-metrics, or without --use-rollout-logprobs.",
        settle_zh="加上 --get-mismatch-metrics，或去掉 --use-rollout-logprobs 运行一次。",
        citations=(metrics.citation(each),),
    )


def _plots(run: Run, gaps: list[_Gap], band: Precision) -> tuple[Plot, ...]:
    """Return the distances over the steps with both limits, and the two means over the rollouts."""
    bad = next((gap for gap in gaps if gap.value > limits.GAP_CI.value), None)
    mark = first_bad(bad.record.number) if bad and bad.record.kind == "step" else None
    title = Text("Trainer against engine, |difference| per token", "训练侧与推理侧每 token 之差")
    return (
        *plot(title, run.steps, (_DIFF,), unit="nat/token", limits=(band.agree, limits.GAP_CI), mark=mark),
        *plot(
            Text("Mean log-prob per token", "每 token 平均 log-prob"),
            run.rollouts,
            (_ACTOR, _ENGINE),
            x="rollout",
            unit="nat/token",
        ),
    )


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
    return sorted(finite, key=lambda gap: place(gap.record))


def _judge(gaps: list[_Gap], band: Precision) -> Finding:
    """Judge the distances of one run."""
    large = [gap for gap in gaps if gap.value > limits.GAP_CI.value]
    if large:
        proven = [gap for gap in gaps if gap.value > limits.GAP_PROVEN.value]
        lasting = len(proven) >= limits.GAP_LASTING.value or (bool(proven) and proven[0] in (gaps[0], gaps[-1]))
        shown = (proven or large)[0]
        healthy = gaps[0].value <= limits.GAP_CI.value
        at, begin = _where(shown), _where(gaps[0])
        en = f"Trainer and engine disagree: {shown.name} = {shown.value:.3g} at {at.en}"
        zh = f"训练侧与推理侧不一致：{at.zh} {shown.name} = {shown.value:.3g}"
        en += f", {gaps[0].value:.3g} at {begin.en}" if healthy else ""
        zh += f"，{begin.zh} 时为 {gaps[0].value:.3g}" if healthy else ""
        return found(
            Verdict.PROBLEM if lasting else Verdict.WARNING,
            "large",
            f"{en}; above slime's limit in {len(large)} of {counted(len(gaps), 'line')}.",
            f"{zh}；{len(gaps)} 行中有 {len(large)} 行超过 slime 的限值。",
            citations=(metrics.citation(shown.record, len(large)),),
            measurements=((limits.GAP_PROVEN if proven else limits.GAP_CI).measure(shown.name, shown.value),),
        )
    top = max(gaps, key=lambda gap: gap.value)
    agrees = top.value <= band.agree.value
    aligned = band.agree.value <= limits.GAP_ALIGNED.value
    if aligned and not agrees:
        en = "Trainer and engine differ, though their kernels are meant to be aligned (--true-on-policy-mode)"
        zh = "训练侧与推理侧有差异，而两侧 kernel 本应对齐（--true-on-policy-mode）"
    elif agrees:
        en, zh = "Trainer and engine agree", "训练侧与推理侧一致"
    else:
        en = "Trainer and engine differ by what fp8 or a mixture of experts explains"
        zh = "训练侧与推理侧之差在 fp8 或 MoE 可解释的范围内"
    return found(
        Verdict.WARNING if aligned and not agrees else Verdict.OK,
        "agree" if agrees else "small",
        f"{en}: {top.name} is at most {top.value:.3g} in {counted(len(gaps), 'line')} ({band.words.en}).",
        f"{zh}：{len(gaps)} 行中 {top.name} 最大为 {top.value:.3g}（{band.words.zh}）。",
        citations=(metrics.citation(top.record),),
        measurements=((band.agree if agrees or aligned else limits.GAP_CI).measure(top.name, top.value),),
    )


def _where(gap: _Gap) -> Text:
    """Name the line of a distance; an assertion of slime's CI does not tell its step."""
    name = f"{gap.record.kind} {gap.record.number}"
    return Text(name, name) if gap.record.number >= 0 else Text("the failing step", "断言失败的那一步")
