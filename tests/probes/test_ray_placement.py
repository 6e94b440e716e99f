"""Placement groups that wait: what is asked, there and free, and what no node can ever hold."""

from __future__ import annotations

import time

import pytest

from probes.ray_placement import placement
from tests.probes.asking import ask, word
from tests.probes.dashboard import NOW, Dashboard, group, job, node, usage


def cluster(dashboard: Dashboard, *groups: dict[str, object], **used: tuple[float, float]) -> None:
    """Have a job, two nodes of eight GPUs, a third that is dead, and these groups."""
    dashboard.jobs(job())
    dashboard.lists("placement_groups", *groups)
    dashboard.lists("nodes", node("10.0.0.1"), node("10.0.0.2"), node("10.0.0.3", "DEAD", "x", NOW))
    dashboard.answers["/api/cluster_status"] = usage(time.time(), **used)


def test_more_than_all_nodes_have_is_impossible(dashboard: Dashboard) -> None:
    """Twenty GPUs of sixteen: what can never be is counted on the nodes that live."""
    cluster(dashboard, group(20, time.time() - 600), GPU=(4.0, 16.0))
    finding = ask(placement, ray=dashboard.url)
    assert word(finding) == "problem:pending"
    assert "waits for 20 GPU since 10 min" in finding.summary.en
    assert "16 are registered, of which 12 are free" in finding.summary.en
    asked, never = finding.tables
    assert asked.rows == (("GPU", "20", "16", "12"), ("CPU", "20", "128", "-"))
    assert never.rows == (("GPU", "20", "16"),)


def test_a_bundle_that_no_node_holds_is_impossible(dashboard: Dashboard) -> None:
    """Twelve GPUs in one bundle fit the cluster and no node of it."""
    cluster(dashboard, group(1, time.time() - 600, gpus=12.0))
    finding = ask(placement, ray=dashboard.url)
    assert word(finding) == "problem:pending"
    assert finding.tables[1].rows[0] == ("one bundle's GPU", "12", "8")


def test_what_others_hold_is_a_lead(dashboard: Dashboard) -> None:
    """Sixteen GPUs are there and four are free: an earlier job may give them back."""
    cluster(dashboard, group(16, time.time() - 600), GPU=(12.0, 16.0))
    finding = ask(placement, ray=dashboard.url)
    assert word(finding) == "warning:pending"
    assert "not free" in finding.summary.en
    assert "4 are free" in finding.summary.en


def test_rays_own_word_is_enough(dashboard: Dashboard) -> None:
    """What Ray calls infeasible, by labels that are not counted here, is impossible."""
    one = group(2, time.time() - 600)
    one["stats"] = {**one["stats"], "scheduling_state": "INFEASIBLE"}
    cluster(dashboard, one)
    assert word(ask(placement, ray=dashboard.url)) == "problem:pending"


def test_a_group_that_was_just_asked_for_does_not_wait_yet(dashboard: Dashboard) -> None:
    """Within half a minute nothing is said, for nodes may be joining."""
    cluster(dashboard, group(20, time.time() - 5))
    assert word(ask(placement, ray=dashboard.url)) == "unknown"


def test_the_clusters_clock_counts(dashboard: Dashboard) -> None:
    """A cluster whose clock is ahead of ours has waited as long as it says."""
    cluster(dashboard, group(20, time.time() + 900))
    dashboard.answers["/api/cluster_status"] = usage(time.time() + 1000)
    assert word(ask(placement, ray=dashboard.url)) == "problem:pending"


def test_a_list_of_nodes_that_is_cut_makes_nothing_impossible(dashboard: Dashboard) -> None:
    """Nodes that are not in the list may hold what those in it cannot."""
    cluster(dashboard, group(20, time.time() - 600))
    dashboard.lists("nodes", node("10.0.0.1"), num_filtered=3)
    assert word(ask(placement, ray=dashboard.url)) == "warning:pending"


def test_groups_that_are_placed_or_gone_do_not_wait(dashboard: Dashboard) -> None:
    """A job with its group is `placed`, whatever was removed before."""
    cluster(dashboard, group(2, NOW, "CREATED"), group(2, NOW, "REMOVED"))
    assert word(ask(placement, ray=dashboard.url)) == "ok:placed"


@pytest.mark.parametrize("groups", [[], [group(2, NOW, "REMOVED")]])
def test_a_job_that_holds_no_group_is_none(dashboard: Dashboard, groups: list[dict[str, object]]) -> None:
    """Nothing is placed where nothing was asked for."""
    cluster(dashboard, *groups)
    finding = ask(placement, ray=dashboard.url)
    assert word(finding) == "ok:none"
    assert "holds no placement group" in finding.summary.en


def test_before_the_driver_began_nothing_is_placed(dashboard: Dashboard) -> None:
    """A submitted job without a driver can have asked for nothing yet."""
    cluster(dashboard)
    dashboard.jobs({**job(), "job_id": None})
    assert word(ask(placement, ray=dashboard.url)) == "not_applicable"


def test_a_cluster_whose_clock_is_behind_counts_by_its_own(dashboard: Dashboard) -> None:
    """Ten minutes behind ours, asked for five seconds ago by its clock: too young to be said to wait."""
    cluster(dashboard, group(20, time.time() - 605))
    dashboard.answers["/api/cluster_status"] = usage(time.time() - 600)
    assert word(ask(placement, ray=dashboard.url)) == "unknown"


def test_without_the_clusters_clock_ours_counts(dashboard: Dashboard) -> None:
    """A status without a time leaves our own."""
    cluster(dashboard, group(20, time.time() - 600))
    dashboard.answers["/api/cluster_status"] = usage(0)
    assert "since 10 min" in ask(placement, ray=dashboard.url).summary.en


SILENT = {**group(20, NOW), "stats": {}}


def test_a_wait_of_unknown_length_is_unknown(dashboard: Dashboard) -> None:
    """No time is made up for a group of which Ray tells none."""
    cluster(dashboard, SILENT)
    finding = ask(placement, ray=dashboard.url)
    assert word(finding) == "unknown"
    assert "does not tell since when" in finding.summary.en


def test_a_group_that_waits_for_long_is_told_beside_others(dashboard: Dashboard) -> None:
    """One of unknown age and one that is young hide none that waits."""
    cluster(dashboard, SILENT, group(4, time.time() - 600), group(20, time.time() - 5))
    finding = ask(placement, ray=dashboard.url)
    assert word(finding) == "warning:pending"
    assert "4 GPU since 10 min" in finding.summary.en


def test_the_tables_are_in_one_language(dashboard: Dashboard) -> None:
    """Columns and the words of cells are Chinese where the front is."""
    cluster(dashboard, group(1, time.time() - 600, gpus=12.0))
    asked, never = (table.said("zh") for table in ask(placement, ray=dashboard.url).tables)
    assert asked.columns == ("资源", "请求", "已有", "空闲")
    assert never.rows[0][0] == "单个 bundle 的 GPU"
