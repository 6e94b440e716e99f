"""Whether the KL divergence is 0 at the first optimizer step (debug guide 1.3).

`train/kl_loss` (against the reference) is read first. `train/ppo_kl` (against the old policy) counts only where the old
log-probs came from a forward of their own, which shows in `rollout/log_probs`: from slime v0.3.0 on they are usually
the current ones, and ppo_kl is then 0 by construction. With several steps a rollout ppo_kl leaves 0 after the first
step, which is expected and answered `off-policy`.
"""

from __future__ import annotations

import msgspec

from probes import logs, metric_runs
from probes.metric_plots import first_bad, plot
from probes.metric_runs import Judged, Metrics
from probes.readers import metrics
from probes.readers.arguments import Arguments
from probes.readers.metrics import Record, Run
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Plot, Verdict, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text

_KL, _PPO, _OLD = "train/kl_loss", "train/ppo_kl", "rollout/log_probs"
_ORDER = ("zero", "off-policy", "nonzero")


@probe(
    "metrics.kl_first_step",
    needs="log",
    answers=("zero", "nonzero", "off-policy"),
    en="Is the KL divergence 0 at the first train step?",
    zh="第一个训练步的 KL 是否为 0？",
    deadline=logs.DEADLINE,
)
def kl_first_step(evidence: Evidence, report: Progress) -> Finding:
    """Judge step 0 of every run in the logs; the worst run counts."""
    read = metric_runs.read(evidence, report, (_KL, _PPO, _OLD))

    def one(run: Run) -> Judged | None:
        finding = _judge(run, read)
        return Judged(run, msgspec.structs.replace(finding, plots=_plots(run)), 0) if finding else None

    return metric_runs.judge(read, one, _ORDER) or _unknown(read)


def _plots(run: Run) -> tuple[Plot, ...]:
    """Return both divergences over the steps, with the limit of the first."""
    bad = metric_runs.first_step(run)
    off = bad is not None and any(key in bad.values and _differs(bad, key) for key in (_KL, _PPO))
    title = Text("KL divergence", "KL 散度")
    return plot(title, run.steps, (_KL, _PPO), limits=(limits.KL_ZERO,), mark=first_bad(0) if off else None)


def _judge(run: Run, read: Metrics) -> Finding | None:
    """Judge one run; None when its first step is not there or its KL proves nothing."""
    step = metric_runs.first_step(run)
    if step is None:
        return None
    table = read.table(step)
    steps = metric_runs.steps_per_rollout(run, table)
    rollout = metric_runs.first_rollout(run)
    forward = bool(rollout and _OLD in rollout.values) and not (table and table.true("use_rollout_logprobs"))
    key = _PPO if forward else ""
    if _KL in step.values and not (table and table.true("use_rollout_routing_replay")):
        key = _KL
    off = _differs(step, key) if key in step.values else None
    if off is None:
        return None
    if off and key == _KL and table is not None and _other_start(table):
        return unknown(
            f"kl_loss is {step.values[key]:.3g} at step 0, but the actor was loaded from another checkpoint than the"
            " reference (load and ref_load differ), so it need not be 0.",
            f"第 0 步 kl_loss 为 {step.values[key]:.3g}，但 actor 与 reference 加载自不同的 checkpoint"
            "（load 与 ref_load 不同），本来就不必为 0。",
            settle_en="Start once from the reference's own checkpoint.",
            settle_zh="让 actor 从 reference 的 checkpoint 启动一次。",
            citations=(metrics.citation(step),),
        )
    if off:
        return found(
            Verdict.WARNING,
            "nonzero",
            f"{key} is {step.values[key]:.3g} at step 0, before any update: it should be 0.",
            f"第 0 步（尚未更新）{key} 为 {step.values[key]:.3g}，应为 0。",
            citations=(metrics.citation(step),),
            measurements=(limits.KL_ZERO.measure(key, step.values[key]),),
        )
    later = _later_in_rollout(run, steps)
    if later is not None:
        return found(
            Verdict.OK,
            "off-policy",
            f"{key} is 0 at step 0; ppo_kl is {later.values[_PPO]:.3g} at step {later.number} because {steps} steps"
            " use one rollout, which is expected.",
            f"第 0 步 {key} 为 0；第 {later.number} 步 ppo_kl 为 {later.values[_PPO]:.3g}，"
            f"因为每个 rollout 训练 {steps} 步，属预期。",
            citations=(metrics.citation(later),),
            measurements=(limits.KL_ZERO.measure(_PPO, later.values[_PPO]),),
        )
    return found(
        Verdict.OK,
        "zero",
        f"{key} is {step.values[key]:.3g} at step 0, as it must be.",
        f"第 0 步 {key} 为 {step.values[key]:.3g}，符合预期。",
        citations=(metrics.citation(step),),
        measurements=(limits.KL_ZERO.measure(key, step.values[key]),),
    )


def _other_start(table: Arguments) -> bool:
    """Whether the arguments say that actor and reference were loaded from different places."""
    load, ref = table.value("load"), table.value("ref_load")
    return load not in (None, "None") and ref not in (None, "None") and load != ref


def _differs(step: Record, key: str) -> bool | None:
    """Whether a KL is above slime's own limit for 0; None when it is NaN."""
    value = step.values[key]
    return None if value != value else abs(value) > limits.KL_ZERO.value  # noqa: PLR0124


def _later_in_rollout(run: Run, steps: int | None) -> Record | None:
    """Return the first later step of rollout 0 whose ppo_kl is not 0, when several steps use one rollout."""
    if not steps or steps < 2:
        return None
    return next(
        (each for each in run.steps[1:steps] if each.number < steps and _PPO in each.values and _differs(each, _PPO)),
        None,
    )


def _unknown(read: Metrics) -> Finding:
    """Say why no KL of a first step could be read."""
    start = next((run.steps[0] for run in read.runs if run.steps), None)
    if start is None:
        return metric_runs.no_metrics(read)
    if start.number:
        return logs.nothing_said(
            f"The log begins at step {start.number}: a resumed run or a cut log, so its first step is not there.",
            f"日志从第 {start.number} 步开始：属续训或日志被截断，没有第一步。",
        )
    return unknown(
        "The log prints no kl_loss, and its ppo_kl is 0 by construction (the old log-probs are the current ones), so it"
        " proves nothing.",
        "日志没有 kl_loss，而 ppo_kl 因直接复用当前 log-probs 恒为 0，不能证明什么。",
        settle_en="Run with --use-kl-loss (with --kl-loss-coef 0.0 it only measures).",
        settle_zh="加上 --use-kl-loss 重新运行（--kl-loss-coef 0.0 时仅作测量）。",
        slots=("log",),
        citations=(metrics.citation(start),),
    )
