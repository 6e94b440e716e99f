"""The transcript tells what the session knows: causes and their chain, what is open, what is next, who said what."""

from __future__ import annotations

import msgspec

from runbook.evidence import Item
from runbook.finding import Citation, Finding, Verdict
from runbook.picture import grid_lines
from runbook.session import events as ev
from runbook.session.state import SessionState, fold, replay
from runbook.ticket.parts import show_path
from runbook.ticket.transcript import Transcript
from runbook.walk import By
from tests.runbook.ticket.sample import (
    FAULT,
    FLOWS,
    LINE,
    LOG,
    drawn_finding,
    drawn_state,
    open_state,
    sample,
    text,
    triage_state,
    walked_state,
)


def test_the_first_cause_comes_with_its_chain_and_proof() -> None:
    """The root cause is first, with the lines that prove it and each step to it; a cascade is its consequence."""
    first, second = sample(walked_state()).confirmed
    assert (first.cause, first.rank, second.cause) == ("ima-deepep", 1, "nccl-failure")
    assert first.consequences == ("NCCL failure",)
    assert [(link.node, link.answer, link.how, link.by) for link in first.chain] == [
        ("present", "an illegal memory access", "evidence", "cuda.fault"),
        ("graph", "ima", "person", "wang.fang"),
        ("deepep", "deepep", "evidence", "cuda.stack"),
    ]
    assert first.proofs[0].places[0].where == f"{LOG}:48219"
    assert first.chain[0].place is not None
    assert first.chain[0].place.excerpt == LINE
    assert first.actions[1].change == ("- --enable-deepep-moe", "+ --moe-a2a-backend none")


def test_in_a_triage_the_open_step_of_a_chain_is_called_open() -> None:
    """Without a walk, a step that nobody answered is shown as such and nobody is said to have answered anything."""
    ticket = sample(triage_state())
    assert [link.how for link in ticket.confirmed[0].chain] == ["evidence", "open", "evidence"]
    assert (ticket.walked, ticket.answers) == (False, ())


def test_answers_tell_who_gave_them_what_is_stale_and_what_they_overrule() -> None:
    """Every answer is listed with its author; an overtaken one is stale; one against the probes names what they say."""
    said = {(s.node, s.answer): s for s in sample(walked_state()).answers}
    assert said["coherent", "garbled"].overrules == "coherent"
    assert said["graph", "none"].stale
    assert not said["graph", "ima"].stale
    assert said["graph", "ima"].who == "wang.fang"
    assert (said["present", "an illegal memory access"].by, said["present", "an illegal memory access"].who) == (
        "probe",
        "",
    )


def test_the_next_action_is_the_fix_or_what_settles_the_question() -> None:
    """With a confirmed cause it is its fix; else what settles the node at which the walk stands."""
    fix = sample(walked_state()).next
    assert fix.title == "Fix: Illegal memory access or crash tied to DeepEP"
    assert (fix.verify, fix.settles) == (("cuda.fault", "cuda.stack"), False)
    settle = sample(open_state()).next
    assert (settle.title, settle.words) == ("Did the checkpoint load?", "Give the log of the first hour.")
    assert settle.settles


def _then(state: SessionState, *events: ev.Event) -> SessionState:
    for event in events:
        state = fold(state, ev.Record(0, 1795978000.0, event), FLOWS)
    return state


def test_a_cause_reached_by_answers_is_no_confirmed_cause() -> None:
    """When people walked to a cause that evidence does not confirm, the title says so and the fix is offered."""
    state = _then(open_state(), ev.Answered("text", "loaded", "not-loaded", By.PERSON, "ann"))
    ticket = sample(state)
    assert ticket.confirmed == ()
    assert ticket.title == "The checkpoint was not loaded (reached by answers, not confirmed by evidence)"
    assert ticket.next.words == "Point --load at the checkpoint."


def test_an_experiment_at_hand_comes_with_its_change() -> None:
    """When the walk stands at an experiment without a run, the next action is its change of the launch script."""
    state = _then(
        SessionState(),
        ev.FlowStarted("crash"),
        ev.Answered("crash", "present", "ima", By.PERSON, "ann"),
    )
    assert sample(state).next.actions[0].change == ("+ --disable-cuda-graph", "+ export CUDA_LAUNCH_BLOCKING=1")


def test_an_empty_session_is_a_ticket_too() -> None:
    """Without any event there is a transcript that claims nothing and says what is open."""
    ticket = sample(SessionState())
    assert ticket.title == "No cause confirmed yet: 6 possible, 6 questions open"
    assert (ticket.confirmed, ticket.checks, ticket.answers) == ((), (), ())


def test_ruled_out_and_unknown_say_why() -> None:
    """What is ruled out names the finding that closed the way; what is unknown names what would settle it."""
    ticket = sample(triage_state())
    out = {line.cause: line for line in ticket.ruled_out}
    assert out["checkpoint-not-loaded"].by == "512 samples read as text."
    assert out["checkpoint-not-loaded"].probe == "rollout.coherence"
    assert [question.node for question in ticket.unknown] == ["graph"]
    assert ticket.unknown[0].experiment


def test_evidence_and_checks_are_ordered_by_what_they_tell() -> None:
    """Evidence of the first cause comes first, then the way to it; checks go from problems to what does not apply."""
    ticket = sample(triage_state())
    assert [proof.probe for proof in ticket.problems] == ["cuda.stack", "cuda.fault", "nccl.timeout", "args.keys"]
    verdicts = [check.verdict for check in ticket.checks]
    assert verdicts == ["problem"] * 3 + ["warning", "unknown", "ok", "not_applicable"]


def test_numbers_keep_their_value_and_what_is_no_number_is_said() -> None:
    """A measurement has its value, unit, threshold and source; NaN is no JSON number and stands as text."""
    stack = next(check for check in sample(triage_state()).checks if check.probe == "cuda.stack")
    assert [(n.name, n.value, n.shown, n.threshold) for n in stack.numbers] == [
        ("hidden_size", 8192.0, "8192", "7168"),
        ("loss", None, "nan nats", ""),
    ]


def test_pictures_and_proposed_edits_stand_with_the_proof() -> None:
    """A plot and a grid come as data in one language, a proposed edit as the lines of its diff under its file."""
    (proof,) = [proof for proof in sample(drawn_state(drawn_finding(lines=3))).problems if proof.probe == "cuda.stack"]
    (plot,), (grid,), (edit,) = proof.plots, proof.grids, proof.edits
    assert (plot.title, plot.x, plot.unit) == ("Loss on gpu-node-17", "step", "nats")
    assert plot.curves[0].points == ((0.0, 1.0), (1.0, 2.0), (2.0, None), (3.0, 4.0))
    assert plot.marks == ((1.0, "lihua changed gpu-node-17"),)
    assert plot.limits == ((3.0, "limit of /home/lihua/limits.yaml"),)
    assert (grid.title, grid.cells) == ("Layers by rank", ("=x",) * 3)
    assert grid_lines(grid) == (
        "gpu-node-17  =x",
        "layer 1      =x",
        "layer 2      =x",
        "             r0 .. r1",
        "= the same   x differs",
    )
    assert edit.path == "/home/lihua/code/config.json"
    assert edit.lines == ("--- a/config.json", "+++ b/config.json", "+ /home/lihua/dump/0")
    chinese = sample(drawn_state(drawn_finding()), "zh").problems
    assert next(grid.title for proof in chinese for grid in proof.grids) == "各层各 rank"
    assert next(plot.title for proof in chinese for plot in proof.plots) == "gpu-node-17 的 loss"


def test_hostile_text_is_sanitised_and_odd_file_names_are_shown() -> None:
    """Escape sequences and bidi controls are gone; a file name that is no UTF-8 can be written anywhere."""
    finding = Finding(
        Verdict.WARNING, "x", text("a\x1b[2Jb\u202ec"), (Citation("/r/\udcff\x1b[2J.log", 1, 0, "x\x00y"),), probe="p"
    )
    state = replay(
        [
            ev.Record(0, 1.0, ev.EvidenceAdded((Item("log", "/r/\udcff.log", text("why\n\nso")),))),
            ev.Record(1, 2.0, ev.Found(finding)),
            ev.Record(2, 3.0, ev.Noted("one\ntwo\x1b]0;x\x07")),
        ],
        FLOWS,
    )
    ticket = sample(state)
    assert ticket.problems[0].summary == "abc"
    assert ticket.problems[0].places[0].path == "/r/\\udcff.log"
    assert ticket.problems[0].places[0].excerpt == "xy"
    assert ticket.notes[0].lines == ("one", "two")
    assert msgspec.json.decode(msgspec.json.encode(ticket), type=Transcript) == ticket


def test_the_timeline_joins_log_lines_and_people() -> None:
    """Cited lines with a time come first, by their own clock; then what people did: the two cannot be compared."""
    moments = sample(walked_state()).timeline
    assert max(moment.time for moment in moments if moment.source == "log") > moments[-1].time - 3600
    assert [moment.source for moment in moments] == sorted(moment.source for moment in moments)
    for source in ("log", "session"):
        times = [moment.time for moment in moments if moment.source == source]
        assert times == sorted(times)
    assert {moment.where for moment in moments if moment.source == "log"} >= {f"{LOG}:{FAULT.citations[0].line}"}
    assert moments[-1].what == (
        "Note: Paged by alert #4711. / lihua@gpu-node-17 saw it twice; ask wang.fang@corp.example.net"
    )


def test_the_language_is_the_one_asked_for() -> None:
    """Chinese words come from the flows and findings; what has none is English."""
    ticket = sample(triage_state(), "zh")
    assert ticket.title == "与 DeepEP 有关的非法显存访问"
    assert ticket.next.title == "修复：与 DeepEP 有关的非法显存访问"


def test_paths_as_text() -> None:
    """A path keeps every byte visible."""
    assert show_path("/a/b\udc80c") == "/a/b\\udc80c"
