"""Metric lines of every slime version become numbers, and numbers only."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import joblog, metrics
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage
from probes.readers.metrics import ASSERTED, METRIC, Record, numbers, record, runs
from tests.helpers import hostile_text

DATA = Path(__file__).parents[2] / "data" / "logs"


def _records(path: Path, content: str | bytes | None = None) -> list[Record]:
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [record(hit) for hit in joblog.scan_job(expand([str(path)])[0], (METRIC, ASSERTED), Coverage())]


@pytest.mark.parametrize(
    ("line", "kind", "number", "values", "logger", "pid"),
    [
        pytest.param(
            "(MegatronTrainRayActor pid=32167) [2025-12-17 14:10:28] model.py:649 - step 11: {'train/loss': -6.05e-09,"
            " 'train/grad_norm': 0.0798, 'train/step': 11}",
            "step", 11, {"train/loss": -6.05e-09, "train/grad_norm": 0.0798, "train/step": 11.0}, "model.py", 32167,
            id="v0.2.1",
        ),
        pytest.param(
            "(MegatronTrainRayActor pid=4121) step 0: {'train/loss': 0.0}",
            "step", 0, {"train/loss": 0.0}, "", 4121, id="v0.1.0 prints bare",
        ),
        pytest.param(
            "\x1b[36m(A pid=1)\x1b[0m [2026-08-21 10:00:00] model.py:918 - critic-step 4:"
            " {'train/critic-grad_norm': 3.2}",
            "critic-step", 4, {"train/critic-grad_norm": 3.2}, "model.py", 1, id="the critic",
        ),
        pytest.param(
            "[2026-08-21 10:00:00] train_metric_utils.py:135 - passrate 0: {'passrate/pass@1': np.float64(0.125)}",
            "passrate", 0, {"passrate/pass@1": 0.125}, "train_metric_utils.py", None, id="numpy scalars",
        ),
        pytest.param(
            "eval 20: {'eval/aime': tensor(0.5, device='cuda:0'), 'eval/name': 'x', 'eval/list': [1, 2],"
            " 'eval/n': None}",
            "eval", 20, {"eval/aime": 0.5}, "", None, id="tensors, and values that are no numbers",
        ),
        pytest.param(
            "actor train:   0%|          | 0/1 [00:00<?, ?it/s][2026-08-21 10:00:00] model.py:918 - step 2:"
            " {'train/loss': 1}",
            "step", 2, {"train/loss": 1.0}, "model.py", None, id="behind a progress bar",
        ),
        pytest.param(
            "AssertionError: threshold=0.1 log_dict={'train/train_rollout_logprob_abs_diff': 0.31}",
            "asserted", -1, {"train/train_rollout_logprob_abs_diff": 0.31}, "", None, id="the assertion of a CI run",
        ),
    ],
)  # fmt: skip
def test_a_metric_line_is_read(
    tmp_path: Path, line: str, kind: str, number: int, values: dict[str, float], logger: str, pid: int | None
) -> None:
    """Kind, number, values, logger and process of each form of the line."""
    (record,) = _records(tmp_path / "job.log", "noise\n" + line + "\n")
    assert (record.kind, record.number, record.values) == (kind, number, values)
    assert (record.logger, record.pid, record.line, record.offset) == (logger, pid, 2, 6)


def test_what_is_no_number_is_a_float_all_the_same() -> None:
    """NaN and the infinities are read as Python's repr prints them."""
    found = numbers("{'a': nan, 'b': inf, 'c': -inf, 'd': np.float32(nan)}")
    assert [math.isnan(found["a"]), found["b"], found["c"], math.isnan(found["d"])] == [True, math.inf, -math.inf, True]


def test_only_wanted_keys_are_read() -> None:
    """With keys given, a key that merely contains one of them is not taken."""
    assert numbers("{'a/b': 1, 'a/bc': 2, 'x.a/b': 3}", frozenset({"a/b"})) == {"a/b": 1.0}


@pytest.mark.parametrize(
    "text", ["Timer step 3 end", "one step 3: more", "{'train/loss': 1}", "footstep 3: {'train/loss': 1}"]
)
def test_other_lines_are_no_metrics(tmp_path: Path, text: str) -> None:
    """A line that only resembles a metric line gives nothing."""
    assert _records(tmp_path / "job.log", text + "\n") == []


@given(st.dictionaries(st.from_regex(r"[a-z/_@.0-9-]{1,20}", fullmatch=True), st.floats(width=64), max_size=8))
def test_every_float_survives_its_repr(values: dict[str, float]) -> None:
    """What Python prints of a dictionary of floats is read back exactly."""
    found = numbers(repr(values))
    assert {key: repr(value) for key, value in found.items()} == {key: repr(value) for key, value in values.items()}


@given(hostile_text, hostile_text)
def test_hostile_text_gives_numbers_or_nothing(before: str, inside: str) -> None:
    """No text makes the grammar fail, and every value is a float."""
    assert all(isinstance(value, float) for value in numbers(before + "{'a': 1, " + inside).values())


def test_a_long_hostile_line_takes_no_time() -> None:
    """The grammar is linear: a megabyte of openings is read at once."""
    assert numbers("{" + "'a': np.float64(1" * 60_000 + "x") == {}


def test_two_jobs_in_one_log_are_two_runs() -> None:
    """The shipped log holds two jobs one after the other, each from step 0 on."""
    found = runs(_records(DATA / "two-jobs.log"))
    assert [[step.number for step in run.steps] for run in found] == [[0, 1, 2], [0, 1, 2, 3]]
    assert [[each.number for each in run.rollouts] for run in found] == [[0, 1, 2], [0, 1, 2, 3]]
    assert [[each.number for each in run.managers] for run in found] == [[0, 1, 2], [0, 1, 2, 3]]


def test_bare_lines_are_a_run_of_their_own(tmp_path: Path) -> None:
    """Lines without a logger come from another program than those with one, though they stand between them."""
    logged = "[2026-08-21 10:00:00] model.py:918 - step {}: {{'train/loss': 1.0}}\n"
    content = logged.format(0) + "step 7: {'train/loss': 2.0}\n" + logged.format(1)
    found = runs(_records(tmp_path / "job.log", content))
    assert [[step.number for step in run.steps] for run in found] == [[0, 1], [7]]


def test_a_line_printed_twice_counts_once(tmp_path: Path) -> None:
    """The same line again is neither a second step nor a new run."""
    line = "step 0: {'train/loss': 1.0}\n"
    (run,) = runs(_records(tmp_path / "job.log", line + line + "step 1: {'train/loss': 1.0}\n"))
    assert [step.number for step in run.steps] == [0, 1]


def test_a_record_is_cited_with_its_own_text() -> None:
    """A record's citation quotes the metric, though a progress bar stands before it in the line."""
    step = next(record for record in _records(DATA / "healthy.log") if record.kind == "step")
    citation = metrics.citation(step)
    assert citation.line == step.line
    assert citation.excerpt.startswith("step 0: {'train/loss'")
