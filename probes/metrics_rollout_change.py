"""Whether the rollouts stay what the first one was, from the printed metrics alone (debug guide 1.1).

Text that breaks right after the first weight update points at the update; text that breaks later, at training; text
that is broken from the start, at the checkpoint or the engine. A rollout counts as broken when two of these signs
agree: hardly a sample ends by itself, most samples loop, the engine's own log-probs are extremely low, the trainer's
are extremely low. One sign alone is ordinary: long answers are cut off, a hot temperature lowers log-probs. All of
these limits are ours, so what they say is a warning and leads to the probes that prove.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes import logs, metric_runs
from probes.readers import metrics
from probes.readers.metrics import Record, Run
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Measurement, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text

_TRUNCATED = ("rollout/truncated", "rollout/truncated_ratio")
_LOOPS, _LENGTH = "rollout/repetition_frac", "rollout/response_len/mean"
_LENGTHS = "rollout/response_lengths"
_ENGINE, _ACTOR, _REWARD = "rollout/rollout_log_probs", "rollout/log_probs", "rollout/raw_reward"
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
    findings = [finding for run in read.runs if (finding := _judge(_rollouts(run)))]
    return metric_runs.worst(findings, _ORDER) or metric_runs.no_metrics(read)


def _rollouts(run: Run) -> list[_Rollout]:
    """Join what trainer and manager print about each rollout."""
    lines: dict[int, list[Record]] = {}
    for record in [*run.rollouts, *run.managers]:
        lines.setdefault(record.number, []).append(record)
    rollouts = []
    for number, records in sorted(lines.items()):
        values = {key: value for record in records for key, value in record.values.items()}
        rollouts.append(_Rollout(number, tuple(records), values, _signs(values)))
    return rollouts


def _signs(values: dict[str, float]) -> tuple[str, ...]:
    """Name the signs of broken text in a rollout's numbers."""
    signs = []
    if max((values[key] for key in _TRUNCATED if key in values), default=0.0) >= limits.TRUNCATED_BROKEN.value:
        signs.append("truncated")
    if values.get(_LOOPS, 0.0) >= limits.REPETITION_BROKEN.value:
        signs.append("repetition")
    if -values.get(_ENGINE, 0.0) >= limits.LOGPROB_EXTREME.value:
        signs.append("rollout_log_probs")
    if -values.get(_ACTOR, 0.0) >= limits.LOGPROB_EXTREME.value:
        signs.append("log_probs")
    return tuple(signs)


def _judge(rollouts: list[_Rollout]) -> Finding | None:
    """Judge one run; None when fewer numbers than a judgement needs are printed."""
    first = next((each for each in rollouts if each.broken), None)
    if first is None:
        if len(rollouts) < 2 or not any(each.values for each in rollouts):
            return None
        return found(
            Verdict.OK,
            "steady",
            f"Rollouts {rollouts[0].number} to {rollouts[-1].number} show no sign of broken text.",
            f"rollout {rollouts[0].number} 到 {rollouts[-1].number} 没有文本损坏的迹象。",
            tables=(_table(rollouts),),
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
    proof = max(first.records, key=lambda record: len(_signs(record.values)))
    return found(
        Verdict.WARNING,
        answer,
        f"{en}; {sum(each.broken for each in last)} of {len(last)} rollouts from there on.",
        f"{zh}；其后 {len(last)} 个 rollout 中有 {sum(each.broken for each in last)} 个损坏。",
        citations=(metrics.citation(proof, sum(each.broken for each in last)),),
        measurements=_measurements(first),
        tables=(_table(rollouts),),
    )


def _measurements(rollout: _Rollout) -> tuple[Measurement, ...]:
    """Return the numbers that made a rollout count as broken."""
    judged = {
        _TRUNCATED[0]: limits.TRUNCATED_BROKEN,
        _TRUNCATED[1]: limits.TRUNCATED_BROKEN,
        _LOOPS: limits.REPETITION_BROKEN,
        _ENGINE: limits.LOGPROB_EXTREME,
        _ACTOR: limits.LOGPROB_EXTREME,
    }
    values = rollout.values
    return tuple(limit.measure(f"|{key}|", abs(values[key])) for key, limit in judged.items() if key in values)


def _table(rollouts: list[_Rollout], shown: int = 8) -> Table:
    """Lay the first rollouts side by side."""
    columns = (_TRUNCATED[1], _LOOPS, _LENGTH, _ENGINE, _ACTOR, _REWARD)
    keys = [key for key in columns if any(key in each.values for each in rollouts)]
    rows = tuple(
        (str(each.number), *(f"{each.values[key]:.4g}" if key in each.values else "" for key in keys))
        for each in rollouts[:shown]
    )
    title = Text("What the log prints of each rollout", "日志中各 rollout 的指标")
    return Table(title, ("rollout", *(key.partition("/")[2] for key in keys)), rows)
