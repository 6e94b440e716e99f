"""Tests of runbook.session.desk, with real workers and without a journal on disk."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runbook.catalog import Catalog
from runbook.errors import SessionError
from runbook.evidence import Item
from runbook.finding import Verdict
from runbook.session import events as ev
from runbook.session.desk import Desk, Memory, login_name
from runbook.text import Text
from runbook.triage import Standing
from runbook.walk import By, position
from tests.helpers import check_citations
from tests.runbook import misbehaving, small

PATIENCE = 30.0


class Heard:
    """Collects what a desk tells its listeners."""

    def __init__(self, desk: Desk) -> None:
        self.all: queue.Queue[tuple[str, Any]] = queue.Queue()
        desk.listen(lambda kind, payload: self.all.put((kind, payload)))

    def next(self, *kinds: str) -> Any:
        """Return the payload of the next message of one of these kinds."""
        while True:
            kind, payload = self.all.get(timeout=PATIENCE)
            if kind in kinds:
                return payload


class Full:
    """A log on a disk that became full."""

    def append(self, event: ev.Event, now: float) -> ev.Record:
        """Fail as a journal does."""
        raise SessionError(f"{type(event).__name__} at {now}: no space left on device", "free some")

    def close(self) -> None:
        """Release nothing."""


@pytest.fixture
def desk() -> Iterator[Desk]:
    """Return an open desk over the small world, whose clock counts."""
    ticks = iter(range(1000, 2000))
    opened = Desk(small.catalog(), clock=lambda: float(next(ticks)))
    yield opened
    opened.close()


def with_log(desk: Desk, tmp_path: Path, content: bytes, run: str = "") -> None:
    """Give the desk a log as evidence."""
    path = tmp_path / f"job{run}.log"
    path.write_bytes(content)
    desk.append(ev.EvidenceAdded((Item("log", str(path), Text("given", "给定"), run=run),)))


def test_beginning_is_recorded(desk: Desk) -> None:
    """The opening names the tool, the flows with their hashes, RUN and the person; time comes from the desk's clock."""
    heard = Heard(desk)
    desk.begin("/run")
    record = heard.next("record")
    assert (record.n, record.t) == (0, 1000.0)
    assert record.event.flows == small.catalog().hashes
    assert (desk.state.root, desk.state.who, desk.state.began) == ("/run", (login_name(),), 1000.0)


def test_asking_a_probe_journals_its_finding(desk: Desk, tmp_path: Path) -> None:
    """A probe asked runs in a worker; its finding is recorded, announced and decides its node."""
    heard = Heard(desk)
    with_log(desk, tmp_path, small.GARBLED)
    desk.ask("small.load")
    while not isinstance((record := heard.next("record")).event, ev.Found):
        pass
    finding = desk.state.findings_of()["small.load"]
    assert record.event.finding == finding
    assert (finding.verdict, finding.answer, finding.citations[0].line) == (Verdict.PROBLEM, "not-loaded", 3)
    check_citations(finding)
    assert desk.state.decision(desk.catalog.flows["small"], "load").answer == "not-loaded"
    assert [v.cause for v in desk.report().confirmed] == ["not-loaded"]
    assert desk.jobs() == {}


def test_findings_of_two_runs_stay_apart(desk: Desk, tmp_path: Path) -> None:
    """A probe asked of an attached run reads that run's evidence."""
    heard = Heard(desk)
    with_log(desk, tmp_path, small.GARBLED)
    with_log(desk, tmp_path, small.FINE, run="r1")
    desk.append(ev.RunAttached("small", "released", "r1"))
    desk.ask("small.text")
    desk.ask("small.text", "r1")
    got = 0
    while got < 2:
        got += isinstance(heard.next("record").event, ev.Found)
    assert desk.state.findings_of()["small.text"].answer == "no"
    assert desk.state.findings_of("r1")["small.text"].answer == "yes"
    assert [v.cause for v in desk.report().confirmed] == []
    assert {v.cause for v in desk.report().causes if v.standing is Standing.POSSIBLE} >= {"buffer"}


def test_a_running_probe_is_not_started_twice(tmp_path: Path) -> None:
    """While a probe runs, asking again returns the same job; when it is over, it is asked anew."""
    catalog = Catalog({misbehaving.waits.id: misbehaving.waits})
    desk = Desk(catalog)
    try:
        with_log(desk, tmp_path, b"x\n")
        heard = Heard(desk)
        first = desk.ask("bad.waits")
        assert desk.ask("bad.waits") is first
        assert list(desk.jobs()) == [("", "bad.waits")]
        (tmp_path / "go").touch()
        heard.next("record")
        assert desk.ask("bad.waits") is not first
        heard.next("record")
    finally:
        desk.close()


def test_progress_is_announced_with_its_job(tmp_path: Path) -> None:
    """Listeners hear how far a probe is, and of which job."""
    desk = Desk(Catalog({misbehaving.reports.id: misbehaving.reports}))
    try:
        with_log(desk, tmp_path, b"x\n")
        heard = Heard(desk)
        job = desk.ask("bad.reports")
        told, done, total, unit = heard.next("progress")
        assert told is job
        assert (total, unit) == (3, "line")
        assert 1 <= done <= 3
    finally:
        desk.close()


def test_an_answer_like_the_probes_is_the_probes(desk: Desk, tmp_path: Path) -> None:
    """Taking what the probes decided counts as theirs; deciding otherwise, or saying who, counts as the person's."""
    heard = Heard(desk)
    with_log(desk, tmp_path, small.GARBLED)
    desk.ask("small.text")
    while not isinstance(heard.next("record").event, ev.Found):
        pass
    desk.answer("small", "no")
    desk.append(ev.WentBack("small", "coherent"))
    desk.answer("small", "yes")
    desk.append(ev.WentBack("small", "coherent"))
    desk.answer("small", "no", "bob")
    walk = desk.state.walk("small")
    given = [(step.answer, step.by, step.who) for step in (*walk.stale, *walk.steps)]
    assert given == [
        ("no", By.PROBE, ""),
        ("yes", By.PERSON, login_name()),
        ("no", By.PERSON, "bob"),
    ]
    assert walk.steps[0].probes == ("small.text",)
    assert position(desk.catalog.flows["small"], walk) == "load"


def test_triage_asks_cheap_probes_first(desk: Desk) -> None:
    """Every probe that a flow asks is asked once, in flow order, those that read bulk data last."""
    assert desk.triage_probes() == ["small.text", "small.load"]
    heavy = with_heavy(desk.catalog, "small.text")
    assert Desk(heavy).triage_probes() == ["small.load", "small.text"]


def with_heavy(catalog: Catalog, heavy: str) -> Catalog:
    """Return `catalog` with one probe declared heavy."""
    from dataclasses import replace

    probes = {name: replace(probe, heavy=name == heavy) for name, probe in catalog.probes.items()}
    return replace(catalog, probes=probes)


def test_a_full_disk_is_announced(tmp_path: Path) -> None:
    """What the journal cannot write is not in the state: the caller gets the error, a worker's finding becomes one."""
    desk = Desk(small.catalog(), Full())
    with pytest.raises(SessionError):
        desk.begin("/run")
    assert desk.state.root == ""
    heard = Heard(desk)
    desk.ask("small.load")
    assert "no space" in heard.next("error").message
    assert desk.state.findings == {}
    desk.close()


def test_a_replayed_desk_shows_the_same_and_warns_of_changed_flows(desk: Desk, tmp_path: Path) -> None:
    """The records of a session give the same state at another desk; a flow that changed since is named."""
    records: list[ev.Record] = []
    desk.listen(lambda kind, payload: records.append(payload) if kind == "record" else None)
    desk.begin("/run")
    with_log(desk, tmp_path, small.GARBLED)
    desk.answer("small", "no")
    again = Desk(small.catalog(), records=records)
    assert again.state == desk.state
    assert again.warnings == []
    assert isinstance(records[0].event, ev.Opened)
    old = msgspec.structs.replace(records[0], event=ev.Opened("0", {"small": "other", "gone": "x"}))
    warned = Desk(small.catalog(), records=[old])
    assert [words.en for words in warned.warnings] == ["changed since this session began: small"]


def test_closing_ends_jobs_and_records_the_leave(tmp_path: Path) -> None:
    """A desk that is closed has no job, its last record is the leave, and nothing is recorded afterwards."""
    desk = Desk(Catalog({misbehaving.stubborn.id: misbehaving.stubborn}), Memory())
    with_log(desk, tmp_path, b"x\n")
    heard = Heard(desk)
    desk.ask("bad.stubborn")
    desk.close()
    events = [payload.event for kind, payload in list(heard.all.queue) if kind == "record"]
    assert events == [ev.Left(login_name())]
    assert desk.jobs() == {}
    desk.append(ev.Noted("late"))
    assert desk.state.notes == ()


def test_many_threads_may_append(desk: Desk) -> None:
    """Events from many threads are numbered without gaps and none is lost."""
    numbers: list[int] = []
    desk.listen(lambda kind, payload: numbers.append(payload.n if kind == "record" else -1))
    threads = [threading.Thread(target=lambda: [desk.append(ev.Noted("x")) for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(400))
    assert len(desk.state.notes) == 400
