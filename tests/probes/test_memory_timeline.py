"""Memory over the cycles of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.memory_timeline import memory_timeline
from runbook.finding import Finding
from tests.probes.asking import DATA, HEALTHY, ask, word
from tests.probes.colocate import job

DIED = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."


def log(folder: Path, lines: list[str]) -> Finding:
    """Return what the probe says of these lines."""
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n")
    return ask(memory_timeline, path)


def test_a_level_run_is_steady_and_drawn(tmp_path: Path) -> None:
    """No drift: ok, with the last cycle as a table and the curves of all of them."""
    finding = log(tmp_path, job(8).lines)
    assert word(finding) == "ok:steady"
    (table,) = finding.tables
    assert table.rows[0] == ("rank 0", "before wake_up model", "4.0", "1.0", "0.5", "3.0", "135.8")
    gpu, kept, host = finding.plots
    assert [curve.name for curve in gpu.curves] == ["used", "reserved", "allocated", "others", "free"]
    assert kept.curves[0].points == tuple((float(cycle), 3.0) for cycle in range(8))
    assert [y for _, y in host.curves[0].points] == [1400.0] * 32


def test_an_engine_that_keeps_more_each_cycle_is_a_warning(tmp_path: Path) -> None:
    """What is used minus reserved before wake_up grows by 1.5 GiB a cycle; first and last line are cited."""
    lines = job(8, engine=1.5).lines
    finding = log(tmp_path, lines)
    assert word(finding) == "warning:engine-grows"
    assert finding.measurements[1].value == 1.5
    asked = [number for number, each in enumerate(lines, 1) if "before wake_up" in each]
    assert [citation.line for citation in finding.citations] == [asked[-1], asked[0]]


def test_a_trainer_that_holds_more_each_cycle_is_a_warning(tmp_path: Path) -> None:
    """What torch allocated after wake_up grows."""
    assert word(log(tmp_path, job(8, trainer=1.0).lines)) == "warning:trainer-grows"


@pytest.mark.parametrize("died", [True, False])
def test_a_node_that_ran_low_is_a_lead(died: bool, tmp_path: Path) -> None:
    """Falling host memory is a warning, never a proof; an actor that vanished behind it is cited too."""
    finding = log(tmp_path, [*job(8, host=-190.0).lines, *([DIED] if died else [])])
    assert word(finding) == "warning:host-falls"
    assert ("vanished" in finding.summary.en) == died
    assert len(finding.citations) == 2 + died


def test_a_short_run_is_unknown_but_shown(tmp_path: Path) -> None:
    """Three cycles are too few to tell, and their numbers are still there."""
    finding = log(tmp_path, job(3, engine=1.5).lines)
    assert word(finding) == "unknown"
    assert finding.tables
    assert finding.plots


def test_without_lines_it_is_unknown(tmp_path: Path) -> None:
    """No Memory-Usage line is no steady memory."""
    lines = [line for line in job(8).lines if "Memory-Usage" not in line]
    assert word(log(tmp_path, lines)) == "unknown"


def test_the_oldest_lines_are_shown_without_what_they_lack(tmp_path: Path) -> None:
    """v0.1.0 prints no reserved memory: nothing is said to be held by others, nor to be steady."""
    old = "(T pid=4) Memory-Usage {}: {{'gpu': '0', 'total_GB': 79.1, 'free_GB': 9.0, 'used_GB': 70.1}}"
    lines = [old.format(what) for _ in range(8) for what in ("before offload model", "after offload model")]
    finding = log(tmp_path, lines)
    assert word(finding) == "unknown"
    assert "in 0 cycles only" in finding.summary.en
    assert finding.tables[0].rows[0] == ("gpu 0", "before offload model", "70.1", "-", "-", "-", "9.0")


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_are_left_alone(name: str) -> None:
    """A finished job gives no warning."""
    assert word(ask(memory_timeline, DATA / f"{name}.log")) in ("ok:steady", "unknown")
