"""What tasks do: at work, failed, or held by a debugger."""

from __future__ import annotations

import time
from typing import Any

import pytest

from probes.ray_tasks import tasks
from tests.probes.asking import ask, word
from tests.probes.dashboard import Dashboard, job


def task(name: str, state: str, **more: Any) -> dict[str, Any]:
    """Return a task of the job."""
    return {
        "task_id": name, "name": name, "state": state, "job_id": "0a000000", "worker_id": f"w-{name}", "worker_pid": 7,
        "error_type": None, "start_time_ms": (time.time() - 300) * 1000, "end_time_ms": None, **more,
    }  # fmt: skip


def worker(name: str, **more: Any) -> dict[str, Any]:
    """Return a worker that a debugger holds."""
    return {
        "worker_id": name, "is_alive": True, "worker_type": "WORKER", "ip": "10.0.0.2", "pid": 7,
        "debugger_port": 40219, "num_paused_threads": 1, **more,
    }  # fmt: skip


def test_tasks_that_run_and_wait_are_sorted(dashboard: Dashboard) -> None:
    """What waits is grouped by reason, what runs longest comes first; only unfinished tasks are asked for."""
    dashboard.jobs(job())
    dashboard.lists("workers")
    dashboard.lists(
        "tasks",
        task("Engine.generate", "RUNNING"),
        task("Actor.train", "RUNNING", start_time_ms=(time.time() - 3000) * 1000),
        *(task("read", "PENDING_NODE_ASSIGNMENT") for _ in range(3)),
    )
    finding = ask(tasks, ray=dashboard.url)
    assert word(finding) == "ok:at-work"
    running, waiting = finding.tables
    assert [row[0] for row in running.rows] == ["Actor.train", "Engine.generate"]
    assert running.rows[0][1] == "50 min"
    assert waiting.rows == (("3", "read", "for resources on a node"),)
    (asked,) = [path for path in dashboard.asked if "/tasks" in path]
    assert "filter_keys=state&filter_predicates=%21%3D&filter_values=FINISHED" in asked


def test_failed_tasks_are_told_by_kind(dashboard: Dashboard) -> None:
    """The latest is named, all are counted by name and kind of error."""
    dashboard.jobs(job())
    dashboard.lists("workers")
    dashboard.lists(
        "tasks",
        task("a", "FAILED", error_type="OUT_OF_MEMORY", end_time_ms=1.0),
        task("b", "FAILED", error_type="ACTOR_DIED", end_time_ms=2.0),
    )
    finding = ask(tasks, ray=dashboard.url)
    assert word(finding) == "warning:failed"
    assert "b last: ACTOR_DIED" in finding.summary.en
    assert set(finding.tables[0].rows) == {("1", "a", "OUT_OF_MEMORY"), ("1", "b", "ACTOR_DIED")}


def test_a_process_that_a_debugger_holds_is_told_with_its_address(dashboard: Dashboard) -> None:
    """The worker is marked, not the task; workers of other jobs and those that were let go are none of this job's."""
    dashboard.jobs(job())
    dashboard.lists("tasks", task("step", "RUNNING"), task("x", "FAILED"))
    dashboard.lists("workers", worker("w-step"), worker("w-other"), worker("w-x", num_paused_threads=0))
    finding = ask(tasks, ray=dashboard.url)
    assert word(finding) == "warning:paused"
    assert "step (pid 7)" in finding.summary.en
    assert "10.0.0.2:40219" in finding.summary.en
    assert finding.tables[0].rows == (("step (pid 7)", "10.0.0.2:40219"),)


def test_the_driver_may_be_held_too(dashboard: Dashboard) -> None:
    """A driver's worker carries the job's id; one that is dead is held by nobody."""
    dashboard.jobs(job())
    dashboard.lists("tasks")
    dashboard.lists("workers", worker(f"0a000000{'f' * 48}", worker_type="DRIVER", debugger_port=None))
    finding = ask(tasks, ray=dashboard.url)
    assert word(finding) == "warning:paused"
    assert "the driver (pid 7)" in finding.summary.en


def test_a_dead_process_is_held_by_nobody(dashboard: Dashboard) -> None:
    """Ray keeps the mark of a worker that died while it waited."""
    dashboard.jobs(job())
    dashboard.lists("tasks")
    dashboard.lists("workers", worker(f"0a000000{'f' * 48}", worker_type="DRIVER", is_alive=False))
    assert word(ask(tasks, ray=dashboard.url)) == "ok:none"


def test_before_the_driver_began_there_are_no_tasks(dashboard: Dashboard) -> None:
    """A job that is pending has no id yet, so nothing is asked for it and nothing is under way."""
    dashboard.jobs(job(job_id="", status="PENDING"))
    dashboard.lists("workers")
    assert word(ask(tasks, ray=dashboard.url)) == "ok:none"
    assert "/api/v0/tasks" not in dashboard.paths()


@pytest.mark.parametrize("records", [(), (task("Actor.train", "RUNNING"),)])
def test_workers_that_did_not_all_come_may_be_held(dashboard: Dashboard, records: tuple[dict[str, Any], ...]) -> None:
    """A cut list of workers in which none is held proves neither work nor rest; a failure in it is told."""
    dashboard.jobs(job())
    dashboard.lists("workers", num_filtered=12_000, total=12_000)
    dashboard.lists("tasks", *records)
    assert word(ask(tasks, ray=dashboard.url)) == "unknown"


def test_the_tables_are_in_one_language(dashboard: Dashboard) -> None:
    """Columns, reasons and spans of time are Chinese where the front is."""
    dashboard.jobs(job())
    dashboard.lists("workers")
    dashboard.lists("tasks", task("Actor.train", "RUNNING"), task("read", "PENDING_NODE_ASSIGNMENT"))
    running, waiting = (table.said("zh") for table in ask(tasks, ray=dashboard.url).tables)
    assert (running.columns, running.rows) == (("task", "时长", "pid"), (("Actor.train", "5 分钟", "7"),))
    assert (waiting.columns, waiting.rows) == (("数量", "task", "等待"), (("1", "read", "等待节点资源"),))
