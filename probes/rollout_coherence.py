"""Whether the rollout text is coherent (debug guide 1.1).

Dumps are read first, because they hold every response; without one, the samples that slime prints at the start and end
of each rollout. All rollouts are looked at, and the earliest garbled one answers: garbage in rollout 0 points at
loading and conversion, garbage that begins later at the weight update. It is a problem when so many samples, of this
rollout and those after it, are garbled that a misjudgement of healthy text is out of the question, else a warning: one
garbled sample may be an odd prompt, right weights at an ordinary temperature never produce many.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes import dumps, logs, printed_samples
from probes.dumps import Read
from probes.printed_samples import PrintedRollout
from probes.readers import joblog
from probes.rollout_plots import rollout_plots
from probes.samples import Judged, Verdicts, judge_dump
from probes.thresholds import samples as limit
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Table, Verdict, cite, found
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

_SHOWN = 20
_NAMED = 8
"""Samples that the summary names."""


@dataclass(frozen=True)
class _Rollout:
    """One rollout: where its samples were found, its number, and their verdicts."""

    name: str
    number: int | None
    verdicts: Verdicts
    places: tuple[Citation, ...]

    @property
    def answer(self) -> str:
        return self.verdicts.answer or "coherent"


@probe(
    "rollout.coherence",
    needs="rollout_dump|log",
    answers=("coherent", "partly-garbled", "garbled", "empty"),
    en="Is the rollout text coherent?",
    zh="rollout 的生成是否是人话？",
    deadline=logs.DEADLINE,
)
def coherence(evidence: Evidence, report: Progress) -> Finding:
    """Judge the responses of every rollout dump, or the samples printed in the logs."""
    read = Read()
    rollouts = [
        rollout
        for dump in dumps.dumps_of(evidence, "rollout", report, read)
        if (rollout := _of_dump(dump.path, dump.rollout_id, judge_dump(dump))).verdicts.samples
    ]
    if rollouts:
        return _finding(rollouts, _seen(read))
    if evidence.has("log"):
        printed = [_of_print(one) for one in printed_samples.printed_rollouts(evidence, report)]
        if printed:
            count = sum(len(rollout.verdicts.samples) for rollout in printed)
            return _finding(printed, Text(f" ({count} printed samples)", f"（日志中打印的 {count} 个样本）"))
    return dumps.nothing_read(
        read,
        "Neither a rollout dump nor a printed sample holds a response.",
        "没有包含回复的 rollout dump，日志中也没有打印样本。",
    )


def _of_dump(path: str, number: int | None, verdicts: Verdicts) -> _Rollout:
    places = tuple(
        cite(path, f"sample {sample.index}{_from(sample)}: {sample.excerpt}") for sample in _worst_first(verdicts)[:3]
    )
    return _Rollout(f"rollout {number}" if number is not None else path.rsplit("/", 1)[-1], number, verdicts, places)


def _from(sample: Judged) -> str:
    return f", from character {sample.judgement.start:,} on" if sample.judgement.start else ""


def _seen(read: Read) -> Text:
    """Say how many of the dumps were looked at when not all were."""
    if read.opened == read.listed:
        return Text("", "")
    en = f" ({read.opened} of {read.listed} dumps read)"
    return Text(en, f"（读取了 {read.listed} 个 dump 中的 {read.opened} 个）")


def _of_print(printed: PrintedRollout) -> _Rollout:
    verdicts = Verdicts(tuple(printed.samples))
    places = tuple(joblog.citation(printed.hits[sample.place]) for sample in _worst_first(verdicts)[:3])
    name = f"rollout {printed.number}" if printed.number is not None else f"printed rollout no. {printed.place}"
    return _Rollout(name, printed.number, verdicts, places)


def _worst_first(verdicts: Verdicts) -> list[Judged]:
    order = {"garbled": 0, "empty": 1, "coherent": 2, "short": 3}
    return sorted(verdicts.samples, key=lambda sample: order[sample.judgement.kind])


def _finding(rollouts: list[_Rollout], seen: Text) -> Finding:
    bad = [rollout for rollout in rollouts if rollout.answer != "coherent"]
    told = bad[0] if bad else rollouts[0]
    garbled, count = len(told.verdicts.of("garbled")), len(told.verdicts.samples)
    en, zh = {
        "coherent": (
            ("is coherent text", "是正常文本")
            if told.verdicts.of("coherent")
            else ("is not garbled: its responses are too short to show more", "没有乱码：回复太短，无法作更多判断")
        ),
        "partly-garbled": (
            f"is partly garbled: {garbled} of {count} samples",
            f"部分乱码：{count} 个样本中有 {garbled} 个",
        ),
        "garbled": (f"is garbled: {garbled} of {count} samples", f"是乱码：{count} 个样本中有 {garbled} 个"),
        "empty": (f"is empty: {len(told.verdicts.of('empty'))} of {count} responses", "回复为空"),
    }[told.answer]
    if told.answer in ("garbled", "partly-garbled"):
        bad_samples = told.verdicts.of("garbled")
        why, named = bad_samples[0].judgement.why, _named(bad_samples)
        en, zh = f"{en} ({named.en}; {why.en})", f"{zh}（{named.zh}；{why.zh}）"
        later = sum(sample.judgement.start > 0 for sample in bad_samples)
        if later:
            en += f"; coherent at first and broken later: {later} of them"
            zh += f"；其中 {later} 个开头正常、中途变坏"
        if told is not rollouts[0]:
            en += f"; {rollouts[0].name} is coherent, so it began after a weight update"
            zh += f"；{rollouts[0].name} 正常，因此是权重更新之后才出现"
    if told.verdicts.truncated_share == 1.0 and count > 1:
        en, zh = f"{en}; every response ran into the length limit", f"{zh}；所有回复都达到长度上限"
    proof, sure = _proof(told, rollouts)
    return found(
        (Verdict.PROBLEM if sure else Verdict.WARNING) if bad else Verdict.OK,
        told.answer,
        f"{told.name[0].upper()}{told.name[1:]} {en}{seen.en}.",
        f"{told.name} {zh}{seen.zh}。",
        citations=told.places,
        measurements=(*proof, *_measurements(told.verdicts)),
        tables=(_rollout_table(rollouts, told), _sample_table(told)),
        plots=rollout_plots([(each.number, each.verdicts) for each in rollouts], told.number if bad else None),
    )


def _named(samples: tuple[Judged, ...]) -> Text:
    """Name the samples by their indices, the first few of many."""
    indices = ", ".join(str(sample.index) for sample in samples[:_NAMED])
    more = "…" if len(samples) > _NAMED else ""
    return Text(f"sample{'s' if len(samples) > 1 else ''} {indices}{more}", f"样本 {indices}{more}")


def _proof(told: _Rollout, rollouts: list[_Rollout]) -> tuple[tuple[Measurement, ...], bool]:
    """Return what decides whether the samples prove the answer, and whether they do.

    The samples of the rollout that is told count, and those of all from there on; that it was chosen among several for
    being bad is allowed for by their number.
    """
    if told.answer == "coherent":
        return (), False
    later = rollouts[rollouts.index(told) :]
    together = Verdicts(tuple(sample for rollout in later for sample in rollout.verdicts.samples))
    if told.answer == "empty":
        share = max(together.empty_share, told.verdicts.empty_share if _many(told.verdicts) else 0.0)
        sure = _many(together) and share >= limit.EMPTY_SURE.value
        return (limit.EMPTY_SURE.measure("empty responses", share),), sure
    chance = min(1.0, len(rollouts) * min(told.verdicts.by_mistake, together.by_mistake))
    measured = limit.BY_MISTAKE.measure("chance that healthy text is called garbled so often", chance)
    return (measured,), chance <= limit.BY_MISTAKE.value


def _many(verdicts: Verdicts) -> bool:
    return len(verdicts.samples) >= limit.EMPTY_COUNT.value


def _measurements(verdicts: Verdicts) -> tuple[Measurement, ...]:
    measured = [
        limit.PARTLY_SHARE.measure("garbled samples", verdicts.garbled_share),
        Measurement("truncated samples", verdicts.truncated_share, "of all"),
        Measurement("mean response length", verdicts.mean_length, "token"),
    ]
    if verdicts.log_prob is not None:
        measured.append(Measurement("mean rollout log-prob", verdicts.log_prob, "nat/token"))
    return tuple(measured)


def _rollout_table(rollouts: list[_Rollout], told: _Rollout) -> Table:
    """Lay the rollouts side by side, of many those around the one that is told."""
    start = max(rollouts.index(told) - _SHOWN // 2, 0) if len(rollouts) > _SHOWN else 0
    rows = tuple(
        (
            rollout.name,
            rollout.answer,
            str(len(rollout.verdicts.samples)),
            str(len(rollout.verdicts.of("garbled"))),
            str(len(rollout.verdicts.of("empty"))),
            f"{rollout.verdicts.truncated_share:.0%}",
            f"{rollout.verdicts.mean_length:.0f}",
            "" if rollout.verdicts.log_prob is None else f"{rollout.verdicts.log_prob:.2f}",
        )
        for rollout in rollouts[start : start + _SHOWN]
    )
    columns = ("rollout", "answer", "samples", "garbled", "empty", "truncated", "mean length", "mean log-prob")
    return Table(Text("Rollouts", "各 rollout"), columns, rows)


_COLUMNS = (
    ("sample", "样本"), ("verdict", "结论"), ("from character", "起始字符"), ("why", "原因"), ("status", "状态"),
    ("response", "回复"),
)  # fmt: skip
"""Columns of the table of samples, in English and Chinese."""


def _sample_table(rollout: _Rollout) -> Table:
    shown = _worst_first(rollout.verdicts)[:_SHOWN]
    rows = tuple(
        (
            str(sample.index),
            sample.judgement.kind,
            f"{sample.judgement.start:,}" if sample.judgement.kind == "garbled" else "",
            sanitise(sample.judgement.why.en),
            sample.status,
            sample.excerpt,
        )
        for sample in shown
    )
    zh = dict.fromkeys((sanitise(sample.judgement.why.en), sanitise(sample.judgement.why.zh)) for sample in shown)
    title = Text(f"Samples of {rollout.name}", f"{rollout.name} 的样本")
    columns = ("sample", "verdict", "from character", "why", "status", "response")
    return Table(title, columns, rows, (*zh, *_COLUMNS))
