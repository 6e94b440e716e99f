"""Lists of the state API: what is no whole list says so, and a record is cited where it is kept."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import ray_keep
from probes.readers.ray_http import RefusedError, read_address
from probes.readers.ray_state import jobs, listed, number, usage
from tests.helpers import is_safe
from tests.probes.dashboard import Dashboard, actor, job, listing
from tests.probes.dashboard import usage as used


def refusal(dashboard: Dashboard) -> str:
    """Return why the list of actors is refused."""
    with pytest.raises(RefusedError) as raised:
        listed(read_address(dashboard.url), "actors")
    assert is_safe(raised.value.why.en + raised.value.why.zh)
    return raised.value.why.en


def test_a_record_stands_on_its_own_line(dashboard: Dashboard) -> None:
    """The answer is kept for its owner alone, and each citation quotes the line that holds its record."""
    dashboard.lists("actors", actor("A"), actor("B\u202e"))
    found = listed(read_address(dashboard.url), "actors", ("job_id", "=", "0a000000"))
    assert [record.text("class_name") for record in found.records] == ["A", "B\u202e"]
    assert (found.total, found.gap) == (2, None)
    path = Path(found.records[0].path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    lines = path.read_bytes().split(b"\n")
    for index, record in enumerate(found.records, 1):
        assert json.loads(lines[index]) == dict(record.fields)
        citation = record.cite()
        assert citation.line == index + 1
        assert citation.offset == sum(len(line) + 1 for line in lines[:index])
    assert "filter_keys=job_id&filter_predicates=%3D&filter_values=0a000000" in dashboard.asked[0]
    assert "limit=10000" in dashboard.asked[0]


def test_probes_share_one_answer_of_now(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same question is asked once within ten seconds, and again afterwards."""
    assert ray_keep.FRESH == 10.0
    monkeypatch.setattr(ray_keep, "FRESH", 86400.0)  # a machine may take its time between the two
    dashboard.lists("nodes")
    address = read_address(dashboard.url)
    listed(address, "nodes")
    listed(address, "nodes")
    assert len(dashboard.asked) == 1
    monkeypatch.setattr(ray_keep, "FRESH", -1.0)
    listed(address, "nodes")
    assert len(dashboard.asked) == 2


def test_without_a_place_to_keep_answers_are_cited_by_address(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the cache cannot be written, the list is read all the same."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "file"))
    dashboard.lists("actors", actor("A"))
    (record,) = listed(read_address(dashboard.url), "actors").records
    citation = record.cite()
    assert citation.path.startswith(f"{dashboard.url}/api/v0/actors")
    assert (citation.line, citation.offset) == (None, None)
    assert '"class_name": "A"' in citation.excerpt


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"total": 12_000, "num_after_truncation": 10_000}, "cut"),
        ({"num_filtered": 3}, "cut"),
        ({"partial_failure_warning": "3 of 4 raylets\x1b[2J did not answer"}, "did not answer"),
    ],
)
def test_a_list_that_is_cut_says_so(dashboard: Dashboard, more: dict[str, Any], word: str) -> None:
    """Truncation, a limit and a part of the cluster that was silent are told as the gap of the list."""
    dashboard.lists("actors", actor("A"), **more)
    found = listed(read_address(dashboard.url), "actors")
    assert found.gap is not None
    assert word in found.gap.en
    assert is_safe(found.gap.en + found.gap.zh)


def test_what_a_filter_leaves_out_is_no_gap(dashboard: Dashboard) -> None:
    """The source that filters tells fewer than its total, and nothing is missing for that; at its limit it may be."""
    address = read_address(dashboard.url)
    dashboard.lists("actors", actor("A"), total=130)
    dashboard.lists("tasks", actor("A"), total=20_000, num_after_truncation=10_000)
    assert listed(address, "actors", ("job_id", "=", "0a")).gap is None
    assert listed(address, "tasks", ("job_id", "=", "0a")).gap is not None


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"<!DOCTYPE html><title>Log in</title>", "a page for people"),
        (b"", "no JSON"),
        (b"\xff\xfe{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"result": true', "no JSON"),
        (b"[]", "not as Ray's dashboard"),
        (b'{"result": true, "data": {"result": {"result": [1, 2]}}}', "not as Ray's dashboard"),
        (b'{"result": true, "data": null}', "not as Ray's dashboard"),
        (b'{"result": false, "msg": "GCS is\\u001b[2J gone", "data": {}}', "Ray could not answer: GCS is gone"),
    ],
)
def test_what_is_no_list_is_refused(dashboard: Dashboard, body: bytes, word: str) -> None:
    """A page, half an answer, bytes that are no JSON, another shape and result false are never an empty list."""
    dashboard.answers["/api/v0/actors"] = body
    assert word in refusal(dashboard)


def test_jobs_are_read_newest_first(dashboard: Dashboard) -> None:
    """The list of jobs is an array; anything else is refused."""
    dashboard.jobs(job("a", began=1.0), job("b", began=2.0))
    address = read_address(dashboard.url)
    assert [record.text("submission_id") for record in jobs(address).records] == ["b", "a"]
    dashboard.answers["/api/jobs/"] = {"jobs": []}
    for name in os.listdir(address.cluster.folder):
        if name[0].isdigit():
            ray_keep.prune(address.cluster, float(name) + 30 * 86400)
    with pytest.raises(RefusedError):
        jobs(address)


def test_usage_is_empty_where_the_autoscaler_does_not_tell(dashboard: Dashboard) -> None:
    """What is in use stands in the autoscaler's report; its second version has none."""
    address = read_address(dashboard.url)
    dashboard.answers["/api/cluster_status"] = used(5.0, GPU=(3.0, 8.0))
    assert usage(address) == ({"GPU": (3.0, 8.0)}, 5.0)
    other = read_address(f"{dashboard.url}/v2")
    dashboard.answers["/v2/api/cluster_status"] = {"result": True, "data": {"clusterStatus": None}}
    assert usage(other) == ({}, 0.0)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text() | st.integers(), st.lists))
def test_a_number_is_a_number_whatever_it_is(value: object) -> None:
    """Any JSON value gives a finite number."""
    assert abs(number(value)) < 1e21


def test_a_number_may_be_text() -> None:
    """Ray's protobuf writes large integers as text; what is no number counts as 0."""
    assert number("1795975511024256529") == 1795975511024256529.0
    assert number("many") == number(listing()) == number(True) == 0.0
