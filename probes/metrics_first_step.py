"""How large the per-token log-probs of step one are (debug guide 1.2).

The trainer's own value is judged where it is printed (actor, else reference), else the engine's. An extremely large
value is a problem of the training side only when the engine's own log-probs of the same tokens are ordinary:
otherwise the text itself may be unlikely (a hot temperature, a base model), and the two sides agree.
"""

from __future__ import annotations

from probes import logs, metric_runs
from probes.metric_plots import plot
from probes.metric_runs import Judged
from probes.readers import metrics
from probes.readers.metrics import Run
from probes.rollout_model_kind import model_kind
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe, silent
from runbook.text import Text

_ENGINE = "rollout/rollout_log_probs"
_KEYS = ("rollout/log_probs", "rollout/ref_log_probs", _ENGINE)
_TITLE = Text("Mean log-prob per token", "每 token 平均 log-prob")
_ORDER = ("small", "slightly-large", "extremely-large")


@probe(
    "metrics.first_step",
    needs="log",
    answers=_ORDER,
    en="Are the log-probs of the first step small?",
    zh="第一步的 log-probs 数值是否较小？",
    deadline=logs.DEADLINE,
)
def first_step(evidence: Evidence, report: Progress) -> Finding:
    """Judge the mean log-prob of rollout 0 of every run in the logs; the worst run counts."""
    read = metric_runs.read(evidence, report, _KEYS)
    kind = _kind(evidence)

    def one(run: Run) -> Judged | None:
        finding = _judge(run, kind)
        return Judged(run, finding, 0) if finding else None

    return metric_runs.judge(read, one, _ORDER) or metric_runs.no_metrics(read)


def _kind(evidence: Evidence) -> str | None:
    """Return "base" or "instruct" where the model's files or the launch script tell, else None."""
    if not evidence.paths("hf_checkpoint") and not evidence.paths("launch"):
        return None
    return model_kind.run(evidence, silent).answer


def _judge(run: Run, kind: str | None) -> Finding | None:
    """Judge one run; None when it does not begin at rollout 0 or prints no log-probs."""
    rollout = metric_runs.first_rollout(run)
    if rollout is None:
        return None
    values = {key: -rollout.values[key] for key in _KEYS if rollout.values.get(key, 1.0) <= 0.0}
    key = next(iter(values), None)
    if key is None:
        return None
    size = values[key]
    engine = values.get(_ENGINE)
    alone = key != _ENGINE and engine is not None and engine < limits.LOGPROB_MAGNITUDE.value
    if size < limits.LOGPROB_MAGNITUDE.value:
        answer, verdict, limit = "small", Verdict.OK, limits.LOGPROB_MAGNITUDE
        en, zh = "The log-probs of step one are small", "第一步的 log-probs 较小"
    elif size < limits.LOGPROB_EXTREME.value:
        answer, verdict, limit = "slightly-large", Verdict.WARNING, limits.LOGPROB_MAGNITUDE
        en, zh = "The log-probs of step one are larger than a well-matched model's", "第一步的 log-probs 偏大"
    else:
        answer, verdict, limit = "extremely-large", Verdict.WARNING, limits.LOGPROB_EXTREME
        en, zh = "The log-probs of step one are extremely large", "第一步的 log-probs 极大"
        if alone:
            en += f" while the engine's are ordinary ({engine:.3g})"
            zh += f"，而推理引擎的正常（{engine:.3g}）"
    if kind == "base" and answer == "slightly-large" and size < limits.LOGPROB_BASE.value:
        verdict, limit = Verdict.OK, limits.LOGPROB_BASE
        en, zh = en + ", as a pretrain model's are", zh + "，对 pretrain 模型属正常"
    elif kind == "instruct" and answer != "small":
        en, zh = en + " and this is an instruct model", zh + "，而这是 instruct 模型"
    return found(
        verdict,
        answer,
        f"{en}: |{key}| = {size:.4g} per token.",
        f"{zh}：每 token |{key}| = {size:.4g}。",
        plots=plot(_TITLE, run.rollouts, _KEYS, x="rollout", unit="nat/token"),
        citations=(metrics.citation(rollout),),
        measurements=tuple(limit.measure(f"|{each}|", value) for each, value in values.items()),
    )
