"""Where trainer and engine differ, from train and rollout dumps joined sample by sample (debug guide 1.2, 1.2 a).

`dump.logprob_gap` says how far the two are apart; this says where: at context-parallel edges, in long samples, in those
of one rank or of older weights, at the first token, or everywhere. That is a lead to a cause and no proof of one;
that the two differ is proven by the mean alone. Only routed experts that are all zero in a block of layers are wrong by
themselves. Samples whose tokens differ between the dumps are told and never compared; what ranks did not write is told
and never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probes import dump_join_tables, dump_sides, dumps
from probes.dump_experts import Unrouted, unrouted
from probes.dump_sides import Sides
from probes.dump_where import Place, Tokens, flatten, places_of
from probes.dumps import Read
from probes.readers.dump_errors import DumpError
from probes.settings import number, read_settings
from probes.thresholds import metrics
from probes.thresholds import places as limit
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import counted

ANSWERS = (
    "agree", "routing", "misaligned", "other-tokens", "first-token", "tail", "cp-boundary", "after-position",
    "long-samples", "truncated", "one-rank", "weight-version", "few-samples", "everywhere",
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What one rollout shows.

    places: measured, the one that tells first. shift: tokens by which one side lags. experts: layers without routing.
    """

    sides: Sides
    tokens: Tokens
    places: list[Place]
    shift: int
    experts: Unrouted | None
    cp_size: int | None

    @property
    def place(self) -> Place | None:
        """Return the place that holds the difference."""
        return next((place for place in self.places if place.tells), None)

    @property
    def answer(self) -> str:
        """Return the probe's word; what explains the others comes first."""
        strangers, twins = len(self.sides.joined.strangers), len(self.sides.joined.twins)
        if self.experts is not None:
            return "routing"
        if self.shift:
            return "misaligned"
        if self.place is not None:
            return self.place.answer
        if self.tokens.mean > metrics.GAP_CI.value:
            return "everywhere"
        same = (twin.pair for twin in self.sides.joined.twins if twin.pair.first_other is None)
        if sum(any(trouble.of_length for trouble in pair.troubles) for pair in same) > limit.FEW_SAMPLES.value * twins:
            return "misaligned"
        return "other-tokens" if strangers > limit.FEW_SAMPLES.value * twins else "agree"


@probe(
    "dump.join",
    needs="train_dump|rollout_dump",
    answers=ANSWERS,
    en="Where do trainer and engine differ, sample by sample and token by token?",
    zh="训练侧与推理侧的差异出现在哪些样本、哪些 token？",
    deadline=dumps.DEADLINE,
)
def join(evidence: Evidence, report: Progress) -> Finding:
    """Join every rollout's dumps; the earliest in which something stands out answers."""
    read = Read()
    cp_size = _cp_size(evidence)
    told: list[Told] = []
    strangers = 0
    for sides in dump_sides.sides(evidence, report, read, cp_size=cp_size):
        strangers += len(sides.joined.strangers)
        try:
            one = _tell(sides, cp_size)
        except DumpError as error:
            read.faults.append(error)
            continue
        if len(one.tokens.diff) or one.experts is not None:
            told.append(one)
    experts = _experts_alone(evidence, read) if not told else None
    if told:
        odd = [one for one in told if one.answer != "agree"]
        return _finding((odd or told)[0], told)
    if experts is not None:
        return _routing(*experts)
    if strangers:
        return _other_run(strangers)
    return dumps.nothing_read(
        read, "No train dump holds log_probs beside the engine's.", "train dump 中没有可与推理侧比较的 log_probs。"
    )


def _cp_size(evidence: Evidence) -> int | None:
    size, line = number(read_settings(evidence), "context-parallel-size")
    return int(size) if size and line is not None else None


def _tell(sides: Sides, given: int | None) -> Told:
    same = tuple(twin for twin in sides.joined.twins if twin.pair.first_other is None)
    tokens = flatten(same)
    cp_size = sides.whole.cp_size or given
    experts = unrouted([twin.rollout or twin.train for twin in sides.joined.twins])
    places = places_of(tokens, cp_size) if len(tokens.diff) else []
    return Told(sides, tokens, places, _shift(tokens), experts, cp_size)


def _shift(tokens: Tokens) -> int:
    """Return by how many tokens the trainer's log-probs lag behind the engine's, 0 when they do not."""
    import numpy as np

    if tokens.mean <= metrics.GAP_CI.value:
        return 0
    for by in (1, -1):
        total = count = 0.0
        for twin in tokens.twins:
            trainer, engine = twin.pair.trainer, twin.pair.engine
            if trainer is None or engine is None or len(trainer) < 3:
                continue
            pair = (trainer[1:], engine[:-1]) if by > 0 else (trainer[:-1], engine[1:])
            apart = np.abs(pair[0] - pair[1])
            apart = apart[np.isfinite(apart)]
            total, count = total + float(apart.sum()), count + len(apart)
        if count and total / count <= limit.SHIFTED.value * tokens.mean:
            return by
    return 0


def _experts_alone(evidence: Evidence, read: Read) -> tuple[Unrouted, str] | None:
    """Return the layers without routing in the first rollout dump, where no train dump can be compared."""
    from probes.readers.rollout_dump import read_dump

    for file in dumps.files_of(evidence, "rollout")[:1]:
        try:
            dump = read_dump(file)
            experts = unrouted(dump.samples)
        except DumpError as error:
            read.faults.append(error)
            continue
        if experts is not None:
            return experts, dump.path
    return None


def _other_run(strangers: int) -> Finding:
    return unknown(
        f"Of all {counted(strangers, 'pair')} of samples the two dumps hold other tokens: they are of different runs.",
        f"同一 index 的 {strangers} 个样本在 train dump 与 rollout dump 中 token 均不同：两者来自不同的运行。",
        settle_en="Give the train and rollout dump of one run and one rollout.",
        settle_zh="提供同一次运行、同一个 rollout 的 train dump 与 rollout dump。",
        slots=dumps.SLOTS,
    )


def _finding(one: Told, told: list[Told]) -> Finding:
    if one.experts is not None:
        return _routing(one.experts, one.sides.rollout_path or one.sides.whole.path)
    answer = one.answer
    en, zh = dump_join_tables.words(one)
    extra, extra_zh = dump_join_tables.remarks(one)
    tables, plots = dump_join_tables.pictures(one, told)
    return found(
        _verdict(one),
        answer,
        f"{en}{extra}.",
        f"{zh}{extra_zh}。",
        citations=_citations(one),
        measurements=_measurements(one),
        tables=tables,
        plots=plots,
    )


def _measurements(one: Told) -> tuple[Measurement, ...]:
    judged: Any = metrics.GAP_AGREE if one.tokens.mean <= metrics.GAP_AGREE.value else metrics.GAP_CI
    proven = _verdict(one) is Verdict.PROBLEM
    judged = metrics.GAP_PROVEN if proven else judged
    mean: Measurement = judged.measure("mean |log_probs - rollout_log_probs|", one.tokens.mean)
    measured = [mean]
    if one.place is not None:
        there = [
            limit.PLACE_SHARE.measure(f"share of all |diff| {one.place.detail[0]}", one.place.share),
            metrics.GAP_CI.measure("mean |diff| there", one.place.inside),
            metrics.GAP_AGREE.measure("mean |diff| elsewhere", one.place.outside),
        ]
        measured = [mean, *there] if proven else [*there, mean]
    return tuple(measured)


def _verdict(one: Told) -> Verdict:
    """Return the verdict: that the two differ is proven by the mean, as in `dump.logprob_gap`; the place never is."""
    if one.answer == "agree":
        return Verdict.OK
    return Verdict.PROBLEM if one.tokens.mean > metrics.GAP_PROVEN.value else Verdict.WARNING


def _citations(one: Told) -> tuple[Citation, ...]:
    worst = dump_join_tables.worst_tokens(one.tokens, 3)
    path = one.sides.whole.path
    cited = [
        cite(
            path,
            f"sample {row.index} token {row.place}: log_probs {row.trainer:.4f}, rollout_log_probs {row.engine:.4f}",
        )
        for row in worst
    ]
    cited += [
        cite(one.sides.rollout_path or path, f"sample {twin.pair.index}: token {twin.pair.first_other} is another one")
        for twin in one.sides.joined.strangers[:2]
    ]
    return tuple(cited)


def _routing(experts: Unrouted, path: str) -> Finding:
    layers = f"{experts.first} to {experts.last} of {experts.layers}"
    return found(
        Verdict.PROBLEM,
        "routing",
        f"Routed experts are all zero in layers {layers} in {counted(experts.samples, 'sample')}: the engine never "
        "reported them.",
        f"{experts.samples} 个样本中，第 {experts.first}–{experts.last} 层（共 {experts.layers} 层）的 routed experts "
        "全为 0：engine 没有返回这些层。",
        citations=(
            cite(path, f"rollout_routed_experts: layers {layers} are zero for every token (top-k {experts.topk})"),
        ),
        measurements=(
            limit.UNROUTED.measure("layers without routing", (experts.last - experts.first + 1) / experts.layers),
        ),
    )
