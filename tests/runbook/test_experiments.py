"""Grids of experiments over the shipped IMA flow, and runs side by side."""

from __future__ import annotations

from runbook.evidence import Item
from runbook.experiments import grids, grids_at, side_by_side
from runbook.finding import Finding, Verdict
from runbook.session import events as ev
from runbook.session.state import SessionState, replay
from runbook.text import Text
from runbook.walk import By
from tests.flows.made_up import FLOWS

IMA = FLOWS["ima"]


def says(probe: str, answer: str, run: str = "", verdict: Verdict = Verdict.OK) -> ev.Found:
    """Return the event of a finding about one run."""
    return ev.Found(Finding(verdict, answer, Text(probe, probe), probe=probe), run)


def answers(*steps: tuple[str, str]) -> list[ev.Event]:
    """Return the events of a person's answers in the IMA flow."""
    return [ev.Answered("ima", node, word, By.PERSON, "ann") for node, word in steps]


def state(*events: ev.Event) -> SessionState:
    """Return the state after these events."""
    return replay([ev.Record(n, float(n), event) for n, event in enumerate(events)], FLOWS)


START = [
    says("cuda.ima_in_log", "ima", verdict=Verdict.PROBLEM),
    says("launch.speculative_and_graph", "both"),
    *answers(
        ("ima-present", "ima"), ("named-already", "unlocalised"), ("whose-process", "rollout"), ("blocking", "on"),
        ("features", "both"),
    ),
]  # fmt: skip


def test_nothing_is_drawn_before_the_grid_is_reached() -> None:
    """A flow that stands before its grid shows none, and the node that leads to it already does."""
    before = state(*START[:3])
    assert grids(IMA, before, "en") == ()
    assert len(grids_at(IMA, "features", before, "en")) == 1
    assert grids_at(IMA, "deepep", before, "en") == ()


def test_first_cell_is_the_run_at_hand_and_the_next_one_is_named() -> None:
    """With both features on, the failing run is the first cell, and the cell that the flow asks next says so."""
    (grid,) = grids(IMA, state(*START), "en")
    assert grid.columns == ("", "CUDA graphs on", "CUDA graphs off")
    assert grid.rows == (
        ("with speculative decoding", "an illegal memory access (this run)", "not run"),
        ("without", "next", "not run"),
    )


def test_grid_fills_in_and_stops_when_the_answer_is_known() -> None:
    """A clean run without graphs ends the flow in the graph cause; the cell that would add nothing is not needed."""
    run = [
        ev.RunAttached("ima", "speculation-off", "run-2", "/r2"),
        says("cuda.ima_in_log", "ima", "run-2", Verdict.PROBLEM),
        *answers(("speculation-off", "ima")),
        ev.RunAttached("ima", "graph-off", "run-3", "/r3"),
        says("cuda.ima_in_log", "none", "run-3"),
        *answers(("graph-off", "none")),
    ]
    (grid,) = grids(IMA, state(*START, *run), "en")
    assert grid.rows == (
        ("with speculative decoding", "an illegal memory access (this run)", "not needed"),
        ("without", "an illegal memory access (run-2)", "none (run-3)"),
    )
    assert (
        grids(IMA, state(*START, *run), "zh")[0].rows[1][2] == f"{IMA.nodes['graph-off'].answers['none'].zh}（run-3）"
    )


def test_run_without_an_answer_is_not_taken_for_clean() -> None:
    """A run that was attached and not understood says so in its cell."""
    (grid,) = grids(IMA, state(*START, ev.RunAttached("ima", "speculation-off", "run-2", "/r2")), "en")
    assert grid.rows[1][1] == "no answer yet (run-2)"


def test_cell_of_the_run_at_hand_follows_what_was_on() -> None:
    """Where only CUDA graphs were on, the failing run is the cell without speculative decoding."""
    only = [says("cuda.ima_in_log", "ima"), says("launch.speculative_and_graph", "graph-only")]
    (grid,) = grids_at(IMA, "graph-off", state(*only), "en")
    assert grid.rows[1][1] == "an illegal memory access (this run)"
    assert grid.rows[0][1] == "not run"


def test_runs_side_by_side() -> None:
    """Only probes that were asked of two runs are compared; a run without findings has no column."""
    session = state(
        ev.EvidenceAdded((Item("log", "/a.log", Text("x", "x")),)),
        says("cuda.ima_in_log", "ima"),
        says("metrics.nan", "none"),
        ev.RunAttached("ima", "speculation-off", "run-2", "/r2"),
        ev.RunAttached("ima", "graph-off", "run-3", "/r3"),
        says("cuda.ima_in_log", "none", "run-2"),
    )
    table = side_by_side(session, "en")
    assert table is not None
    assert table.columns == ("probe", "this run", "run-2")
    assert table.rows == (("cuda.ima_in_log", "ima", "none"),)
    assert side_by_side(state(*START), "en") is None
