"""Tests of runbook.triage: against a plain reading of every path, and worked examples of the ranking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.exits import ExitCode
from runbook.finding import Citation, Finding, Verdict
from runbook.flow.load import load_flow, load_vocabulary
from runbook.flow.model import Cause, Flow, Node
from runbook.text import Text
from runbook.triage import (
    POSSIBLE_SHOWN,
    Open,
    Report,
    Standing,
    Verdicted,
    evaluate,
    exit_code,
    foremost,
    rank,
    settling,
    triage,
)
from runbook.walk import How
from tests.runbook.strategies import (
    PROBES,
    WORDS,
    decisions_of,
    experiments,
    finding_of,
    findings,
    flows,
    paths,
    plain_standing,
)

DATA = Path(__file__).parents[1] / "data" / "flows"
SMALL = load_flow(DATA / "small.yaml").flow
VOCABULARY = load_vocabulary(DATA / "causes.yaml")[0]


def says(probe: str, verdict: Verdict, answer: str | None = None, line: int = 1) -> Finding:
    """Return a finding of `probe`, with a citation when it is a problem."""
    citations = (Citation("job.log", line, 0, "x"),) if verdict is Verdict.PROBLEM else ()
    return Finding(verdict, answer, Text(probe, probe), citations, probe=probe)


def standings(report: Report) -> dict[str, str]:
    """Return the standing of every cause."""
    return {verdict.cause: verdict.standing.value for verdict in (*report.causes, *report.ruled_out)}


# Against the plain reading of every path


@given(st.data())
def test_standing_is_what_the_paths_say(data: st.DataObject) -> None:
    """Each leaf stands as reading every open path one by one says, with the fewest undecided nodes as its distance."""
    flow = data.draw(flows())
    known, attached = data.draw(findings()), data.draw(experiments(flow))
    verdicts, _, _ = evaluate(flow, known, attached)
    decisions = decisions_of(flow, known, attached)
    for verdict in verdicts:
        standing, distance = plain_standing(flow, decisions, verdict.node)
        assert verdict.standing.value == standing, verdict.node
        if verdict.standing is Standing.POSSIBLE:
            assert verdict.open == distance


@given(st.data())
def test_confirmed_rests_on_evidence_at_an_edge_into_the_cause(data: st.DataObject) -> None:
    """The findings named for a confirmed cause decided a node that leads into it; without one none is confirmed."""
    flow = data.draw(flows())
    known, attached = data.draw(findings()), data.draw(experiments(flow))
    decisions = decisions_of(flow, known, attached)
    for verdict in evaluate(flow, known, attached)[0]:
        if verdict.standing is not Standing.CONFIRMED:
            continue
        assert verdict.by
        into = [d for name, d in decisions.items() if verdict.node in flow.nodes[name].branches.values()]
        for finding in verdict.by:
            assert finding.verdict.decides
            assert any(finding in decision.findings for decision in into if decision.how is How.DECIDED)


@given(st.data())
def test_clear_leaves_are_reached_by_evidence_alone(data: st.DataObject) -> None:
    """A clear leaf is listed exactly when some path to it was decided at every node."""
    flow = data.draw(flows())
    known, attached = data.draw(findings()), data.draw(experiments(flow))
    decisions = decisions_of(flow, known, attached)
    expected = {
        (flow.flow, name)
        for name, node in flow.nodes.items()
        if node.clear is not None
        and any(all(decisions[step].how is How.DECIDED for step in path[:-1]) for path in paths(flow, decisions, name))
    }
    assert set(evaluate(flow, known, attached)[2]) == expected


@given(st.data())
def test_open_nodes_are_the_undecided_ones_that_can_be_reached(data: st.DataObject) -> None:
    """Every undecided check on an open way is listed once, with words on why and on what would settle it."""
    flow = data.draw(flows())
    known, attached = data.draw(findings()), data.draw(experiments(flow))
    decisions = decisions_of(flow, known, attached)
    expected = [
        name
        for name, node in flow.nodes.items()
        if not node.is_leaf
        and decisions[name].how is not How.DECIDED
        and any(True for _ in paths(flow, decisions, name))
    ]
    opens = evaluate(flow, known, attached)[1]
    assert sorted(open_.node for open_ in opens) == sorted(expected)
    assert all(open_.why.en and open_.settle_with.en for open_ in opens)


@given(st.data())
def test_unknown_closes_nothing(data: st.DataObject) -> None:
    """While nothing was decided, no cause is ruled out and none is confirmed."""
    flow = data.draw(flows())
    unclear = st.sampled_from([v for v in Verdict if not v.decides])
    known = {probe: says(probe, data.draw(unclear)) for probe in PROBES if data.draw(st.booleans())}
    assert {verdict.standing for verdict in evaluate(flow, known, {})[0]} <= {Standing.POSSIBLE}


@given(st.data())
def test_a_new_answer_only_closes_ways(data: st.DataObject) -> None:
    """Where nodes ask one probe each, deciding what was open never brings a ruled-out cause back."""
    flow = data.draw(flows(several=False, experiments=False))
    known = data.draw(findings())
    open_probes = [probe for probe in PROBES if probe not in known or not known[probe].verdict.decides]
    before = {v.node for v in evaluate(flow, known, {})[0] if v.standing is Standing.RULED_OUT}
    for probe in open_probes:
        known = {**known, probe: data.draw(finding_of(probe))}
        after = {v.node for v in evaluate(flow, known, {})[0] if v.standing is Standing.RULED_OUT}
        assert before <= after
        before = after


@given(st.data())
def test_a_decided_node_closes_its_other_branches(data: st.DataObject) -> None:
    """A cause that only another branch of a decided start reaches is ruled out, by the findings that decided it."""
    flow = data.draw(flows(experiments=False))
    known = data.draw(findings())
    decision = decisions_of(flow, known, {})[flow.start]
    if decision.answer is None:
        return
    kept = flow.reach(flow.nodes[flow.start].branches[decision.answer])
    for verdict in evaluate(flow, known, {})[0]:
        if verdict.node not in kept:
            assert verdict.standing is Standing.RULED_OUT
            assert verdict.by == decision.findings


@given(st.data())
def test_every_cause_stands_once_in_a_report(data: st.DataObject) -> None:
    """A cause of several leaves and flows appears once, with its best standing; what is led to first, then the near."""
    several = [data.draw(flows(name=name)) for name in ("one", "two")]
    known = data.draw(findings())
    report = triage(several, {}, known)
    everything = [*report.causes, *report.ruled_out]
    names = [verdict.cause for verdict in everything]
    assert sorted(names) == sorted({node.cause for flow in several for node in flow.nodes.values() if node.cause})
    order = list(Standing)
    for verdict in everything:
        each = [v.standing for flow in several for v in evaluate(flow, known, {})[0] if v.cause == verdict.cause]
        assert verdict.standing is min(each, key=order.index)
    nearness = [(not v.led, v.flow != "one", v.open) for v in report.possible]
    assert nearness == sorted(nearness)
    assert list(report.causes) == [*report.confirmed, *report.possible]


# Worked examples on the small flow


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, {"not-loaded": "possible", "buffer": "possible", "base": "possible"}),
        (
            {"small.text": says("small.text", Verdict.OK, "yes")},
            {"not-loaded": "ruled_out", "buffer": "ruled_out", "base": "ruled_out"},
        ),
        (
            {"small.load": says("small.load", Verdict.PROBLEM, "not-loaded")},
            {"not-loaded": "confirmed", "buffer": "ruled_out", "base": "ruled_out"},
        ),
        (
            {"small.load": says("small.load", Verdict.WARNING, "not-loaded")},
            {"not-loaded": "possible", "buffer": "ruled_out", "base": "ruled_out"},
        ),
        (
            {
                "small.text": says("small.text", Verdict.WARNING, "no"),
                "small.load": says("small.load", Verdict.WARNING, "not-loaded"),
            },
            {"not-loaded": "confirmed", "buffer": "ruled_out", "base": "ruled_out"},
        ),
        (
            {
                "small.text": says("small.text", Verdict.OK, "yes"),
                "small.load": says("small.load", Verdict.PROBLEM, "not-loaded"),
            },
            {"not-loaded": "ruled_out", "buffer": "ruled_out", "base": "ruled_out"},
        ),
    ],
    ids=["nothing known", "coherent", "proof", "hint", "decided all the way", "proof behind a closed way"],
)
def test_examples(known: Mapping[str, Finding], expected: dict[str, str]) -> None:
    """A proof confirms by itself; a hint only when every node before it was decided; a closed way stays closed."""
    assert standings(triage([SMALL], VOCABULARY, known)) == expected


def test_an_experiment_is_decided_by_its_own_run() -> None:
    """The first run's answer does not decide an experiment; the attached run's does."""
    known = {
        "small.text": says("small.text", Verdict.PROBLEM, "no"),
        "small.load": says("small.load", Verdict.OK, "loaded"),
    }
    before = triage([SMALL], VOCABULARY, known)
    assert standings(before)["buffer"] == "possible"
    assert [(o.node, o.experiment) for o in before.unknown] == [("released", True), ("base", False)]
    attached = {"small": {"released": {"small.text": says("small.text", Verdict.OK, "yes")}}}
    after = triage([SMALL], VOCABULARY, known, attached)
    assert standings(after) == {"not-loaded": "ruled_out", "buffer": "confirmed", "base": "ruled_out"}


def test_possible_causes_to_which_a_fault_leads_come_first() -> None:
    """A warned answer leads to the causes behind it, however near others are; what is hygiene comes last."""
    ends = {name: Node(cause=name, fix=WORDS) for name in ("far", "near", "tidy")}
    deep = Node(question=WORDS, probes=("p.more",), branches={"yes": "far", "no": "far"})
    first = Node(question=WORDS, probes=("p.bad",), branches={"yes": "deep", "no": "deep"})
    led = Flow("led", WORDS, WORDS, "first", {"first": first, "deep": deep, "far": ends["far"]})
    near = Node(question=WORDS, probes=("p.none",), branches={"yes": "near", "no": "tidy"})
    short = Flow("short", WORDS, WORDS, "start", {"start": near, "near": ends["near"], "tidy": ends["tidy"]})
    vocabulary = {"tidy": Cause("-", WORDS, severity=2)}
    report = triage([short, led], vocabulary, {"p.bad": says("p.bad", Verdict.WARNING, "yes")})
    assert [verdict.cause for verdict in report.possible] == ["far", "near", "tidy"]
    quiet = triage([short, led], vocabulary, {"p.bad": says("p.bad", Verdict.OK, "yes")})
    assert not any(verdict.led for verdict in quiet.possible)


def test_disagreeing_probes_leave_the_node_open() -> None:
    """Two probes with two answers decide nothing; the report says that a person has to."""
    node = Node(question=WORDS, probes=("p.two", "p.same"), branches={"yes": "a", "no": "b"})
    ends = {"a": Node(cause="a", fix=WORDS), "b": Node(cause="b", fix=WORDS)}
    flow = Flow("x", WORDS, WORDS, "start", {"start": node, **ends})
    known = {"p.two": says("p.two", Verdict.PROBLEM, "yes"), "p.same": says("p.same", Verdict.OK, "no")}
    report = triage([flow], {}, known)
    assert standings(report) == {"a": "possible", "b": "possible"}
    assert "disagree" in report.unknown[0].why.en


def test_the_reason_of_an_open_node_is_its_findings() -> None:
    """An open node says what its probe said and would settle it with, or that its probes were not run."""
    asked = Finding(
        Verdict.UNKNOWN,
        None,
        Text("The log is cut off.", "x"),
        settle_with=Text("Give the whole log.", "x"),
        slots=("log",),
        probe="small.load",
    )
    report = triage([SMALL], VOCABULARY, {"small.load": asked})
    load = next(open_ for open_ in report.unknown if open_.node == "load")
    assert (load.why.en, load.settle_with.en, load.slots) == ("The log is cut off.", "Give the whole log.", ("log",))
    start = next(open_ for open_ in report.unknown if open_.node == "coherent")
    assert start.why.en == "Its probes were not run."


def test_flows_that_evidence_could_answer_are_counted_as_asked() -> None:
    """A flow was asked when a probe of its first question decided, whatever became of it later."""
    assert triage([SMALL], VOCABULARY, {}).asked == ()
    unknown = {"small.text": says("small.text", Verdict.UNKNOWN)}
    assert triage([SMALL], VOCABULARY, unknown).asked == ()
    clear = triage([SMALL], VOCABULARY, {"small.text": says("small.text", Verdict.OK, "yes")})
    assert clear.asked == ("small",)
    assert clear.clear == (("small", "all-well"),)


@pytest.mark.parametrize(
    ("known", "code"),
    [
        ({"small.text": says("small.text", Verdict.OK, "yes")}, ExitCode.CLEAR),
        ({}, ExitCode.OPEN),
        ({"small.text": says("small.text", Verdict.UNKNOWN)}, ExitCode.OPEN),
        ({"small.text": says("small.text", Verdict.WARNING, "no")}, ExitCode.OPEN),
        ({"small.load": says("small.load", Verdict.OK, "loaded")}, ExitCode.OPEN),
        ({"small.load": says("small.load", Verdict.PROBLEM, "not-loaded")}, ExitCode.CONFIRMED),
    ],
    ids=["clear", "nothing known", "main question unknown", "on the way", "only a side question", "confirmed"],
)
def test_exit_codes(known: Mapping[str, Finding], code: ExitCode) -> None:
    """0 only when the first question was answered and evidence led to a clear leaf; 1 when a cause is confirmed."""
    assert exit_code(triage([SMALL], VOCABULARY, known)) is code


def test_one_open_flow_is_not_all_clear() -> None:
    """When a flow that was asked did not end clear, the whole is open; a flow that was not asked is no hindrance."""
    ends = {"well": Node(clear=WORDS), "bad": Node(cause="bad", fix=WORDS)}
    first = Node(question=WORDS, probes=("p.other",), branches={"left": "well", "right": "bad"})
    before = Node(question=WORDS, probes=("p.other",), branches={"left": "more", "right": "bad"})
    more = Node(question=WORDS, probes=("p.two",), branches={"yes": "well", "no": "bad"})
    short = Flow("short", WORDS, WORDS, "start", {"start": first, **ends})
    long = Flow("long", WORDS, WORDS, "start", {"start": before, "more": more, **ends})
    known = {"p.other": says("p.other", Verdict.OK, "left")}
    assert exit_code(triage([short, SMALL], {}, known)) is ExitCode.CLEAR
    assert exit_code(triage([short, long], {}, known)) is ExitCode.OPEN


def test_open_nodes_are_grouped_by_what_settles_them() -> None:
    """What one slot would settle stands together, the most first; what only a person can settle stands last."""

    def open_at(node: str, *slots: str) -> Open:
        return Open("flow", node, WORDS, WORDS, WORDS, slots)

    opens = [open_at("a"), open_at("b", "log"), open_at("c", "dump"), open_at("d", "dump"), open_at("e"), open_at("f")]
    grouped = [(slots, [open_.node for open_ in group]) for slots, group in settling(opens)]
    assert grouped == [(("dump",), ["c", "d"]), (("log",), ["b"]), ((), ["a", "e", "f"])]


def test_deep_flows_are_evaluated() -> None:
    """A chain of five thousand checks is no deeper than the stack."""
    count = 5000
    nodes = {f"n{i}": Node(question=WORDS, branches={"on": f"n{i + 1}"}) for i in range(count)}
    nodes[f"n{count}"] = Node(cause="end", fix=WORDS)
    report = triage([Flow("deep", WORDS, WORDS, "n0", nodes)], {}, {})
    assert report.possible[0].open == count


# Ranking


def confirmed(cause: str, line: int | None = None, time: float | None = None) -> Verdicted:
    """Return a confirmed cause whose proof stands at `line`."""
    citations = (Citation("job.log", line, 0, "x", time=time),)
    finding = Finding(Verdict.PROBLEM, "yes", Text(cause, cause), citations, probe=cause)
    return Verdicted(cause, Standing.CONFIRMED, "flow", cause, Node(cause=cause), (finding,))


def cause(*, cascade: bool = False, severity: int = 0, general: tuple[str, ...] = ()) -> Cause:
    """Return an entry of the vocabulary."""
    return Cause("-", WORDS, cascade, severity, general)


RANKING = {
    "cascade": cause(cascade=True),
    "actor-died": cause(cascade=True),
    "specific": cause(general=("general",)),
    "general": cause(),
    "other": cause(),
    "hygiene": cause(severity=2),
}


@pytest.mark.parametrize(
    ("given_", "order", "consequences"),
    [
        ([confirmed("cascade", 3), confirmed("other", 9)], ["other", "cascade"], ("cascade",)),
        (
            [confirmed("cascade", 3), confirmed("other", 9), confirmed("actor-died", 2)],
            ["other", "actor-died", "cascade"],
            ("actor-died", "cascade"),
        ),
        ([confirmed("general", 1), confirmed("specific", 9)], ["specific", "general"], ("general",)),
        ([confirmed("other", 40), confirmed("general", 7)], ["general", "other"], ()),
        ([confirmed("other", 40, 10.0), confirmed("general", 7, 20.0)], ["other", "general"], ()),
        ([confirmed("other", 40), confirmed("general")], ["general", "other"], ()),
        ([confirmed("hygiene", 1), confirmed("other", 40)], ["other", "hygiene"], ()),
        ([confirmed("cascade", 3), confirmed("actor-died", 2)], ["actor-died", "cascade"], ()),
        ([confirmed("general", 4)], ["general"], ()),
    ],
    ids=[
        "a consequence is folded though its line is earlier",
        "all consequences are folded",
        "the general stands behind the specific",
        "the earliest line first",
        "time before line",
        "what is no log line was there before",
        "severe before hygiene",
        "only consequences: the earliest first, none folded",
        "general alone",
    ],
)
def test_ranking(given_: list[Verdicted], order: list[str], consequences: tuple[str, ...]) -> None:
    """Root before cascade, severe before mild, specific before general, earliest initiating line first."""
    ranked = rank(given_, RANKING)
    assert [verdict.cause for verdict in ranked] == order
    assert ranked[0].consequences == consequences
    assert all(verdict.consequences == () for verdict in ranked[1:])


@given(st.permutations(["cascade", "actor-died", "specific", "general", "other", "hygiene"]), st.data())
def test_ranking_does_not_depend_on_the_order_of_discovery(names: list[str], data: st.DataObject) -> None:
    """The same causes rank the same, however they were found, and no cascade stands before a root."""
    lines = {name: data.draw(st.none() | st.integers(1, 5)) for name in sorted(names)}
    ranked = rank([confirmed(name, lines[name]) for name in names], RANKING)
    again = rank([confirmed(name, lines[name]) for name in sorted(names)], RANKING)
    assert [v.cause for v in ranked] == [v.cause for v in again]
    cascades = [RANKING[verdict.cause].cascade for verdict in ranked]
    assert cascades == sorted(cascades)
    assert sorted(v.cause for v in ranked) == sorted(names)


def test_possible_causes_in_full_are_those_that_evidence_points_to() -> None:
    """Those that something wrong leads to, however many; where there are none, the first few."""
    leaf = Node(cause="x", fix=Text("x", "x"))
    every = [Verdicted(f"c{n}", Standing.POSSIBLE, "f", "x", leaf, led=n < 12) for n in range(40)]
    assert [cause.cause for cause in foremost(every)] == [f"c{n}" for n in range(12)]
    assert list(foremost(every[12:])) == every[12 : 12 + POSSIBLE_SHOWN]
    assert list(foremost([])) == []
