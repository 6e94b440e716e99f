"""How far trainer and engine are apart on the same tokens, from the dumps (debug guide 1.1, 1.2).

The train dump holds both sides of every sample; where the engine's is missing there, the rollout dump's sample of the
same index gives it, provided that it holds the same tokens. A large gap under coherent text means that the two computed
with other weights or other arithmetic; garbled text without a gap means that not the weights are at fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probes import dumps, token_gaps
from probes.dumps import Read, index_of, numbers
from probes.readers.dump_errors import DumpError
from probes.readers.rollout_dump import Dump, read_dump
from probes.thresholds import metrics as limits
from probes.token_gaps import Gaps, Pair
from runbook.evidence import Evidence
from runbook.finding import Finding, Table, Verdict, cite, found
from runbook.probe import Progress, probe
from runbook.text import Text


@dataclass(frozen=True)
class _Measured:
    """The gap of one train dump."""

    path: str
    rollout: int | None
    gaps: Gaps


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
    for dump in dumps.dumps_of(evidence, "train", report, read):
        try:
            pairs, strangers = _pairs(evidence, dump)
            gaps = token_gaps.measure(pairs)
        except DumpError as error:
            read.faults.append(error)
            continue
        other += strangers
        if gaps.samples:
            measured.append(_Measured(dump.path, dump.rollout_id, gaps))
    if measured:
        large = [one for one in measured if one.gaps.mean > limits.GAP_CI.value]
        return _answer((large or measured)[0], measured)
    why, why_zh = "No train dump holds log_probs beside the engine's", "train dump 中没有可与推理侧比较的 log_probs"
    if other:
        why += f"; {other} samples of the rollout dump have other tokens: the dumps are of different runs"
        why_zh += f"；rollout dump 中有 {other} 个样本的 token 不同：两个 dump 来自不同的运行"
    return dumps.nothing_read(read, f"{why}.", f"{why_zh}。")


def _pairs(evidence: Evidence, dump: Dump) -> tuple[list[Pair], int]:
    """Return what can be compared, and how many samples of the rollout dump hold other tokens.

    The rollout dump is only read when the train dump lacks the engine's side.
    """
    pairs: list[Pair] = []
    twins: dict[int, dict[str, Any]] | None = None
    other = 0
    for place, sample in enumerate(dump.samples):
        index, actor = index_of(sample, place), numbers(sample, "log_probs")
        if actor is None:
            continue
        engine = numbers(sample, "rollout_log_probs")
        if engine is None:
            twins = _rollout_samples(evidence, dump.rollout_id) if twins is None else twins
            twin = twins.get(index)
            if twin is not None and _same_tokens(sample, twin):
                engine = numbers(twin, "rollout_log_probs")
            elif twin is not None:
                other += 1
        if engine is not None:
            pairs.append((index, sample, actor, engine))
    return pairs, other


def _rollout_samples(evidence: Evidence, rollout_id: int | None) -> dict[int, dict[str, Any]]:
    """Return the samples of a rollout's dump by index; empty when there is none."""
    for file in dumps.files_of(evidence, "rollout"):
        if file.rollout_id == rollout_id and not file.evaluation:
            return {index_of(sample, place): sample for place, sample in enumerate(read_dump(file).samples)}
    return {}


def _same_tokens(sample: dict[str, Any], twin: dict[str, Any]) -> bool:
    mine, theirs = numbers(sample, "tokens"), numbers(twin, "tokens")
    return mine is None or theirs is None or (len(mine) == len(theirs) and bool((mine == theirs).all()))


def _answer(told: _Measured, measured: list[_Measured]) -> Finding:
    gaps = told.gaps
    mean, (trainer, engine) = gaps.mean, gaps.means
    name = f"rollout {told.rollout}" if told.rollout is not None else told.path.rsplit("/", 1)[-1]
    facts = f"{mean:.3g} nat/token over {gaps.tokens} tokens of {len(gaps.samples)} samples"
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
    if gaps.strange:
        en, zh = f"{en}; {gaps.strange} tokens are not finite", f"{zh}；{gaps.strange} 个 token 不是有限数"
    worst = gaps.worst
    excerpt = f"sample {worst.index}: mean |log_probs - rollout_log_probs| {worst.mean:.4g} over {worst.tokens} tokens"
    return found(
        verdict,
        answer,
        f"{en}.",
        f"{zh}。",
        citations=(cite(told.path, excerpt, count=len(gaps.samples)),),
        measurements=(limit.measure("mean |log_probs - rollout_log_probs|", mean),),
        tables=(_rollouts(measured), token_gaps.table(gaps, "trainer", "engine")),
    )


def _rollouts(measured: list[_Measured]) -> Table:
    rows = tuple(
        (
            "" if one.rollout is None else str(one.rollout),
            one.path.rsplit("/", 1)[-1],
            str(len(one.gaps.samples)),
            f"{one.gaps.mean:.3g}",
            f"{one.gaps.largest:.3g}",
            f"{one.gaps.means[0]:.3f}",
            f"{one.gaps.means[1]:.3f}",
        )
        for one in measured
    )
    columns = ("rollout", "file", "samples", "mean |diff|", "max |diff|", "trainer", "engine")
    return Table(Text("Train dumps", "各 train dump"), columns, rows)
