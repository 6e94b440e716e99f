"""Tests of runbook.session.difference: what differs, and only what tells something."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.evidence import Item
from runbook.finding import Finding, Measurement, Table, Verdict
from runbook.session import events as ev
from runbook.session.difference import Change, NumberChange, Side, difference, moved, side, side_of_run, weight
from runbook.session.state import SessionState, replay
from runbook.text import Text
from runbook.walk import By
from tests.runbook import small

CATALOG = small.catalog()
FLOWS = tuple(CATALOG.flows.values())


def finding(
    probe: str = "small.text",
    answer: str = "no",
    verdict: Verdict = Verdict.WARNING,
    numbers: tuple[Measurement, ...] = (),
    tables: tuple[Table, ...] = (),
) -> Finding:
    """Return a finding."""
    return Finding(verdict, answer, Text(f"It is {answer}.", f"是 {answer}。"), (), numbers, tables, probe=probe)


def state_of(*events: ev.Event, root: str = "/runs/a") -> SessionState:
    """Return the state of a session over RUN `root`."""
    every = (ev.Opened("1.0", {"small": "hash"}, root), *events)
    return replay([ev.Record(n, float(n), event) for n, event in enumerate(every)], CATALOG.flows)


def whole(state: SessionState, name: str = "s") -> Side:
    """Return a session as a side."""
    return side(state, state.report(FLOWS, CATALOG.vocabulary), name)


def test_a_session_does_not_differ_from_itself() -> None:
    """Nothing is told, also of one with findings, answers and notes; time and RUN are no difference."""
    events = (
        ev.EvidenceAdded((Item("log", "/runs/a/job.log", Text("x", "x")),)),
        ev.Found(finding(numbers=(Measurement("loss", math.nan, ""),))),
        ev.Answered("small", "coherent", "no", By.PERSON, "me"),
        ev.Noted("look here"),
    )
    found = difference(whole(state_of(*events), "a"), whole(state_of(*events), "b"), "en")
    assert not found.any
    elsewhere = ev.EvidenceAdded((Item("log", "/other/b/job.log", Text("x", "x")),))
    moved_run = state_of(elsewhere, *events[1:], root="/other/b/")
    assert not difference(whole(state_of(*events)), whole(moved_run), "en").any


def test_every_part_that_differs_is_told() -> None:
    """Causes by standing, findings, evidence, answers, runs, flows, notes and the version, each with both sides."""
    before = state_of(
        ev.EvidenceAdded((Item("log", "/runs/a/job.log", Text("x", "x")),)),
        ev.Found(finding()),
        ev.Found(finding("small.load", "loaded", Verdict.OK)),
        ev.Answered("small", "coherent", "no", By.PERSON, "me"),
        ev.Noted("first"),
    )
    later: tuple[ev.Event, ...] = (
        ev.Opened("1.1", {"small": "other"}, "/runs/b"),
        ev.EvidenceAdded((Item("log", "/runs/b/new.log", Text("x", "x")),)),
        ev.Found(finding()),
        ev.Found(finding("small.load", "not-loaded", Verdict.PROBLEM)),
        ev.Answered("small", "coherent", "no", By.PROBE),
        ev.RunAttached("small", "released", "run-2", "/runs/c"),
        ev.Noted("second"),
    )
    after = replay([ev.Record(n, float(n), event) for n, event in enumerate(later)], CATALOG.flows)
    found = difference(whole(before, "a"), whole(after, "b"), "en")
    assert (found.before, found.after) == ("a", "b")
    assert found.causes[0] == Change("not-loaded", "ruled_out", "confirmed")
    assert [(one.probe, one.before, one.after) for one in found.findings] == [
        ("small.load", "ok: loaded", "problem: not-loaded")
    ]
    assert found.findings[0].summary == Change("summary", "It is loaded.", "It is not-loaded.")
    assert found.evidence == (Change("log", "job.log", "new.log"),)
    assert found.answers == (Change("small/coherent", "no (me)", "no (probe)"),)
    assert found.runs == (Change("small/released", "", "/runs/c"),)
    assert found.flows == (Change("small", "hash", "other"),)
    assert found.notes == (Change("", "first", ""), Change("", "", "second"))
    assert found.version == (Change("version", "1.0", "1.1"),)


@pytest.mark.parametrize(
    ("before", "after", "threshold", "told"),
    [
        (1.0, 1.04, None, False),
        (1.0, 1.06, None, True),
        (1.0, 1.01, 1.005, True),
        (1.0, 1.0, 1.0, False),
        (0.0, 0.0, None, False),
        (0.0, 1e-9, None, True),
        (2.0, math.nan, None, True),
        (math.nan, math.nan, None, False),
        (math.inf, -math.inf, None, True),
        (-2.0, 2.0, None, True),
    ],
)
def test_a_number_counts_when_it_moved(before: float, after: float, threshold: float | None, told: bool) -> None:
    """By more than a twentieth, to the other side of its threshold, or to what is no number."""
    pair = [Measurement("loss", value, "nat", threshold) for value in (before, after)]
    assert moved(pair[0], pair[1]) is told


def test_numbers_are_told_with_both_values_and_the_unit() -> None:
    """One that only one side measured too; a probe that did not answer is told by its verdict alone."""
    first = (Measurement("loss", 1.0, "nat"), Measurement("steady", 1.0, "s"))
    second = (Measurement("loss", 2.5, "nat"), Measurement("steady", 1.01, "s"), Measurement("new", 3, ""))
    before, after = (state_of(ev.Found(finding(numbers=numbers))) for numbers in (first, second))
    (one,) = difference(whole(before), whole(after), "en").findings
    assert one.numbers == (NumberChange("loss", "nat", 1.0, 2.5), NumberChange("new", "", None, 3))
    assert (one.before, one.after) == ("warning: no", "warning: no")


def table(*rows: tuple[str, ...], title: str = "flags") -> Table:
    """Return a table of flags."""
    return Table(Text(title, "参数"), ("flag", "value", "line"), rows)


def test_tables_of_the_same_title_are_compared_by_their_first_column() -> None:
    """A cell that differs, a row that is gone, one that is new; order, other titles and noise tell nothing."""
    before = table(("--lr", "1e-6", "3"), ("--tp", "2", "4"), ("--old", "1", "5"), ("--path", "/runs/a/ckpt", "6"))
    after = table(("--tp", "4", "4"), ("--path", "/runs/b/ckpt", "6"), ("--lr", "1.001e-6", "3"), ("--new", "7", "9"))
    first = state_of(ev.Found(finding(tables=(before, table(("a", "b", "c"), title="one")))))
    second = state_of(ev.Found(finding(tables=(after, table(("d", "e", "f"), title="two")))), root="/runs/b")
    (one,) = difference(whole(first), whole(second), "en").findings
    assert one.rows == (
        Change("flags: --tp, value", "2", "4"),
        Change("flags: --new", "", "7, 9"),
        Change("flags: --old", "1, 5", ""),
    )


def test_rows_of_one_name_are_paired_in_their_order() -> None:
    """A flag that stands twice is compared with its own second place; a time of day is no difference."""
    before = table(("--x", "1", "10:00:00"), ("--x", "2", "10:00:01"))
    after = table(("--x", "1", "11:00:00"), ("--x", "3", "11:00:01"))
    sides = [whole(state_of(ev.Found(finding(tables=(one,))))) for one in (before, after)]
    (one,) = difference(sides[0], sides[1], "en").findings
    assert one.rows == (Change("flags: --x (2), value", "2", "3"),)


def test_two_runs_of_one_session() -> None:
    """Each run is judged by what was found in it alone."""
    state = state_of(
        ev.Found(finding()),
        ev.EvidenceAdded((Item("log", "/runs/c/job.log", Text("x", "x"), run="run-2"),)),
        ev.RunAttached("small", "released", "run-2", "/runs/c"),
        ev.Found(finding(answer="yes", verdict=Verdict.OK), "run-2"),
    )
    sides = [side_of_run(state, run, FLOWS, CATALOG.vocabulary, run) for run in ("", "run-2")]
    found = difference(sides[0], sides[1], "en")
    assert [(one.probe, one.before, one.after) for one in found.findings] == [("small.text", "warning: no", "ok: yes")]
    assert found.evidence == (Change("log", "", "job.log"),)
    assert Change("not-loaded", "possible", "ruled_out") in found.causes
    assert (found.answers, found.notes, found.flows) == ((), (), ())


def test_what_is_confirmed_weighs_most() -> None:
    """A cause that became confirmed comes before one that was, and that before the others."""
    ways = [("possible", "ruled_out"), ("confirmed", "possible"), ("possible", "confirmed")]
    ordered = sorted((Change("x", *way) for way in ways), key=weight)
    assert [(one.before, one.after) for one in ordered] == ways[::-1]


cells = st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4), st.text(max_size=4)), max_size=5)


@given(cells, cells)
def test_any_tables_are_compared(first: list[tuple[str, ...]], second: list[tuple[str, ...]]) -> None:
    """Whatever stands in the cells; a table compared with itself never differs, and both directions tell as much."""
    sides = [whole(state_of(ev.Found(finding(tables=(table(*rows),))))) for rows in (first, second)]
    assert not difference(sides[0], sides[0], "en").any
    forth, back = (difference(one, other, "en").findings for one, other in (sides, sides[::-1]))
    assert sum(len(one.rows) for one in forth) == sum(len(one.rows) for one in back)
