"""Runs, resumes and holes in the metrics of logs and event files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from probes.metrics_overview import overview
from tests.probes.asking import DATA, ask, ask_text, step, table, word

EVENTS = next((Path(__file__).parents[1] / "data" / "tensorboard").iterdir())


def _steps(*numbers: int) -> list[str]:
    return [step(number, loss=float(number), grad_norm=0.5) for number in numbers]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(_steps(0, 1, 2, 3), "ok:complete", id="whole"),
        pytest.param(_steps(5, 6, 7), "ok:complete", id="a later part"),
        pytest.param(_steps(0, 1, 4, 5), "warning:gaps", id="two steps are missing"),
        pytest.param([*_steps(0, 1, 2), step(2, loss=9.0), step(3, loss=9.0)], "ok:resumed", id="it went back"),
        pytest.param(_steps(0, 1, 2) + table(load="/x") + _steps(3, 4), "ok:resumed", id="a start in between"),
        pytest.param([*_steps(0, 1, 2), step(0, loss=9.0)], "ok:several-runs", id="from the start again"),
    ],
)
def test_runs_and_holes_are_told_apart(tmp_path: Path, lines: list[str], expected: str) -> None:
    """Numbers that go on, stop, go back or begin again."""
    assert word(ask_text(overview, tmp_path, *lines)) == expected


def test_one_resume_is_one_time(tmp_path: Path) -> None:
    """The count agrees with its noun."""
    lines = [*_steps(0, 1, 2), step(2, loss=9.0), step(3, loss=9.0)]
    assert "was resumed 1 time." in ask_text(overview, tmp_path, *lines).summary.en


def test_a_hole_is_named(tmp_path: Path) -> None:
    """The missing steps are named and the line behind the hole is quoted."""
    finding = ask_text(overview, tmp_path, *_steps(0, 1, 4))
    assert "step 2-3" in finding.summary.en
    assert "step 4" in finding.citations[0].excerpt


def test_two_jobs_in_a_log_are_two_runs() -> None:
    """The shipped log of two jobs; the table shows the one that came further."""
    finding = ask(overview, DATA / "two-jobs.log")
    assert word(finding) == "ok:several-runs"
    assert [row[0] for row in finding.tables[1].rows] == ["0", "1", "2", "3"]


def test_a_log_that_repeats_another_counts_once(tmp_path: Path) -> None:
    """A worker's log with the same steps as the driver's is no second run."""
    for name in ("driver.log", "worker.log"):
        (tmp_path / name).write_text("\n".join(_steps(0, 1, 2)) + "\n")
    assert word(ask(overview, tmp_path / "driver.log", tmp_path / "worker.log")) == "ok:complete"


def test_an_event_file_is_a_run(tmp_path: Path) -> None:
    """TensorBoard's file gives the same table as a log, alone or in a folder, cited by the byte."""
    shutil.copy(EVENTS, tmp_path)
    for path in (EVENTS, tmp_path):
        finding = ask(overview, path)
        assert word(finding) == "ok:complete"
        assert "step 0-5" in finding.summary.en
        assert finding.citations[0].line is None
        assert finding.citations[0].offset == 40 + 48
