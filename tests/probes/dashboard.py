"""A dashboard of the tests' own: a small HTTP server on loopback that answers as Ray's does, or as badly as wished.

The shapes are those that Ray 2.60 really answered. A path is answered by JSON, by bytes, or by a function that writes
what it likes to the connection.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Handler = BaseHTTPRequestHandler
NOW = 1_790_000_000.0
ENTRY = "python3 train.py --actor-num-nodes 2 --rollout-batch-size 32 --num-rollout 3 --hf-checkpoint /models/toy"


class Dashboard:
    """What the server answers, by path without query, and what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.open = 0
        self.most_open = 0
        self.lock = threading.Lock()

    def paths(self) -> list[str]:
        """Return the paths that were asked, without their queries."""
        return [path.partition("?")[0] for path in self.asked]

    def jobs(self, *jobs: dict[str, Any]) -> None:
        """List these jobs."""
        self.answers["/api/jobs/"] = list(jobs)

    def lists(self, kind: str, *records: dict[str, Any], **more: Any) -> None:
        """List these records under the state API; more: fields of the envelope that differ."""
        self.answers[f"/api/v0/{kind}"] = listing(*records, **more)

    def log(self, text: bytes) -> None:
        """Give this as the job's log, whole for -1 lines, else its last lines as Ray does."""

        def tail(handler: Handler) -> None:
            lines = int(parse_qs(urlsplit(handler.path).query)["lines"][0])
            parts = text.splitlines(keepends=True)
            send(handler, text if lines == -1 else b"".join(parts[-lines:]), "text/plain")

        self.answers["/api/v0/logs/file"] = tail


def listing(*records: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an answer of the state API."""
    count = len(records)
    inner = {
        "total": count, "num_after_truncation": count, "num_filtered": count, "result": list(records),
        "partial_failure_warning": "", "warnings": None, **more,
    }  # fmt: skip
    return {"result": True, "msg": "", "data": {"result": inner}}


def job(name: str = "raysubmit_a", job_id: str = "0a000000", began: float = NOW, **more: Any) -> dict[str, Any]:
    """Return a job that runs."""
    return {
        "type": "SUBMISSION", "job_id": job_id, "submission_id": name, "status": "RUNNING", "entrypoint": ENTRY,
        "message": "Job is currently running.", "error_type": None, "start_time": int(began * 1000), "end_time": None,
        "metadata": {}, "runtime_env": {"env_vars": {"A": "1"}}, "driver_node_id": "n1", **more,
    }  # fmt: skip


def actor(name: str, state: str = "ALIVE", cause: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return an actor of job 0a000000."""
    return {
        "actor_id": f"{name}-1", "class_name": name, "state": state, "job_id": "0a000000", "name": "", "node_id": "n1",
        "pid": 77, "death_cause": cause, **more,
    }  # fmt: skip


def died(reason: str, message: str) -> dict[str, Any]:
    """Return the cause of an actor's death."""
    return {"actor_died_error_context": {"error_message": message, "reason": reason, "never_started": False}}


VANISHED = died(
    "WORKER_DIED", "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR x"
)


def node(
    ip: str, state: str = "ALIVE", why: str | None = None, ended: float = 0.0, gpus: float = 8.0
) -> dict[str, Any]:
    """Return a node."""
    return {
        "node_id": f"n{ip[-1]}", "node_ip": ip, "is_head_node": False, "state": state, "state_message": why,
        "resources_total": {"GPU": gpus, "CPU": 64.0, "memory": 2.0**39}, "end_time_ms": int(ended * 1000),
    }  # fmt: skip


def group(bundles: int, began: float, state: str = "PENDING", gpus: float = 1.0) -> dict[str, Any]:
    """Return a placement group with one bundle a GPU, as slime asks for."""
    return {
        "placement_group_id": "pg1", "creator_job_id": "0a000000", "state": state,
        "bundles": [{"unit_resources": {"GPU": gpus, "CPU": 1.0}, "node_id": ""}] * bundles,
        "stats": {"creation_request_received_ns": str(int(began * 1e9)), "scheduling_state": "NO_RESOURCES"},
    }  # fmt: skip


def usage(now: float = NOW, **used: tuple[float, float]) -> dict[str, Any]:
    """Return the autoscaler's answer."""
    report = {"usage": {name: list(pair) for name, pair in used.items()}}
    return {"result": True, "msg": "", "data": {"clusterStatus": {"time": now, "loadMetricsReport": report}}}


def send(handler: Handler, body: bytes, kind: str = "application/json", status: int = 200, **headers: str) -> None:
    """Write a whole answer."""
    handler.send_response(status)
    for name, value in {"Content_Type": kind, "Content_Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def serving() -> Iterator[Dashboard]:
    """Serve a dashboard on a loopback port until the block ends."""
    dashboard = Dashboard()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with dashboard.lock:
                dashboard.open += 1
                dashboard.most_open = max(dashboard.most_open, dashboard.open)
            dashboard.asked.append(self.path)
            dashboard.headers.append(dict(self.headers))
            try:
                self.answer(dashboard.answers.get(self.path.partition("?")[0]))
            except OSError:
                self.close_connection = True
            finally:
                with dashboard.lock:
                    dashboard.open -= 1

        def answer(self, wished: Any) -> None:
            if isinstance(wished, list | dict):
                send(self, json.dumps(wished).encode())
            elif isinstance(wished, bytes):
                send(self, wished)
            elif wished is None:
                send(self, b"404: Not Found", "text/plain", 404)
            else:
                ask: Callable[[Handler], None] = wished
                ask(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    dashboard.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield dashboard
    finally:
        server.shutdown()
        server.server_close()
