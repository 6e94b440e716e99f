"""Metrics and arguments of the runs in a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes import metric_runs
from probes.metric_runs import Metrics
from runbook.probe import silent
from tests.helpers import evidence_of
from tests.probes.asking import rollout, step, table


def _read(folder: Path, *lines: str) -> Metrics:
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n")
    return metric_runs.read(evidence_of(("log", path)), silent)


def test_a_record_has_the_arguments_above_it(tmp_path: Path) -> None:
    """Of two jobs in one log each has its own table."""
    lines = [*table(load="/a"), step(0, loss=1.0), *table(load="/b"), step(0, loss=2.0)]
    read = _read(tmp_path, *lines)
    tables = [read.table(run.steps[0]) for run in read.runs]
    assert [each.value("load") if each else None for each in tables] == ["/a", "/b"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([*table(num_steps_per_rollout=4), step(0, loss=1.0)], 4),
        ([*table(num_steps_per_rollout="None"), step(0, loss=1.0)], None),
        ([rollout(0), step(0, loss=1.0), rollout(1), step(1, loss=1.0), rollout(2)], 1),
        ([rollout(0), step(0, loss=1), step(1, loss=1), rollout(1), step(2, loss=1), step(3, loss=1), rollout(2)], 2),
        ([rollout(0), step(0, loss=1.0)], None),
    ],
)  # fmt: skip
def test_steps_per_rollout_are_told_or_counted(tmp_path: Path, lines: list[str], expected: int | None) -> None:
    """The arguments tell; else the steps between rollouts do; else nobody knows."""
    lines = [line.replace("{}", "{'rollout/raw_reward': 0.5}") for line in lines]
    read = _read(tmp_path, *lines)
    (run,) = read.runs
    assert metric_runs.steps_per_rollout(run, read.tables[0] if read.tables else None) == expected


def test_only_a_start_at_zero_is_a_first_step(tmp_path: Path) -> None:
    """A resumed run has neither a first rollout nor a first step."""
    fresh, resumed = _read(tmp_path, step(0, loss=1.0)).runs[0], _read(tmp_path, step(8, loss=1.0)).runs[0]
    assert metric_runs.first_step(fresh) is fresh.steps[0]
    assert metric_runs.first_step(resumed) is None
    assert metric_runs.first_rollout(fresh) is None


def test_event_files_beyond_the_limit_are_not_passed_over_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a folder holds more than are read, nothing may be said to be absent."""
    for name in ("a", "b"):
        (tmp_path / f"events.out.tfevents.{name}").write_bytes(b"")
    assert not [
        one
        for one in metric_runs.read(evidence_of(("log", tmp_path)), silent).coverage.problems
        if one.kind == "too-many"
    ]
    monkeypatch.setattr("probes.readers.tensorboard.FILES", 2)
    read = metric_runs.read(evidence_of(("log", tmp_path)), silent)
    assert [one.kind for one in read.coverage.problems if not one.harmless] == ["too-many"]
