"""Tests of runbook.backtest: flows change, and kept sessions say which of their leaves moved and where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from runbook.backtest import GONE, Moved, backtest, folders
from runbook.catalog import Catalog
from runbook.finding import Citation, Finding, Verdict
from runbook.flow.load import load_flow
from runbook.ledger import keeping
from runbook.session import events as ev
from runbook.session.opening import new_session
from runbook.text import Text
from runbook.walk import By
from tests.runbook import small

CATALOG = small.catalog()
TEXT = (small.FLOWS / "small.yaml").read_text()


def found(probe: str, verdict: Verdict, answer: str) -> ev.Found:
    """Return a finding."""
    cited = (Citation("job.log", 1, 0, "a line"),)
    return ev.Found(Finding(verdict, answer, Text("x", "x"), cited, probe=probe))


NOT_LOADED = (found("small.text", Verdict.WARNING, "no"), found("small.load", Verdict.PROBLEM, "not-loaded"))
LOADED = (found("small.text", Verdict.WARNING, "no"), found("small.load", Verdict.OK, "loaded"))


def walked(*answers: tuple[str, str]) -> tuple[ev.Event, ...]:
    """Return the events of a walk through the small flow."""
    return (ev.FlowStarted("small"), *(ev.Answered("small", node, word, By.PERSON, "me") for node, word in answers))


def session(folder: Path, *events: ev.Event, judge: bool = True) -> str:
    """Keep a session in which these events happened and return its id. judge: it says how its causes stood."""
    desk = new_session(CATALOG, str(folder))
    desk.begin("/run")
    for event in events:
        desk.append(event)
    if judge:
        keeping.remember(desk)
    desk.close()
    return desk.session_id


def changed(tmp_path: Path, *edits: tuple[str, str]) -> Catalog:
    """Return the catalog with the small flow edited."""
    text = TEXT
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "changed.yaml").write_text(text)
    loaded = load_flow(tmp_path / "changed.yaml")
    return replace(CATALOG, loaded={"small": loaded})


def test_nothing_moves_under_the_same_flows(tmp_path: Path) -> None:
    """Sessions of every kind stand where they stood."""
    kept = tmp_path / "kept"
    for events in (NOT_LOADED, LOADED, (), (*NOT_LOADED, *walked(("coherent", "no"), ("load", "not-loaded")))):
        session(kept, *events)
    outcome = backtest(str(kept), CATALOG)
    assert (outcome.sessions, outcome.moved, outcome.unread, outcome.unjudged) == (4, [], [], [])


EDITS: dict[str, tuple[tuple[tuple[str, str], ...], tuple[str, str, str, str, str]]] = {
    "the leaf is gone": (
        (("not-loaded: not-loaded}", "not-loaded: unsure}"), ("  not-loaded:\n    cause", "  spare:\n    cause")),
        ("not-loaded", "confirmed", "ruled_out", "load", "not-loaded leads to unsure now, not to not-loaded"),
    ),
    "the branch is gone": (
        (("{loaded: released, not-loaded: not-loaded}", "{loaded: released, other: not-loaded}"),),
        ("not-loaded", "confirmed", "possible", "load", "there is no branch not-loaded any more"),
    ),
    "the probe is another": (
        (("probes: [small.load]\n    branches", "probes: [small.whole]\n    branches"),),
        ("not-loaded", "confirmed", "possible", "load", "it asks small.whole now, which was not asked then"),
    ),
    "the node is gone": (
        (("  load:\n    guide", "  reading:\n    guide"), ("no: load}", "no: reading}")),
        ("not-loaded", "", "", "", ""),
    ),
    "it leads elsewhere": (
        (("{yes: all-well, no: load}", "{yes: all-well, no: unsure}"),),
        ("not-loaded", "confirmed", "ruled_out", "coherent", "no leads to unsure now, not to load"),
    ),
    "another cause": (
        (("    cause: not-loaded", "    cause: died"),),
        ("not-loaded", "confirmed", GONE, "not-loaded", "the leaf names another cause now"),
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_each_kind_of_change_is_named_with_its_node(tmp_path: Path, name: str) -> None:
    """A confirmed cause that moved is told with both standings, the first node that decides otherwise, and why."""
    edits, (cause, before, after, node, why) = EDITS[name]
    id = session(tmp_path / "kept", *NOT_LOADED)
    outcome = backtest(str(tmp_path / "kept"), changed(tmp_path, *edits))
    told = [one for one in outcome.moved if one.id == cause]
    expected = [Moved(id, "cause", cause, before, after, "small", node, told[0].why)] if why else []
    assert told == expected, "a node that only has another name moves no leaf"
    assert [one.why.en for one in told] == ([why] if why else [])
    assert all(one.why.zh and one.why.zh != one.why.en for one in told)


def test_an_answer_that_no_probe_declares_any_more(tmp_path: Path) -> None:
    """Where the probe's own words changed, that is the reason."""
    session(tmp_path / "kept", found("small.load", Verdict.PROBLEM, "not-loaded"))
    flows = changed(tmp_path, ("{loaded: released, not-loaded: not-loaded}", "{loaded: released, lost: not-loaded}"))
    probe = replace(flows.probes["small.load"], answers=("loaded", "lost"))
    outcome = backtest(str(tmp_path / "kept"), replace(flows, probes={**flows.probes, "small.load": probe}))
    assert "none of its probes declares not-loaded any more" in [one.why.en for one in outcome.moved]


def test_a_cause_that_is_confirmed_only_now(tmp_path: Path) -> None:
    """A flow that learnt something confirms it in an old session; the node that decides it now is named."""
    session(tmp_path / "kept", *LOADED)
    flows = changed(tmp_path, ("{loaded: released,", "{loaded: buffer,"))
    (moved,) = [one for one in backtest(str(tmp_path / "kept"), flows).moved if one.id == "buffer"]
    assert (moved.before, moved.after, moved.node) == ("possible", "confirmed", "load")
    assert moved.why.en == "loaded leads to buffer now, not to released"


def test_walks_that_stand_elsewhere(tmp_path: Path) -> None:
    """A walk is compared by the node at which it stood, and the first answer that no longer fits is named."""
    session(tmp_path / "kept", *walked(("coherent", "no"), ("load", "not-loaded")))
    renamed = changed(tmp_path, ("  load:\n    guide", "  reading:\n    guide"), ("no: load}", "no: reading}"))
    (moved,) = [one for one in backtest(str(tmp_path / "kept"), renamed).moved if one.kind == "walk"]
    assert (moved.id, moved.before, moved.after, moved.node) == ("small", "not-loaded", "reading", "load")
    assert moved.why.en == "the node is gone"
    led = changed(tmp_path, ("not-loaded: not-loaded}", "not-loaded: unsure}"))
    (moved,) = [one for one in backtest(str(tmp_path / "kept"), led).moved if one.kind == "walk"]
    assert (moved.before, moved.after, moved.node) == ("not-loaded", "unsure", "load")


def test_a_session_without_a_judgement_is_compared_by_its_walks(tmp_path: Path) -> None:
    """It is named as such; an answer that no longer fits is told, a cause that moved cannot be."""
    id = session(tmp_path / "kept", *NOT_LOADED, *walked(("coherent", "no"), ("load", "not-loaded")), judge=False)
    same = backtest(str(tmp_path / "kept"), CATALOG)
    assert (same.moved, same.unjudged) == ([], [id])
    flows = changed(tmp_path, ("{loaded: released, not-loaded: not-loaded}", "{loaded: released, lost: not-loaded}"))
    outcome = backtest(str(tmp_path / "kept"), flows)
    assert [(one.kind, one.before, one.after) for one in outcome.moved] == [("walk", "load: not-loaded", "load")]


def test_what_came_after_the_judgement_does_not_count(tmp_path: Path) -> None:
    """A session that was killed later is compared as it was when it was judged."""
    desk = new_session(CATALOG, str(tmp_path / "kept"))
    desk.begin("/run")
    for event in LOADED:
        desk.append(event)
    keeping.remember(desk)
    for event in NOT_LOADED:
        desk.append(event)
    desk.close()
    assert backtest(str(tmp_path / "kept"), CATALOG).moved == []


def test_sessions_that_cannot_be_read_again_are_named(tmp_path: Path) -> None:
    """A damaged journal, and a flow that mattered and is not there, each with the reason."""
    kept = tmp_path / "kept"
    bad = session(kept, *LOADED)
    journal = kept / bad / "journal.jsonl"
    lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join([lines[0], b"{broken", *lines[2:]]))
    good = session(kept, *NOT_LOADED)
    outcome = backtest(str(kept), replace(CATALOG, loaded={}))
    assert outcome.sessions == 2
    assert {one.session for one in outcome.unread} == {bad, good}
    reasons = {one.session: one.why.en for one in outcome.unread}
    assert "damaged" in reasons[bad]
    assert "small" in reasons[good]
    assert "--flows" in reasons[good]


@pytest.mark.parametrize("below", ["", "kept", "kept/SESSION"])
def test_sessions_are_found_wherever_they_lie(tmp_path: Path, below: str) -> None:
    """In folders below the one that is given, in it, and the folder itself."""
    name = session(tmp_path / "kept", *LOADED)
    root = str(tmp_path / below.replace("SESSION", name))
    assert [Path(path).name for _, path in folders(root)] == [name]
    assert backtest(root, CATALOG).sessions == 1


def test_hostile_journals_stop_nothing(tmp_path: Path) -> None:
    """Whatever a judgement in a journal names, it is compared or passed over, never raised."""
    hostile = "\x1b[2J[/x]\u202e"
    stood = {hostile: ev.Stood("confirmed", "small", hostile), "x": ev.Stood(hostile, "small", "load")}
    odd = ev.Judged(stood, {"small": {hostile: (hostile, hostile)}, hostile: {}}, {"small": hostile})
    session(tmp_path / "kept", *walked(("coherent", "no")), odd, judge=False)
    outcome = backtest(str(tmp_path / "kept"), CATALOG)
    assert outcome.sessions == 1
    assert {one.id for one in outcome.moved} >= {hostile}
