"""Whether the rewards tell samples apart, from the mean that slime prints before normalisation.

`rollout/raw_reward` of exactly 0 means that every sample of the rollout got 0 (rewards of rule-based graders are never
negative); `rollout/rewards` is normalised per group and proves nothing. A hard task or a small batch may earn nothing
for a while, so only many rollouts without a single point are a problem. Two kinds of runs have no rewards by design:
supervised ones, whose steps have no policy loss, and on-policy distillation (`--use-opd`, before that flag
`--custom-reward-post-process-path` alone), which gives every sample 0 and learns from the teacher's KL
(slime/rollout/on_policy_distillation.py, post_process_rewards). So a problem needs arguments that rule the second out.
"""

from __future__ import annotations

from probes import logs, metric_runs
from probes.metric_plots import plot
from probes.metric_runs import Judged
from probes.readers import metrics
from probes.readers.metrics import Run
from probes.settings import Settings, given, read_settings, switched
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Plot, Verdict, found, not_applicable, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, counted

_REWARD, _POLICY, _LOSS = "rollout/raw_reward", "train/pg_loss", "train/loss"
_ORDER = ("varied", "all-zero")


@probe(
    "metrics.reward",
    needs="log",
    answers=_ORDER,
    en="Do the samples get any reward?",
    zh="样本是否得到过奖励？",
    deadline=logs.DEADLINE,
)
def reward(evidence: Evidence, report: Progress) -> Finding:
    """Judge the mean raw rewards of every run in the logs; the worst run counts."""
    read = metric_runs.read(evidence, report, (_REWARD, _POLICY, _LOSS))
    runs = [run for run in read.runs if any(_REWARD in each.values for each in run.rollouts)]
    trained = [run for run in runs if not _supervised(run)]
    if runs and not trained:
        return not_applicable("The run is supervised: it has no rewards.", "该任务为监督训练，没有奖励。")
    judged = {id(run) for run in trained}
    distilled, processed = _by_design(read_settings(evidence))

    def one(run: Run) -> Judged | None:
        if id(run) not in judged:
            return None
        return Judged(run, _judge(run, earned=distilled is False and not processed), 0)

    finding = metric_runs.judge(read, one, _ORDER)
    if distilled and finding and finding.answer == "all-zero":
        return not_applicable(
            "The run distils a teacher (--use-opd): its task rewards are 0 by design.",
            "该任务为在策略蒸馏（--use-opd）：任务奖励按设计为 0。",
        )
    return finding or metric_runs.no_metrics(read)


def _by_design(settings: Settings) -> tuple[bool | None, bool]:
    """Return whether the run is a distillation (None: not known), and whether a function of its own sets rewards."""
    return switched(settings, "use-opd")[0], given(settings, "custom-reward-post-process-path") is not None


def _supervised(run: Run) -> bool:
    """Whether the steps of a run have a loss but no policy loss."""
    return any(_LOSS in each.values for each in run.steps) and not any(_POLICY in each.values for each in run.steps)


def _judge(run: Run, *, earned: bool) -> Finding:
    """Judge one run that prints rewards by whether all are 0. earned: the arguments rule out that 0 is by design."""
    rollouts = [each for each in run.rollouts if _REWARD in each.values]
    zero = [each for each in rollouts if each.values[_REWARD] == 0.0]
    if len(zero) == len(rollouts):
        learns = next((each for each in run.steps if abs(each.values.get(_POLICY, 0.0)) > limits.LEARNS.value), None)
        if learns is not None:
            return unknown(
                f"raw_reward is exactly 0 in {_every(len(zero))}, yet pg_loss is {learns.values[_POLICY]:.3g} at"
                f" step {learns.number}: advantages differ, so what trains is another number than the printed reward.",
                f"全部 {len(zero)} 个 rollout 的 raw_reward 恰为 0，但第 {learns.number} 步 pg_loss 为"
                f" {learns.values[_POLICY]:.3g}：advantage 并不相同，训练所用的奖励不是打印的这个。",
                settle_en="See which reward is trained on: --reward-key, a critic, --kl-coef, a function.",
                settle_zh="确认训练所用的奖励：--reward-key、critic、--kl-coef 或自定义函数。",
                slots=("launch",),
                citations=(metrics.citation(zero[0], len(zero)), metrics.citation(learns)),
            )
        return found(
            Verdict.PROBLEM if earned and len(zero) >= limits.ZERO_REWARDS.value else Verdict.WARNING,
            "all-zero",
            f"raw_reward is exactly 0 in {_every(len(zero))} that the log prints: no sample got any reward.",
            f"日志中全部 {len(zero)} 个 rollout 的 raw_reward 恰为 0：没有样本得到奖励。",
            citations=(metrics.citation(zero[0], len(zero)),),
            measurements=(limits.ZERO_REWARDS.measure("rollouts without any reward", len(zero)),),
            plots=_plot(run),
        )
    best = max(rollouts, key=lambda each: each.values[_REWARD])
    return found(
        Verdict.OK,
        "varied",
        f"raw_reward reaches {best.values[_REWARD]:.3g}; it is 0 in {len(zero)} of"
        f" {counted(len(rollouts), 'rollout')}.",
        f"raw_reward 最高 {best.values[_REWARD]:.3g}；{len(rollouts)} 个 rollout 中有 {len(zero)} 个为 0。",
        citations=(metrics.citation(best),),
        plots=_plot(run),
    )


def _every(rollouts: int) -> str:
    return "the one rollout" if rollouts == 1 else f"all {rollouts} rollouts"


def _plot(run: Run) -> tuple[Plot, ...]:
    """Return the mean rewards over the rollouts."""
    return plot(Text("Mean raw reward", "平均 raw_reward"), run.rollouts, (_REWARD,), x="rollout")
