"""Whether a server could not start because its address is taken.

Told by the exceptions of what binds addresses in a slime job: Python's sockets, uvicorn (SGLang's HTTP server), ZeroMQ
(SGLang's processes among each other), torch.distributed's store and SGLang's router (Rust). NCCL's and other warnings
about an address are no failure, nor is a line that quotes the words in the middle of something else.
"""

from __future__ import annotations

from probes import logs
from probes.known import known
from probes.readers import joblog
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

TAKEN = known("address-taken")


@probe(
    "port.in_log",
    needs="log",
    answers=("free", "taken"),
    en="Did a server fail to start because its address is in use?",
    zh="是否有服务因地址被占用而启动失败？",
    deadline=logs.DEADLINE,
)
def port_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the first server that could not bind."""
    scanned = logs.collect(evidence, report, (TAKEN,))
    hits = scanned.standing(TAKEN.label)
    if not hits:
        return (
            logs.unread(scanned.coverage)
            or scanned.history("free", TAKEN.label)
            or found(Verdict.OK, "free", "No server failed to bind its address.", "没有服务因地址被占用而启动失败。")
        )
    said = joblog.parse(hits[0].text).message[:160]
    return found(
        Verdict.PROBLEM,
        "taken",
        f"A server could not start, for its address is in use (line {hits[0].line}): {said}",
        f"有服务因地址被占用而无法启动（第 {hits[0].line} 行）：{said}",
        citations=(joblog.citation(hits[0], logs.processes(hits)),),
    )
