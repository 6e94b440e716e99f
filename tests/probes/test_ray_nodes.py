"""Nodes that live, and nodes that died while the job was there."""

from __future__ import annotations

from probes.ray_nodes import nodes
from tests.probes.asking import ask, word
from tests.probes.dashboard import NOW, Dashboard, job, node

LOST = "Unexpected termination: health check failed due to missing too many heartbeats"


def test_a_node_that_died_during_the_job_is_told(dashboard: Dashboard) -> None:
    """The first to die is named with Ray's reason, and the rest is counted."""
    dashboard.jobs(job())
    dashboard.lists(
        "nodes",
        node("10.0.0.1"),
        node("10.0.0.3", "DEAD", LOST, NOW + 60),
        node("10.0.0.2", "DEAD", LOST, NOW + 30),
    )
    finding = ask(nodes, ray=dashboard.url)
    assert word(finding) == "warning:dead"
    assert finding.summary.en.startswith("2 nodes died while the job was there, 10.0.0.2 first: Unexpected termination")
    assert len(finding.citations) == 2


def test_what_died_before_behind_or_as_asked_is_no_loss(dashboard: Dashboard) -> None:
    """A node that died before the job began or after it ended, or was told to leave, is not this job's."""
    dashboard.jobs(job(status="SUCCEEDED", end_time=int((NOW + 100) * 1000)))
    dashboard.lists(
        "nodes",
        node("10.0.0.1"),
        node("10.0.0.2", "DEAD", LOST, NOW - 60),
        node("10.0.0.3", "DEAD", LOST, NOW + 200),
        node("10.0.0.4", "DEAD", "Expected termination: received SIGTERM", NOW + 50),
    )
    finding = ask(nodes, ray=dashboard.url)
    assert word(finding) == "ok:alive"
    assert "1 node with 8 GPUs" in finding.summary.en


def test_many_alike_are_counted(dashboard: Dashboard) -> None:
    """Nodes with the same resources share a row where there are many, so that the odd one is seen."""
    dashboard.jobs(job())
    dashboard.lists("nodes", *(node(f"10.0.1.{number}") for number in range(31)), node("10.0.2.9", gpus=7.0))
    (table,) = ask(nodes, ray=dashboard.url).tables
    assert [row[:2] for row in table.rows] == [("31 nodes", "8"), ("1 node", "7")]
