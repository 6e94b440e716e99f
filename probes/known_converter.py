"""Whether slime's converter refused the model or a parameter of it on the way to SGLang.

Sources: slime/backends/megatron_utils/megatron_to_hf, whose converters end in one of two errors. SGLang itself only
warns of a name that it does not hold ("… not found in params_dict"), which some models print though all is well; such
lines are shown and leave the question open.
"""

from __future__ import annotations

from probes import logs
from probes.known import known
from probes.readers import joblog
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

REFUSED = known("converter")
NOT_HELD = known("not-held")


@probe(
    "converter.in_log",
    needs="log",
    answers=("clean", "unsupported"),
    en="Did slime's converter refuse the model or a parameter?",
    zh="slime 的转换器是否不支持该模型或某个参数？",
    deadline=logs.DEADLINE,
)
def converter_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the converter's error; names that SGLang did not hold leave it open."""
    scanned = logs.collect(evidence, report, (REFUSED, NOT_HELD))
    hits = scanned.standing(REFUSED.label)
    if hits:
        said = joblog.parse(hits[0].text).message[:160]
        return found(
            Verdict.PROBLEM,
            "unsupported",
            f"slime cannot convert this model (line {hits[0].line}): {said}",
            f"slime 无法转换该模型（第 {hits[0].line} 行）：{said}",
            citations=(joblog.citation(hits[0], logs.processes(hits)),),
        )
    unheld = scanned.of(NOT_HELD.label)
    if unheld:
        count = scanned.counts[NOT_HELD.label]
        return unknown(
            f"SGLang does not hold {count} names that it was given, the first at line {unheld[0].line}.",
            f"SGLang 收到 {count} 个它没有的参数名，首个在第 {unheld[0].line} 行。",
            settle_en="Look whether the names are parameters that the model needs, such as a router or an expert.",
            settle_zh="看这些名字是否是模型需要的参数，例如路由或 expert。",
            slots=("received_weights",),
            citations=(joblog.citation(unheld[0], count),),
        )
    return (
        logs.unread(scanned.coverage)
        or scanned.history("clean", REFUSED.label)
        or found(
            Verdict.OK,
            "clean",
            "Neither slime's converter nor SGLang met a name that it does not know.",
            "slime 的转换器和 SGLang 都没有遇到不认识的名字。",
        )
    )
