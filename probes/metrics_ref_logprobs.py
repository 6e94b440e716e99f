"""Whether actor and reference agree at step one, from the printed means (debug guide 1.2).

Before the first update both are the same weights, so their log-probs must be equal. From slime v0.3.0 on the actor's
are usually not printed (the separate forward is skipped); then `train/kl_loss` of step 0 is read, and `ppo_kl`
never, which is 0 by construction there. A difference is only called a problem when the arguments say that both were
loaded from the same place.
"""

from __future__ import annotations

import math

import msgspec

from probes import logs, metric_runs, ref_answers
from probes.metric_plots import plot
from probes.metric_runs import Judged, Metrics
from probes.readers import metrics
from probes.readers.arguments import Arguments
from probes.readers.metrics import Record, Run
from probes.thresholds import Threshold
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Plot, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text

_ACTOR, _REF, _ENGINE = "rollout/log_probs", "rollout/ref_log_probs", "rollout/rollout_log_probs"
_KL = "train/kl_loss"


@probe(
    "metrics.ref_logprobs",
    needs="log",
    answers=ref_answers.ORDER,
    en="Are log_probs and ref_log_probs equal at step one?",
    zh="第一步的 log_probs 与 ref_log_probs 是否完全相等？",
    deadline=logs.DEADLINE,
)
def ref_logprobs(evidence: Evidence, report: Progress) -> Finding:
    """Compare the means of rollout 0, or read the KL loss of step 0, of every run in the logs; the worst run counts."""
    read = metric_runs.read(evidence, report, (_ACTOR, _REF, _ENGINE, _KL))

    def one(run: Run) -> Judged | None:
        finding = _judge(run, read)
        return Judged(run, msgspec.structs.replace(finding, plots=_plots(run)), 0) if finding else None

    return metric_runs.judge(read, one, ref_answers.ORDER) or _unknown(read)


def _plots(run: Run) -> tuple[Plot, ...]:
    """Return the log-probs over the rollouts, and the KL loss over the steps."""
    return (
        *plot(
            Text("Mean log-prob per token", "每 token 平均 log-prob"),
            run.rollouts,
            (_ACTOR, _REF, _ENGINE),
            x="rollout",
            unit="nat/token",
        ),
        *plot(Text("KL against the reference", "与 reference 的 KL"), run.steps, (_KL,), limits=(limits.KL_ZERO,)),
    )


def _judge(run: Run, read: Metrics) -> Finding | None:
    """Judge one run; None when it does not begin at rollout 0 or prints nothing to compare."""
    rollout = metric_runs.first_rollout(run)
    if rollout and _ACTOR in rollout.values and _REF in rollout.values:
        apart = abs(rollout.values[_ACTOR] - rollout.values[_REF])
        return _answer(apart, limits.LOGPROB_EQUAL, "|log_probs - ref_log_probs|", rollout, read.table(rollout))
    step = metric_runs.first_step(run)
    if step and _KL in step.values:
        table = read.table(step)
        if table and table.true("use_rollout_routing_replay"):
            return None
        return _answer(abs(step.values[_KL]), limits.KL_ZERO, "kl_loss", step, table, squared=_squared(table))
    if rollout and _REF in rollout.values and _ENGINE in rollout.values:
        apart = abs(rollout.values[_REF] - rollout.values[_ENGINE])
        if apart > limits.LOGPROB_FAR.value:
            name = "|ref_log_probs - rollout_log_probs|"
            return _answer(apart, limits.LOGPROB_EQUAL, name, rollout, None)
    return None


def _squared(table: Arguments | None) -> bool:
    """Whether the KL loss is half a squared difference rather than a difference (slime ppo_utils.py)."""
    return table is not None and table.value("kl_loss_type") in ("k2", "k3", "low_var_kl")


def _answer(
    apart: float, limit: Threshold, name: str, record: Record, table: Arguments | None, *, squared: bool = False
) -> Finding | None:
    """Turn a distance at step one into a finding; None when it is no number.

    squared: it is half the square of how far a token is apart on average, so that a small one stands for more.
    """
    if apart != apart:  # noqa: PLR0124 - NaN: another probe's matter
        return None
    same = _same_weights(table)
    far = limits.KL_ESTIMATE.value**2 / 2 if squared else limits.LOGPROB_FAR.value
    if apart <= limit.value:
        answer, verdict = ("close" if apart else "equal"), Verdict.OK
    else:
        answer = "far" if apart > far else "differ"
        verdict = Verdict.PROBLEM if same else Verdict.WARNING
    if answer == "far":
        limit = limits.LOGPROB_FAR if not squared else limits.KL_ESTIMATE
    en, zh = ref_answers.WORDS[answer].en, ref_answers.WORDS[answer].zh
    if not same and verdict is Verdict.WARNING:
        en, zh = en + ref_answers.EXPECTED.en, zh + ref_answers.EXPECTED.zh
    typical = math.sqrt(2.0 * apart)
    if squared and apart:
        en, zh = f"{en}, by about {typical:.2g} nat a token", f"{zh}，每 token 约差 {typical:.2g} nat"
    measured = limit.measure(f"typical distance by {name}", typical) if limit is limits.KL_ESTIMATE else None
    return found(
        verdict,
        answer,
        f"{en}: {name} = {apart:.3g}.",
        f"{zh}：{name} = {apart:.3g}。",
        citations=(metrics.citation(record),),
        measurements=(measured or limit.measure(name, apart),),
    )


def _same_weights(table: Arguments | None) -> bool:
    """Whether the arguments prove that actor and reference start from the same checkpoint."""
    if table is None:
        return False
    load, ref = table.value("load"), table.value("ref_load")
    return ref not in (None, "None") and load in (ref, "None")


def _unknown(read: Metrics) -> Finding:
    """Say why nothing could be compared."""
    first = next((run.rollouts[0].number for run in read.runs if run.rollouts), None)
    if first:
        return logs.nothing_said(
            f"The log begins at rollout {first}: a resumed run or a cut log, so there is no first step to compare.",
            f"日志从 rollout {first} 开始：属续训或日志被截断，没有可比较的第一步。",
        )
    return metric_runs.no_metrics(read)
