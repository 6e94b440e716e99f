"""Tests of runbook.session.state and runbook.session.events."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.evidence import Item
from runbook.finding import Citation, Finding, Verdict
from runbook.flow.model import Flow, Node
from runbook.session import events as ev
from runbook.session.state import Note, SessionState, fold, replay
from runbook.text import Text
from runbook.triage import Standing
from runbook.walk import By, position
from tests.helpers import hostile_text
from tests.runbook import small
from tests.runbook.strategies import WORDS

CATALOG = small.catalog()
FLOWS = CATALOG.flows
SMALL = FLOWS["small"]


def state_after(*events: ev.Event) -> SessionState:
    """Return the state after events that happen at seconds 100, 101 and so on."""
    return replay([ev.Record(n, 100.0 + n, event) for n, event in enumerate(events)], FLOWS)


def says(probe: str, verdict: Verdict, answer: str | None = None) -> Finding:
    """Return a finding."""
    return Finding(verdict, answer, Text(probe, probe), probe=probe)


def answered(node: str, answer: str, by: By = By.PERSON) -> ev.Answered:
    """Return the event of an answer by Ann or by a probe."""
    return ev.Answered("small", node, answer, by, "ann", ("small.text",))


names = st.sampled_from(["small", "gone", ""])
nodes = st.sampled_from([*SMALL.nodes, "gone"])
words = st.sampled_from(["yes", "no", "loaded", "not-loaded", "nonsense"])
items = st.builds(Item, st.sampled_from(["log", "dump"]), hostile_text, st.just(WORDS), run=st.sampled_from(["", "r1"]))
findings = st.builds(
    says, st.sampled_from(["small.text", "small.load"]), st.sampled_from(list(Verdict)), st.none() | words
)
events: st.SearchStrategy[ev.Event] = st.one_of(
    st.builds(ev.Opened, st.just("1"), st.just({"small": "hash"}), hostile_text, hostile_text),
    st.builds(ev.EvidenceAdded, st.lists(items, max_size=3).map(tuple)),
    st.builds(ev.EvidenceDropped, st.sampled_from(["log", "dump"]), hostile_text, st.sampled_from(["", "r1"])),
    st.builds(ev.Found, findings, st.sampled_from(["", "r1"])),
    st.builds(ev.FlowStarted, names),
    st.builds(ev.Answered, names, nodes, words, st.sampled_from(By), hostile_text),
    st.builds(ev.WentBack, names, nodes),
    st.builds(ev.RunAttached, names, nodes, st.just("r1")),
    st.builds(ev.Noted, hostile_text, hostile_text, names, nodes),
    st.builds(ev.Exported, st.just("html"), hostile_text),
    st.builds(ev.Left, hostile_text),
)


@given(st.lists(events, max_size=25))
def test_any_history_folds(history: list[ev.Event]) -> None:
    """Whatever a journal holds, it replays; walks stand at nodes of their flow and the triage of it can be made."""
    state = state_after(*history)
    for name, walk in state.walks.items():
        if name in FLOWS:
            assert position(FLOWS[name], walk) in FLOWS[name].nodes
        else:
            assert walk.steps == ()
    report = state.report(FLOWS.values(), CATALOG.vocabulary)
    assert {v.cause for v in (*report.causes, *report.ruled_out)} == {"not-loaded", "buffer", "base"}


@given(st.lists(events, max_size=12), st.lists(events, max_size=12))
def test_a_journal_may_be_folded_in_parts(first: list[ev.Event], second: list[ev.Event]) -> None:
    """Going on from a state gives what replaying everything gives, so that resuming is the same as never leaving."""
    records = [ev.Record(n, float(n), event) for n, event in enumerate([*first, *second])]
    state = replay(records[: len(first)], FLOWS)
    for record in records[len(first) :]:
        state = fold(state, record, FLOWS)
    assert state == replay(records, FLOWS)


@given(events, st.integers(0), st.floats(0, 1e10))
def test_records_survive_the_journal(event: ev.Event, number: int, time: float) -> None:
    """Each kind of event is the same after a way through JSON."""
    record = ev.Record(number, time, event)
    assert msgspec.json.decode(msgspec.json.encode(record), type=ev.Record) == record


def test_the_first_opening_is_the_beginning() -> None:
    """Version, flow hashes and RUN are those of the first opening; everyone who came is kept once, in order."""
    state = state_after(
        ev.Opened("1", {"small": "a"}, "/run", "ann"),
        ev.Left("ann"),
        ev.Opened("2", {"small": "b"}, "/elsewhere", "bob"),
        ev.Opened("2", {"small": "b"}, "/elsewhere", "ann"),
    )
    assert (state.version, state.flow_hashes, state.root) == ("1", {"small": "a"}, "/run")
    assert state.who == ("ann", "bob")
    assert (state.began, state.changed) == (100.0, 103.0)


def test_evidence_is_taken_once_and_can_be_dropped() -> None:
    """The same item of the same run is taken once; dropping it takes it out of that run only."""
    first, second = Item("log", "/a", WORDS), Item("log", "/a", WORDS, run="r1")
    state = state_after(ev.EvidenceAdded((first, second)), ev.EvidenceAdded((first,)))
    assert state.items == (first, second)
    assert state.evidence().items == (first,)
    assert state.evidence("r1").items == (second,)
    dropped = state_after(ev.EvidenceAdded((first, second)), ev.EvidenceDropped("log", "/a"))
    assert dropped.items == (second,)


def test_what_cites_dropped_evidence_goes_with_it() -> None:
    """Findings of that run that cite the item or what lies in it are gone; those of another run or file stay."""

    def cites(probe: str, path: str) -> ev.Found:
        return ev.Found(msgspec.structs.replace(says(probe, Verdict.WARNING, "no"), citations=(Citation(path),)))

    history: list[ev.Event] = [
        cites("a", "/dump"),
        cites("b", "/dump/rollout_0.pt"),
        cites("c", "/dump2"),
        msgspec.structs.replace(cites("a", "/dump"), run="r1"),
        ev.EvidenceDropped("dump", "/dump"),
    ]
    assert set(state_after(*history).findings) == {("", "c"), ("r1", "a")}


def test_every_record_makes_a_new_revision() -> None:
    """Two states of one session have the same revision only when they are the same state."""
    assert SessionState().revision == 0
    assert [state_after(*[ev.Noted("x")] * count).revision for count in (1, 2, 3)] == [1, 2, 3]


def test_an_attached_run_has_its_own_root() -> None:
    """The evidence of the first run is read in RUN, that of an attached one in the folder that was attached."""
    state = state_after(
        ev.Opened("1", {}, "/run", "ann"),
        ev.RunAttached("small", "released", "run-2", "/second"),
        ev.RunAttached("small", "released", "old"),
    )
    assert [state.evidence(run).root for run in ("", "run-2", "old")] == ["/run", "/second", ""]
    assert state.runs == {"run-2": "/second", "old": ""}
    assert state.run_at(SMALL, "released") == "old"
    assert state.run_at(SMALL, "load") == ""
    assert state_after().run_at(SMALL, "released") is None


def test_the_latest_finding_counts_for_its_run() -> None:
    """A probe asked again replaces its earlier finding, and a finding of another run stays apart."""
    old, new = says("small.text", Verdict.UNKNOWN), says("small.text", Verdict.OK, "yes")
    other = says("small.text", Verdict.WARNING, "no")
    state = state_after(ev.Found(old), ev.Found(new), ev.Found(other, "r1"))
    assert state.findings_of() == {"small.text": new}
    assert state.findings_of("r1") == {"small.text": other}


def test_an_experiment_hears_only_its_run() -> None:
    """At an experiment the findings of the attached run speak, at every other node those of the first run."""
    first, later = says("small.text", Verdict.WARNING, "no"), says("small.text", Verdict.OK, "yes")
    before = state_after(ev.Found(first))
    assert before.findings_at(SMALL, "released") == {}
    assert before.decision(SMALL, "coherent").answer == "no"
    after = state_after(ev.Found(first), ev.RunAttached("small", "released", "r1"), ev.Found(later, "r1"))
    assert after.decision(SMALL, "released").answer == "yes"
    assert after.decision(SMALL, "coherent").answer == "no"
    loaded = replay(
        [ev.Record(0, 0.0, ev.Found(says("small.load", Verdict.OK, "loaded")))], FLOWS
    ).findings  # the check between the start and the experiment
    report = msgspec.structs.replace(after, findings={**after.findings, **loaded}).report(
        FLOWS.values(), CATALOG.vocabulary
    )
    assert [(v.cause, v.standing) for v in report.causes] == [("buffer", Standing.CONFIRMED)]


def test_a_walk_keeps_who_answered() -> None:
    """A person's answer carries the name, a probe's does not; time and the findings on the table are kept."""
    state = state_after(answered("coherent", "no"), answered("load", "loaded", By.PROBE))
    steps = state.walk("small").steps
    assert [(s.node, s.answer, s.by, s.who, s.time) for s in steps] == [
        ("coherent", "no", By.PERSON, "ann", 100.0),
        ("load", "loaded", By.PROBE, "", 101.0),
    ]
    assert steps[0].probes == ("small.text",)
    assert state.current == "small"


def test_going_back_marks_what_followed_as_stale() -> None:
    """Answers after the point returned to stay in the state, as stale ones."""
    state = state_after(answered("coherent", "no"), answered("load", "loaded"), ev.WentBack("small", "coherent"))
    walk = state.walk("small")
    assert walk.steps == ()
    assert [(s.node, s.answer, s.stale) for s in walk.stale] == [("coherent", "no", True), ("load", "loaded", True)]


@pytest.mark.parametrize(
    "event",
    [
        answered("load", "loaded"),
        answered("coherent", "maybe"),
        ev.Answered("gone", "coherent", "no", By.PERSON),
        ev.WentBack("small", "load"),
        ev.WentBack("gone", "load"),
    ],
)
def test_what_does_not_fit_changes_no_walk(event: ev.Event) -> None:
    """An answer elsewhere, a word that is no branch and a flow that is gone leave the walks as they were."""
    assert state_after(event).walks == state_after().walks


def test_a_flow_that_changed_since_keeps_what_still_fits() -> None:
    """Replayed over a flow without the old branch, the walk ends where the flows part."""
    changed = Flow("small", WORDS, WORDS, "coherent", {**SMALL.nodes, "load": Node(clear=WORDS)})
    records = [ev.Record(0, 0.0, answered("coherent", "no")), ev.Record(1, 1.0, answered("load", "loaded"))]
    walk = replay(records, {"small": changed}).walk("small")
    assert [step.node for step in walk.steps] == ["coherent"]


def test_notes_and_exports_are_kept_in_order() -> None:
    """Notes carry their time, author and place; exports their format and path."""
    state = state_after(ev.Noted("first", "ann"), ev.Exported("html", "/t"), ev.Noted("second", "bob", "small", "load"))
    assert state.notes == (Note("first", 100.0, "ann"), Note("second", 102.0, "bob", "small", "load"))
    assert state.exports == (("html", "/t"),)
