"""Tests of runbook.session.desk, with real workers and without a journal on disk."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runbook.catalog import Catalog
from runbook.changing import Checked
from runbook.errors import SessionError, UsageError
from runbook.evidence import Evidence, Item
from runbook.finding import Verdict
from runbook.session import arrivals
from runbook.session import events as ev
from runbook.session.desk import Desk, Due
from runbook.session.log import Memory
from runbook.session.opening import new_session, open_session, read_session
from runbook.session.people import login_name
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
        self.records: list[ev.Record] = []
        desk.listen(lambda kind, payload: self.all.put((kind, payload)))
        desk.listen(lambda kind, payload: self.records.append(payload) if kind == "record" else None)

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

    def held(self) -> bool:
        """Return True."""
        return True

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


def test_triage_leaves_bulk_data_alone(desk: Desk) -> None:
    """Every probe that a flow asks is asked once, in flow order; those that read bulk data on request only, last."""
    assert desk.triage_probes() == ["small.text", "small.load"]
    heavy = Desk(with_heavy(desk.catalog, "small.text"))
    assert heavy.triage_probes() == ["small.load"]
    assert heavy.triage_probes(heavy=True) == ["small.load", "small.text"]


def test_triage_asks_what_an_address_tells_once_it_is_given() -> None:
    """A probe that needs nothing but an address is asked, though no flow asks it, where the address was given."""
    from dataclasses import replace

    world = small.catalog()
    of_head = replace(small.load, id="small.head", needs=("head",))
    slots, probes = {**world.slots, "head": small.HEAD}, {**world.probes, of_head.id: of_head}
    desk = Desk(replace(world, slots=slots, probes=probes))
    assert desk.triage_probes() == ["small.text", "small.load"]
    desk.append(ev.EvidenceAdded((Item("head", "head:8265", Text("given", "给定")),)))
    assert desk.triage_probes() == ["small.text", "small.load", "small.head"]
    desk.close()


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
    assert [words.en for words in warned.warnings] == [
        "changed since this session began: small",
        "flows of this session that are not there now: gone; their folder is given with --flows",
    ]


def test_closing_ends_jobs_and_records_the_leave(tmp_path: Path) -> None:
    """A desk that is closed has no job, its last record is the leave, and nothing is recorded afterwards."""
    desk = Desk(Catalog({misbehaving.stubborn.id: misbehaving.stubborn}), Memory())
    with_log(desk, tmp_path, b"x\n")
    heard = Heard(desk)
    desk.ask("bad.stubborn")
    desk.close()
    events = [payload.event for kind, payload in list(heard.all.queue) if kind == "record"]
    assert events == [ev.Left(login_name(), "", 0)]
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


def test_a_listener_can_leave(desk: Desk) -> None:
    """What `listen` returns ends the listening, once and for all; other listeners stay."""
    first: list[str] = []
    second: list[str] = []
    stop = desk.listen(lambda kind, _: first.append(kind))
    desk.listen(lambda kind, _: second.append(kind))
    desk.append(ev.Noted("one"))
    stop()
    stop()
    desk.append(ev.Noted("two"))
    assert (first, second) == (["record"], ["record", "record"])


A_RAY_LINE = b"(SGLangEngine pid=952) [2026-11-29 19:00:00] INFO ready\n"
"""What the installed recognisers take for a job log."""


def attached(desk: Desk, heard: Heard, path: Path, content: bytes) -> str:
    """Attach a new run with one log to the experiment of the small flow, and return its name."""
    path.mkdir()
    (path / "job.log").write_bytes(content + A_RAY_LINE)
    run = desk.attach("small", "released", str(path))
    heard.next("discovered")
    return run


def test_attached_runs_never_share_a_name(desk: Desk, tmp_path: Path) -> None:
    """Each run gets a name of its own, also one that replaces another at the same node; each has its own RUN."""
    heard = Heard(desk)
    desk.begin("/run")
    names = [attached(desk, heard, tmp_path / name, small.FINE) for name in ("a", "b", "c")]
    assert names == ["run-2", "run-3", "run-4"]
    assert desk.state.attached == {("small", "released"): "run-4"}
    assert desk.state.runs == dict(zip(names, (str(tmp_path / name) for name in ("a", "b", "c")), strict=True))
    assert [desk.state.evidence(name).root for name in ("", "run-3")] == ["/run", str(tmp_path / "b")]
    again = Desk(small.catalog(), records=heard.records)
    assert attached(again, Heard(again), tmp_path / "d", small.FINE) == "run-5"
    again.close()


def test_a_run_that_is_not_there_is_not_attached(desk: Desk, tmp_path: Path) -> None:
    """Nothing is attached when the path does not exist or holds no evidence, or the node is no experiment.

    The next run gets a free name.
    """
    heard = Heard(desk)
    desk.attach("small", "released", str(tmp_path / "gone"))
    assert "no such file" in heard.next("error").message
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", Path("/dev/null")):
        desk.attach("small", "released", str(nothing))
        assert "nothing in it is evidence" in heard.next("error").message
    assert desk.state.attached == {}
    with pytest.raises(UsageError, match="no experiment"):
        desk.attach("small", "load", str(tmp_path))
    attached(desk, heard, tmp_path / "new", small.FINE)
    assert list(desk.state.runs.values()) == [str(tmp_path / "new")]


def test_a_run_that_answers_nothing_is_told(desk: Desk, tmp_path: Path) -> None:
    """The first run itself is refused in words; a folder without anything that the node asks of is taken with a note.

    Only what the probes of the node look into counts, and a file of the first run that the new run merely names is
    taken with a note.
    """
    heard = Heard(desk)
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "job.log").write_bytes(A_RAY_LINE)
    desk.discover(str(tmp_path / "first"))
    heard.next("discovered")
    (tmp_path / "alias").symlink_to(tmp_path / "first" / "job.log")
    (tmp_path / "latest").symlink_to(tmp_path / "first")
    same_run = (tmp_path / "first", tmp_path / "first" / "job.log", tmp_path / "alias", tmp_path / "latest")
    for same in same_run:
        desk.attach("small", "released", str(same))
        assert "belongs to the first run already" in heard.next("error").message
    assert (desk.state.attached, desk.state.runs) == ({}, {})
    assert [item.run for item in desk.state.items] == [""]
    assert attached(desk, heard, tmp_path / "new", small.FINE) == "run-2"
    named = Item("log", str(tmp_path / "first" / "job.log"), Text("named", "被提及"), "named", run="run-3")
    where = (desk.catalog, desk.state, desk.catalog.flows["small"], "released")
    arrivals.refuse(*where, Evidence((named,)))
    (note,) = arrivals.remarks(*where, Evidence((named,)))
    assert str(tmp_path / "first" / "job.log") in note.en
    (note,) = arrivals.remarks(*where, Evidence())
    assert "Nothing in it answers this question" in note.en
    assert arrivals.arrival("small", "released", "run-3", "/r", Checked(), (note,)).notes == (note,)


def test_a_check_that_failed_leaves_the_change_unchecked() -> None:
    """A check that ended in an error attaches the run and says so; it never counts as a change that is not there."""
    event = arrivals.arrival("small", "released", "run-2", "/r", TimeoutError())
    assert (event.lacks, event.notes) == ((), (arrivals.UNCHECKED,))


def test_what_is_due_after_an_event(desk: Desk, tmp_path: Path) -> None:
    """New evidence asks again what lacked or needs its slot, then what was never asked.

    An attached run asks its node's probes, then those of its flow, to be compared. A note asks nothing; a finding that
    rests on other slots is left alone.
    """
    heard = Heard(desk)
    assert desk.due(ev.Noted("x")) == ()
    log = Item("log", "/x.log", Text("given", "给定"))
    assert desk.due(ev.EvidenceAdded((log,))) == (Due((), again=True), Due(("small.text", "small.load")))
    with_log(desk, tmp_path, small.GARBLED)
    desk.ask("small.load")
    while not isinstance(heard.next("record").event, ev.Found):
        pass
    again = Due(("small.load",), again=True)
    assert desk.due(ev.EvidenceAdded((log,)))[0] == again
    assert desk.due(ev.EvidenceDropped("log", "/x.log"))[0] == again
    other = ev.EvidenceAdded((Item("dump", "/x", Text("given", "给定")),))
    assert desk.due(other)[0] == Due((), again=True)
    run = attached(desk, heard, tmp_path / "new", small.FINE)
    mine = (Due(("small.text",), run, again=True, first=True),)
    every = Due(("small.text", "small.load"), run)
    assert desk.due(ev.RunAttached("small", "released", run)) == (*mine, every)
    assert desk.due(ev.EvidenceAdded((msgspec.structs.replace(log, run=run),))) == mine


def test_an_answer_for_another_node_is_dropped(desk: Desk) -> None:
    """An answer that was given at a node at which the walk no longer stands changes nothing."""
    desk.answer("small", "no", "ann", at="coherent")
    desk.answer("small", "no", "ann", at="coherent")
    assert [(step.node, step.answer) for step in desk.state.walk("small").steps] == [("coherent", "no")]


def test_sessions_are_made_opened_and_read_in_one_way(tmp_path: Path) -> None:
    """The header of a new session names its flows; opening locks and tells what was lost, reading only tells."""
    catalog = small.catalog()
    desk = new_session(catalog, str(tmp_path))
    desk.begin("/run")
    folder = desk.folder
    header = json.loads(Path(folder, "journal.jsonl").read_bytes().splitlines()[0])
    assert header["flows"] == catalog.hashes
    with pytest.raises(SessionError, match="open elsewhere"):
        open_session(catalog, folder)
    desk.close()
    with open(os.path.join(folder, "journal.jsonl"), "ab") as file:
        file.write(b'{"n":2,"t":')
    before = Path(folder, "journal.jsonl").read_bytes()
    seen = read_session(Catalog(), folder, "zh")
    assert "torn" in seen.warnings[0].en
    assert "not there now: small" in seen.warnings[1].en
    assert (seen.session_id, seen.language, seen.state.root) == (os.path.basename(folder), "zh", "/run")
    assert Path(folder, "journal.jsonl").read_bytes() == before
    opened = open_session(catalog, folder)
    assert ["torn" in words.en for words in opened.warnings] == [True]
    assert opened.state.root == "/run"
    opened.close()
