"""Trainer and engine are compared token by token, joined by sample index where the train dump lacks one side."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import pytest

from probes.dump_logprob_gap import logprob_gap
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.dump_maker import make, write_ranks
from tests.probes.readers.pickles import DUMPS, torch_zip


def of(*paths: Path) -> Finding:
    """Run the probe; its citations must be true."""
    finding = logprob_gap.run(evidence_of(*(("train_dump", path) for path in paths)), silent)
    check_citations(finding)
    return finding


def train(folder: Path, rollout: int, samples: list[dict[str, Any]], name: str = "") -> Path:
    """Write a train dump of version 2."""
    data = {"format_version": 2, "rollout_id": rollout, "rank": 0, "samples": samples, "dp_shards": []}
    return torch_zip(folder / f"{name or rollout}_0.pt", pickle.dumps(data, 2))


@pytest.mark.parametrize(
    ("path", "answer", "mean"),
    [("one-zero-mlp", "problem:large", 0.4547934), ("old", "ok:agree", 0.0087035), ("kl-zero", "ok:agree", 0.0084246)],
)
def test_recorded_dumps(path: str, answer: str, mean: float) -> None:
    """A zeroed MLP shows as half a nat per token, healthy runs as a hundredth; the means were computed with torch."""
    finding = of(DUMPS / path)
    assert word(finding) == answer
    assert finding.measurements[0].value == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize(
    ("apart", "answer"),
    [(0.0, "ok:agree"), (0.03, "ok:agree"), (0.06, "ok:small"), (0.12, "warning:large"), (0.4, "problem:large")],
)
def test_the_mean_over_tokens_decides(apart: float, answer: str, tmp_path: Path) -> None:
    """0.04, slime's own 0.1 and twice that are the borders; the numbers are lists here, tensors elsewhere."""
    samples = [
        {"sample_index": n, "log_probs": [-1.0] * 50, "rollout_log_probs": [-1.0 - apart] * 50, "loss_masks": [1] * 50}
        for n in range(4)
    ]
    train(tmp_path, 0, samples)
    finding = of(tmp_path)
    assert word(finding) == answer
    assert finding.measurements[0].value == pytest.approx(apart)


def test_tokens_that_the_loss_leaves_out_do_not_count(tmp_path: Path) -> None:
    """Tool output has no log-probs of the engine; only masked tokens are compared, weighted by tokens."""
    masked = {"sample_index": 0, "log_probs": [-1.0, -9.0], "rollout_log_probs": [-1.0, 0.0], "loss_masks": [1, 0]}
    long = {"sample_index": 1, "log_probs": [-1.0] * 9, "rollout_log_probs": [-1.1] * 9, "loss_masks": [1] * 9}
    train(tmp_path, 0, [masked, long])
    assert of(tmp_path).measurements[0].value == pytest.approx(0.09)


def test_nan_tokens_are_counted_not_averaged(tmp_path: Path) -> None:
    """One NaN of 200 tokens does not hide the rest."""
    sample = {"sample_index": 0, "log_probs": [math.nan, *[-1.0] * 199], "rollout_log_probs": [-1.0] * 200}
    train(tmp_path, 0, [sample])
    finding = of(tmp_path)
    assert word(finding) == "ok:agree"
    assert "over 199 tokens of 1 sample" in finding.summary.en
    assert "1 token without a finite number" in finding.summary.en


@pytest.mark.parametrize(
    ("nan", "apart", "expected"),
    [(1, 0.0, "ok:agree"), (2, 0.0, "warning:agree"), (2, 0.06, "warning:small"), (2, 0.5, "problem:large")],
)
def test_many_nan_tokens_are_no_agreement(nan: int, apart: float, expected: str, tmp_path: Path) -> None:
    """From 1 in 100 on, here of 200, a warning says how many and on which side; a large gap stays what it is."""
    trainer = [math.nan] * nan + [-1.0] * (200 - nan)
    samples = [{"sample_index": 7, "log_probs": trainer, "rollout_log_probs": [-1.0 - apart] * 200}]
    train(tmp_path, 0, samples)
    finding = of(tmp_path)
    assert word(finding) == expected
    if nan == 2:
        assert "2 of 200 tokens are NaN (trainer 2, engine 0)" in finding.summary.en
        assert "sample 7: NaN in log_probs 2" in finding.citations[-1].excerpt


def test_tokens_that_were_forced_or_excluded_are_no_nan(tmp_path: Path) -> None:
    """-inf is the log-prob of what could not be drawn, on either side and however often; +inf is none."""
    low, fine = [-math.inf] * 50, [-1.0] * 50
    for number, (trainer, engine) in enumerate([(low + fine, fine * 2), (fine * 2, low + fine)]):
        train(tmp_path, number, [{"sample_index": 0, "log_probs": trainer, "rollout_log_probs": engine}])
    assert word(of(tmp_path)) == "ok:agree"
    train(tmp_path, 2, [{"sample_index": 0, "log_probs": [math.inf, *fine], "rollout_log_probs": [-1.0, *fine]}])
    assert word(of(tmp_path)) == "warning:agree"


def test_a_later_rollout_of_nan_alone_is_a_warning_too(tmp_path: Path) -> None:
    """Rollout 0 agrees, rollout 1 is all NaN: the first says that they agree, and the second is named."""
    train(tmp_path, 0, [{"sample_index": 0, "log_probs": [-1.0] * 9, "rollout_log_probs": [-1.0] * 9}])
    train(tmp_path, 1, [{"sample_index": 0, "log_probs": [math.nan] * 9, "rollout_log_probs": [-1.0] * 9}])
    finding = of(tmp_path)
    assert word(finding) == "warning:agree"
    assert "in rollout 1 9 of 9 tokens are NaN" in finding.summary.en
    assert finding.tables[0].rows[1][3:] == ("", "", "", "", "9")


def test_nan_alone_is_not_compared(tmp_path: Path) -> None:
    """Where no token has a number on both sides nothing is concluded, and the NaN is told with its place."""
    train(tmp_path, 0, [{"sample_index": 3, "log_probs": [math.nan] * 9, "rollout_log_probs": [-1.0] * 9}])
    finding = of(tmp_path)
    assert word(finding) == "unknown"
    assert "9 of 9 tokens are NaN (trainer 9, engine 0)" in finding.summary.en
    assert finding.citations[0].excerpt.startswith("sample 3:")


def test_slices_that_are_not_there_are_no_nan(tmp_path: Path) -> None:
    """A context-parallel rank's file that is gone leaves tokens unknown; they are told and make no warning."""
    write_ranks(tmp_path, make(8), 4)[0].unlink()
    finding = of(tmp_path)
    assert word(finding) == "ok:agree"
    assert "(context-parallel slices of" in finding.summary.en


def rollout(folder: Path, samples: list[dict[str, Any]]) -> None:
    """Write the rollout dump of rollout 0."""
    torch_zip(folder / "0.pt", pickle.dumps({"rollout_id": 0, "samples": samples}, 2))


def test_the_engine_s_side_comes_from_the_rollout_dump_by_index(tmp_path: Path) -> None:
    """The train dump's order and the rollout dump's differ; the index joins them."""
    train(tmp_path, 0, [{"sample_index": n, "tokens": [n], "log_probs": [-float(n)]} for n in (2, 1)], "train_0")
    rollout(tmp_path, [{"index": n, "tokens": [n], "response": "", "rollout_log_probs": [-float(n)]} for n in (1, 2)])
    finding = of(tmp_path)
    assert word(finding) == "ok:agree"
    assert finding.measurements[0].value == 0.0


def test_dumps_of_different_runs_are_not_compared(tmp_path: Path) -> None:
    """Samples of one index with other tokens are another run's, and nothing is concluded."""
    train(tmp_path, 0, [{"sample_index": 1, "tokens": [5], "log_probs": [-1.0]}], "train_0")
    rollout(tmp_path, [{"index": 1, "tokens": [6], "response": "", "rollout_log_probs": [-9.0]}])
    finding = of(tmp_path)
    assert word(finding) == "unknown"
    assert "the dumps are of different runs" in finding.summary.en


def test_the_earliest_rollout_that_is_apart_answers(tmp_path: Path) -> None:
    """Rollout 0 agrees, 1 and 2 do not: rollout 1 is named and all three are listed."""
    for number, apart in ((0, 0.0), (1, 1.0), (2, 2.0)):
        sample = {"sample_index": 0, "log_probs": [-1.0] * 5, "rollout_log_probs": [-1.0 - apart] * 5}
        train(tmp_path, number, [sample])
    finding = of(tmp_path)
    assert "disagree in rollout 1" in finding.summary.en
    assert [row[0] for row in finding.tables[0].rows] == ["0", "1", "2"]


def test_no_train_dump_is_unknown() -> None:
    """A rollout dump alone holds only the engine's side."""
    assert word(of(DUMPS / "coherent")) == "unknown"
