"""Whether a loss, gradient norm or log-prob is NaN or infinite (debug guide 1.3).

Judged are slime's own metric lines and the line with which Megatron stops a run on a NaN gradient. Only keys of the
optimisation are looked at: a custom metric or a timing may be anything. A gradient of infinity that a healthy step
follows is how a loss scaler finds its scale (Megatron core/optimizer/grad_scaler.py): such steps are skipped and spoil
nothing. In a run without scaling they need a reason but prove no fault, for the weights stayed finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from probes import logs, metric_runs
from probes.metric_plots import first_bad, plot
from probes.metric_precision import scaled
from probes.metric_runs import Judged, Metrics
from probes.readers import metrics
from probes.readers.metrics import Record, Run, place
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Plot, Verdict, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, counted

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
_NORMS = frozenset(("train/grad_norm", "train/critic-grad_norm"))
_ORDER = ("none", "nan")


@dataclass(frozen=True)
class _Bad:
    """A record with values that are no numbers. keys: which; none of a line with which Megatron stopped the run."""

    record: Record
    keys: tuple[str, ...]

    @property
    def what(self) -> str:
        return ", ".join(self.keys[:4]) or "Megatron stopped the run on it"


@probe(
    "metrics.nan",
    needs="log",
    answers=_ORDER,
    en="Is a loss, gradient or log-prob NaN or infinite?",
    zh="loss、梯度或 log-prob 是否出现 NaN 或无穷？",
    deadline=logs.DEADLINE,
)
def nan(evidence: Evidence, report: Progress) -> Finding:
    """Find the first metric line or abort with a value that is no number, in every run of the logs."""
    read = metric_runs.read(evidence, report, _KEYS)
    aborts = [mark for mark in read.marks if mark.kind == "abort"]
    owned: set[int] = set()

    def one(run: Run) -> Judged | None:
        own = _own(run, read)
        owned.update(id(mark) for mark in own)
        return _judge(run, own, read)

    finding = metric_runs.judge(read, one, _ORDER)
    strays = [mark for mark in aborts if id(mark) not in owned]
    if strays and (finding is None or finding.answer != "nan"):
        return _problem([_Bad(mark, ()) for mark in strays], ())
    if finding is not None and finding.answer != "nan" and (trouble := logs.unread(read.coverage)):
        return trouble
    if finding is None:
        return logs.unread(read.coverage) or logs.nothing_said(
            "The log prints no loss, gradient norm or log-prob.", "日志没有 loss、梯度范数或 log-prob。"
        )
    return finding


def _own(run: Run, read: Metrics) -> list[Record]:
    """Return the aborts that stand in the lines of a run or behind them, before the next run of its log."""
    first = run.edges[0]
    marks = read.marked(first.file.stream, place(first), read.next_start(run))
    return [mark for mark in marks if mark.kind == "abort"]


def _judge(run: Run, aborts: Sequence[Record], read: Metrics) -> Judged | None:
    """Judge one run; None where it prints nothing of the optimisation."""
    records = [each for each in run.records if each.values.keys() & _KEYS]
    bad = [
        _Bad(each, keys)
        for each in records
        if (keys := tuple(key for key, value in each.values.items() if key in _KEYS and not math.isfinite(value)))
    ]
    bad += [_Bad(mark, ()) for mark in aborts]
    if not records and not bad:
        return None
    if not bad:
        told = found(
            Verdict.OK,
            "none",
            f"All losses, norms and log-probs are finite in {counted(len(records), 'metric line')}.",
            f"{len(records)} 行指标中的 loss、范数与 log-prob 均为有限值。",
        )
        return Judged(run, told, 0)
    bad.sort(key=lambda each: place(each.record))
    first = bad[0].record
    if _passed(run, bad):
        return Judged(run, _scaling(run, bad, scaled(read.table(first))), first.number)
    return Judged(run, _problem(bad, _plots(run, first)), max(first.number, 0))


def _passed(run: Run, bad: Sequence[_Bad]) -> bool:
    """Whether all that is not finite are gradient norms of single steps, each followed by a healthy one.

    Actor and critic have each their own steps: a healthy step of the one says nothing of the other's.
    """
    if any(not each.keys or not set(each.keys) <= _NORMS or each.record.kind == "asserted" for each in bad):
        return False
    for kind in {each.record.kind for each in bad}:
        steps = [each for each in run.of(kind) if each.values.keys() & _NORMS]
        own = [each.record for each in bad if each.record.kind == kind]
        if place(steps[-1]) <= place(own[-1]) or len(own) > max(limits.INF_ISOLATED.value * len(steps), 1):
            return False
    return True


def _scaling(run: Run, bad: Sequence[_Bad], scaling: bool | None) -> Finding:
    """Say that single steps were skipped for a gradient of infinity, as a loss scaler does."""
    first = bad[0].record
    steps = sum(len(run.of(kind)) for kind in {each.record.kind for each in bad})
    en = f"grad_norm is not finite in {len(bad)} of {counted(steps, 'step')}, first at {first.kind} {first.number}"
    zh = f"{steps} 步中有 {len(bad)} 步 grad_norm 非有限值，首次在 {first.kind} {first.number}"
    if scaling:
        return found(
            Verdict.OK,
            "none",
            f"{en}, and every later step is healthy: loss scaling (fp16) skips such steps.",
            f"{zh}，其后各步正常：fp16 的 loss scaling 会跳过这样的步。",
            citations=(metrics.citation(first, len(bad)),),
            measurements=(limits.INF_ISOLATED.measure("share of steps without a finite norm", len(bad) / steps),),
            plots=_plots(run, first),
        )
    return unknown(
        f"{en}, and every later step is healthy: harmless under loss scaling (fp16), odd without it.",
        f"{zh}，其后各步正常：fp16 的 loss scaling 下无害，否则不寻常。",
        settle_en="See whether the run trains in fp16 (--fp16); in bf16 replay that rollout"
        " (--load-debug-rollout-data).",
        settle_zh="确认是否为 fp16 训练（--fp16）；若为 bf16，用 --load-debug-rollout-data 重放该 rollout。",
        slots=("launch", "log"),
        citations=(metrics.citation(first, len(bad)),),
    )


def _problem(bad: Sequence[_Bad], plots: tuple[Plot, ...]) -> Finding:
    """Say from where on values are no numbers."""
    first = bad[0]
    where = f"{first.record.kind} {first.record.number}" if first.record.number >= 0 else ""
    where_zh = where
    if first.record.line:
        where = f"{where} (line {first.record.line})" if where else f"line {first.record.line}"
        where_zh = f" {where_zh}（第 {first.record.line} 行）" if where_zh else f"第 {first.record.line} 行"
    return found(
        Verdict.PROBLEM,
        "nan",
        f"Not a number from {where} on: {first.what}.",
        f"自{where_zh}起出现非数：{first.what}。",
        citations=(metrics.citation(first.record, len(bad)),),
        plots=plots,
    )


def _plots(run: Run, bad: Record) -> tuple[Plot, ...]:
    """Return loss and gradient norm over the steps; where they are not finite the curve has holes.

    Marked is the first step printed with the bad record or behind it, for a rollout's number may be no step's.
    """
    step = next((each.number for each in run.steps if place(each) >= place(bad)), None)
    mark = first_bad(step) if step is not None else None
    title = Text("Loss and gradient norm", "loss 与梯度范数")
    return plot(title, run.steps, ("train/loss", "train/grad_norm"), mark=mark)
