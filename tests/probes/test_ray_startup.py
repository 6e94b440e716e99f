"""What a start waits for, as far as Ray sees it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from probes.ray_startup import startup
from tests.probes.asking import ask, word
from tests.probes.dashboard import Dashboard, actor, group, job, node, usage


def starting(dashboard: Dashboard, seconds: float, name: str = "SGLangEngine.init", state: str = "ALIVE") -> None:
    """Have an engine whose task of that name began so long ago."""
    dashboard.jobs(job())
    dashboard.lists("placement_groups")
    dashboard.lists("actors", actor("SGLangEngine", state))
    begun = (time.time() - seconds) * 1000
    dashboard.lists("tasks", {"name": name, "actor_id": "SGLangEngine-1", "state": "RUNNING", "start_time_ms": begun})


def test_a_group_that_waits_is_no_gpus(dashboard: Dashboard) -> None:
    """The finding is the placement's own, with its numbers."""
    dashboard.jobs(job())
    dashboard.lists("placement_groups", group(20, time.time() - 600))
    dashboard.lists("nodes", node("10.0.0.1"))
    dashboard.answers["/api/cluster_status"] = usage(time.time())
    finding = ask(startup, ray=dashboard.url)
    assert word(finding) == "problem:no-gpus"
    assert "8 are registered" in finding.summary.en


def test_an_engine_that_starts_for_long_is_told(dashboard: Dashboard) -> None:
    """Three quarters of an hour in its init is a lead."""
    starting(dashboard, 2700)
    finding = ask(startup, ray=dashboard.url)
    assert word(finding) == "warning:starting"
    assert "45 min" in finding.summary.en


def test_a_start_of_minutes_is_ordinary(dashboard: Dashboard) -> None:
    """Ten minutes of a large model decide nothing."""
    starting(dashboard, 600)
    assert word(ask(startup, ray=dashboard.url)) == "not_applicable"


def test_an_engine_at_work_is_not_starting(dashboard: Dashboard) -> None:
    """A method that runs for hours is no start."""
    starting(dashboard, 9000, "SGLangEngine.generate")
    assert word(ask(startup, ray=dashboard.url)) == "not_applicable"


def test_logs_of_another_job_decide(dashboard: Dashboard, tmp_path: Path) -> None:
    """The state of a job that the log is not of says nothing about that log."""
    starting(dashboard, 2700)
    log = tmp_path / "job.log"
    log.write_text("[2026-08-21 10:00:00] x.py:1 - step\n")
    assert word(ask(startup, log, ray=dashboard.url)) == "not_applicable"


def test_a_job_that_ended_does_not_start(dashboard: Dashboard) -> None:
    """What its engines did last is no start."""
    starting(dashboard, 2700)
    dashboard.jobs(job(status="STOPPED"))
    assert word(ask(startup, ray=dashboard.url)) == "not_applicable"


@pytest.mark.parametrize("kind", ["actors", "tasks"])
def test_a_list_that_is_cut_may_hold_the_slow_one(dashboard: Dashboard, kind: str) -> None:
    """Nothing slow in a part is unknown; what is slow in it is told all the same."""
    starting(dashboard, 600)
    dashboard.lists(kind, num_filtered=12_000, total=12_000)
    assert word(ask(startup, ray=dashboard.url)) == "unknown"


def test_a_slow_start_in_a_cut_list_is_told(dashboard: Dashboard) -> None:
    """What is there is no less slow for what is not."""
    starting(dashboard, 2700)
    dashboard.lists("actors", actor("SGLangEngine"), num_filtered=12_000, total=12_000)
    assert word(ask(startup, ray=dashboard.url)) == "warning:starting"
