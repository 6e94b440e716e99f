"""What Ray's live state adds to what probes read in the log: it tells of waits, deaths and stops that no line tells of.

Older slime waits for its placement group without a word, an actor that nobody asks anything dies without a word, and
of many processes that stop for a debugger the log names one or two. Only what the state proves is added, and only to
logs of that very job (`ray_cluster.concerns`); where the state cannot be asked, the log alone answers and the `ray.*`
probes say why. A list that came cut is another matter: it was asked and may hold a fault, so nothing found in it is
unknown. Invariant: without an address in the evidence nothing here does anything.
"""

from __future__ import annotations

from collections.abc import Callable

from probes import ray_actors, ray_cluster, ray_placement, ray_tasks
from probes.ray_actors import Death
from probes.ray_cluster import Live
from probes.ray_nodes import address, lost_nodes, reason
from probes.readers import ray_state
from probes.readers.ray_http import RefusedError
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, unknown


def _live(evidence: Evidence) -> Live | None:
    """Return the live job that the logs are of, None without an address or where it cannot be asked."""
    if not evidence.paths("ray"):
        return None
    try:
        live = ray_cluster.look(evidence.paths("ray"))
    except RefusedError:
        return None
    return live if ray_cluster.concerns(evidence, live) else None


def _deaths(live: Live) -> tuple[list[Death], Finding | None]:
    """Return the deaths that Ray tells of, and the unknown of those that may be in a part that did not come."""
    try:
        listed = ray_cluster.listed(live, "actors")
    except RefusedError:
        return [], None
    return ray_actors.deaths(listed.records), ray_cluster.partial(listed.gap) if listed.gap else None


def placement(evidence: Evidence) -> Finding | None:
    """Return whether a placement group of the job waits now, None where nobody can tell.

    It weighs more than the log, which also holds what the autoscaler tells every driver of other jobs' requests.
    """
    live = _live(evidence)
    if live is None or not live.job.live:
        return None
    try:
        finding = ray_placement.standing(live)
    except RefusedError:
        return None
    return finding if finding.verdict.decides else None


def died(evidence: Evidence, explained: Callable[[int], bool]) -> Finding | None:
    """Return that a trainer's or an engine's process vanished, None where none did, unknown where the list is cut.

    explained: whether the log holds what explains the death of a process with this pid.
    """
    live = _live(evidence)
    if live is None:
        return None
    deaths, missing = _deaths(live)
    for death in deaths:
        side = ray_cluster.side(death.actor)
        if side is None or explained(int(death.actor.number("pid"))):
            continue
        if death.kind == "node":
            return _with_its_node(live, death)
        if death.kind == "vanished":
            return found(
                Verdict.PROBLEM,
                "engine-died" if side == "rollout" else "actor-died",
                f"The process of {death.who} vanished, as Ray tells, and no log that is here says why.",
                f"Ray 显示 {death.who} 的进程消失，现有日志没有说明原因。",
                citations=(death.actor.cite(),),
            )
    return missing


def _with_its_node(live: Live, death: Death) -> Finding:
    """Return the unknown of an actor whose node died: no cause of its own, and the node's reason is told."""
    try:
        lost = lost_nodes(live, ray_state.listed(live.address, "nodes").records)
    except RefusedError:
        lost = []
    node = next((one for one in lost if one.text("node_id") == death.actor.text("node_id")), None)
    where = address(node) if node else "its node"
    why = f": {reason(node)}" if node and reason(node) else ""
    return unknown(
        f"{death.who} died with {where}{why}.",
        f"{death.who} 随节点 {where if node else ''} 一起死亡{why}。",
        settle_en="Look into raylet.out, gcs_server.out and dmesg of the node.",
        settle_zh="查看该节点的 raylet.out、gcs_server.out 与 dmesg。",
        slots=("log",),
        citations=(death.actor.cite(), *((node.cite(),) if node else ())),
    )


def host_memory(evidence: Evidence) -> Finding | None:
    """Return that Ray's memory monitor killed an actor of the job, None where none, unknown where not all are told."""
    live = _live(evidence)
    if live is None:
        return None
    deaths, missing = _deaths(live)
    killed = [death for death in deaths if death.kind == "host-oom"]
    if not killed:
        return missing
    first = killed[0]
    return found(
        Verdict.PROBLEM,
        "host",
        f"Ray's memory monitor killed {first.who} of the job: {first.said}.",
        f"Ray 的内存监控杀死了任务的 {first.who}：{first.said}。",
        citations=(first.actor.cite(len(killed)),),
    )


def paused(evidence: Evidence) -> Finding | None:
    """Return that a debugger holds processes of the job, None where none, unknown where not all are told."""
    live = _live(evidence)
    if live is None or not live.job.live:
        return None
    try:
        listed = ray_tasks.unfinished(live)
        waiting, gap = ray_tasks.held(live, listed)
    except RefusedError:
        return None
    if waiting:
        return ray_tasks.stopped(live, waiting, listed)
    return ray_cluster.partial(gap) if gap else None


def alone(evidence: Evidence) -> Finding:
    """Return what the state says where no log is at hand: a group that waits, a process that vanished, or neither."""
    group = placement(evidence)
    finding = group if group is not None and group.answer == "pending" else died(evidence, lambda _: False)
    if finding is not None:
        return finding
    try:
        live = ray_cluster.look(evidence.paths("ray"))
        group = ray_placement.standing(live)
        actors = ray_cluster.listed(live, "actors")
    except RefusedError as error:
        return ray_cluster.refused(error)
    if not group.verdict.decides:
        return group
    if actors.gap:
        return ray_cluster.partial(actors.gap)
    return found(
        Verdict.OK,
        "none",
        f"Ray tells neither of a placement group of {live.name} that waits nor of an actor that vanished.",
        f"Ray 未显示 {live.name} 有等待中的 placement group 或消失的 actor。",
        citations=group.citations,
    )
