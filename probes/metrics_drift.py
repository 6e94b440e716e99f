"""When a printed number left its healthy band, and what else changed at that step: a lead, never a cause.

A series is compared with a window of its own first steps behind warm-up, by medians and median absolute deviations. It
has drifted only where all of this holds: it moved in the direction that hurts, beyond the band in which the number is
healthy whatever it was before, many spreads away, at one step rather than slowly, and it has not come back. So noise,
warm-up, learning-rate schedules, a reward that rises and responses that grow are steady. What stands in the log
between the step and the one before is told beside it: a start of the job, a save, an evaluation, an error, timers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from probes import logs, metric_runs
from probes.metric_plots import first_bad, plot
from probes.metric_runs import Judged, Metrics
from probes.readers import metrics
from probes.readers.metrics import Record, Run, place
from probes.thresholds import Threshold
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Plot, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text, counted


class _Watched(NamedTuple):
    """A key. kind: of the records that print it. sign: 1 where more is worse, -1 where less is. band: healthy below.

    floor: the least spread that noise is taken to have. relative: the band is a share of the value before.
    """

    key: str
    kind: str
    sign: int
    band: Threshold
    floor: float
    relative: bool = False


_WATCHED = (
    _Watched("train/grad_norm", "step", 1, limits.DRIFT_NORM, 0.1),
    _Watched("train/kl_loss", "step", 1, limits.DRIFT_KL, 1e-3),
    _Watched("train/ppo_kl", "step", 1, limits.DRIFT_KL, 1e-3),
    _Watched("train/train_rollout_logprob_abs_diff", "step", 1, limits.GAP_WIDE, 2e-3),
    _Watched("rollout/rollout_log_probs", "rollout", -1, limits.LOGPROB_MAGNITUDE, 0.02),
    _Watched("rollout/truncated", "rollout", 1, limits.DRIFT_CUT, 0.05),
    _Watched("rollout/repetition_frac", "manager", 1, limits.REPETITION_BROKEN, 0.02),
    _Watched("rollout/raw_reward", "rollout", -1, limits.DRIFT_REWARD, 0.02, relative=True),
)
_TITLE = Text("Series that left their band", "离开正常范围的序列")
_ORDER = ("steady", "too-short", "drifted")
_MARKED = {
    "started": Text("a new start of the job", "任务重新启动"),
    "arguments": Text("a new start of the job", "任务重新启动"),
    "saving": Text("a checkpoint save", "保存 checkpoint"),
    "saved": Text("a checkpoint save", "保存 checkpoint"),
    "trouble": Text("an error or an engine that was restarted", "报错或 engine 重启"),
    "abort": Text("Megatron's abort on NaN", "Megatron 因 NaN 中止"),
}


@dataclass(frozen=True)
class _Drift:
    """A series that left its band. before, after: medians. far: how many spreads apart. at: the first record."""

    watched: _Watched
    before: float
    after: float
    far: float
    at: Record


@probe(
    "metrics.drift",
    needs="log",
    answers=_ORDER,
    en="Did a printed number leave its healthy band, and at which step?",
    zh="是否有指标离开正常范围，从哪一步开始？",
    deadline=logs.DEADLINE,
)
def drift(evidence: Evidence, report: Progress) -> Finding:
    """Look for a lasting break in the watched series of every run; the worst run counts."""
    read = metric_runs.read(evidence, report)

    def one(run: Run) -> Judged | None:
        return _judge(run, read)

    return metric_runs.judge(read, one, _ORDER) or metric_runs.no_metrics(read)


def _series(run: Run, watched: _Watched) -> list[tuple[Record, float]]:
    """Return the finite values of a key with their records, turned so that more is worse."""
    return [
        (each, watched.sign * value)
        for each in run.of(watched.kind)
        if math.isfinite(value := each.values.get(watched.key, math.nan))
    ]


def _judge(run: Run, read: Metrics) -> Judged | None:
    """Judge one run; None where it prints none of the watched keys."""
    every = [(watched, series) for watched in _WATCHED if (series := _series(run, watched))]
    if not every:
        return None
    need = int(limits.DRIFT_WARM_UP.value + limits.DRIFT_FIRST.value + limits.DRIFT_LASTS.value)
    long = [(watched, series) for watched, series in every if len(series) >= need]
    if not long:
        most = max(len(series) for _, series in every)
        told = found(
            Verdict.OK,
            "too-short",
            f"The run prints {counted(most, 'step')}; {need} are needed to tell a drift from noise.",
            f"该任务只打印了 {most} 步；至少需要 {need} 步才能区分漂移与噪声。",
        )
        return Judged(run, told, 0)
    drifts = [each for watched, series in long if (each := _broken(watched, series))]
    if not drifts:
        told = found(
            Verdict.OK,
            "steady",
            f"{len(long)} series over up to {max(len(series) for _, series in long)} steps stay in their bands.",
            f"{len(long)} 个序列（最长 {max(len(series) for _, series in long)} 步）均在正常范围内。",
        )
        return Judged(run, told, 0)
    drifts.sort(key=lambda each: place(each.at))
    return Judged(run, _told(run, drifts, read), drifts[0].at.number)


def _spread(values: Sequence[float], floor: float) -> tuple[float, float]:
    """Return the median of some values and their spread, 1.4826 times the median absolute deviation."""
    middle = statistics.median(values)
    return middle, max(1.4826 * statistics.median([abs(value - middle) for value in values]), floor)


def _broken(watched: _Watched, series: Sequence[tuple[Record, float]]) -> _Drift | None:
    """Return where a series broke and did not come back; None where it did not."""
    warm, lasts = int(limits.DRIFT_WARM_UP.value), int(limits.DRIFT_LASTS.value)
    values = [value for _, value in series]
    first = warm + int(limits.DRIFT_FIRST.value)
    before, spread = _spread(values[warm:first], watched.floor)
    limit = max(before + limits.DRIFT_SIGMAS.value * spread, _edge(watched, before))
    if statistics.median(values[-lasts:]) <= limit:
        return None
    for at in range(first, len(values) - lasts + 1):
        if values[at] <= limit or statistics.median(values[at : at + lasts]) <= limit:
            continue
        near, noise = _spread(values[at - lasts : at], spread)
        after = statistics.median(values[at : at + lasts])
        if after - near < limits.DRIFT_STEEP.value * noise:
            return None
        return _Drift(watched, watched.sign * before, watched.sign * after, (after - before) / spread, series[at][0])
    return None


def _edge(watched: _Watched, before: float) -> float:
    """Return the value, turned so that more is worse, up to which a number is healthy."""
    if watched.relative:
        return before * watched.band.value if before < 0 else math.inf
    return watched.band.value


def _told(run: Run, drifts: Sequence[_Drift], read: Metrics) -> Finding:
    """Say what drifted first, and what else changed there."""
    first = drifts[0]
    beside = list(_beside(run, first.at, read))
    others = [each for each in drifts[1:] if _together(run, first.at, each.at)]
    words = list(dict.fromkeys(words.en for words, _ in beside)) + [f"{each.watched.key} moved too" for each in others]
    words_zh = list(dict.fromkeys(words.zh for words, _ in beside))
    words_zh += [f"{each.watched.key} 同时变化" for each in others]
    where = f"{first.at.kind} {first.at.number}"
    rows = tuple(
        (
            each.watched.key,
            f"{each.at.kind} {each.at.number}",
            f"{each.before:.4g}",
            f"{each.after:.4g}",
            f"{each.far:.0f}",
        )
        for each in drifts[: int(limits.DRIFT_SHOWN.value)]
    )
    return found(
        Verdict.WARNING,
        "drifted",
        f"{first.watched.key} left its band at {where}: from {first.before:.3g} to {first.after:.3g}. There: "
        + ("; ".join(words) or "nothing else that the log tells of")
        + ". A lead, no cause.",
        f"{first.watched.key} 在 {where} 离开正常范围：从 {first.before:.3g} 到 {first.after:.3g}。此处："
        + ("；".join(words_zh) or "日志没有其他变化")
        + "。这只是线索，不是根因。",
        citations=(metrics.citation(first.at), *(metrics.citation(each) for _, each in beside[:3])),
        measurements=(first.watched.band.measure(first.watched.key, abs(first.after)),),
        tables=(Table(_TITLE, ("series", "from", "before", "after", "spreads"), rows),),
        plots=tuple(each for one in drifts[:4] for each in _plot(run, one)),
    )


def _together(run: Run, first: Record, later: Record) -> bool:
    """Whether a record stands before the one after next of the kind of `first`, whatever each of them counts."""
    kin, index = _kin(run, first)
    return index + 2 >= len(kin) or place(later) < place(kin[index + 2])


def _kin(run: Run, at: Record) -> tuple[list[Record], int]:
    """Return the records of the kind of `at`, and which of them it is."""
    kin = run.of("manager" if any(each is at for each in run.managers) else at.kind)
    return kin, next(number for number, each in enumerate(kin) if each is at)


def _plot(run: Run, one: _Drift) -> tuple[Plot, ...]:
    watched = one.watched
    bands = () if watched.relative else (watched.band,)
    name = watched.key.partition("/")[2]
    return plot(
        Text(name, name),
        run.of(watched.kind),
        (watched.key,),
        x="step" if watched.kind == "step" else "rollout",
        limits=bands if watched.sign > 0 else (),
        mark=first_bad(one.at.number, one.at.kind),
    )


def _beside(run: Run, at: Record, read: Metrics) -> Iterator[tuple[Text, Record]]:
    """Yield what the log tells of between the record before last and `at`, each with its line."""
    kin, index = _kin(run, at)
    since, until = place(kin[max(index - 2, 0)]), place(at)

    def near(each: Record) -> bool:
        return each.file.stream == at.file.stream and since <= place(each) <= until

    for mark in read.marked(at.file.stream, since, (until[0], until[1] + 1)):
        if mark.kind in _MARKED:
            yield _MARKED[mark.kind], mark
    for each in run.others:
        if each.kind == "eval" and near(each):
            yield Text("an evaluation", "一次 eval"), each
    yield from _timers(run, near)


def _timers(run: Run, near: Callable[[Record], bool]) -> Iterator[tuple[Text, Record]]:
    """Yield that timers which every earlier `perf` line has are missing, with the line that lacks them."""
    usual: set[str] | None = None
    for each in run.trainers:
        own = {key for key in each.values if key.endswith("_time")}
        if near(each) and usual and (lost := sorted(usual - own)):
            names = ", ".join(key.removeprefix("perf/") for key in lost[:3])
            yield Text(f"timers missing: {names}", f"缺少计时：{names}"), each
        usual = own if usual is None else usual & own
