"""Which job a probe speaks of, and that whatever is not known is unknown for every probe of a live cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from probes import ray_cluster
from probes.ray_actors import actors
from probes.ray_job import job as ray_job
from probes.ray_nodes import nodes
from probes.ray_placement import placement
from probes.ray_startup import startup
from probes.ray_tasks import tasks
from probes.readers.ray_http import RefusedError
from tests.helpers import evidence_of, is_safe
from tests.probes.asking import ask, word
from tests.probes.dashboard import ENTRY, Dashboard, actor, job, send

PROBES = (ray_job, nodes, actors, placement, tasks, startup)


def unknown(dashboard: Dashboard, probe: Any, address: str = "") -> str:
    """Return the summary of a probe that cannot answer; the remedy is said too."""
    finding = ask(probe, ray=address or dashboard.url)
    assert word(finding) == "unknown"
    assert finding.settle_with is not None
    assert finding.slots == ("ray",)
    assert is_safe(finding.summary.en + finding.summary.zh + finding.settle_with.en + finding.settle_with.zh)
    return finding.summary.en


@pytest.mark.parametrize("probe", PROBES)
def test_a_cluster_that_cannot_be_asked_is_unknown(dashboard: Dashboard, probe: Any) -> None:
    """No route of Ray's, a page for people, half an answer, a token that is wanted: unknown, each with its reason."""
    assert "404" in unknown(dashboard, probe)
    dashboard.answers["/api/jobs/"] = b"<html>Log in"
    assert "a page for people" in unknown(dashboard, probe)
    dashboard.answers["/api/jobs/"] = b'[{"submission_id": '
    assert "no JSON" in unknown(dashboard, probe)
    dashboard.answers["/api/jobs/"] = lambda handler: send(handler, b"", status=401)
    assert "token" in unknown(dashboard, probe)


@pytest.mark.parametrize("probe", PROBES)
def test_the_wrong_address_says_which_to_give(dashboard: Dashboard, probe: Any) -> None:
    """A GCS address and the client server are told apart from a dashboard without asking anybody."""
    for address in ("127.0.0.1:6379", "ray://127.0.0.1:10001"):
        unknown(dashboard, probe, address)
    assert dashboard.asked == []


@pytest.mark.parametrize("probe", PROBES[2:])
def test_a_list_that_fails_is_never_none(dashboard: Dashboard, probe: Any) -> None:
    """The job is known and the lists are not: every probe of them is unknown."""
    dashboard.jobs(job())
    dashboard.answers["/api/v0/nodes"] = {"result": False, "msg": "GCS is gone", "data": {}}
    assert "404" in unknown(dashboard, probe)


@pytest.mark.parametrize(
    ("probe", "kind"), [(nodes, "nodes"), (actors, "actors"), (placement, "placement_groups"), (tasks, "tasks")]
)
def test_a_list_that_is_cut_is_never_none(dashboard: Dashboard, probe: Any, kind: str) -> None:
    """Nothing wrong is in the part that came: unknown, for the rest may hold it."""
    dashboard.jobs(job())
    dashboard.lists("workers")
    dashboard.lists(kind, num_filtered=12_000, total=12_000)
    assert "cut: 0 of 12000" in unknown(dashboard, probe)


def test_no_job_of_slime_is_said_with_how_to_name_one(dashboard: Dashboard) -> None:
    """Jobs of others are none of ours, nor is a list of none."""
    dashboard.jobs(job(entrypoint="python3 serve.py"))
    dashboard.lists("actors", actor("Replica"))
    with pytest.raises(RefusedError) as raised:
        ray_cluster.look((dashboard.url,))
    assert "none of the 1 jobs" in raised.value.why.en
    assert f"--ray {dashboard.url}/#/jobs/ID" in raised.value.settle.en


def test_a_launcher_of_ones_own_is_known_by_its_actors(dashboard: Dashboard) -> None:
    """Where no entrypoint is a training command, the job that has trainers is slime's."""
    dashboard.jobs(job("mine", entrypoint="python3 run_my.py"), job("other", "0b000000", entrypoint="python3 x.py"))
    dashboard.lists("actors", actor("MegatronTrainRayActor"), actor("Replica", job_id="0b000000"))
    assert ray_cluster.look((dashboard.url,)).job.id == "mine"


def test_jobs_that_began_together_are_asked_about(dashboard: Dashboard) -> None:
    """Nobody can tell which is meant, so none is taken, and the address that names one decides."""
    dashboard.jobs(job("a"), job("b", "0b000000"))
    assert f"--ray {dashboard.url}/#/jobs/" in str(ask(ray_job, ray=dashboard.url).settle_with)
    finding = ask(ray_job, ray=f"{dashboard.url}/#/jobs/b")
    assert word(finding) == "ok:running"
    assert "Job b runs" in finding.summary.en


def test_the_first_dashboard_among_several_addresses_is_asked(dashboard: Dashboard) -> None:
    """A GCS address that stands beside a dashboard's, for scans, is no hindrance."""
    dashboard.jobs(job())
    assert ray_cluster.look(("127.0.0.1:6379", dashboard.url)).job.id == "raysubmit_a"


def test_logs_of_another_job_are_not_the_live_jobs(dashboard: Dashboard, tmp_path: Path) -> None:
    """A log concerns the job when it names its submission, by its own name or at its head; else it may be any."""
    dashboard.jobs(job())
    live = ray_cluster.look((dashboard.url,))
    other, head = tmp_path / "job.log", tmp_path / "submitted.log"
    other.write_text("[2026-08-21 10:00:00] x.py:1 - step\n")
    head.write_text("SUCC cli.py:66 -- Job 'raysubmit_a' submitted successfully\n")
    named = tmp_path / "job-driver-raysubmit_a.log"
    named.write_text("x\n")
    assert ray_cluster.concerns(evidence_of(("ray", dashboard.url)), live)
    assert not ray_cluster.concerns(evidence_of(("log", other)), live)
    assert ray_cluster.concerns(evidence_of(("log", other), ("log", head)), live)
    assert ray_cluster.concerns(evidence_of(("log", named)), live)


def test_words_of_a_stranger_are_safe(dashboard: Dashboard) -> None:
    """Ids, statuses, messages and classes full of control characters are drawn without them."""
    bad = "\x1b[2J\u202e[/rank0]\x00"
    dashboard.jobs(job(f"ray{bad}", status="FAILED", message=f"x\n{bad}", entrypoint=f"{ENTRY} --x '{bad}'"))
    dashboard.lists("actors", actor(f"SGLangEngine{bad}", "DEAD", {"oom_context": {"error_message": bad}}))
    dashboard.lists("tasks", actor("x", "FAILED") | {"name": bad, "error_type": bad})
    dashboard.lists("workers")
    dashboard.lists("nodes", {"node_ip": bad, "state": "DEAD", "state_message": bad})
    for probe in (ray_job, nodes, actors, tasks):
        finding = ask(probe, ray=dashboard.url)
        cells = [cell for table in finding.tables for row in table.rows for cell in row]
        assert is_safe("".join([finding.summary.en, finding.summary.zh, *cells]))
        assert finding.verdict.decides


def test_a_log_whose_name_is_no_utf8_is_looked_at(dashboard: Dashboard, tmp_path: Path) -> None:
    """A name that holds bytes of another encoding concerns the job when it names it, and breaks nothing else."""
    dashboard.jobs(job())
    live = ray_cluster.look((dashboard.url,))
    other, named = (os.fsdecode(os.fsencode(tmp_path) + name) for name in (b"/\xff.log", b"/\xff-raysubmit_a.log"))
    for path in (other, named):
        Path(path).write_text("x\n")
    assert not ray_cluster.concerns(evidence_of(("log", other)), live)
    assert ray_cluster.concerns(evidence_of(("log", named)), live)
