"""Actor and reference are compared token by token at rollout 0, and only there."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from probes.dump_ref_logprobs import ref_logprobs
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.readers.pickles import DUMPS, torch_zip


def of(path: Path) -> Finding:
    """Run the probe; its citations must be true."""
    finding = ref_logprobs.run(evidence_of(("train_dump", path)), silent)
    check_citations(finding)
    return finding


def write(path: Path, apart: float, rollout: int = 0) -> Path:
    """Write an old per-rank train dump in which both sides are `apart`."""
    columns = {
        "tokens": [[1, 2]],
        "sample_indices": [4],
        "log_probs": [[-1.0, -2.0]],
        "ref_log_probs": [[-1.0 - apart, -2.0]],
    }
    return torch_zip(path, pickle.dumps({"rollout_id": rollout, "rank": 0, "rollout_data": columns}, 2))


@pytest.mark.parametrize(
    ("path", "answer"),
    [("kl-zero", "ok:equal"), ("old", "ok:equal"), ("ref-off", "warning:differ"), ("one-zero-mlp", "unknown"),
     ("coherent", "unknown")],
)  # fmt: skip
def test_recorded_dumps(path: str, answer: str) -> None:
    """Equal to the last bit, off by 1e-3, and dumps without a reference."""
    assert word(of(DUMPS / path)) == answer


@pytest.mark.parametrize(
    ("apart", "answer"),
    [(0.0, "ok:equal"), (1e-6, "ok:close"), (1e-3, "warning:differ"), (0.15, "warning:differ"), (0.5, "warning:far")],
)
def test_the_mean_decides_between_close_differ_and_far(apart: float, answer: str, tmp_path: Path) -> None:
    """The mean over the two tokens is half of `apart`; equality means that no token differs at all."""
    finding = of(write(tmp_path / "0_0.pt", apart))
    assert word(finding) == answer
    assert finding.measurements[0].value == pytest.approx(apart / 2)


def test_all_ranks_of_rollout_0_are_taken_together(tmp_path: Path) -> None:
    """One rank that differs is enough, and the citation is its file."""
    write(tmp_path / "0_0.pt", 0.0)
    write(tmp_path / "0_1.pt", 0.01)
    write(tmp_path / "1_0.pt", 9.0, rollout=1)
    finding = of(tmp_path)
    assert word(finding) == "warning:differ"
    assert finding.citations[0].path.endswith("0_1.pt")
    assert "over 4 tokens" in finding.summary.en


def test_a_later_rollout_is_not_asked(tmp_path: Path) -> None:
    """After the first update a difference is what training does."""
    assert word(of(write(tmp_path / "7_0.pt", 0.5, rollout=7))) == "not_applicable"
