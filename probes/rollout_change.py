"""Whether the rollouts stay what the ones before were, sample by sample, from the dumps (debug guide 1.1).

Text that breaks right after the first weight update points at the update. One bad layer does not show in the text but
in the engine's own log-probs, its lengths and its truncation: they move further from one rollout to the next than any
training step moves them. Where both rollouts answered the same prompts, these are compared pair by pair, so that
harder prompts explain nothing. Garbled text counts alone, as a far fall of the log-probs does; of weaker signs two must
agree. All limits are ours, so what they say is a warning and leads to the probes that prove.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

from probes import dumps
from probes.dumps import Read
from probes.readers.rollout_dump import Dump
from probes.rollout_plots import rollout_plots
from probes.samples import Verdicts, judge_dump
from probes.thresholds import metrics as metric_limit
from probes.thresholds import samples as limit
from runbook.evidence import Evidence
from runbook.finding import Finding, Measurement, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text

_JUDGED = 128
"""Samples judged of each dump: enough for a share, in a quarter of the time that rollout.coherence takes."""
_WORDS = {
    "garbled": Text("garbled text", "文本乱码"),
    "empty": Text("empty responses", "回复为空"),
    "low log-prob": Text("log-probs extremely low", "log-prob 极低"),
    "log-prob": Text("log-probs fell", "log-prob 下降"),
    "far log-prob": Text("log-probs fell far", "log-prob 大幅下降"),
    "truncated": Text("hardly a response ends", "几乎没有回复自行结束"),
    "length": Text("lengths changed", "长度突变"),
}


@dataclass(frozen=True)
class _Rollout:
    """One dump. log_probs: of each prompt, the engine's mean log-prob of its samples."""

    path: str
    number: int | None
    verdicts: Verdicts
    log_probs: dict[bytes, float]

    @property
    def name(self) -> str:
        return f"rollout {self.number}" if self.number is not None else self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class _Step:
    """A rollout beside the one before it. fall: of the mean log-prob in nat/token, with its standard error.

    pairs: prompts that both answered, 0 when other prompts were compared. signs: which of _WORDS it shows.
    """

    rollout: _Rollout
    fall: tuple[float, float] | None
    pairs: int
    signs: tuple[str, ...]

    @property
    def broken(self) -> bool:
        """Whether it shows garbage or nothing, a far fall, or enough of the weaker signs."""
        alone = {"garbled", "empty", "far log-prob"}.intersection(self.signs)
        return bool(alone) or len(self.signs) >= limit.CHANGE_SIGNS.value


@probe(
    "rollout.change",
    needs="rollout_dump|train_dump",
    answers=("steady", "broken-after-update", "broken-later", "broken-from-start"),
    en="Do the dumped rollouts stay what the first one was?",
    zh="dump 中后续的 rollout 与之前相比是否正常？",
    deadline=dumps.DEADLINE,
)
def rollout_change(evidence: Evidence, report: Progress) -> Finding:
    """Compare each rollout dump with the one before it."""
    read = Read()
    rollouts = [_of(dump) for dump in dumps.dumps_of(evidence, "rollout", report, read)]
    rollouts = [rollout for rollout in rollouts if rollout.verdicts.samples]
    if not rollouts:
        return dumps.nothing_read(read, "No rollout dump holds a response.", "没有包含回复的 rollout dump。")
    steps = [_first(rollouts[0]), *map(_compare, rollouts, rollouts[1:])]
    return _finding(steps)


def _of(dump: Dump) -> _Rollout:
    verdicts = judge_dump(dump, _JUDGED)
    values: dict[bytes, list[float]] = {}
    for sample in verdicts.samples:
        if sample.log_prob is not None:
            key = _prompt(dump.samples[sample.place], sample.place)
            values.setdefault(key, []).append(sample.log_prob)
    return _Rollout(dump.path, dump.rollout_id, verdicts, {key: sum(each) / len(each) for key, each in values.items()})


def _prompt(sample: dict[str, Any], place: int) -> bytes:
    """Return what stands for a sample's prompt; without one, its place, which pairs with nothing."""
    prompt = sample.get("prompt")
    text = f"place {place}" if not prompt else str(prompt)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).digest()


def _text(verdicts: Verdicts) -> list[str]:
    """Return the sign that the text itself is."""
    return {"garbled": ["garbled"], "partly-garbled": ["garbled"], "empty": ["empty"]}.get(verdicts.answer or "", [])


def _first(rollout: _Rollout) -> _Step:
    """Judge the first rollout by itself."""
    signs = _text(rollout.verdicts)
    log_prob = rollout.verdicts.log_prob
    if log_prob is not None and -log_prob >= metric_limit.LOGPROB_EXTREME.value:
        signs.append("low log-prob")
    if rollout.verdicts.truncated_share >= metric_limit.TRUNCATED_BROKEN.value:
        signs.append("truncated")
    return _Step(rollout, None, 0, tuple(signs))


def _compare(before: _Rollout, rollout: _Rollout) -> _Step:
    """Judge a rollout by the one before it."""
    old, new = before.verdicts, rollout.verdicts
    signs = _text(new)
    fall, pairs = _fall(before.log_probs, rollout.log_probs)
    if fall is not None and fall[0] >= max(limit.FALL.value, limit.FALL_SIGMA.value * fall[1]):
        signs.append("far log-prob" if fall[0] >= limit.FALL_FAR.value else "log-prob")
    if new.truncated_share - old.truncated_share >= limit.TRUNCATED_RISE.value:
        signs.append("truncated")
    lengths = sorted((old.mean_length, new.mean_length))
    if lengths[0] > 0 and lengths[1] >= limit.LENGTH_FACTOR.value * lengths[0]:
        signs.append("length")
    return _Step(rollout, fall, pairs, tuple(signs))


def _fall(before: dict[bytes, float], after: dict[bytes, float]) -> tuple[tuple[float, float] | None, int]:
    """Return by how much log-probs fell and the standard error of that, and over how many prompts of both."""
    common = sorted(before.keys() & after.keys())
    if len(common) >= limit.FALL_SAMPLES.value:
        falls = [before[key] - after[key] for key in common]
        mean, variance = _spread(falls)
        return (mean, math.sqrt(variance / len(falls))), len(common)
    if min(len(before), len(after)) < limit.FALL_SAMPLES.value:
        return None, 0
    (old, old_variance), (new, new_variance) = _spread([*before.values()]), _spread([*after.values()])
    return (old - new, math.sqrt(old_variance / len(before) + new_variance / len(after))), 0


def _spread(values: list[float]) -> tuple[float, float]:
    """Return mean and variance of two values or more."""
    mean = sum(values) / len(values)
    return mean, sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _finding(steps: list[_Step]) -> Finding:
    bad = next((step for step in steps if step.broken), None)
    number = bad.rollout.number if bad is not None else None
    plots = rollout_plots([(step.rollout.number, step.rollout.verdicts) for step in steps], number)
    if bad is None:
        first, last = steps[0].rollout, steps[-1].rollout
        if len(steps) < 2:
            return unknown(
                f"Only {first.name} is dumped, so nothing can be compared.",
                f"只有 {first.name} 的 dump，无法比较。",
                settle_en="Give the dumps of two rollouts or more.",
                settle_zh="提供两个以上 rollout 的 dump。",
                slots=("rollout_dump",),
            )
        return found(
            Verdict.OK,
            "steady",
            f"{_capital(first.name)} to {last.name}: text, log-probs, lengths and truncation stay as they were.",
            f"{first.name} 到 {last.name}：文本、log-prob、长度与截断比例都没有突变。",
            tables=(_table(steps),),
            plots=plots,
        )
    place = steps.index(bad)
    before = steps[place - 1].rollout if place else None
    if before is None:
        answer = "broken-from-start" if number == 0 else "broken-later"
        en, zh = f"{_capital(bad.rollout.name)}, the first dumped, is broken already", f"首个 {bad.rollout.name} 已损坏"
    else:
        answer = "broken-after-update" if number == 1 and before.number == 0 else "broken-later"
        en = f"{_capital(before.name)} is healthy and {bad.rollout.name} is broken"
        zh = f"{before.name} 正常，{bad.rollout.name} 已损坏"
    signs = [_WORDS[sign] for sign in bad.signs]
    quote = f"{bad.rollout.name}: {', '.join(sign.en for sign in signs)}"
    return found(
        Verdict.WARNING,
        answer,
        f"{en} ({', '.join(sign.en for sign in signs)}).",
        f"{zh}（{'、'.join(sign.zh for sign in signs)}）。",
        citations=(cite(bad.rollout.path, quote),),
        measurements=_measurements(bad),
        tables=(_table(steps),),
        plots=plots,
    )


def _measurements(step: _Step) -> tuple[Measurement, ...]:
    verdicts = step.rollout.verdicts
    measured = [
        limit.PARTLY_SHARE.measure("garbled samples", verdicts.garbled_share),
        Measurement("truncated samples", verdicts.truncated_share, "of all"),
    ]
    if step.fall is not None:
        measured.append(limit.FALL.measure("fall of the mean log-prob", step.fall[0]))
        measured.append(Measurement("standard error of it", step.fall[1], "nat/token"))
        measured.append(Measurement("prompts answered in both", step.pairs, "prompts"))
    return tuple(measured)


def _table(steps: list[_Step]) -> Table:
    rows = tuple(
        (
            step.rollout.name,
            ", ".join(_WORDS[sign].en for sign in step.signs),
            f"{step.rollout.verdicts.garbled_share:.0%}",
            f"{step.rollout.verdicts.truncated_share:.0%}",
            f"{step.rollout.verdicts.mean_length:.0f}",
            "" if step.rollout.verdicts.log_prob is None else f"{step.rollout.verdicts.log_prob:.2f}",
            "" if step.fall is None else f"{-step.fall[0]:+.2f} ± {step.fall[1]:.2f}",
            str(step.pairs) if step.pairs else "",
        )
        for step in steps
    )
    columns = ("rollout", "signs", "garbled", "truncated", "length", "log-prob", "change", "same prompts")
    return Table(Text("Each rollout beside the one before", "各 rollout 与前一个对比"), columns, rows)


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
