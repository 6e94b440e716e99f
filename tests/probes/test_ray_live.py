"""What the live state adds to probes of the log: waits, deaths and stops that no line tells of, and nothing else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from probes.memory_oom_in_log import oom_in_log
from probes.ray_debugger_paused import paused
from probes.ray_in_log import ray_in_log
from tests.probes.asking import STAMP, ask, word
from tests.probes.dashboard import VANISHED, Dashboard, actor, died, group, job, node, usage

HEAD = "SUCC cli.py:66 -- Job 'raysubmit_a' submitted successfully\n"
QUIET = f"{HEAD}(RolloutManager pid=3) {STAMP}rollout.py:1 - Router launched at 10.0.0.1:3000\n"
FAULT = f"{QUIET}(MegatronTrainRayActor pid=7) RuntimeError: CUDA error: an illegal memory access was encountered\n"
OWN_TRACE = f"{QUIET}(SGLangEngine pid=77) Traceback (most recent call last):\n(SGLangEngine pid=77) ValueError: x\n"
OOM = {"oom_context": {"error_message": "Memory on the node (IP: 10.0.0.2) was 5GB used / 5GB limit (0.99)\nx"}}


@pytest.fixture
def live(dashboard: Dashboard) -> Dashboard:
    """Return a dashboard with a job in which nothing is wrong."""
    dashboard.jobs(job())
    dashboard.lists("placement_groups")
    dashboard.lists("actors", actor("MegatronTrainRayActor"), actor("SGLangEngine"))
    dashboard.lists("nodes", node("10.0.0.1"))
    dashboard.lists("tasks")
    dashboard.lists("workers")
    dashboard.answers["/api/cluster_status"] = usage(time.time())
    return dashboard


def asked(probe: Any, live: Dashboard, folder: Path, text: str = QUIET) -> str:
    """Return the word of a probe of a log and a live state."""
    (folder / "job.log").write_text(text)
    return word(ask(probe, folder / "job.log", ray=live.url))


def test_where_nothing_is_wrong_the_log_answers(live: Dashboard, tmp_path: Path) -> None:
    """A live state without a fault changes no answer, with or without a log."""
    for probe in (ray_in_log, oom_in_log, paused):
        assert asked(probe, live, tmp_path) == "ok:none"
    assert word(ask(ray_in_log, ray=live.url)) == "ok:none"


def test_a_silent_wait_is_pending(live: Dashboard, tmp_path: Path) -> None:
    """Older slime waits without a word: the state decides, with its own citation, with or without a log."""
    live.lists("placement_groups", group(20, time.time() - 600))
    assert asked(ray_in_log, live, tmp_path) == "problem:pending"
    assert word(ask(ray_in_log, ray=live.url)) == "problem:pending"


def test_what_the_autoscaler_tells_of_other_jobs_is_not_ours(live: Dashboard, tmp_path: Path) -> None:
    """Every driver prints it; where this job's own groups are placed, it says nothing of this job."""
    text = f"{HEAD}(RolloutManager pid=3) {STAMP}rollout.py:1 - x\n"
    text += "(autoscaler +5s) Error: No available node types can fulfill resource request {'GPU': 1.0}.\n"
    assert asked(ray_in_log, live, tmp_path, text) == "ok:none"
    assert asked(ray_in_log, live, tmp_path, text.replace("raysubmit_a", "raysubmit_b")) == "warning:pending"


@pytest.mark.parametrize(("name", "said"), [("MegatronTrainRayActor", "actor-died"), ("SGLangEngine", "engine-died")])
def test_a_silent_death_is_told(live: Dashboard, tmp_path: Path, name: str, said: str) -> None:
    """A process that vanished without a line of the log is a cause; the manager's is none."""
    live.lists("actors", actor(name, "DEAD", VANISHED))
    assert asked(ray_in_log, live, tmp_path) == f"problem:{said}"
    assert word(ask(ray_in_log, ray=live.url)) == f"problem:{said}"


@pytest.mark.parametrize("text", [FAULT, OWN_TRACE])
def test_a_death_that_the_log_explains_is_no_cause(live: Dashboard, tmp_path: Path, text: str) -> None:
    """A fault in the log, or a traceback of that very process, explains why it died."""
    live.lists("actors", actor("SGLangEngine", "DEAD", VANISHED))
    assert asked(ray_in_log, live, tmp_path, text) == "ok:none"


def test_a_death_with_its_node_is_no_cause(live: Dashboard, tmp_path: Path) -> None:
    """It is unknown, and names the node and Ray's reason."""
    live.lists("actors", actor("SGLangEngine", "DEAD", died("NODE_DIED", "x"), node_id="n2"))
    live.lists("nodes", node("10.0.0.1"), node("10.0.0.2", "DEAD", "Unexpected termination: x", time.time()))
    assert asked(ray_in_log, live, tmp_path) == "unknown"
    assert "10.0.0.2: Unexpected termination" in ask(ray_in_log, tmp_path / "job.log", ray=live.url).summary.en


def test_an_end_of_the_job_kills_nobody(live: Dashboard, tmp_path: Path) -> None:
    """Actors that ended with their owner are no deaths."""
    live.jobs(job(status="STOPPED", end_time=int(time.time() * 1000)))
    live.lists("actors", actor("MegatronTrainRayActor", "DEAD", died("OWNER_DIED", "x")))
    assert asked(ray_in_log, live, tmp_path) == "ok:none"


def test_the_memory_monitor_is_proof(live: Dashboard, tmp_path: Path) -> None:
    """Ray killed an actor of this job for want of host memory, though the driver printed nothing of it."""
    live.lists("actors", actor("RolloutManager", "DEAD", OOM))
    assert asked(oom_in_log, live, tmp_path) == "problem:host"


def test_a_held_process_is_paused(live: Dashboard, tmp_path: Path) -> None:
    """A worker with a paused thread is told though Ray showed no line of it."""
    live.lists("tasks", {"name": "step", "state": "RUNNING", "worker_id": "w1"})
    live.lists("workers", {"worker_id": "w1", "num_paused_threads": 1, "ip": "10.0.0.2", "debugger_port": 5, "pid": 9})
    assert asked(paused, live, tmp_path) == "warning:paused"


def test_the_state_of_another_job_says_nothing(live: Dashboard, tmp_path: Path) -> None:
    """A log that does not name the live job may be of any job: its own answer stands."""
    live.lists("placement_groups", group(20, time.time() - 600))
    live.lists("actors", actor("RolloutManager", "DEAD", OOM), actor("SGLangEngine", "DEAD", VANISHED))
    text = QUIET.replace("raysubmit_a", "raysubmit_other")
    for probe in (ray_in_log, oom_in_log, paused):
        assert asked(probe, live, tmp_path, text) == "ok:none"


def test_a_dead_dashboard_leaves_the_log(dashboard: Dashboard, tmp_path: Path) -> None:
    """Where the state cannot be asked the log answers alone; without a log it is unknown."""
    assert asked(ray_in_log, dashboard, tmp_path) == "ok:none"
    assert word(ask(ray_in_log, ray=dashboard.url)) == "unknown"


def test_a_dashboard_that_dies_between_two_questions(live: Dashboard) -> None:
    """The jobs were told and the rest is refused: unknown, never none."""
    for kind in ("actors", "placement_groups", "nodes"):
        live.answers.pop(f"/api/v0/{kind}")
    assert word(ask(ray_in_log, ray=live.url)) == "unknown"


def test_without_an_address_nobody_is_asked(live: Dashboard, tmp_path: Path) -> None:
    """A log alone is judged as ever, and no connection is made."""
    live.lists("placement_groups", group(20, time.time() - 600))
    (tmp_path / "job.log").write_text(QUIET)
    for probe in (ray_in_log, oom_in_log, paused):
        assert word(ask(probe, tmp_path / "job.log")) == "ok:none"
    assert live.asked == []


@pytest.mark.parametrize(
    ("probe", "kind"), [(ray_in_log, "actors"), (oom_in_log, "actors"), (paused, "workers"), (paused, "tasks")]
)
def test_a_cut_list_without_a_fault_is_unknown(live: Dashboard, tmp_path: Path, probe: Any, kind: str) -> None:
    """The part that did not come may hold the death or the stop, so the log's own "none" does not stand."""
    live.lists(kind, num_filtered=12_000, total=12_000)
    assert asked(probe, live, tmp_path) == "unknown"


def test_before_the_driver_there_is_nothing_to_tell_of(live: Dashboard) -> None:
    """A job without a driver has neither groups nor actors, and is not said to be well."""
    live.jobs({**job(), "job_id": None})
    assert word(ask(ray_in_log, ray=live.url)) == "not_applicable"
