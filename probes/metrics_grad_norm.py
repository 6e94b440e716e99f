"""Whether the gradient norm is ordinary, large from the first steps, or jumps later (debug guide 1.3).

The norm is taken before clipping. Large from the start, while loss and KL are ordinary, points at the backward pass (a
Megatron or Transformer Engine bug); a jump against the run's own history is another matter. How large is large depends
on loss and model, so it is a warning, and a problem only orders of magnitude beyond any healthy backward pass
(GRAD_IMPOSSIBLE). A norm that is no number is for the NaN probe. The critic's norm (`critic-step`) is not judged: its
loss has another scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from probes import logs, metric_runs
from probes.metric_plots import first_bad, plot
from probes.metric_runs import Judged, Metrics
from probes.readers import metrics
from probes.readers.metrics import Record, Run
from probes.thresholds import Threshold
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Plot, Verdict, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text

_NORM, _POLICY = "train/grad_norm", "train/pg_loss"
_ORDER = ("small", "spike", "large")


@probe(
    "metrics.grad_norm",
    needs="log",
    answers=("small", "large", "spike"),
    en="Is the gradient norm small?",
    zh="grad_norm 是否较小？",
    deadline=logs.DEADLINE,
)
def grad_norm(evidence: Evidence, report: Progress) -> Finding:
    """Judge the gradient norms of every run in the logs; the worst run counts."""
    read = metric_runs.read(evidence, report, (_NORM, _POLICY))
    return metric_runs.judge(read, _judge, _ORDER) or _unknown(read)


def _judge(run: Run) -> Judged | None:
    """Judge one run; None when it prints no finite norm."""
    told = _told(run)
    return Judged(run, *told) if told else None


def _told(run: Run) -> tuple[Finding, int] | None:
    """Return what a run's norms say, and from which step on."""
    steps = [step for step in run.steps if math.isfinite(step.values.get(_NORM, math.nan))]
    if not steps:
        return None
    policy = any(_POLICY in step.values for step in steps)
    large = limits.GRAD_LARGE if policy else limits.GRAD_LARGE_SFT
    first = steps[: int(limits.GRAD_FIRST.value)]
    if min(step.values[_NORM] for step in first) >= large.value:
        sure = min(step.values[_NORM] for step in first) >= limits.GRAD_IMPOSSIBLE.value
        large = limits.GRAD_IMPOSSIBLE if sure else large
        high = [step for step in steps if step.values[_NORM] >= large.value]
        finding = found(
            Verdict.PROBLEM if sure else Verdict.WARNING,
            "large",
            f"grad_norm is {first[0].values[_NORM]:.4g} at step {first[0].number}, far above the usual 0.05 to 1;"
            f" so it is in {len(high)} of {len(steps)} steps.",
            f"第 {first[0].number} 步 grad_norm 为 {first[0].values[_NORM]:.4g}，远高于通常的 0.05 到 1；"
            f"{len(steps)} 步中有 {len(high)} 步如此。",
            citations=(metrics.citation(first[0], len(high)),),
            measurements=(large.measure("grad_norm", first[0].values[_NORM]),),
            plots=_plot(run, large, first[0].number),
        )
        return finding, first[0].number
    jump = _spike(steps)
    if jump:
        step, before = jump
        finding = found(
            Verdict.WARNING,
            "spike",
            f"grad_norm jumps to {step.values[_NORM]:.4g} at step {step.number}; its median before was {before:.3g}.",
            f"第 {step.number} 步 grad_norm 跃升至 {step.values[_NORM]:.4g}，此前中位数为 {before:.3g}。",
            citations=(metrics.citation(step),),
            measurements=(
                limits.GRAD_SPIKE.measure("grad_norm over its past median", step.values[_NORM] / max(before, 1e-12)),
            ),
            plots=_plot(run, limits.GRAD_UNUSUAL, step.number),
        )
        return finding, step.number
    top = max(steps, key=lambda step: step.values[_NORM])
    early = max(first, key=lambda step: step.values[_NORM])
    if policy and early.values[_NORM] >= limits.GRAD_UNUSUAL.value:
        value = early.values[_NORM]
        finding = unknown(
            f"grad_norm reaches {value:.4g} at step {early.number}: unusual, but no proof of a fault.",
            f"第 {early.number} 步 grad_norm 达到 {value:.4g}：不寻常，但不足以证明故障。",
            settle_en="Compare with a dense model, or run on with the same data (--load-debug-rollout-data).",
            settle_zh="与稠密模型对比，或用相同数据（--load-debug-rollout-data）继续运行。",
            citations=(metrics.citation(early),),
        )
        return finding, early.number
    finding = found(
        Verdict.OK,
        "small",
        f"grad_norm stays small: at most {top.values[_NORM]:.4g} in {len(steps)} steps.",
        f"grad_norm 一直较小：{len(steps)} 步中最大为 {top.values[_NORM]:.4g}。",
        citations=(metrics.citation(top),),
        measurements=((limits.GRAD_UNUSUAL if policy else large).measure("grad_norm", top.values[_NORM]),),
        plots=_plot(run, limits.GRAD_UNUSUAL if policy else large, None),
    )
    return finding, top.number


def _plot(run: Run, limit: Threshold, bad: int | None) -> tuple[Plot, ...]:
    """Return the norms over the steps, with the limit and the first bad step."""
    title = Text("Gradient norm before clipping", "裁剪前的梯度范数")
    return plot(title, run.steps, (_NORM,), limits=(limit,), mark=None if bad is None else first_bad(bad))


def _spike(steps: Sequence[Record]) -> tuple[Record, float] | None:
    """Return the first step that jumps above its own history, and the median of that history."""
    for index in range(2, len(steps)):
        value = steps[index].values[_NORM]
        if value < limits.GRAD_UNUSUAL.value:
            continue
        start = max(index - int(limits.GRAD_HISTORY.value), 0)
        history = sorted(step.values[_NORM] for step in steps[start:index])
        median = history[len(history) // 2]
        if value >= limits.GRAD_SPIKE.value * median:
            return steps[index], median
    return None


def _unknown(read: Metrics) -> Finding:
    """Say why no norm could be judged."""
    if any(_NORM in step.values for run in read.runs for step in run.steps):
        return logs.nothing_said(
            "Every grad_norm in the log is NaN or infinite: see metrics.nan.",
            "日志中的 grad_norm 全为 NaN 或无穷：见 metrics.nan。",
        )
    return metric_runs.no_metrics(read)
