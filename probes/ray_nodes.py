"""Which nodes of the cluster live, and which died and of what, as Ray tells.

A node that was asked to leave ("Expected termination") is no fault. A raylet that is killed counts as dead after about
15 s without a heartbeat (measured). A node that died before the job began is history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from probes import ray_cluster
from probes.ray_cluster import Live
from probes.readers import ray_state
from probes.readers.ray_http import RefusedError
from probes.readers.ray_state import Record, number
from runbook.evidence import Evidence
from runbook.finding import Finding, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text, counted, sanitise

SHOWN = 16
"""Nodes that are listed one by one; of many that are alike the table counts."""


@probe(
    "ray.nodes",
    needs="ray",
    answers=("alive", "dead"),
    en="Did the cluster lose a node while the job ran?",
    zh="任务运行期间集群是否失去了节点？",
    deadline=ray_cluster.DEADLINE,
)
def nodes(evidence: Evidence, report: Progress) -> Finding:  # noqa: ARG001  # a few answers tell no progress
    """Tell the nodes that are dead, with Ray's reason, from those that live."""
    try:
        live = ray_cluster.look(evidence.paths("ray"))
        listed = ray_state.listed(live.address, "nodes")
    except RefusedError as error:
        return ray_cluster.refused(error)
    lost = lost_nodes(live, listed.records)
    alive = [node for node in listed.records if node.text("state") == "ALIVE"]
    tables = (_alive(alive), *((_dead(lost),) if lost else ()))
    if lost:
        node = lost[0]
        why = reason(node)
        return found(
            Verdict.WARNING,
            "dead",
            f"{counted(len(lost), 'node')} died while the job was there, {address(node)} first: {why or 'no reason'}.",
            f"任务期间有 {len(lost)} 个节点掉线，最先是 {address(node)}：{why or '没有说明原因'}。",
            citations=tuple(one.cite() for one in lost[:3]),
            tables=tables,
        )
    if listed.gap:
        return ray_cluster.partial(listed.gap)
    gpus = sum(number(node.inner("resources_total").get("GPU")) for node in alive)
    return found(
        Verdict.OK,
        "alive",
        f"{counted(len(alive), 'node')} with {gpus:g} GPUs live; none died since the job began.",
        f"{len(alive)} 个节点（{gpus:g} 张 GPU）在线；任务开始以来没有节点掉线。",
        citations=tuple(one.cite() for one in alive[:1]),
        tables=tables,
    )


def lost_nodes(live: Live, records: Sequence[Record]) -> list[Record]:
    """Return the nodes that died unasked while the job was there, the first to die first."""
    dead = [node for node in records if node.text("state") == "DEAD" and not _asked_to(node)]
    during = [
        node
        for node in dead
        if ended(node) == 0
        or (ended(node) >= live.job.started and (not live.job.ended or ended(node) <= live.job.ended))
    ]
    return sorted(during, key=ended)


def ended(node: Record) -> float:
    """Return when a node died, seconds since the epoch; 0 where Ray does not tell."""
    return node.number("end_time_ms") / 1000


def reason(node: Record) -> str:
    """Return Ray's reason for the death of a node, safe to draw."""
    return sanitise(node.text("state_message").strip().rstrip("."), 160)


def address(node: Record) -> str:
    """Return a node's address, safe to draw."""
    return sanitise(node.text("node_ip") or node.text("node_id"), 60) or "a node"


def _asked_to(node: Record) -> bool:
    return node.text("state_message").startswith("Expected termination")


def _dead(lost: Sequence[Record]) -> Table:
    rows = tuple((address(node), ray_cluster.clock(ended(node)), reason(node) or "-") for node in lost[:SHOWN])
    return ray_cluster.table(Text("Nodes that died", "掉线的节点"), ("node", "died (UTC)", "why, by Ray"), rows)


def _alive(alive: Sequence[Record]) -> Table:
    """Return the nodes that live, those with the same resources in one row where they are many."""
    shapes = Counter(_shape(node) for node in alive)
    if len(alive) <= SHOWN:
        rows = tuple((address(node), *_shape(node)) for node in alive)
    else:
        rows = tuple((counted(count, "node"), *shape) for shape, count in shapes.most_common(SHOWN))
    zh = (Text(counted(count, "node"), f"{count} 个节点") for count in shapes.values())
    return ray_cluster.table(Text("Nodes that live", "在线的节点"), ("node", "GPU", "CPU", "memory"), rows, zh)


def _shape(node: Record) -> tuple[str, str, str]:
    total = node.inner("resources_total")
    gigabytes = number(total.get("memory")) / (1 << 30)
    return f"{number(total.get('GPU')):g}", f"{number(total.get('CPU')):g}", f"{gigabytes:.0f} GiB"
