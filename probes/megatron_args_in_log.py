"""Whether slime or Megatron itself stopped because MODEL_ARGS disagree with the model.

slime compares the arguments with the Hugging Face config before it starts (`hf_validate_args failed: ...`), Megatron
compares them with those saved in a checkpoint. Both name the argument and the two values. Sources:
slime/backends/megatron_utils/arguments.py, megatron/training/checkpointing.py `check_checkpoint_args`.
"""

from __future__ import annotations

from probes import logs
from probes.known import known
from probes.readers import joblog
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

_MISMATCH = known("mismatch")


@probe(
    "megatron.args_in_log",
    needs="log",
    answers=("no-complaint", "mismatch"),
    en="Do slime and Megatron accept MODEL_ARGS for this model?",
    zh="slime 与 Megatron 是否接受该模型的 MODEL_ARGS？",
    deadline=logs.DEADLINE,
)
def args_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the first line that names an argument and its two values."""
    scanned = logs.collect(evidence, report, (_MISMATCH,))
    hits = scanned.standing(_MISMATCH.label)
    if hits:
        said = joblog.parse(hits[0].groups[0] or b"").message
        return found(
            Verdict.PROBLEM,
            "mismatch",
            f"MODEL_ARGS do not fit the model: {said}",
            f"MODEL_ARGS 与模型不符：{said}",
            citations=(joblog.citation(hits[0], logs.processes(hits)),),
        )
    return (
        logs.unread(scanned.coverage)
        or scanned.history("no-complaint", _MISMATCH.label)
        or found(
            Verdict.OK,
            "no-complaint",
            "Neither slime nor Megatron complains about MODEL_ARGS.",
            "slime 与 Megatron 均未报告 MODEL_ARGS 有误。",
        )
    )
