"""An experiment in the UI: `c` writes the changed copy, `t` attaches the run, the grid fills in, Enter goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from runbook.catalog import load_catalog
from runbook.evidence import Item
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import new_session
from runbook.text import Text
from runbook.tui.advice import Do, advise
from runbook.tui.app import RunbookApp
from runbook.tui.experimenttext import grid_block
from runbook.tui.nodetext import node_text
from tests.incidents.experiment_runs import first_run, made_with
from tests.runbook.test_experiments import IMA, START, says
from tests.runbook.tui.driving import until

NODE = "speculation-off"
LACKS = (Text("This run still has --x (run.sh:3) [/rank0].", "该运行仍有 --x（run.sh:3）。"),)


def a_session(folder: Path, *events: ev.Event) -> Desk:
    """Return a kept session that stands at the first cell of the grid, with the launch script as evidence."""
    run = first_run(folder / "run")
    desk = new_session(load_catalog(), str(folder / "sessions"))
    desk.begin(str(run))
    desk.append(ev.EvidenceAdded((Item("launch", str(run / "launch.sh"), Text("given", "给出")),)))
    for event in (*START, *events):
        desk.append(event)
    return desk


def node_of(app: RunbookApp, width: int = 76) -> str:
    """Return what the node pane says of the experiment."""
    return node_text(app.view(), IMA, NODE, width, 0).plain


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_copy_is_written_and_the_run_attached_by_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    """What Enter does is first the copy, then the run, then the answer; the pane shows diff, command, grid and runs."""
    desk = a_session(tmp_path)
    app = RunbookApp(desk, "ima")
    try:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.view().here(IMA) == NODE and len(app.screen_stack) > 1)
            assert advise(app.view(), IMA, NODE).do is Do.CHANGE
            assert "next" in node_of(app)
            await pilot.press("c")
            await until(pilot, lambda: ("ima", NODE) in desk.state.copies)
            copy = desk.state.copies["ima", NODE]
            said = node_of(app)
            assert "--sglang-speculative-algorithm EAGLE" in said
            assert "".join(copy.command.split()) in "".join(said.replace(app.signs.bar, "").split())
            assert advise(app.view(), IMA, NODE).do is Do.ATTACH
            made = made_with(copy.path, tmp_path / "run" / "models", tmp_path / "two", fails=True)
            await pilot.press("t")
            app.screen.query_one(Input).value = str(made)
            await pilot.press("enter")
            await until(pilot, lambda: desk.state.decision(IMA, NODE).answer == "ima")
            assert advise(app.view(), IMA, NODE).do is Do.ACCEPT
            await until(pilot, lambda: "launch.speculative_and_graph" in desk.state.findings_of("run-2"))
            said = node_of(app)
            assert "an illegal memory access (run-2)" in said
            assert "run-2  ima/speculation-off" in said
    finally:
        desk.close()


def test_run_without_the_change_is_never_recommended(tmp_path: Path) -> None:
    """Its pane says what it lacks, as text, and Enter offers to attach another run."""
    attached = (
        ev.RunAttached("ima", NODE, "run-2", "/r2", LACKS),
        says("cuda.ima_in_log", "none", "run-2"),
    )
    desk = a_session(tmp_path, *attached)
    try:
        app = RunbookApp(desk, "ima")
        assert LACKS[0].en in " ".join(node_of(app).split())
        assert "so it decides nothing" in " ".join(node_of(app).split())
        assert advise(app.view(), IMA, NODE).do is Do.ATTACH
    finally:
        desk.close()


def test_narrow_grid_keeps_every_cell_whole(tmp_path: Path) -> None:
    """Where the columns do not fit, the cells stand one a line and nothing is cut."""
    from runbook.experiments import grids_at

    desk = a_session(tmp_path)
    try:
        app = RunbookApp(desk, "ima")
        (grid,) = grids_at(IMA, NODE, desk.state, "en")
        for width in (30, 44, 120):
            said = " ".join(grid_block(app.view(), grid, width).plain.split())
            for words in ("with speculative decoding", "an illegal memory access (this run)", "next", "not run"):
                assert words in said
            lines = grid_block(app.view(), grid, width).plain.splitlines()
            assert max(map(len, lines)) <= max(width, len("Speculative decoding × CUDA graphs"))
    finally:
        desk.close()
