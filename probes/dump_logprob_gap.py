"""How far trainer and engine are apart on the same tokens, from the dumps (debug guide 1.1, 1.2).

The train dump holds both sides of every sample; where the engine's is missing there, the rollout dump's sample of the
same index gives it, provided that it holds the same tokens. A large gap under coherent text means that the two computed
with other weights or other arithmetic; garbled text without a gap means that not the weights are at fault. That the
tokens with a number agree says nothing of those that are NaN, so many of these make it a warning.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes import dump_sides, dumps, token_gaps
from probes.dumps import Read
from probes.thresholds import metrics as limits
from probes.token_gaps import Gaps
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, counted


@dataclass(frozen=True)
class _Measured:
    """The gap of one rollout. holes: slices that no rank wrote; they are NaN as well."""

    path: str
    rollout: int | None
    gaps: Gaps
    holes: tuple[Text, ...] = ()

    @property
    def name(self) -> str:
        """Return what the rollout is called."""
        return f"rollout {self.rollout}" if self.rollout is not None else self.path.rsplit("/", 1)[-1]

    @property
    def sick(self) -> bool:
        """Return whether so many tokens are NaN that the rest does not tell; never where slices are not there."""
        return not self.holes and self.gaps.nan_share >= limits.NAN_SHARE.value


@probe(
    "dump.logprob_gap",
    needs="train_dump|rollout_dump",
    answers=("agree", "small", "large"),
    en="Do trainer and engine give the same tokens the same log-probs?",
    zh="训练侧与推理侧对相同 token 的 log-probs 是否一致？",
    deadline=dumps.DEADLINE,
)
def logprob_gap(evidence: Evidence, report: Progress) -> Finding:
    """Compare log_probs with rollout_log_probs per token; the earliest rollout that is apart answers."""
    read, measured, other = Read(), [], 0
    for sides in dump_sides.sides(evidence, report, read, beside="needed"):
        gaps = token_gaps.measure(twin.pair for twin in sides.joined.twins)
        other += len(sides.joined.strangers)
        if gaps.samples or gaps.nans:
            holes = sides.whole.missing if sides.whole.cp_size is not None else ()
            measured.append(_Measured(sides.whole.path, sides.whole.rollout, gaps, holes))
    compared = [one for one in measured if one.gaps.samples]
    sick = next((one for one in measured if one.sick), None)
    if compared:
        large = [one for one in compared if one.gaps.mean > limits.GAP_CI.value]
        return _answer((large or compared)[0], measured, sick)
    if sick is not None:
        return _all_nan(sick)
    why, why_zh = "No train dump holds log_probs beside the engine's", "train dump 中没有可与推理侧比较的 log_probs"
    if other:
        why += f"; of {counted(other, 'sample')} the rollout dump holds other tokens: the dumps are of different runs"
        why_zh += f"；rollout dump 中有 {other} 个样本的 token 不同：两个 dump 来自不同的运行"
    return dumps.nothing_read(read, f"{why}.", f"{why_zh}。")


def _all_nan(one: _Measured) -> Finding:
    words = _nan_words(one)
    return unknown(
        f"Nothing can be compared: {words.en}.",
        f"无法比较：{words.zh}。",
        settle_en="Find the first NaN: the weights (hf.content), the loss (metrics.nan), then that rollout alone.",
        settle_zh="找到第一个 NaN：先查权重（hf.content），再查 loss（metrics.nan），然后单独重放该 rollout。",
        citations=(_nan_place(one),),
    )


def _nan_words(one: _Measured) -> Text:
    gaps = one.gaps
    every = gaps.tokens + gaps.strange
    trainer, engine = sum(each.first for each in gaps.nans), sum(each.second for each in gaps.nans)
    return Text(
        f"in {one.name} {gaps.nan} of {counted(every, 'token')} {'is' if gaps.nan == 1 else 'are'} NaN "
        f"(trainer {trainer}, engine {engine})",
        f"{one.name} 的 {every} 个 token 中有 {gaps.nan} 个为 NaN（训练侧 {trainer}，推理侧 {engine}）",
    )


def _nan_place(one: _Measured) -> Citation:
    worst = max(one.gaps.nans, key=lambda each: each.tokens)
    return cite(
        one.path,
        f"sample {worst.index}: NaN in log_probs {worst.first}, in rollout_log_probs {worst.second}",
        count=len(one.gaps.nans),
    )


def _answer(told: _Measured, measured: list[_Measured], sick: _Measured | None) -> Finding:
    gaps = told.gaps
    mean, (trainer, engine) = gaps.mean, gaps.means
    name = told.name
    facts = f"{mean:.3g} nat/token over {counted(gaps.tokens, 'token')} of {counted(len(gaps.samples), 'sample')}"
    facts_zh = f"{len(gaps.samples)} 个样本、{gaps.tokens} 个 token 上平均相差 {mean:.3g} nat/token"
    if mean <= limits.GAP_AGREE.value:
        limit, answer, verdict = limits.GAP_AGREE, "agree", Verdict.OK
        en, zh = f"Trainer and engine agree in {name}: {facts}", f"{name} 中训练侧与推理侧一致：{facts_zh}"
    elif mean <= limits.GAP_CI.value:
        limit, answer, verdict = limits.GAP_CI, "small", Verdict.OK
        en = f"Trainer and engine differ in {name} by what fp8 or a mixture of experts explains: {facts}"
        zh = f"{name} 中训练侧与推理侧之差在 fp8 或 MoE 可解释的范围内：{facts_zh}"
    else:
        proven = mean > limits.GAP_PROVEN.value
        limit = limits.GAP_PROVEN if proven else limits.GAP_CI
        answer, verdict = "large", Verdict.PROBLEM if proven else Verdict.WARNING
        en = f"Trainer and engine disagree in {name}: {facts}; mean log-prob {trainer:.2f} against {engine:.2f}"
        zh = f"{name} 中训练侧与推理侧不一致：{facts_zh}；平均 log-prob {trainer:.2f} 对 {engine:.2f}"
    places: tuple[Citation, ...] = ()
    judged = [limit.measure("mean |log_probs - rollout_log_probs|", mean)]
    if sick is not None:
        words = _nan_words(sick)
        en, zh = f"{en}; but {words.en}", f"{zh}；但{words.zh}"
        verdict = verdict if verdict is Verdict.PROBLEM else Verdict.WARNING
        share = limits.NAN_SHARE.measure("tokens that are NaN", sick.gaps.nan_share)
        places = (_nan_place(sick),)
        judged = [*judged, share] if answer == "large" else [share, *judged]
    elif gaps.strange:
        strange = counted(gaps.strange, "token")
        en, zh = f"{en}; besides, {strange} without a finite number", f"{zh}；另有 {gaps.strange} 个 token 不是有限数"
        if told.holes:
            en += f" ({', '.join(hole.en for hole in told.holes)} are not there)"
            zh += f"（缺少{'、'.join(hole.zh for hole in told.holes)}）"
    worst = gaps.worst
    excerpt = f"sample {worst.index}: mean |log_probs - rollout_log_probs| {worst.mean:.4g} over {worst.tokens} tokens"
    return found(
        verdict,
        answer,
        f"{en}.",
        f"{zh}。",
        citations=(cite(told.path, excerpt, count=len(gaps.samples)), *places),
        measurements=tuple(judged),
        tables=(_rollouts(measured), token_gaps.table(gaps, "trainer", "engine")),
    )


def _rollouts(measured: list[_Measured]) -> Table:
    rows = tuple(
        (
            "" if one.rollout is None else str(one.rollout),
            one.path.rsplit("/", 1)[-1],
            str(len(one.gaps.samples)),
            f"{one.gaps.mean:.3g}" if one.gaps.samples else "",
            f"{one.gaps.largest:.3g}" if one.gaps.samples else "",
            f"{one.gaps.means[0]:.3f}" if one.gaps.samples else "",
            f"{one.gaps.means[1]:.3f}" if one.gaps.samples else "",
            str(one.gaps.nan),
        )
        for one in measured
    )
    columns = ("rollout", "file", "samples", "mean |diff|", "max |diff|", "trainer", "engine", "NaN")
    return Table(Text("Train dumps", "各 train dump"), columns, rows)
