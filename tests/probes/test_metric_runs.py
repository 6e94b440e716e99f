"""Metrics and arguments of the runs in a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes import metric_runs
from probes.metric_runs import Judged, Metrics
from probes.metrics_nan import nan
from probes.readers.metrics import Record, Run, place
from runbook.finding import Verdict, found
from runbook.probe import silent
from tests.helpers import evidence_of
from tests.probes.asking import rollout, step, table

ABORT = "RuntimeError: Rank 3, node h, iteration 0: Unexpected result nan (message='found NaN in local grad')"


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


runs_of_lines = st.lists(
    st.sampled_from(
        [
            *(step(n, loss=1.0) for n in range(3)),
            *(f"step {n}: {{'train/loss': 1.0}}" for n in range(3)),
            ABORT,
            "Running entrypoint for job x",
        ]
    ),
    max_size=30,
)


@given(runs_of_lines)
def test_what_is_behind_a_run_is_what_a_search_finds(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    """Later runs, where the next begins and the marks between, also where two programs print by turns."""
    read = _read(tmp_path_factory.mktemp("log"), *lines)
    for run in read.runs:
        first, last = run.edges
        behind = [other for other in read.runs if other.edges[0].offset > last.offset]
        assert [id(other) for other in read.later(run)] == [id(other) for other in behind]
        until = min((place(other.edges[0]) for other in behind), default=None)
        assert read.next_start(run) == until
        marks = [mark for mark in read.marks if place(mark) >= place(first) and (not until or place(mark) < until)]
        assert list(read.marked(first.file.stream, place(first), until)) == marks


@given(st.lists(st.tuples(st.sampled_from(["good", "bad"]), st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_the_run_that_got_past_another_is_what_a_search_finds(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str, int, int]]
) -> None:
    """A grave run is history exactly where a later harmless one came as far as it broke; else it is the answer."""
    lines = ["Running entrypoint for job x\n" + "\n".join(step(n, loss=1.0) for n in range(k + 1)) for _, k, _ in made]
    read = _read(tmp_path_factory.mktemp("log"), *lines)
    told = {id(run): (word, reached, broke) for run, (word, reached, broke) in zip(read.runs, made, strict=True)}

    def one(run: Run) -> Judged:
        word, _, broke = told[id(run)]
        return Judged(run, found(Verdict.OK if word == "good" else Verdict.WARNING, word, "It is.", "是。"), broke)

    judged = metric_runs.judge(read, one, ("good", "bad"))
    standing = [
        number
        for number, (word, _, broke) in enumerate(made)
        if word == "bad" and not any(other == "good" and far >= broke for other, far, _ in made[number + 1 :])
    ]
    if not made:
        assert judged is None
    else:
        assert judged is not None
        assert judged.answer == ("bad" if standing else "good")


def test_ten_thousand_runs_are_looked_at_a_few_times_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many runs of a log broke before the healthy last one, the work for each of them is the same."""
    asked = 0
    edges = Run.edges

    def counted(run: Run) -> tuple[Record, Record]:
        nonlocal asked
        asked += 1
        return edges.__get__(run)  # type: ignore[no-any-return]

    monkeypatch.setattr(Run, "edges", property(counted))
    broken = [step(0, loss=1.0), step(1, loss=float("nan")), ABORT]
    path = tmp_path / "job.log"
    path.write_text("\n".join([*broken * 400, *(step(n, loss=1.0) for n in range(3))]) + "\n")
    finding = nan.run(evidence_of(("log", path)), silent)
    assert finding.answer == "none"
    assert finding.verdict is Verdict.WARNING
    assert 401 <= asked < 401 * 12
