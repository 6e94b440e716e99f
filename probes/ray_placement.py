"""What the job's placement groups ask for, what the cluster has, what is free, and what can never be.

A group that is PENDING waits for resources. Whether it can be met is counted on the nodes that live, as if nothing ran
on them: all it asks of a resource, and each bundle against each node. Only what fails there is called impossible, for
that holds whatever the group's strategy is; nodes that join later may change it. Invariants: a group that was asked for
less than YOUNG seconds ago, or nobody knows when, is not said to wait; what Ray itself calls INFEASIBLE is impossible.
Sources: Ray src/ray/protobuf/gcs.proto (PlacementGroupStats), slime/ray/placement_group.py (one bundle a GPU).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probes import ray_cluster
from probes.ray_cluster import Live
from probes.readers import ray_state
from probes.readers.ray_http import RefusedError
from probes.readers.ray_state import Record, number
from runbook.evidence import Evidence
from runbook.finding import Finding, Measurement, Table, Verdict, found, not_applicable
from runbook.probe import Progress, probe
from runbook.text import Text, counted, sanitise

YOUNG = 30.0
"""Seconds after which slime itself begins to say that it waits (slime/ray/placement_group.py)."""
SHOWN = 8
"""Groups and resources that the tables list."""
_WAITING = ("PENDING", "RESCHEDULING")
_ONE = "one bundle's "


@dataclass(frozen=True)
class Wait:
    """A placement group that waits.

    asked: of each resource in all. waited: seconds, None where Ray does not tell. lacking: what can never be met, as
    (resource, asked, there); of a bundle that no node can hold each resource, with the most that a node has.
    infeasible: Ray itself says so.
    """

    group: Record
    asked: Mapping[str, float]
    waited: float | None
    lacking: tuple[tuple[str, float, float], ...]
    infeasible: bool

    @property
    def never(self) -> bool:
        """Whether the cluster as it is cannot meet it."""
        return bool(self.lacking) or self.infeasible


@dataclass(frozen=True)
class Room:
    """What the cluster has. totals: of the nodes that live, one each. used: by resource, empty where not told."""

    nodes: Sequence[Record]
    totals: Sequence[Mapping[str, float]]
    used: Mapping[str, tuple[float, float]]

    def there(self, name: str) -> float:
        """Return how much of a resource all living nodes have together."""
        return sum(total.get(name, 0.0) for total in self.totals)

    def free(self, name: str) -> float | None:
        """Return how much of a resource nobody uses, None where Ray does not tell."""
        return max(self.there(name) - self.used[name][0], 0.0) if name in self.used else None


@probe(
    "ray.placement",
    needs="ray",
    answers=("placed", "none", "pending"),
    en="Does a placement group of the job wait for resources?",
    zh="任务的 placement group 是否在等资源？",
    deadline=ray_cluster.DEADLINE,
)
def placement(evidence: Evidence, report: Progress) -> Finding:  # noqa: ARG001  # a few answers tell no progress
    """Look at the groups of the job and count what they ask against the nodes."""
    try:
        live = ray_cluster.look(evidence.paths("ray"))
        return standing(live)
    except RefusedError as error:
        return ray_cluster.refused(error)


def standing(live: Live) -> Finding:
    """Return whether a placement group of the job waits; raises RefusedError."""
    listed = ray_cluster.listed(live, "placement_groups", "creator_job_id")
    waiting = [group for group in listed.records if group.text("state") in _WAITING]
    if not waiting:
        return ray_cluster.partial(listed.gap) if listed.gap else _placed(live, listed.records)
    nodes = ray_state.listed(live.address, "nodes")
    used, now = ray_state.usage(live.address)
    alive = [node for node in nodes.records if node.text("state") == "ALIVE"]
    totals = [{str(key): number(value) for key, value in node.inner("resources_total").items()} for node in alive]
    room = Room(alive, totals, used)
    waits = [_wait(group, room, now or time.time(), known=nodes.gap is None) for group in waiting]
    old = [(wait, wait.waited) for wait in waits if wait.waited is not None and wait.waited >= YOUNG]
    if not old:
        raise _young(waits)
    wait, waited = max(old, key=lambda pair: (pair[0].never, pair[1]))
    return _pending(live, wait, waited, room, len(waits))


def _young(waits: Sequence[Wait]) -> RefusedError:
    """Return why none of these is said to wait."""
    known = [wait.waited for wait in waits if wait.waited is not None]
    if not known:
        text = (
            "a placement group is not placed, and Ray does not tell since when",
            "placement group 未就绪，Ray 未给出时间",
        )
        return RefusedError(
            Text(*text), Text("see with ray status whether it still waits", "用 ray status 查看是否仍在等")
        )
    text = f"a placement group was asked for {max(known):.0f} s ago", f"placement group 在 {max(known):.0f} 秒前才提出"
    return RefusedError(Text(*text), Text("ask again in half a minute", "半分钟后重新询问"))


def _wait(group: Record, room: Room, now: float, *, known: bool) -> Wait:
    """Return how a group waits. known: the list of nodes is whole."""
    bundles = [
        {str(key): number(value) for key, value in unit.items()}
        for bundle in group.fields.get("bundles") or ()
        if isinstance(bundle, dict) and isinstance(unit := bundle.get("unit_resources"), dict)
    ]
    asked: dict[str, float] = {}
    for bundle in bundles:
        for name, amount in bundle.items():
            asked[name] = asked.get(name, 0.0) + amount
    stats = group.inner("stats")
    since = number(stats.get("creation_request_received_ns")) / 1e9
    lacking = [(name, amount, room.there(name)) for name, amount in asked.items() if amount > room.there(name) + 1e-6]
    if not lacking:
        lacking = [
            (f"{_ONE}{name}", amount, max((total.get(name, 0.0) for total in room.totals), default=0.0))
            for bundle in bundles
            if not any(
                all(total.get(key, 0.0) >= value - 1e-6 for key, value in bundle.items()) for total in room.totals
            )
            for name, amount in bundle.items()
        ][:SHOWN]
    infeasible = stats.get("scheduling_state") == "INFEASIBLE"
    waited = max(now - since, 0.0) if since else None
    return Wait(group, asked, waited, tuple(lacking) if known else (), infeasible)


def _pending(live: Live, wait: Wait, waited: float, room: Room, count: int) -> Finding:
    main = "GPU" if "GPU" in wait.asked or not wait.asked else next(iter(wait.asked))
    since, since_zh = ray_cluster.ago(waited)
    asked, there, free = wait.asked.get(main, 0.0), room.there(main), room.free(main)
    some, some_zh = _free(free)
    name = sanitise(main, 40)
    verdict = "and cannot get them on the nodes that live" if wait.never else "which are there, but not free"
    verdict_zh = "现有节点无法满足" if wait.never else "集群有，但被占用"
    return found(
        Verdict.PROBLEM if wait.never else Verdict.WARNING,
        "pending",
        f"A placement group of {live.name} waits for {asked:g} {name} since {since}, {verdict}: "
        f"{there:g} are registered{some}.",
        f"{live.name} 的 placement group 等待 {asked:g} 个 {name} 已 {since_zh}，{verdict_zh}："
        f"已注册 {there:g} 个{some_zh}。",
        citations=(wait.group.cite(count), *(node.cite() for node in room.nodes[:1])),
        measurements=(
            Measurement(f"registered {name}", there, name, asked, "the size of the placement group"),
            *((Measurement(f"free {name}", free, name),) if free is not None else ()),
        ),
        tables=(_asked(wait, room), *((_never(wait),) if wait.lacking else ())),
    )


def _free(free: float | None) -> tuple[str, str]:
    if free is None:
        return "", ""
    return f", of which {free:g} are free", f"，空闲 {free:g} 个"


def _asked(wait: Wait, room: Room) -> Table:
    rows = []
    for name, amount in list(wait.asked.items())[:SHOWN]:
        free = room.free(name)
        rows.append((sanitise(name, 40), f"{amount:g}", f"{room.there(name):g}", "-" if free is None else f"{free:g}"))
    title = Text(
        f"What is asked, and what {counted(len(room.nodes), 'living node')} have",
        f"请求的资源与 {len(room.nodes)} 个在线节点的资源",
    )
    return ray_cluster.table(title, ("resource", "asked", "there", "free"), rows)


def _never(wait: Wait) -> Table:
    rows = tuple((sanitise(name, 60), f"{asked:g}", f"{there:g}") for name, asked, there in wait.lacking[:SHOWN])
    title = Text("What can never be met by these nodes", "现有节点永远无法满足的")
    bundles = (Text(cell, f"单个 bundle 的 {cell.removeprefix(_ONE)}") for cell, *_ in rows if cell.startswith(_ONE))
    return ray_cluster.table(title, ("resource", "asked", "most"), rows, bundles)


def _placed(live: Live, groups: Sequence[Record]) -> Finding:
    """Return the finding that no group of a whole list waits."""
    if not live.job.job:
        return not_applicable(
            f"Job {live.name} has no driver yet that could ask for a placement group.",
            f"任务 {live.name} 的 driver 尚未启动，还没有 placement group。",
        )
    created = [group for group in groups if group.text("state") == "CREATED"]
    if not created:
        return found(
            Verdict.OK,
            "none",
            f"Job {live.name} holds no placement group, and none waits.",
            f"任务 {live.name} 没有 placement group，也没有在等待的。",
            citations=(live.job.record.cite(),),
        )
    return found(
        Verdict.OK,
        "placed",
        f"{counted(len(created), 'placement group')} of {live.name} are placed; none waits.",
        f"任务 {live.name}：{len(created)} 个 placement group 已就绪，没有在等待的。",
        citations=(created[0].cite(),),
    )
