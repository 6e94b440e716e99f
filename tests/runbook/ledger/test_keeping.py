"""Tests of runbook.ledger.keeping and lookup: what sessions leave for each other, on a real disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from runbook.evidence import Item
from runbook.finding import Citation, Finding, Verdict
from runbook.ledger import keeping, lookup, store
from runbook.ledger.store import LEDGER, Confirmed
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import new_session, open_session, read_session
from runbook.text import Text
from tests.runbook import small

CATALOG = small.catalog()
TITLES = {name: cause.title for name, cause in CATALOG.vocabulary.items()}


def proof(line: str = "load: not loaded at step 7") -> ev.Found:
    """Return the finding that confirms the cause `not-loaded`."""
    said = Text("It was not loaded.", "没有加载。")
    cited = (Citation("/run/job.log", 3, 9, line),)
    return ev.Found(Finding(Verdict.PROBLEM, "not-loaded", said, cited, probe="small.load"))


def session(folder: Path, *events: ev.Event, run: str = "job-12") -> Desk:
    """Return an open session over a run in which these events happened."""
    desk = new_session(CATALOG, str(folder))
    desk.begin(str(folder / "runs" / run))
    desk.append(ev.EvidenceAdded((Item("log", "/run/job.log", Text("a log", "日志")),)))
    for event in events:
        desk.append(event)
    return desk


def test_a_confirmed_cause_is_entered_once(tmp_path: Path) -> None:
    """However often a session is left, its cause stands in the ledger once, with where it was found."""
    desk = session(tmp_path, proof())
    assert keeping.remember(desk) is None
    assert keeping.remember(desk) is None
    desk.close()
    again = open_session(CATALOG, desk.folder)
    keeping.remember(again)
    again.close()
    (entry,) = store.read(tmp_path)
    assert isinstance(entry, Confirmed)
    assert (entry.session, entry.cause, entry.flow, entry.node) == (
        desk.session_id,
        "not-loaded",
        "small",
        "not-loaded",
    )
    assert (entry.root, entry.probe, entry.text) == ("job-12", "small.load", "load: not loaded at step #")


def test_the_judgement_is_recorded_when_it_changed(tmp_path: Path) -> None:
    """The journal says how the causes stood, and says it again only when they stand otherwise."""
    desk = session(tmp_path)
    keeping.remember(desk)
    keeping.remember(desk)
    first = desk.state.judged
    desk.append(proof())
    keeping.remember(desk)
    desk.close()
    records = read_session(CATALOG, desk.folder).state
    assert first is not None
    assert first.causes["not-loaded"] == ev.Stood("possible", "small", "not-loaded")
    assert records.judged is not None
    assert records.judged.causes["not-loaded"] == ev.Stood("confirmed", "small", "not-loaded")
    assert records.judged.decided == {"small": {"load": ("not-loaded", "not-loaded")}}
    assert sum(b'"judged"' in line for line in (Path(desk.folder) / "journal.jsonl").read_bytes().split(b"\n")) == 2
    assert len(store.read(tmp_path)) == 1


def test_what_is_kept_nowhere_or_only_read_leaves_nothing(tmp_path: Path) -> None:
    """A triage in memory and a reader write neither journal nor ledger."""
    memory = Desk(CATALOG)
    memory.append(proof())
    assert keeping.remember(memory) is None
    assert memory.state.judged is None
    memory.close()
    desk = session(tmp_path, proof())
    desk.close()
    size = (Path(desk.folder) / "journal.jsonl").stat().st_size
    assert keeping.remember(read_session(CATALOG, desk.folder)) is None
    assert (Path(desk.folder) / "journal.jsonl").stat().st_size == size
    assert not (tmp_path / LEDGER).exists()


def test_a_ledger_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path) -> None:
    """The judgement is kept, the trouble is told in both languages with the path, and nothing is raised."""
    (tmp_path / LEDGER).mkdir()
    desk = session(tmp_path, proof())
    trouble = keeping.remember(desk)
    assert trouble is not None
    assert LEDGER in trouble.en
    assert LEDGER in trouble.zh
    assert desk.state.judged is not None
    desk.close()


def test_sessions_hear_of_each_other(tmp_path: Path) -> None:
    """A second session with the same line knows of the first; with other words it knows of the cause only."""
    first = session(tmp_path, proof())
    keeping.remember(first)
    first.close()
    assert lookup.sightings(tmp_path, first.report(), first.session_id, first.state.root) == {}
    same = session(tmp_path, proof("load: not loaded at step 123456"), run="job-13")
    other = session(tmp_path, proof("load: refused"), run="job-14")
    known = [
        lookup.sightings(tmp_path, desk.report(), desk.session_id, desk.state.root)["not-loaded"]
        for desk in (same, other)
    ]
    assert [(seen.times, seen.others) for seen in known] == [(1, 0), (0, 1)]
    assert known[0].session == first.session_id
    for desk in (same, other):
        desk.close()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_ticket_says_it_with_dates(tmp_path: Path, language: str) -> None:
    """Each line begins with the words of the cause; a folder that is no session has no ledger."""
    first = session(tmp_path, proof())
    keeping.remember(first)
    first.close()
    second = session(tmp_path, proof(), run="job-13")
    second.close()
    report = second.report()
    (line,) = lookup.for_ticket(second.folder, report, second.session_id, second.state.root, TITLES, language)
    assert line.startswith(TITLES["not-loaded"].say(language))
    assert first.session_id in line
    (tmp_path / "elsewhere").mkdir()
    assert lookup.for_ticket(tmp_path / "elsewhere", report, "", "", TITLES, language) == ()


def test_sessions_over_one_run_are_one_incident(tmp_path: Path) -> None:
    """However many sessions there are over a run, none has seen it before, and the next run has seen it once."""
    for _ in range(3):
        one = session(tmp_path, proof())
        keeping.remember(one)
        assert lookup.sightings(tmp_path, one.report(), one.session_id, one.state.root) == {}
        one.close()
    assert len(store.read(tmp_path)) == 3
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "runs" / "job-12")
    linked = session(tmp_path, proof(), run="link")
    assert lookup.sightings(tmp_path, linked.report(), linked.session_id, linked.state.root) == {}
    later = session(tmp_path, proof(), run="job-13")
    seen = lookup.sightings(tmp_path, later.report(), later.session_id, later.state.root)["not-loaded"]
    assert (seen.times, seen.others) == (1, 0)
    linked.close()
    later.close()


def test_a_dry_run_leaves_the_ledger_alone(tmp_path: Path) -> None:
    """The judgement is recorded for the list of sessions, no other session hears of it."""
    desk = session(tmp_path, proof())
    assert keeping.remember(desk, enter=False) is None
    assert desk.state.judged is not None
    assert store.read(tmp_path) == ()
    desk.close()
