"""Whether routing replay (R3) got the routed experts it replays.

With --use-rollout-routing-replay slime trains with the experts that SGLang chose. They come in each sample's
meta_info and must cover its tokens; slime stops where they are lacking or do not fit. Sources, v0.2.0 to v0.3.1 and
later: slime/backends/megatron_utils/actor.py (fill_routing_replay), slime/utils/types.py, slime/rollout.
"""

from __future__ import annotations

from probes import logs
from probes.known import known
from probes.readers import joblog
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

MISSING = known("routing-missing")
MISFIT = known("routing-misfit")


@probe(
    "routing_replay.in_log",
    needs="log",
    answers=("none", "missing", "misfit"),
    en="Did routing replay lack the routed experts of the rollout?",
    zh="routing replay 是否缺少 rollout 的 routed experts？",
    deadline=logs.DEADLINE,
)
def routing_replay_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the first error with which slime refused the routed experts."""
    scanned = logs.collect(evidence, report, (MISSING, MISFIT))
    hits = scanned.standing(MISSING.label, MISFIT.label)
    if not hits:
        return (
            logs.unread(scanned.coverage)
            or scanned.history("none", MISSING.label, MISFIT.label)
            or found(
                Verdict.OK,
                "none",
                "No routed experts were refused.",
                "没有出现 routed experts 缺失或不符的报错。",
            )
        )
    first = hits[0]
    missing = first.label == MISSING.label
    alike = [hit for hit in hits if hit.label == first.label]
    return found(
        Verdict.PROBLEM,
        "missing" if missing else "misfit",
        f"Routing replay is on, but the samples carry no routed experts (line {first.line})."
        if missing
        else f"The routed experts of a sample do not fit its tokens (line {first.line}).",
        f"开启了 routing replay，但样本里没有 routed experts（第 {first.line} 行）。"
        if missing
        else f"样本的 routed experts 与其 token 数不符（第 {first.line} 行）。",
        citations=(joblog.citation(first, logs.processes(alike)),),
    )
