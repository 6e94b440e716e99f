"""Which half of the job made the first illegal memory access: the engine or the trainer (debug guide, IMA).

The guide's advice (speculative decoding, CUDA graphs, DeepEP in SGLang) is for the engine; a fault in the Megatron
process asks for other steps. Told by Ray's prefix, by the actor that Ray names, or by whose frames the traceback has.
"""

from __future__ import annotations

from probes import faults, logs
from probes.readers import joblog
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable
from runbook.probe import Progress, probe

_LOOKED_AT = 20
"""Faults that are looked at until one says whose it is; the later ones are consequences."""


@probe(
    "cuda.ima_process",
    needs="log",
    answers=("rollout", "train", "unclear"),
    en="Which process made the illegal memory access?",
    zh="非法显存访问发生在哪个进程？",
    deadline=logs.DEADLINE,
)
def ima_process(evidence: Evidence, report: Progress) -> Finding:
    """Name the half of the job that the first fault belongs to, by the first of its lines that tells."""
    scanned = logs.collect(evidence, report, (faults.IMA,))
    hits = scanned.of(faults.IMA.label)
    if not hits:
        return logs.unread(scanned.coverage) or not_applicable(
            "The logs show no illegal memory access.", "日志中没有非法显存访问。"
        )
    for hit in hits[:_LOOKED_AT]:
        kind, place = faults.side(hit, joblog.context(hit))
        if kind:
            en = "the engine (SGLang)" if kind == "rollout" else "the trainer (Megatron)"
            zh = "推理引擎（SGLang）" if kind == "rollout" else "训练进程（Megatron）"
            proof = joblog.cite_placed(hit.file, place)
            told = () if place.number == hit.line else (joblog.citation(hit),)
            return found(
                Verdict.PROBLEM,
                kind,
                f"The illegal memory access was made in {en}.",
                f"非法显存访问发生在{zh}。",
                citations=(proof, *told),
            )
    return found(
        Verdict.WARNING,
        "unclear",
        "The lines around the illegal memory access name neither SGLang nor Megatron.",
        "非法显存访问附近的日志既未提到 SGLang 也未提到 Megatron。",
        citations=(joblog.citation(hits[0], logs.processes(hits)),),
    )
