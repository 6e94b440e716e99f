"""Spreads a content scan over the nodes of a Ray cluster whose address was given.

Each node reads through its own mount, so a checkpoint on shared storage is read as fast as the storage gives. Only
`tensor_scan` travels, by value, and plain tuples come back: nodes need numpy and xxhash, not this package. Tasks ask
for no CPU, since a training job has reserved them all, and are kept few by hand. Invariants: the results are those of
a local scan; what a node cannot read is read here, so a path that only some nodes have costs time, never an answer;
an address that cannot be used is said and the scan goes on here.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

from probes.content_scan import Answer, Engine, Item, Tell, read_item
from probes.readers import tensor_scan
from probes.readers.tensor_scan import Looked
from runbook.text import sanitise

TASKS_A_NODE = 2
"""Items in work on one node at a time."""
CONNECT_SECONDS = 5.0
DEFAULT_PORT = 6379


def ray_engine(address: str) -> tuple[Engine | None, str]:
    """Return an engine over the cluster at `address` and its name in words; (None, why) when it cannot be used.

    address: "host:port" of the GCS, usable on a node of the cluster, or "ray://host:port" of the Ray client server.
    A dashboard's address (http://…) runs no tasks.
    """
    address = address.strip()
    if address.startswith(("http://", "https://")):
        return None, "a dashboard address runs no tasks: give HOST:6379 on a node of the cluster, or ray://HOST:10001"
    host, port = _host_port(address)
    if not host:
        return None, f"{sanitise(address, 80)} is no Ray address"
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS):
            pass
    except OSError as error:
        return None, f"nothing answers at {sanitise(host, 60)}:{port}: {error.strerror or type(error).__name__}"
    try:
        import ray
    except ImportError:
        return None, "ray is not installed here"
    try:
        return _connected(ray, address, host)
    except Exception as error:  # ray raises whatever its layers raise: versions that differ, a node that is not one
        with contextlib.suppress(Exception):
            ray.shutdown()
        why = sanitise(str(error).strip() or type(error).__name__, 160)
        return None, f"Ray at {sanitise(address, 80)} cannot be used: {why}"


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if not host:
        return port, DEFAULT_PORT
    return (host.strip("[]"), int(port)) if port.isdigit() and 0 < int(port) < 65536 else ("", 0)


def _connected(ray: Any, address: str, host: str) -> tuple[Engine, str]:
    options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if host.startswith("127."):
        options["_node_ip_address"] = host  # else ray takes this machine's outer address and waits for a node there
    if address.startswith("ray://"):
        options = {"logging_level": "ERROR", "log_to_driver": False}
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")  # ray would pack the working folder under `uv run`
    ray.init(address=address, **options)
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    if not nodes:
        msg = "no node is alive"
        raise RuntimeError(msg)
    return _engine(ray, nodes), f"Ray of {len(nodes)} nodes"


def _engine(ray: Any, nodes: list[str]) -> Engine:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ray.cloudpickle.register_pickle_by_value(tensor_scan)
    look = tensor_scan.answer

    def on_node(path: str, size: int, pieces: list[Any]) -> tuple[list[Any], str]:
        import ray as there

        return look(path, size, pieces), there.get_runtime_context().get_node_id()

    task = ray.remote(num_cpus=0, max_retries=2)(on_node)

    def run(items: list[Item], tell: Tell) -> Iterator[Answer]:
        waiting = sorted(items, key=lambda item: item.bytes)
        places = nodes * TASKS_A_NODE
        running: dict[Any, tuple[Item, str]] = {}
        left: list[Item] = []
        try:
            while waiting or running:
                while waiting and places:
                    item, node = waiting.pop(), places.pop(0)
                    strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=True)
                    request = (item.path, item.stamp.size, [tuple(piece) for piece in item.pieces])
                    running[task.options(scheduling_strategy=strategy).remote(*request)] = (item, node)
                done, _ = ray.wait(list(running), num_returns=1)
                item, node = running.pop(done[0])
                places.append(node)
                rows, reader = _rows(ray, done[0])
                if rows is None:
                    left.append(item)
                else:
                    tell(item.bytes)
                    yield Answer(item, rows, reader=reader)
            for item in left:
                yield read_item(item, tell)
        finally:
            ray.shutdown()

    return run


def _rows(ray: Any, reference: Any) -> tuple[list[Looked] | None, str]:
    """Return what a task found and its node; None when it could not read or its node went away."""
    try:
        (rows, _), node = ray.get(reference)
    except Exception:  # whatever a node or its environment raised: the item is read here
        return None, ""
    return (None if rows is None else [Looked(*row) for row in rows]), node
