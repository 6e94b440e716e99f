"""Whether log_probs and ref_log_probs are equal, token by token, before the first update (debug guide 1.2).

Only rollout 0 can answer: later the actor has learned. There, the same weights must give exactly the same numbers; a
difference of 1e-3 is other kernels or nearly the same weights, one of 0.1 and more is another model. Which
checkpoints the two were loaded from is not in the dump, so a difference is a warning, never a proof by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes import dump_sides, dumps, ref_answers, token_gaps
from probes.dumps import Read
from probes.thresholds import metrics as limits
from probes.token_gaps import Gaps
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, cite, found, not_applicable
from runbook.probe import Progress, probe
from runbook.text import counted


@dataclass(frozen=True)
class _Compared:
    """The distances in the train dumps of rollout 0. paths: the file of each sample."""

    paths: list[str]
    gaps: Gaps


@probe(
    "dump.ref_logprobs",
    needs="train_dump|rollout_dump",
    answers=ref_answers.ORDER,
    en="Are log_probs and ref_log_probs equal at step one, token by token?",
    zh="第一步的 log_probs 与 ref_log_probs 逐 token 是否完全相等？",
    deadline=dumps.DEADLINE,
)
def ref_logprobs(evidence: Evidence, report: Progress) -> Finding:
    """Compare both in every train dump of rollout 0."""
    files = dumps.files_of(evidence, "train")
    if files and all(file.rollout_id not in (None, 0) for file in files):
        first = files[0].rollout_id
        return not_applicable(
            f"The first train dump is of rollout {first}; only before the first update must the two be equal.",
            f"最早的 train dump 是 rollout {first}；只有在第一次更新之前两者才必须相等。",
        )
    read, compared, samples = Read(), [], 0
    for sides in dump_sides.sides(evidence, report, read, at=0, beside="never"):
        samples += len(sides.whole.samples)
        gaps = token_gaps.measure((twin.pair for twin in sides.joined.twins), "trainer", "reference")
        if gaps.samples:
            compared.append(_Compared(sides.whole.paths, gaps))
    if compared:
        return _answer(compared)
    return dumps.nothing_read(
        read,
        f"Of {counted(samples, 'sample')} of rollout 0 none holds both log_probs and ref_log_probs."
        if samples
        else "There is no train dump of rollout 0.",
        f"rollout 0 的 {samples} 个样本均不含 log_probs 与 ref_log_probs。"
        if samples
        else "没有 rollout 0 的 train dump。",
    )


def _answer(compared: list[_Compared]) -> Finding:
    together = Gaps(
        tuple(gap for one in compared for gap in one.gaps.samples),
        sum(one.gaps.unequal for one in compared),
        sum(one.gaps.strange for one in compared),
    )
    worst = max(compared, key=lambda one: one.gaps.worst.mean)
    limit, verdict = limits.LOGPROB_EQUAL, Verdict.OK
    if together.largest == 0.0:
        answer = "equal"
    elif together.mean <= limits.REF_CLOSE.value:
        answer, limit = "close", limits.REF_CLOSE
    else:
        answer = "far" if together.mean > limits.LOGPROB_FAR.value else "differ"
        limit, verdict = limits.LOGPROB_FAR if answer == "far" else limit, Verdict.WARNING
    words, (actor, reference) = ref_answers.WORDS[answer], together.means
    tokens = counted(together.tokens, "token")
    en = f"{words.en}: {together.mean:.3g} nat/token over {tokens}, at most {together.largest:.3g}"
    zh = f"{words.zh}：{together.tokens} 个 token 上平均 {together.mean:.3g} nat/token，最大 {together.largest:.3g}"
    if answer == "far":
        en, zh = f"{en}; means {actor:.2f} and {reference:.2f}", f"{zh}；均值 {actor:.2f} 与 {reference:.2f}"
    if verdict is Verdict.WARNING:
        en, zh = en + ref_answers.EXPECTED.en, zh + ref_answers.EXPECTED.zh
    if together.strange:
        strange = counted(together.strange, "token")
        en, zh = (
            f"{en}; besides, {strange} without a finite number",
            f"{zh}；另有 {together.strange} 个 token 不是有限数",
        )
    sample = worst.gaps.worst
    excerpt = f"sample {sample.index}: mean |log_probs - ref_log_probs| {sample.mean:.4g}, max {sample.largest:.4g}"
    return found(
        verdict,
        answer,
        f"{en}.",
        f"{zh}。",
        citations=(cite(worst.paths[sample.place], excerpt, count=len(together.samples)),),
        measurements=(limit.measure("mean |log_probs - ref_log_probs|", together.mean),),
        tables=(token_gaps.table(together, "actor", "reference"),),
    )
