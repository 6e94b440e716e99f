"""A program: a Ray cluster of three raylets with a dashboard, jobs submitted to it by HTTP, and a node that is killed.

All on loopback addresses other than 127.0.0.1, which Ray would replace by the machine's own, and than those of other
tests. One line of JSON goes to stdout once the jobs stand as they shall, another once the killed node counts as dead;
after a line on stdin everything ends. Only processes that this program started are ended. Arguments: Ray's temporary
folder, and a folder with the drivers `job-NAME/train.py`, each with the body of its submission in `job.json`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

HEAD, WORKERS = "127.0.0.5", ("127.0.0.6", "127.0.0.7")
STORE_BYTES = 80 << 20
PATIENCE = 75.0
"""Seconds until the jobs stand as they shall, on a loaded machine."""
LONG = 31.0
"""Seconds after which a placement group counts as waiting."""
RAY = str(Path(sys.executable).with_name("ray"))


def free_ports(count: int, node: str = HEAD) -> list[int]:
    """Return ports that nothing listens on, below those that Ray gives to workers."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            one = socket.socket()
            one.bind((node, 0))
            held.append(one)
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def started(temporary: str, address: str, ports: list[int], node: str, *options: str) -> subprocess.Popen[bytes]:
    """Start a raylet that stays in the foreground."""
    command = [
        RAY, "start", "--block", f"--node-ip-address={node}", f"--object-store-memory={STORE_BYTES}",
        "--disable-usage-stats", f"--dashboard-agent-listen-port={free_ports(1, node)[0]}", *options,
    ]  # fmt: skip
    command += (
        ["--head", f"--port={ports[0]}", f"--dashboard-host={HEAD}", f"--dashboard-port={ports[1]}",
         "--include-dashboard=true", f"--temp-dir={temporary}", f"--ray-client-server-port={ports[2]}"]
        if node == HEAD
        else [f"--address={address}"]
    )  # fmt: skip
    with Path(temporary, f"start-{node}").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    """Return the JSON at a URL of the dashboard; with a body it is posted."""
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token()}"}
    request = urllib.request.Request(url, data=data, headers=headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
        return json.load(answer)


def token() -> str:
    """Return the cluster's token."""
    return Path(os.environ["RAY_AUTH_TOKEN_PATH"]).read_text().strip()


def until(what: str, asked: Any, patience: float = PATIENCE) -> Any:
    """Return the first true answer of `asked`, which may fail while the cluster comes up."""
    end = time.monotonic() + patience
    last: object = None
    while time.monotonic() < end:
        try:
            last = asked()
        except urllib.error.HTTPError as error:
            last = OSError(error.code, error.read()[-1000:])
        except OSError as error:
            last = error
        if last and not isinstance(last, OSError):
            return last
        time.sleep(0.2)
    raise SystemExit(f"did not come: {what}: {last!r}")


def state(url: str, kind: str) -> list[dict[str, Any]]:
    """Return a list of the state API."""
    answer = ask(f"{url}/api/v0/{kind}?detail=1&limit=1000")
    records: list[dict[str, Any]] = answer["data"]["result"]["result"]
    return records


def main(temporary: str, folder: str) -> None:
    """Start, submit, tell, kill, tell, and end."""
    ports = free_ports(3)
    url, address = f"http://{HEAD}:{ports[1]}", f"{HEAD}:{ports[0]}"
    raylets = [started(temporary, address, ports, HEAD, "--num-cpus=8", "--num-gpus=2")]
    try:
        until("the dashboard", lambda: ask(f"{url}/api/version"))
        for each in sorted(Path(folder).glob("job-*")):
            until(f"{each.name} submitted", lambda each=each: _submitted(url, each))
        for count, (node, name) in enumerate(zip(WORKERS, ("stays", "goes"), strict=True), 2):
            options = ("--num-cpus=2", "--num-gpus=1", f'--resources={{"{name}": 1}}')
            raylets.append(started(temporary, address, ports, node, *options))  # two at once take the same sockets
            until(f"{count} nodes", lambda count=count: len(state(url, "nodes")) == count)
        until("the jobs", lambda: not _lacking(url))
        print(json.dumps({"url": url}), flush=True)
        os.killpg(raylets[2].pid, signal.SIGKILL)
        until("a dead node", lambda: [node for node in state(url, "nodes") if node["state"] == "DEAD"])
        until("an actor dead with it", lambda: _dead_with_node(url))
        until("a group that has waited", lambda: _waited(url) > LONG)
        print(json.dumps({"dead": WORKERS[1]}), flush=True)
        sys.stdin.readline()
    finally:
        for raylet in raylets[::-1]:
            _end(raylet)
        _end_drivers(folder)


def _submitted(url: str, folder: Path) -> bool:
    """Submit a job, unless it is there; the dashboard answers before the agent that takes jobs does."""
    if any(job["submission_id"] == folder.name for job in ask(f"{url}/api/jobs/")):
        return True
    spec = json.loads((folder / "job.json").read_text())
    return bool(ask(f"{url}/api/jobs/", {"submission_id": folder.name, **spec}))


def _lacking(url: str) -> list[str]:
    """Return what is not yet as it shall be."""
    status = {job["submission_id"]: job["status"] for job in ask(f"{url}/api/jobs/")}
    actors = state(url, "actors")
    dead, alive = ({one["class_name"] for one in actors if one["state"] == how} for how in ("DEAD", "ALIVE"))
    there = {
        "a job that ended": status.get("job-ends") == "SUCCEEDED",
        "a paused task": any(worker["num_paused_threads"] for worker in state(url, "workers")),
        "a group that waits": any(group["state"] == "PENDING" for group in state(url, "placement_groups")),
        "dead actors": {"SGLangEngine", "MegatronTrainRayActor"} <= dead,
        "actors": {"RolloutManager", "MegatronTrainRayActor"} <= alive,
    }
    return [name for name, holds in there.items() if not holds]


def _waited(url: str) -> float:
    """Return for how many seconds the group has been waiting."""
    (group,) = [one for one in state(url, "placement_groups") if one["state"] == "PENDING"]
    return time.time() - int(group["stats"]["creation_request_received_ns"]) / 1e9


def _dead_with_node(url: str) -> bool:
    causes = [actor["death_cause"] or {} for actor in state(url, "actors")]
    return any(cause.get("actor_died_error_context", {}).get("reason") == "NODE_DIED" for cause in causes)


def _end_drivers(folder: str) -> None:
    """End the drivers that outlived their cluster: each has its script's path in its words."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if any(word.startswith(f"{folder}/job-".encode()) for word in words):
                os.kill(int(process.name), signal.SIGKILL)


def _end(raylet: subprocess.Popen[bytes]) -> None:
    """End a raylet and what it started, its own group of processes."""
    if raylet.poll() is None:
        os.killpg(raylet.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            raylet.wait(3)
    try:
        os.killpg(raylet.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    raylet.wait(10)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
