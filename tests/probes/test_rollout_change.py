"""Rollouts are compared with the ones before them: text, log-probs of the same prompts, lengths, truncation."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from probes.rollout_change import rollout_change
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.readers.pickles import DUMPS, torch_zip
from tests.probes.test_text_quality import GARBLED, HEALTHY

TEXTS = [HEALTHY[name] for name in ("en-prose", "de", "fr", "es", "it", "ru", "ja", "pt")]


def of(path: Path) -> Finding:
    """Run the probe on a folder of rollout dumps."""
    finding = rollout_change.run(evidence_of(("rollout_dump", path)), silent)
    check_citations(finding)
    return finding


def write(folder: Path, number: int, log_prob: float = -0.4, prompts: str = "p", **fields: Any) -> None:
    """Write a rollout of 16 samples of 16 prompts, whose log-probs spread by 0.1 around a mean."""
    samples = [
        {
            "index": n,
            "prompt": f"{prompts}{n}",
            "response": TEXTS[n % len(TEXTS)],
            "status": "completed",
            "response_length": 100,
            "rollout_log_probs": [log_prob + (n % 5 - 2) * 0.05] * 100,
            **fields,
        }
        for n in range(16)
    ]
    torch_zip(folder / f"{number}.pt", pickle.dumps({"rollout_id": number, "samples": samples}, 2))


def test_steady_rollouts_are_steady_and_drawn(tmp_path: Path) -> None:
    """Small drifts are what training does; three rollouts are drawn."""
    for number, log_prob in enumerate((-0.40, -0.42, -0.38)):
        write(tmp_path, number, log_prob)
    finding = of(tmp_path)
    assert word(finding) == "ok:steady"
    assert [plot.unit for plot in finding.plots] == ["of the samples", "nat/token", "token"]
    assert [row[-1] for row in finding.tables[0].rows] == ["", "16", "16"]


def test_a_first_rollout_is_said_to_be_low_and_not_to_have_fallen(tmp_path: Path) -> None:
    """Nothing is before it to fall from."""
    write(tmp_path, 0, -4.0, status="truncated")
    finding = of(tmp_path)
    assert word(finding) == "warning:broken-from-start"
    assert "(log-probs extremely low, hardly a response ends)" in finding.summary.en


def test_responses_that_hold_nothing_are_not_called_garbled(tmp_path: Path) -> None:
    """Empty after the update is told as what it is."""
    write(tmp_path, 0)
    write(tmp_path, 1, response="")
    finding = of(tmp_path)
    assert word(finding) == "warning:broken-after-update"
    assert "empty responses" in finding.summary.en
    assert "garbled" not in finding.summary.en


def test_a_far_fall_of_the_log_probs_shows_what_the_text_does_not(tmp_path: Path) -> None:
    """The text of rollout 1 reads well, yet the engine's log-probs of the same prompts fell by 1.2."""
    write(tmp_path, 0)
    write(tmp_path, 1, -1.6)
    finding = of(tmp_path)
    assert word(finding) == "warning:broken-after-update"
    assert "log-probs fell far" in finding.summary.en
    measured = {measure.name: measure.value for measure in finding.measurements}
    assert measured["fall of the mean log-prob"] == pytest.approx(1.2)
    assert measured["prompts answered in both"] == 16


@pytest.mark.parametrize(
    ("later", "answer"),
    [
        ({"log_prob": -1.1}, "ok:steady"),
        ({"status": "truncated"}, "ok:steady"),
        ({"response_length": 400}, "ok:steady"),
        ({"log_prob": -1.1, "status": "truncated"}, "warning:broken-after-update"),
        ({"log_prob": -1.1, "response_length": 400}, "warning:broken-after-update"),
        ({"response": GARBLED["mixed-scripts"]}, "warning:broken-after-update"),
        ({"log_prob": 0.0}, "ok:steady"),
    ],
)
def test_one_weak_sign_alone_is_ordinary(later: dict[str, Any], answer: str, tmp_path: Path) -> None:
    """Harder prompts truncate, answers grow; two signs agree on a fault, garbled text is one by itself."""
    write(tmp_path, 0)
    write(tmp_path, 1, **later)
    assert word(of(tmp_path)) == answer


def test_other_prompts_are_compared_by_their_spread(tmp_path: Path) -> None:
    """Without common prompts the means are compared; the table names no pairs."""
    write(tmp_path, 3, prompts="a")
    write(tmp_path, 4, -1.9, prompts="b")
    finding = of(tmp_path)
    assert word(finding) == "warning:broken-later"
    assert finding.tables[0].rows[1][-1] == ""


def test_broken_from_the_start_and_one_rollout(tmp_path: Path) -> None:
    """Rollout 0 garbled is broken from the start; one healthy rollout shows no change."""
    write(tmp_path, 0)
    assert word(of(tmp_path)) == "unknown"
    write(tmp_path, 0, response=GARBLED["symbols"])
    assert word(of(tmp_path)) == "warning:broken-from-start"


def test_recorded_dumps() -> None:
    """The real pair: rollout 0 is fine and rollout 1 garbled; a train dump alone holds no response."""
    assert word(of(DUMPS / "old")) == "warning:broken-after-update"
    assert word(of(DUMPS / "kl-zero")) == "unknown"
    assert word(of(DUMPS / "malicious.pt")) == "unknown"
