"""Whether a debug-only mode of slime broke on what it never sets up.

--debug-rollout-only skips Megatron, so its process groups do not exist; a code path that asks for one all the same
ends in Megatron's assertion (megatron/core/parallel_state.py; slime#249). --debug-train-only (and
--load-debug-rollout-data, which implies it) skips SGLang, so its arguments are not parsed; a code path that reads one
ends in an AttributeError (slime/utils/arguments.py; slime#1938). Without the flag the same lines have other reasons.
"""

from __future__ import annotations

from probes import logs
from probes.known import entries, known
from probes.readers import joblog
from probes.readers.logscan import Hit
from probes.settings import Settings, not_told, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

GROUP = known("no-group")
ARGUMENT = known("no-argument")
_WORDS = {
    GROUP.label: ("Megatron is not set up", "不会初始化 Megatron"),
    ARGUMENT.label: ("SGLang's arguments are not parsed", "不会解析 SGLang 的参数"),
}
"""What a mode leaves out; which flags set the mode is told by the entry."""


@probe(
    "debug_mode.in_log",
    needs="log",
    answers=("none", "broken"),
    en="Did a debug-only mode break on what it does not set up?",
    zh="单独 debug 模式是否因未初始化的部分而报错？",
    deadline=logs.DEADLINE,
)
def debug_mode_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the error that the mode of this run explains; without a known mode the line is shown and nothing said."""
    scanned = logs.collect(evidence, report, (GROUP, ARGUMENT))
    hits = scanned.standing(GROUP.label, ARGUMENT.label)
    settings = read_settings(evidence) if hits else Settings()
    undecided: Hit | None = None
    for hit in hits:
        en, zh = _WORDS[hit.label]
        for flag in entries()[hit.label].flags:
            on, mode = switched(settings, flag)
            if on and mode is not None:
                return found(
                    Verdict.PROBLEM,
                    "broken",
                    f"With --{flag} {en}, and this slime version needs it all the same (line {hit.line}).",
                    f"--{flag} 时 slime {zh}，但该版本仍会用到（第 {hit.line} 行）。",
                    citations=(joblog.citation(hit), mode.citation),
                )
            undecided = hit if undecided is None and on is None else undecided
    if undecided is not None:
        return not_told(
            f"Line {undecided.line} may come from a debug-only mode, but whether one was on is not known.",
            f"第 {undecided.line} 行可能来自单独 debug 模式，但不知道是否启用了该模式。",
            (joblog.citation(undecided),),
        )
    return (
        logs.unread(scanned.coverage)
        or scanned.history("none", GROUP.label, ARGUMENT.label)
        or found(
            Verdict.OK,
            "none",
            "No debug-only mode broke on what it does not set up.",
            "没有单独 debug 模式因未初始化的部分而报错。",
        )
    )
