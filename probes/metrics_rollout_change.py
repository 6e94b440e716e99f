"""Whether the rollouts stay what the first one was, from the printed metrics alone (debug guide 1.1).

Text that breaks right after the first weight update points at the update; text that breaks later, at training; text
that is broken from the start, at the checkpoint or the engine. A rollout counts as broken when two of these signs
agree: hardly a sample ends by itself, most samples loop, the engine's own log-probs are extremely low or fell far below
those of the last healthy rollout, the trainer's are extremely low. One sign alone is ordinary: long answers are cut
off, a hot temperature lowers log-probs. All of these limits are ours, so what they say is a warning and leads to the
probes that prove.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes import logs, metric_runs
from probes.metric_plots import points, thinned
from probes.metric_runs import Judged
from probes.readers import metrics
from probes.readers.metrics import Record, Run
from probes.thresholds import metrics as limits
from probes.thresholds import samples as sample_limits
from runbook.evidence import Evidence
from runbook.finding import Curve, Finding, Measurement, Plot, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text, counted

_TRUNCATED = ("rollout/truncated", "rollout/truncated_ratio")
_LOOPS, _LENGTH = "rollout/repetition_frac", "rollout/response_len/mean"
_LENGTHS = "rollout/response_lengths"
_ENGINE, _ACTOR, _REWARD = "rollout/rollout_log_probs", "rollout/log_probs", "rollout/raw_reward"
_COURSE = 3
"""Rollouts from which their numbers make a course worth drawing."""
_SHOWN = 8
"""Rollouts that the table shows."""
_SIGNS = (_TRUNCATED, (_LOOPS,), (_ENGINE,), (_ACTOR,))
"""The keys of each sign: where fewer signs are printed than must agree, nothing can be told."""
_PLOTTED = (
    (Text("Samples that never end or loop", "不终止或循环的样本"), "of the samples", (*_TRUNCATED, _LOOPS)),
    (Text("Log-probs of engine and trainer", "引擎与训练侧的 log-prob"), "nat/token", (_ENGINE, _ACTOR)),
    (Text("Response length", "回复长度"), "tokens", (_LENGTH,)),
)
_ORDER = ("steady", "broken-later", "broken-from-start", "broken-after-update")


@dataclass(frozen=True)
class _Rollout:
    """What is printed about one rollout. records: its lines. signs: which signs of broken text they show."""

    number: int
    records: tuple[Record, ...]
    values: dict[str, float]
    signs: tuple[str, ...]

    @property
    def broken(self) -> bool:
        """Whether enough signs agree."""
        return len(self.signs) >= limits.BROKEN_SIGNS.value


@probe(
    "metrics.rollout_change",
    needs="log",
    answers=("steady", "broken-after-update", "broken-later", "broken-from-start"),
    en="Do the rollouts stay healthy after the first weight update?",
    zh="首次权重更新后 rollout 是否仍正常？",
    deadline=logs.DEADLINE,
)
def rollout_change(evidence: Evidence, report: Progress) -> Finding:
    """Judge the rollouts of every run in the logs; the worst run counts."""
    wanted = (*_TRUNCATED, _LOOPS, _LENGTH, _LENGTHS, _ENGINE, _ACTOR, _REWARD)
    read = metric_runs.read(evidence, report, wanted)

    def one(run: Run) -> Judged | None:
        rollouts = _rollouts(run)
        finding = _judge(rollouts)
        bad = next((each.number for each in rollouts if each.broken), 0)
        return Judged(run, finding, bad) if finding else None

    return metric_runs.judge(read, one, _ORDER) or metric_runs.no_metrics(read)


def _rollouts(run: Run) -> list[_Rollout]:
    """Join what trainer and manager print about each rollout."""
    lines: dict[int, list[Record]] = {}
    for record in [*run.rollouts, *run.managers]:
        lines.setdefault(record.number, []).append(record)
    rollouts: list[_Rollout] = []
    for number, records in sorted(lines.items()):
        values = {key: value for record in records for key, value in record.values.items()}
        before = next((each.values for each in reversed(rollouts) if not each.broken), {})
        rollouts.append(_Rollout(number, tuple(records), values, _signs(values, before)))
    return rollouts


def _signs(values: dict[str, float], before: dict[str, float]) -> tuple[str, ...]:
    """Name the signs of broken text in a rollout's numbers; log-probs may also have fallen far from those before."""
    signs = []
    if max((values[key] for key in _TRUNCATED if key in values), default=0.0) >= limits.TRUNCATED_BROKEN.value:
        signs.append("truncated")
    if values.get(_LOOPS, 0.0) >= limits.REPETITION_BROKEN.value:
        signs.append("repetition")
    fall = before[_ENGINE] - values[_ENGINE] if _ENGINE in before and _ENGINE in values else 0.0
    if -values.get(_ENGINE, 0.0) >= limits.LOGPROB_EXTREME.value or fall >= sample_limits.FALL_FAR.value:
        signs.append("rollout_log_probs")
    if -values.get(_ACTOR, 0.0) >= limits.LOGPROB_EXTREME.value:
        signs.append("log_probs")
    return tuple(signs)


def _judgeable(rollout: _Rollout) -> bool:
    """Whether as many signs are printed of a rollout as make it broken."""
    return sum(any(key in rollout.values for key in keys) for keys in _SIGNS) >= limits.BROKEN_SIGNS.value


def _judge(rollouts: list[_Rollout]) -> Finding | None:
    """Judge one run; None when fewer numbers than a judgement needs are printed."""
    first = next((each for each in rollouts if each.broken), None)
    if first is None:
        if sum(_judgeable(each) for each in rollouts) < 2:
            return None
        return found(
            Verdict.OK,
            "steady",
            f"Rollouts {rollouts[0].number} to {rollouts[-1].number} show no sign of broken text.",
            f"rollout {rollouts[0].number} 到 {rollouts[-1].number} 没有文本损坏的迹象。",
            tables=(_table(rollouts, None),),
            plots=_plots(rollouts, None),
        )
    last = [each for each in rollouts if each.number >= first.number]
    before = [each for each in rollouts if each.number < first.number]
    signs = ", ".join(first.signs)
    if not before:
        answer = "broken-from-start" if first.number == 0 else "broken-later"
        en = f"Rollout {first.number}, the first in the log, is broken already ({signs})"
        zh = f"日志中的第一个 rollout {first.number} 已损坏（{signs}）"
    elif first.number == 1 and before[0].number == 0:
        answer = "broken-after-update"
        en = f"Rollout 0 is healthy and rollout 1, after the first weight update, is broken ({signs})"
        zh = f"rollout 0 正常，首次权重更新后的 rollout 1 已损坏（{signs}）"
    else:
        answer = "broken-later"
        en = f"The rollouts are healthy up to {before[-1].number} and broken from {first.number} on ({signs})"
        zh = f"rollout 到 {before[-1].number} 为止正常，从 {first.number} 起损坏（{signs}）"
    proof = max(first.records, key=lambda record: len(_signs(record.values, before[-1].values if before else {})))
    return found(
        Verdict.WARNING,
        answer,
        f"{en}; {sum(each.broken for each in last)} of {counted(len(last), 'rollout')} from there on.",
        f"{zh}；其后 {len(last)} 个 rollout 中有 {sum(each.broken for each in last)} 个损坏。",
        citations=(metrics.citation(proof, sum(each.broken for each in last)),),
        measurements=_measurements(first, before[-1].values if before else {}),
        tables=(_table(rollouts, first.number),),
        plots=_plots(rollouts, first.number),
    )


def _plots(rollouts: list[_Rollout], bad: int | None) -> tuple[Plot, ...]:
    """Return the printed numbers over the rollouts, each unit a plot of its own."""
    if len(rollouts) < _COURSE:
        return ()
    marks = () if bad is None else ((float(bad), Text("first broken rollout", "首个损坏的 rollout")),)
    plots = []
    for title, unit, keys in _PLOTTED:
        curves = []
        for key in keys:
            course = points(rollouts, key)
            if len(course) >= _COURSE:
                curves.append(Curve(key, thinned(course)))
        if curves:
            plots.append(Plot(title, "rollout", unit, tuple(curves), marks))
    return tuple(plots)


def _measurements(rollout: _Rollout, before: dict[str, float]) -> tuple[Measurement, ...]:
    """Return the numbers that made a rollout count as broken."""
    judged = {
        _TRUNCATED[0]: limits.TRUNCATED_BROKEN,
        _TRUNCATED[1]: limits.TRUNCATED_BROKEN,
        _LOOPS: limits.REPETITION_BROKEN,
        _ENGINE: limits.LOGPROB_EXTREME,
        _ACTOR: limits.LOGPROB_EXTREME,
    }
    values = rollout.values
    measured = [limit.measure(f"|{key}|", abs(values[key])) for key, limit in judged.items() if key in values]
    if _ENGINE in values and _ENGINE in before:
        measured.append(sample_limits.FALL_FAR.measure(f"fall of {_ENGINE}", before[_ENGINE] - values[_ENGINE]))
    return tuple(measured)


def _table(rollouts: list[_Rollout], bad: int | None) -> Table:
    """Lay the rollouts around the first broken one side by side, the first ones where none is."""
    columns = (_TRUNCATED[1], _LOOPS, _LENGTH, _ENGINE, _ACTOR, _REWARD)
    keys = [key for key in columns if any(key in each.values for each in rollouts)]
    place = next((place for place, each in enumerate(rollouts) if each.number == bad), 0)
    start = max(min(place - _SHOWN // 2, len(rollouts) - _SHOWN), 0)
    rows = tuple(
        (str(each.number), *(f"{each.values[key]:.4g}" if key in each.values else "" for key in keys))
        for each in rollouts[start : start + _SHOWN]
    )
    title = Text("What the log prints of each rollout", "日志中各 rollout 的指标")
    return Table(title, ("rollout", *(key.partition("/")[2] for key in keys)), rows)
