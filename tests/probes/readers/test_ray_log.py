"""A fetched log: whole where it can be, only growing, and telling what it lacks."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from probes.readers import ray_keep, ray_log
from probes.readers.ray_http import RefusedError, read_address
from probes.readers.ray_jobs import Job, read_jobs
from probes.readers.ray_log import KeptError, fetch
from probes.readers.ray_state import Record
from tests.probes.dashboard import Dashboard, Handler, job, send


def lines(start: int, end: int) -> bytes:
    """Return numbered lines, no two of them alike."""
    return b"".join(b"line %d of the job\n" % number for number in range(start, end))


def running(**more: object) -> Job:
    """Return a job that was submitted."""
    fields = job(**more)  # type: ignore[arg-type]
    return read_jobs([Record(fields, "", None, None, "")])[0]


def test_a_log_is_fetched_whole_and_then_only_its_end(dashboard: Dashboard) -> None:
    """The second look asks for the last lines and appends what is new, so that cited lines stay where they are."""
    address = read_address(dashboard.url)
    dashboard.log(lines(0, 5000) + b"half a li")
    path = fetch(address, running())
    assert Path(path).read_bytes() == lines(0, 5000) + b"half a li"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    before = os.stat(path).st_ino
    dashboard.log(lines(0, 5000) + b"half a line\n" + lines(6000, 9000))
    assert fetch(address, running()) == path
    assert Path(path).read_bytes() == lines(0, 5000) + b"half a line\n" + lines(6000, 9000)
    assert os.stat(path).st_ino == before
    asked = [parse_qs(urlsplit(each).query)["lines"][0] for each in dashboard.asked]
    assert asked == ["-1", "2000", "40000"]


def test_nothing_new_is_nothing_appended(dashboard: Dashboard) -> None:
    """A look at a log that did not grow changes nothing."""
    address = read_address(dashboard.url)
    dashboard.log(lines(0, 10))
    path = fetch(address, running())
    assert fetch(address, running()) == path
    assert Path(path).read_bytes() == lines(0, 10)


def test_a_job_that_ended_is_not_asked_again(dashboard: Dashboard) -> None:
    """Its log is whole; one that ended since the last look is asked once more."""
    address = read_address(dashboard.url)
    dashboard.log(lines(0, 10))
    path = fetch(address, running())
    dashboard.log(lines(0, 20))
    ended = running(status="FAILED", end_time=99_000)
    assert fetch(address, ended) == path
    count = len(dashboard.asked)
    assert fetch(address, ended) == path
    assert len(dashboard.asked) == count
    assert Path(path).read_bytes() == lines(0, 20)


def test_another_log_under_the_same_name_is_another_file(dashboard: Dashboard) -> None:
    """Where the end does not join on to what is there, what was cited stays and the new log has its own file."""
    address = read_address(dashboard.url)
    dashboard.log(lines(0, 10))
    path = fetch(address, running())
    dashboard.log(lines(50, 60))
    other = fetch(address, running())
    assert other != path
    assert Path(path).read_bytes() == lines(0, 10)
    assert Path(other).read_bytes() == lines(50, 60)


def test_of_a_long_log_start_and_end_are_fetched(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is told by a line in its place and by the file's name; at a line's end it is cut."""
    monkeypatch.setattr(ray_log, "WHOLE_BYTES", 2000)
    monkeypatch.setattr(ray_log, "TAIL_BYTES", 1000)
    monkeypatch.setattr(ray_log, "ANCHOR", 100)
    monkeypatch.setattr(ray_log, "STEPS", (20,))
    whole = lines(0, 5000)
    dashboard.log(whole)
    path = fetch(read_address(dashboard.url), running())
    assert ray_keep.is_cut(path)
    head, _, tail = Path(path).read_bytes().partition(ray_log.CUT_LINE)
    assert whole.startswith(head)
    assert head.endswith(b"\n")
    assert whole.endswith(tail)
    assert 500 < len(tail) <= 2000
    dashboard.log(whole + b"and on\n")
    assert fetch(read_address(dashboard.url), running()) == path
    assert Path(path).read_bytes().endswith(tail + b"and on\n")


def test_start_and_end_that_overlap_are_joined(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log a little longer than the first piece is whole after the second."""
    monkeypatch.setattr(ray_log, "WHOLE_BYTES", 2000)
    monkeypatch.setattr(ray_log, "TAIL_BYTES", 1500)
    monkeypatch.setattr(ray_log, "ANCHOR", 100)
    dashboard.log(lines(0, 120))
    path = fetch(read_address(dashboard.url), running())
    assert not ray_keep.is_cut(path)
    assert Path(path).read_bytes() == lines(0, 120)


def test_a_job_that_printed_nothing_has_no_log(dashboard: Dashboard) -> None:
    """An empty answer makes no file."""
    dashboard.log(b"")
    assert fetch(read_address(dashboard.url), running()) == ""


def test_the_job_api_is_asked_where_the_file_cannot_be_had(dashboard: Dashboard) -> None:
    """A Ray without the newer way gives the whole log as text; another form of it is refused."""
    dashboard.answers["/api/jobs/raysubmit_a/logs"] = {"logs": "one\ntwo\u2028\n"}
    path = fetch(read_address(dashboard.url), running())
    assert Path(path).read_bytes() == "one\ntwo\u2028\n".encode()
    dashboard.answers["/api/jobs/raysubmit_b/logs"] = {"logs": ["no", "text"]}
    with pytest.raises(RefusedError):
        fetch(read_address(dashboard.url), running(name="raysubmit_b"))


def test_a_log_without_an_end_is_bounded(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that never stops sending is left at the limit."""
    monkeypatch.setattr(ray_log, "WHOLE_BYTES", 100_000)
    monkeypatch.setattr(ray_log, "TAIL_BYTES", 10_000)

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(lines(0, 100))

    dashboard.answers["/api/v0/logs/file"] = endless
    path = fetch(read_address(dashboard.url), running())
    assert ray_keep.is_cut(path)
    assert os.path.getsize(path) <= 100_000 + len(ray_log.CUT_LINE)


def test_a_name_from_the_server_stays_in_the_folder(dashboard: Dashboard) -> None:
    """Ids are a stranger's words: neither a path nor a control character of them gets into a file name."""
    dashboard.answers["/api/v0/logs/file"] = lambda handler: send(handler, b"text\n", "text/plain")
    address = read_address(dashboard.url)
    path = fetch(address, running(name="../../\x1b[2J/evil\n"))
    inside = os.path.relpath(os.path.realpath(path), os.path.realpath(address.cluster.folder))
    assert not inside.startswith("..")
    assert inside.isprintable()


def test_where_nothing_can_be_written_it_is_said(
    dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names the folder and the variable to set, and the dashboard is not asked for the log."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "file"))
    with pytest.raises(RefusedError) as raised:
        fetch(read_address(dashboard.url), running())
    assert "cannot be written" in raised.value.why.en
    assert "SLIME_RUNBOOK_CACHE" in raised.value.settle.en
    assert dashboard.asked == []


def test_a_damaged_note_is_a_fresh_start(dashboard: Dashboard) -> None:
    """Where the note about the last look is no JSON, or names another file, the log is fetched from its start."""
    address = read_address(dashboard.url)
    dashboard.log(lines(0, 10))
    path = fetch(address, running())
    for note in (b"{", json.dumps({"name": "../../etc/passwd"}).encode(), b"[]"):
        Path(os.path.dirname(path), "current.json").write_bytes(note)
        again = fetch(address, running())
        assert os.path.dirname(again) == os.path.dirname(path)
        assert Path(again).read_bytes() == lines(0, 10)


@pytest.mark.parametrize("status", [404, 500])
def test_a_log_whose_node_is_gone_goes_on_by_the_job_api(dashboard: Dashboard, status: int) -> None:
    """What the job API gives joins on to what was fetched; what does not join is a file of its own."""
    address = read_address(dashboard.url)
    dashboard.log(lines(0, 10))
    path = fetch(address, running())
    dashboard.answers["/api/v0/logs/file"] = lambda handler: send(handler, b"gone", "text/plain", status)
    dashboard.answers["/api/jobs/raysubmit_a/logs"] = {"logs": lines(0, 20).decode()}
    assert fetch(address, running()) == path
    assert Path(path).read_bytes() == lines(0, 20)
    dashboard.answers["/api/jobs/raysubmit_a/logs"] = {"logs": lines(50, 60).decode()}
    other = fetch(address, running())
    assert other != path
    assert Path(other).read_bytes() == lines(50, 60)


@pytest.mark.parametrize("status", [401, 404, 500])
def test_what_was_fetched_is_kept_where_nothing_new_can_be_had(dashboard: Dashboard, status: int) -> None:
    """The refusal names the file that is there, which is as it was."""
    address = read_address(dashboard.url)
    dashboard.log(lines(0, 10))
    path = fetch(address, running())
    dashboard.answers["/api/v0/logs/file"] = lambda handler: send(handler, b"gone", "text/plain", status)
    with pytest.raises(KeptError) as raised:
        fetch(address, running())
    assert raised.value.path == path
    assert raised.value.why.en
    assert Path(path).read_bytes() == lines(0, 10)


def test_an_empty_answer_takes_nothing_away(dashboard: Dashboard) -> None:
    """A dashboard that has lost the log leaves what was fetched of it."""
    address = read_address(dashboard.url)
    dashboard.log(lines(0, 10))
    path = fetch(address, running())
    dashboard.log(b"")
    assert fetch(address, running()) == path
