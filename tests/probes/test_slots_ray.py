"""An address alone becomes evidence: command and log of slime's job, or words on why not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probes.readers.launch import read_launch
from probes.slots_ray import follow_command, follow_output
from runbook.catalog import load_slots
from runbook.discovery import Found, discover
from runbook.evidence import Item, Reference
from runbook.text import Text
from tests.helpers import is_safe
from tests.probes.dashboard import NOW, Dashboard, job

LINE = b"[2026-08-21 10:00:00] model.py:918 - step 0: {'train/loss': 0.1, 'train/step': 0}\n"


def found(*given: tuple[str, str], root: str = "") -> Found:
    """Discover with the installed slots."""
    slots, followers = load_slots()
    return discover(root, given, slots, followers)


def yielded(follow: object, address: str) -> tuple[list[str], str]:
    """Return the paths that a follower yields, and what it notes."""
    assert callable(follow)
    every = list(follow(Item("ray", address, Text("", ""))))
    notes = [one for one in every if isinstance(one, Text)]
    assert all(is_safe(one.en + one.zh) for one in notes)
    return [one.path for one in every if isinstance(one, Reference)], " ".join(one.en for one in notes)


def test_an_address_alone_fills_launch_and_log(dashboard: Dashboard) -> None:
    """Both items say where they are from; the flags of the entrypoint are read, and the log is as it was printed."""
    dashboard.jobs(job())
    dashboard.log(LINE)
    said = found(("ray", dashboard.url))
    launch, log = said.evidence.paths("launch"), said.evidence.paths("log")
    assert "rollout-batch-size" in read_launch(launch[0]).jobs[0].flags
    assert Path(log[0]).read_bytes() == LINE
    whence = {item.slot: item.why.en for item in said.evidence.items if not item.missing}
    host = dashboard.url.partition("//")[2]
    assert f"fetched from {host}" in whence["log"]
    assert f"as {host} tells it" in whence["launch"]
    assert said.notes == ()
    assert "/models/toy" in [item.path for item in said.evidence.missing("hf_checkpoint")]


def test_what_is_there_already_is_not_fetched(dashboard: Dashboard, tmp_path: Path) -> None:
    """A log of RUN, or one that was given, is the evidence; only the command is taken from the cluster."""
    dashboard.jobs(job())
    dashboard.log(LINE)
    (tmp_path / "job.log").write_bytes(LINE)
    for said in (
        found(("ray", dashboard.url), root=str(tmp_path)),
        found(("ray", dashboard.url), ("log", str(tmp_path / "job.log"))),
    ):
        assert said.evidence.paths("log") == (str(tmp_path / "job.log"),)
        assert len(said.evidence.paths("launch")) == 1
    assert "/api/v0/logs/file" not in dashboard.paths()


def test_a_second_look_brings_the_log_up_to_date(dashboard: Dashboard) -> None:
    """The same file grows, so what follows a run sees it."""
    dashboard.jobs(job())
    dashboard.log(LINE)
    (path,) = found(("ray", dashboard.url)).evidence.paths("log")
    dashboard.log(LINE * 3)
    assert found(("ray", dashboard.url)).evidence.paths("log") == (path,)
    assert Path(path).read_bytes() == LINE * 3


def test_other_jobs_that_may_be_meant_are_named(dashboard: Dashboard) -> None:
    """The newest is taken, and the note says how to choose another."""
    dashboard.jobs(job("new"), job("old", "0b000000", NOW - 60))
    paths, note = yielded(follow_command, dashboard.url)
    assert "new" in os.path.basename(paths[0])
    assert "Others: old" in note
    assert f"--ray {dashboard.url}/#/jobs/ID" in note
    paths, note = yielded(follow_command, f"{dashboard.url}/#/jobs/old")
    assert ("old" in os.path.basename(paths[0]), note) == (True, "")


def test_equal_candidates_are_asked_about(dashboard: Dashboard) -> None:
    """Two that began together: nothing is taken, and the note names both."""
    dashboard.jobs(job("a"), job("b", "0b000000"))
    said = found(("ray", dashboard.url))
    assert said.evidence.paths("launch") == said.evidence.paths("log") == ()
    (note,) = said.notes
    assert f"{dashboard.url}/#/jobs/a" in note.en
    assert f"{dashboard.url}/#/jobs/b" in note.en


@pytest.mark.parametrize("address", ["127.0.0.1:6379", "ray://127.0.0.1:10001"])
def test_a_wrong_address_is_told_once(address: str) -> None:
    """The note says what to give, and the address stays evidence for what can use it."""
    said = found(("ray", address))
    assert [item.slot for item in said.evidence.items] == ["ray"]
    (note,) = said.notes
    assert "http://HOST:8265" in note.en


def test_a_dead_dashboard_is_a_note(dashboard: Dashboard) -> None:
    """Discovery goes on and says why nothing came."""
    said = found(("ray", dashboard.url))
    assert len(said.notes) == 1
    assert "404" in said.notes[0].en


def test_a_driver_started_by_hand_has_no_log_in_ray(dashboard: Dashboard) -> None:
    """Its command is taken, and the note says to give what it printed."""
    dashboard.jobs(job(type="DRIVER", submission_id=None))
    paths, _ = yielded(follow_command, dashboard.url)
    assert len(paths) == 1
    paths, note = yielded(follow_output, dashboard.url)
    assert paths == []
    assert "--log PATH" in note


def test_a_log_that_cannot_be_had_is_a_note(dashboard: Dashboard) -> None:
    """The node of the driver is gone, or the job has printed nothing: each is said."""
    dashboard.jobs(job())
    assert "was not fetched" in yielded(follow_output, dashboard.url)[1]
    dashboard.log(b"")
    assert "printed nothing yet" in yielded(follow_output, dashboard.url)[1]


def test_a_folder_that_cannot_be_written_is_a_note(
    dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither command nor log can be kept: both notes name the variable to set."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "file"))
    dashboard.jobs(job())
    for follow in (follow_command, follow_output):
        paths, note = yielded(follow, dashboard.url)
        assert paths == []
        assert "SLIME_RUNBOOK_CACHE" in note


def test_a_long_log_is_told_to_lack_its_middle(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The item says so, and a probe of the log does not say that something is absent."""
    monkeypatch.setattr("probes.readers.ray_log.WHOLE_BYTES", 1000)
    monkeypatch.setattr("probes.readers.ray_log.TAIL_BYTES", 500)
    dashboard.jobs(job())
    dashboard.log(b"".join(LINE.replace(b"step 0", b"step %d" % number) for number in range(100)))
    said = found(("ray", dashboard.url))
    (item,) = [item for item in said.evidence.items if item.slot == "log"]
    assert "its middle was not fetched" in item.why.en
    from probes.known_nccl import nccl_in_log
    from runbook.probe import silent

    finding = nccl_in_log.run(said.evidence, silent)
    assert finding.verdict.value == "unknown"
    assert "middle" in finding.summary.en


def test_a_log_fetched_before_is_offered_with_a_note(dashboard: Dashboard) -> None:
    """The node of the driver is gone: the kept file is evidence, of the time when it came, and a note says why."""
    dashboard.jobs(job())
    dashboard.log(LINE)
    (path,), _ = yielded(follow_output, dashboard.url)
    os.utime(path, (0, 0))
    dashboard.answers["/api/v0/logs/file"] = None
    paths, note = yielded(follow_output, dashboard.url)
    assert paths == [path]
    assert "not brought up to date" in note
    (item,) = [one for one in follow_output(Item("ray", dashboard.url, Text("", ""))) if isinstance(one, Reference)]
    assert "at 00:00:00 UTC" in item.why.en
