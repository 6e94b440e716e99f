"""Whether CUDA_LAUNCH_BLOCKING=1 reaches the processes: only then is the stack trace of a fault trustworthy.

A worker inherits the environment of its node's `ray start`, and what the runtime env adds; an export after `ray
start` reaches neither. `--train-env-vars` (slime) reaches the trainers only.
"""

from __future__ import annotations

import json

from probes.readers.environment import Reach, reach
from probes.readers.settings import given, read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

NAME = "CUDA_LAUNCH_BLOCKING"


@probe(
    "launch.launch_blocking",
    needs="launch",
    answers=("on", "train-only", "not-passed", "off"),
    en="Does CUDA_LAUNCH_BLOCKING=1 reach the processes?",
    zh="CUDA_LAUNCH_BLOCKING=1 传到各进程了吗？",
)
def launch_blocking(evidence: Evidence, report: Progress) -> Finding:
    """Look for the variable in the runtime env, in exports and in --train-env-vars."""
    del report
    settings = read_settings(evidence)
    if settings.launch is None or settings.job is None:
        return unknown(
            "No training command was found.",
            "没有找到训练命令。",
            settle_en="attach the launch script",
            settle_zh="附上启动脚本",
            slots=("launch",),
        )
    state, citations = reach(settings.launch, settings.job, NAME, "1")
    if state in (Reach.RUNTIME_ENV, Reach.BEFORE_RAY):
        return found(
            Verdict.OK, "on", f"{NAME}=1 reaches the processes.", f"{NAME}=1 会传到各进程。", citations=citations
        )
    trainers = given(settings, "train-env-vars")
    if trainers is not None and trainers.value and _value(trainers.value) == "1":
        return found(
            Verdict.OK,
            "train-only",
            f"{NAME}=1 reaches the trainers only (--train-env-vars).",
            f"{NAME}=1 只传给训练进程（--train-env-vars）。",
            citations=(trainers.citation,),
        )
    if state is Reach.EXPORTED:
        return found(
            Verdict.WARNING,
            "not-passed",
            f"{NAME}=1 is exported but neither before `ray start` nor in the runtime env, so no worker sees it.",
            f"{NAME}=1 只是 export 了，既不在 `ray start` 之前也不在 runtime env 里，worker 看不到它。",
            citations=citations,
        )
    return found(Verdict.OK, "off", f"{NAME} is not set by the script.", f"脚本没有设置 {NAME}。", citations=citations)


def _value(text: str) -> str:
    try:
        decoded = json.loads(text)
    except ValueError:
        return ""
    return str(decoded.get(NAME, "")) if isinstance(decoded, dict) else ""
