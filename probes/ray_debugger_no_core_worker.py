"""Whether breakpoint() ran in a process without Ray: the AttributeError about core_worker (Ray 2.49.2)."""

from __future__ import annotations

from probes import logs
from probes.readers.joblog import citation
from probes.readers.logscan import signature
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

LINE = signature(
    "no-core-worker",
    "'Worker' object has no attribute 'core_worker'",
    "AttributeError: 'Worker' object has no attribute 'core_worker'",
)


@probe(
    "ray_debugger.no_core_worker",
    needs="log",
    answers=("no-core-worker", "none"),
    en="Did breakpoint() fail for want of ray.init()?",
    zh="breakpoint() 是否因为没有 ray.init() 而失败？",
    deadline=logs.DEADLINE,
)
def no_core_worker(evidence: Evidence, report: Progress) -> Finding:
    """Look for the line in the logs."""
    scanned = logs.collect(evidence, report, [LINE])
    hits = scanned.standing(LINE.label)
    if hits:
        return found(
            Verdict.PROBLEM,
            "no-core-worker",
            "breakpoint() ran in a process where Ray was not initialised: call ray.init() before it.",
            "breakpoint() 在 Ray 未初始化的进程里执行：请先调用 ray.init()。",
            citations=(citation(hits[0], len(hits)),),
        )
    return (
        logs.unread(scanned.coverage)
        or scanned.history("none", LINE.label)
        or found(
            Verdict.OK,
            "none",
            "No breakpoint() failed for want of Ray.",
            "没有因缺少 Ray 初始化而失败的 breakpoint()。",
        )
    )
