"""Whether giving memory up or taking it back failed in torch_memory_saver or in SGLang's release and resume.

torch_memory_saver prints one line and calls exit(1), so a driver log shows no more than a dead actor (csrc/core.cpp,
csrc/utils.h). SGLang refuses to release while it serves requests, and raises KeyError for a tag that was not released
(srt/managers/scheduler_update_weights_mixin.py, later scheduler_components/weight_updater.py). Memory that ran out is
the question of `memory.oom_in_log`; "may not be an issue" is none.
"""

from __future__ import annotations

import re

from probes import faults, logs
from probes.known import known
from probes.readers import joblog
from probes.readers.logscan import Hit
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

_PAUSE = known("saver-pause")
_RESUME = known("saver-resume")
_BACKUP = known("saver-backup")
_PRELOAD = known("saver-preload")
_BUSY = known("release-busy")
_TAG = known("resume-tag")
_CALLS = re.compile(r"(?:resume|release)_memory_occupation")
_ANSWERS = {
    _PAUSE.label: "pause-failed",
    _RESUME.label: "pause-failed",
    _BACKUP.label: "pause-failed",
    _PRELOAD.label: "pause-failed",
    _BUSY.label: "engine-busy",
    _TAG.label: "resume-failed",
}
_WORDS = {
    "pause-failed": (
        "torch_memory_saver could not pause or resume a region",
        "torch_memory_saver 无法 pause 或 resume",
    ),
    "resume-failed": (
        "SGLang was told to resume memory that it had not released",
        "SGLang 被要求 resume 一块并未 release 的显存",
    ),
    "engine-busy": ("SGLang was told to release while it served requests", "SGLang 仍有请求时被要求 release"),
}


@probe(
    "memory.saver_in_log",
    needs="log",
    answers=("none", *_WORDS),
    en="Did giving memory up or taking it back fail?",
    zh="释放或恢复显存时是否报错？",
    deadline=logs.DEADLINE,
)
def saver_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the first such line that stands; a KeyError counts only inside the call."""
    scanned = logs.collect(evidence, report, (_PAUSE, _RESUME, _BACKUP, _PRELOAD, _BUSY, _TAG))
    first = next((hit for hit in scanned.standing(*_ANSWERS) if _counts(hit)), None)
    if first is not None:
        answer = _ANSWERS[first.label]
        alike = [hit for hit in scanned.of(first.label) if _counts(hit)]
        en, zh = _WORDS[answer]
        return found(
            Verdict.PROBLEM,
            answer,
            f"{en} (line {first.line}).",
            f"{zh}（第 {first.line} 行）。",
            citations=(joblog.citation(first, logs.processes(alike)),),
        )
    past = [label for label in _ANSWERS if label != _TAG.label]
    return (
        logs.unread(scanned.coverage)
        or scanned.history("none", *past)
        or found(
            Verdict.OK, "none", "No line says that releasing or resuming failed.", "没有释放或恢复显存失败的记录。"
        )
    )


def _counts(hit: Hit) -> bool:
    """Whether a hit is of the call it seems to be of: a KeyError of those names may come from anywhere."""
    if hit.label != _TAG.label:
        return True
    return any(_CALLS.search(frame.function) for frame in faults.innermost_first(joblog.context(hit)))
