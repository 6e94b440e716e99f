"""Which cluster the driver's ray.init() took: the job's, or one that it started for itself.

A bare ray.init() (and Ray's own at the first use) connects to RAY_ADDRESS, which `ray job submit` sets, else to the
cluster that `ray start` noted under Ray's temporary folder of this machine, and where there is neither starts one of
its own, on this machine alone (ray/_private/worker.py, services.py: get_ray_address_from_environment; 2.60). A job of
several machines then waits for GPUs that its cluster does not have. Told by what the driver logs.
"""

from __future__ import annotations

from probes import logs
from probes.readers import joblog
from probes.readers.logscan import signature
from probes.settings import number, read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

OWN = signature("ray-own-cluster", "Started a local Ray instance")
JOINED = signature("ray-joined-cluster", "Connecting to existing Ray cluster at address: ")


@probe(
    "ray_debugger.cluster",
    needs="log",
    answers=("existing", "own", "private"),
    en="Which cluster did the driver's ray.init() take?",
    zh="driver 的 ray.init() 用的是哪个集群？",
    deadline=logs.DEADLINE,
)
def cluster(evidence: Evidence, report: Progress) -> Finding:
    """Read the last line in which a driver tells of its cluster, and how many machines the job wants."""
    scanned = logs.collect(evidence, report, [OWN, JOINED])
    told = [hit for hit in scanned.of(OWN.label, JOINED.label) if joblog.parse(hit.raw).actor is None]
    if not told:
        return logs.unread(scanned.coverage) or unknown(
            "The log does not say which cluster the driver took.",
            "日志没有说明 driver 用的是哪个集群。",
            settle_en="attach the driver's own output (job-driver-raysubmit_*.log), from its first line on",
            settle_zh="附上 driver 自己的完整输出（job-driver-raysubmit_*.log）",
            slots=("log",),
        )
    hit = told[-1]
    if hit.label == JOINED.label:
        return found(
            Verdict.OK,
            "existing",
            "The driver joined the cluster that was there; its ray.init() does no harm.",
            "driver 连接到了已有的集群；其 ray.init() 没有影响。",
            citations=(joblog.citation(hit),),
        )
    nodes, given = number(read_settings(evidence), "actor-num-nodes")
    if nodes is not None and given is not None and given.sure and nodes > 1 and hit in scanned.standing(OWN.label):
        return found(
            Verdict.PROBLEM,
            "private",
            f"The driver started a Ray of its own on one machine, although the job wants {nodes:g} nodes.",
            f"driver 只在一台机器上另起了一个 Ray，而任务需要 {nodes:g} 个节点。",
            citations=(joblog.citation(hit), given.citation),
        )
    return found(
        Verdict.OK,
        "own",
        "The driver started a Ray of its own on its machine, which is enough for what it did.",
        "driver 在本机另起了一个 Ray，对它所做的已足够。",
        citations=(joblog.citation(hit),),
    )
