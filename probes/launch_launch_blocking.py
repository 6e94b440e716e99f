"""Whether CUDA_LAUNCH_BLOCKING=1 reaches the processes (guide, illegal memory access, 1); see `blocking`."""

from __future__ import annotations

from probes.blocking import NAME, Blocking, blocking
from probes.settings import no_command, read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

_SAID = {
    Blocking.EVERYWHERE: (Verdict.OK, "on", f"{NAME}=1 reaches the processes.", f"{NAME}=1 会传到各进程。"),
    Blocking.HEAD: (
        Verdict.OK,
        "on",
        f"{NAME}=1 reaches the processes of the machine whose `ray start --head` follows the export.",
        f"{NAME}=1 会传到 export 之后执行 `ray start --head` 的那台机器上的进程。",
    ),
    Blocking.TRAINERS: (
        Verdict.OK,
        "train-only",
        f"{NAME}=1 reaches the trainers only (--train-env-vars).",
        f"{NAME}=1 只传给训练进程（--train-env-vars）。",
    ),
    Blocking.NOT_PASSED: (
        Verdict.WARNING,
        "not-passed",
        f"{NAME}=1 is exported but neither before `ray start` nor in the runtime env, so no worker sees it.",
        f"{NAME}=1 只是 export 了，既不在 `ray start` 之前也不在 runtime env 里，worker 看不到它。",
    ),
    Blocking.OFF: (Verdict.OK, "off", f"{NAME} is not set to 1 by the script.", f"脚本没有把 {NAME} 设为 1。"),
}


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
    state, citations = blocking(read_settings(evidence))
    if state is Blocking.UNKNOWN:
        return no_command()
    if state is Blocking.PERHAPS:
        return unknown(
            f"A condition or the caller's environment decides whether {NAME} is 1.",
            f"{NAME} 是否为 1 取决于脚本中的条件或调用者的环境变量。",
            settle_en=f"print {NAME} inside a worker, or set it to 1 in the runtime env",
            settle_zh=f"在 worker 里打印 {NAME}，或在 runtime env 里直接设为 1",
            slots=("launch",),
            citations=citations,
        )
    verdict, answer, en, zh = _SAID[state]
    return found(verdict, answer, en, zh, citations=citations)
