"""What the ends of the logs show at once, before anything is checked: faults that no later line takes back.

A first look for who waits: a log of gigabytes is not read, only its end, so nothing here is known to be the first, or
to be all. It decides nothing, and no flow asks it.
"""

from __future__ import annotations

from probes import faults, job_last_words, logs
from probes.readers import attempts, joblog, logfiles
from probes.readers.logscan import Coverage, Hit
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

_SHOWN = 6
"""Lines that are shown, of each kind the last one."""
_FAULTS = (*faults.CUDA, *faults.OOM, faults.ENGINE_EXCEPTION, job_last_words.SIGNAL, job_last_words.FAILED)
_SIGNATURES = (*_FAULTS, job_last_words.TRACEBACK)


@probe(
    "log.early",
    needs="log",
    answers=("quiet", "faults"),
    en="What do the ends of the logs show at once?",
    zh="日志末尾一眼能看到什么？",
    deadline=5.0,
    early=True,
)
def log_early(evidence: Evidence, report: Progress) -> Finding:  # noqa: ARG001
    """Show the last line of each kind of fault at the ends of the logs."""
    wanted = {each.label for each in _SIGNATURES}
    hits = logs.early(evidence, (*_SIGNATURES, *attempts.SIGNATURES))
    standing = logs.standing((hit for hit in hits if hit.label in wanted), attempts.read(hits))
    last: dict[str, Hit] = {hit.label: hit for hit in standing}
    if not last:
        files, problems = logfiles.expand(evidence.paths("log"))
        return logs.unread(Coverage(list(files), list(problems))) or found(
            Verdict.OK, "quiet", "The ends of the logs show no fault.", "日志末尾没有故障。"
        )
    shown = [hit for hit in standing if last[hit.label] is hit][-_SHOWN:]
    kinds = ", ".join(hit.label for hit in shown)
    return found(
        Verdict.WARNING,
        "faults",
        f"The ends of the logs show: {kinds}. The whole logs are read next.",
        f"日志末尾可见：{kinds}。接下来读取完整日志。",
        citations=tuple(joblog.citation(hit) for hit in shown),
    )
