"""A session over hours: a proposed experiment, its changed copy, the session closed, resumed with new runs, and ended.

The real command over files, in a fresh process each time, as the engineers of two shifts would. What it must do is
kept in `golden/experiments.yaml`: the answers in order, the grid after each run, and the cause that is confirmed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from runbook.catalog import load_catalog
from runbook.experiments import grids
from runbook.session.opening import read_session
from runbook.session.state import SessionState
from runbook.walk import By, position
from tests.incidents.experiment_runs import first_run, healthy_log, made_with

GOLDEN = yaml.safe_load((Path(__file__).parent / "golden" / "experiments.yaml").read_text(encoding="utf-8"))
CATALOG = load_catalog()


@dataclass
class Shift:
    """An engineer at the command line. folder: with the runs and the sessions."""

    folder: Path
    session: str = ""

    def __call__(self, *words: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "runbook.cli.main", *map(str, words), "--sessions", str(self.folder / "sessions")],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8", "NO_COLOR": "1"},
            timeout=120,
        )

    def begin(self, run: Path, stdin: str) -> subprocess.CompletedProcess[str]:
        """Walk the flow from its start."""
        done = self("run", GOLDEN["flow"], run, stdin=stdin)
        kept = re.search(r"session kept: (\S+)", done.stderr)
        assert kept is not None, done.stderr
        self.session = kept[1]
        return done

    @property
    def state(self) -> SessionState:
        """Return what the session knows."""
        return read_session(CATALOG, str(self.folder / "sessions" / self.session)).state


@pytest.fixture
def shift(tmp_path: Path) -> Shift:
    """Return an engineer with an empty folder."""
    return Shift(tmp_path)


@pytest.mark.parametrize("trace", GOLDEN["traces"], ids=lambda trace: str(trace["cause"]))
def test_session_over_several_shifts(shift: Shift, trace: dict[str, Any]) -> None:
    """Each run is attached in a new process; the grid fills in as the golden trace says and the cause is confirmed.

    Every answer is the probes' own; each copy is a script that bash reads, and the first run's script stays as it is.
    """
    run = first_run(shift.folder / "first")
    before = (run / "launch.sh").read_bytes()
    done = shift.begin(run, "\n" * trace["checks"] + "c\nq\n")
    assert f"ima / {trace['runs'][0]['node']}" in done.stdout
    for number, one in enumerate(trace["runs"], 1):
        copy = shift.state.copies["ima", one["node"]]
        assert copy.left == ()
        assert f"$ {copy.command}" in done.stdout
        assert subprocess.run(["bash", "-n", copy.path], check=False).returncode == 0
        made = made_with(copy.path, run / "models", shift.folder / f"run-{number}", fails=one["fails"])
        done = shift("resume", shift.session, "--plain", "--attach", made, stdin="\nc\nq\n")
        arrival = shift.state.arrival("ima", one["node"])
        assert arrival is not None
        assert (arrival.root, arrival.lacks, arrival.notes) == (str(made), (), ())
        (grid,) = grids(CATALOG.flows["ima"], shift.state, "en")
        assert [list(row[1:]) for row in grid.rows] == one["grid"]
    assert (run / "launch.sh").read_bytes() == before
    walk = shift.state.walk("ima")
    assert [[step.node, step.answer] for step in walk.steps] == trace["answers"]
    assert {step.by for step in walk.steps} == {By.PROBE}
    assert position(CATALOG.flows["ima"], walk) == trace["leaf"]
    assert done.returncode == 1
    assert f"cause: {trace['cause']}" in done.stdout
    assert "The runs side by side" in done.stdout
    _tickets(shift, trace)


def _tickets(shift: Shift, trace: dict[str, Any]) -> None:
    """Check that each format tells the grid, the change, the runs and the cause."""
    last = trace["runs"][-1]
    for name in ("markdown", "html", "json"):
        output = shift.folder / f"ticket.{name}"
        assert shift("export", shift.session, "--format", name, "--output", output).returncode == 0
        text = output.read_text(encoding="utf-8")
        assert "Speculative decoding × CUDA graphs" in text
        assert trace["cause"] in text
        assert all(cell in text for row in last["grid"] for cell in row)
        assert f"ima/{last['node']}" in text.replace("\\", "") or name == "json"
        assert "--sglang-speculative-algorithm EAGLE" in text
    told = json.loads((shift.folder / "ticket.json").read_text())
    assert [(one["node"], one["run"]) for one in told["experiments"]] == [
        (one["node"], f"run-{number}") for number, one in enumerate(trace["runs"], 2)
    ]
    assert all(one["answer"] for one in told["experiments"])


def test_triage_names_the_first_experiment(shift: Shift) -> None:
    """Where evidence leads to an experiment, triage ends with it and the command that goes there."""
    run = first_run(shift.folder / "first")
    done = subprocess.run(
        [sys.executable, "-m", "runbook.cli.main", "triage", str(run)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    last = done.stdout.rstrip().splitlines()[-3:]
    assert last[0] == "Next, an experiment"
    assert "ima/speculation-off  Does the IMA remain without speculative decoding" in last[1]
    assert last[2].strip() == f"$ slime-runbook run ima {run}"
    (shift.folder / "fine").mkdir()
    healthy_log(shift.folder / "fine" / "job.log")
    fine = subprocess.run(
        [sys.executable, "-m", "runbook.cli.main", "triage", str(shift.folder / "fine")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "an experiment" not in fine.stdout.splitlines()[-3]


def test_run_that_is_not_the_experiment_is_told(shift: Shift) -> None:
    """The first run again is refused, an empty folder too, a run without the change decides nothing."""
    run = first_run(shift.folder / "first")
    shift.begin(run, "\n\n\n\n\nq\n")
    empty = shift.folder / "empty"
    empty.mkdir()
    unchanged = shift.folder / "unchanged"
    shutil.copytree(run, unchanged)
    healthy_log(unchanged / "job.log")
    done = shift("resume", shift.session, "--plain", stdin=f"r {run}\nr {empty}\nr {unchanged}\nq\n")
    assert "belongs to the first run already" in done.stdout
    assert "nothing in it is evidence of a known kind" in done.stdout
    assert "This run still has --sglang-speculative-algorithm EAGLE (launch.sh:" in done.stdout
    assert "so it decides nothing" in done.stdout
    assert "made without the change (run-2)" in done.stdout
    state = shift.state
    assert state.runs == {"run-2": str(unchanged)}
    assert state.attached == {("ima", "speculation-off"): "run-2"}
    assert state.decision(CATALOG.flows["ima"], "speculation-off").answer is None
    confirmed = {cause.cause for cause in state.report(CATALOG.flows.values(), CATALOG.vocabulary).confirmed}
    assert "ima-speculative-decoding" not in confirmed


def test_resume_attaches_only_at_an_experiment(shift: Shift) -> None:
    """`--attach` at a node that is no experiment is wrong usage and attaches nothing."""
    run = first_run(shift.folder / "first")
    shift.begin(run, "q\n")
    done = shift("resume", shift.session, "--plain", "--attach", run)
    assert done.returncode == 2
    assert "stands at no experiment" in done.stderr
    assert shift.state.runs == {}
