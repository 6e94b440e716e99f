"""What compute-sanitizer reports in the logs: a bad access, an assertion, a trap, or what is none of these.

memcheck names kernel, thread and address at the very access, so it is proof. racecheck, initcheck and synccheck report
other faults of a kernel: they are told as such and are no illegal access. "0 errors" of one engine proves no absence.
"""

from __future__ import annotations

from probes import core_dumps, cuda_told, logs
from runbook.evidence import Evidence
from runbook.finding import Finding, Table, Verdict, found, not_applicable, unknown
from runbook.probe import Progress, probe
from runbook.text import Text

_SHOWN = 12


@probe(
    "cuda.sanitizer",
    needs="log",
    answers=("ima", "device-assert", "launch-failure"),
    en="What does compute-sanitizer report?",
    zh="compute-sanitizer 报告了什么？",
    deadline=logs.DEADLINE,
)
def sanitizer(evidence: Evidence, report: Progress) -> Finding:
    """Report the first fault that compute-sanitizer names, with kernel, thread and address."""
    scanned = logs.collect(evidence, report, (cuda_told.SANITIZER,))
    told = [one for one in cuda_told.told(scanned.standing(cuda_told.SANITIZER.label)) if one.exception]
    if not told:
        return logs.unread(scanned.coverage) or not_applicable(
            "The logs hold no report of compute-sanitizer.", "日志中没有 compute-sanitizer 的报告。"
        )
    first = next((one for one in told if one.kind != "hazard"), None)
    if first is None:
        one = told[0]
        where = f" in {one.kernel[:160]}" if one.kernel else ""
        return unknown(
            f"compute-sanitizer reports {one.exception}{where}{one.detail_en}: no illegal access, but a fault as well.",
            f"compute-sanitizer 报告{one.hazard_zh}{where}{one.detail_zh}：不是非法访问，但同样是错误。",
            settle_en="Run the same under compute-sanitizer --tool memcheck.",
            settle_zh="用 compute-sanitizer --tool memcheck 再跑一次。",
            slots=("log",),
            citations=(one.citation,),
        )
    where = f" in {first.kernel[:160]}" if first.kernel else " in a kernel that it does not name"
    whose = core_dumps.owner(first.kernel)
    of_en = f"; by its name a kernel of {whose}" if whose else ""
    of_zh = f"；从名字看属于 {whose}" if whose else ""
    return found(
        Verdict.PROBLEM,
        first.kind,
        f"compute-sanitizer reports {first.exception!r}{where}{first.detail_en}{of_en}.",
        f"compute-sanitizer 报告 {first.exception!r}{where}{first.detail_zh}{of_zh}。",
        citations=(first.citation,),
        tables=(_table(told),),
    )


def _table(told: list[cuda_told.Told]) -> Table:
    rows = [
        (one.exception, one.kernel[:80] or "?", one.detail_en.removeprefix(", ") or "?", str(one.place.number))
        for one in told[:_SHOWN]
    ]
    columns = ("report", "kernel", "where", "line")
    return Table(Text("Reports of compute-sanitizer", "compute-sanitizer 的报告"), columns, tuple(rows))
