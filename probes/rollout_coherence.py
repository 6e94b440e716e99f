"""Whether the rollout text is coherent (debug guide 1.1).

Dumps are read first, because they hold every response; without one, the samples that slime prints at the start and end
of each rollout. All rollouts are looked at, and the earliest garbled one answers: garbage in rollout 0 points at
loading and conversion, garbage that begins later at the weight update. Any share of token salad above chance is a
problem, because right weights at an ordinary temperature never produce it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from probes import dump_thresholds as limit
from probes import dumps, logs
from probes.dumps import Read
from probes.readers import joblog
from probes.readers.logscan import Hit, signature
from probes.samples import Judged, Verdicts, judge_dump
from probes.text_quality import judge
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Table, Verdict, cite, found
from runbook.probe import Progress, probe
from runbook.text import Text

_PRINTED = signature(
    "sample", ("First rollout sample: [", "Finish rollout: ["), r"(?:First rollout sample|Finish rollout): (\[.*)"
)
_LABEL = re.compile(r"\], label: ", re.DOTALL)
_ASSISTANT = re.compile(
    r"<\|im_start\|>assistant\n?|<\|assistant\|>\n?|<｜Assistant｜>|\[/INST\]|<start_of_turn>model\n?"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>\n*|<\|message\|>|\n(?:Assistant|ASSISTANT): ?"
)
_SHOWN = 20


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
        printed = _printed(evidence, report)
        if printed.verdicts.samples:
            return _finding(
                [printed], Text(f" ({len(printed.verdicts.samples)} printed samples)", "（日志中打印的样本）")
            )
    return dumps.nothing_read(
        read,
        "Neither a rollout dump nor a printed sample holds a response.",
        "没有包含回复的 rollout dump，日志中也没有打印样本。",
    )


def _of_dump(path: str, number: int | None, verdicts: Verdicts) -> _Rollout:
    places = tuple(cite(path, f"sample {sample.index}: {sample.excerpt}") for sample in _worst_first(verdicts)[:3])
    return _Rollout(f"rollout {number}" if number is not None else path.rsplit("/", 1)[-1], number, verdicts, places)


def _seen(read: Read) -> Text:
    """Say how many of the dumps were looked at when not all were."""
    if read.opened == read.listed:
        return Text("", "")
    en = f" ({read.opened} of {read.listed} dumps read)"
    return Text(en, f"（读取了 {read.listed} 个 dump 中的 {read.opened} 个）")


def _printed(evidence: Evidence, report: Progress) -> _Rollout:
    """Return the samples printed in the logs as one rollout."""
    hits = logs.collect(evidence, report, (_PRINTED,)).hits.get(_PRINTED.label, [])
    samples = tuple(_sample(number, hit) for number, hit in enumerate(hits))
    verdicts = Verdicts(samples)
    order = {sample.index: place for place, sample in enumerate(_worst_first(verdicts))}
    ranked = sorted(range(len(hits)), key=lambda number: order[number])
    return _Rollout("the printed samples", None, verdicts, tuple(joblog.citation(hits[n]) for n in ranked[:3]))


def _sample(number: int, hit: Hit) -> Judged:
    """Judge one printed sample: the repr of a list with prompt and response in one string."""
    raw = (hit.groups[0] or b"").decode("utf-8", "replace")
    ends = list(_LABEL.finditer(raw))
    end = ends[-1] if ends else None
    text = raw[: end.start() + 1] if end else raw
    try:
        whole = "".join(map(str, ast.literal_eval(text))) if end else text
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        whole = text.replace("\\n", "\n")
    starts = [match.end() for match in _ASSISTANT.finditer(whole)]
    response = whole[starts[0] :] if starts else whole
    return Judged(number, number, response, "", 0, None, judge(response))


def _worst_first(verdicts: Verdicts) -> list[Judged]:
    order = {"garbled": 0, "empty": 1, "coherent": 2, "short": 3}
    return sorted(verdicts.samples, key=lambda sample: order[sample.judgement.kind])


def _finding(rollouts: list[_Rollout], seen: Text) -> Finding:
    bad = [rollout for rollout in rollouts if rollout.answer != "coherent"]
    told = bad[0] if bad else rollouts[0]
    garbled, count = len(told.verdicts.of("garbled")), len(told.verdicts.samples)
    en, zh = {
        "coherent": ("is coherent text", "是正常文本"),
        "partly-garbled": (
            f"is partly garbled: {garbled} of {count} samples",
            f"部分乱码：{count} 个样本中有 {garbled} 个",
        ),
        "garbled": (f"is garbled: {garbled} of {count} samples", f"是乱码：{count} 个样本中有 {garbled} 个"),
        "empty": (f"is empty: {len(told.verdicts.of('empty'))} of {count} responses", "回复为空"),
    }[told.answer]
    if told.answer in ("garbled", "partly-garbled"):
        why = told.verdicts.of("garbled")[0].judgement.why
        en, zh = f"{en} ({why.en})", f"{zh}（{why.zh}）"
        if told is not rollouts[0]:
            en += f"; {rollouts[0].name} is coherent, so it began after a weight update"
            zh += f"；{rollouts[0].name} 正常，因此是权重更新之后才出现"
    if told.verdicts.truncated_share == 1.0 and count > 1:
        en, zh = f"{en}; every response ran into the length limit", f"{zh}；所有回复都达到长度上限"
    return found(
        Verdict.PROBLEM if bad else Verdict.OK,
        told.answer,
        f"{told.name[0].upper()}{told.name[1:]} {en}{seen.en}.",
        f"{told.name} {zh}{seen.zh}。",
        citations=told.places,
        measurements=_measurements(told.verdicts),
        tables=(_rollout_table(rollouts), _sample_table(told)),
    )


def _measurements(verdicts: Verdicts) -> tuple[Measurement, ...]:
    source = "chosen on 124 garbled and 2,900 healthy samples (probes/dump_thresholds.py)"
    measured = [
        Measurement("garbled samples", verdicts.garbled_share, "of the judged", limit.PARTLY_SHARE, source),
        Measurement("truncated samples", verdicts.truncated_share, "of all"),
        Measurement("mean response length", verdicts.mean_length, "token"),
    ]
    if verdicts.log_prob is not None:
        measured.append(Measurement("mean rollout log-prob", verdicts.log_prob, "nat/token"))
    return tuple(measured)


def _rollout_table(rollouts: list[_Rollout]) -> Table:
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
        for rollout in rollouts
    )
    columns = ("rollout", "answer", "samples", "garbled", "empty", "truncated", "mean length", "mean log-prob")
    return Table(Text("Rollouts", "各 rollout"), columns, rows)


def _sample_table(rollout: _Rollout) -> Table:
    rows = tuple(
        (str(sample.index), sample.judgement.kind, sample.judgement.why.en, sample.status, sample.excerpt)
        for sample in _worst_first(rollout.verdicts)[:_SHOWN]
    )
    title = Text(f"Samples of {rollout.name}", f"{rollout.name} 的样本")
    return Table(title, ("sample", "verdict", "why", "status", "response"), rows)
