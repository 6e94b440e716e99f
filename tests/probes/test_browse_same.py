"""Browsing and the probes look at the same dumps, and say the same of them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from probes.browse_dumps import dumps
from probes.browse_step import read_step, steps_of
from probes.dump_logprob_gap import logprob_gap
from probes.readers.rollout_dump import read_dump
from probes.rollout_coherence import coherence
from probes.samples import judge_dump
from runbook.browse import Ask, Page, Reading, Sheet, checked
from runbook.evidence import Evidence
from runbook.probe import silent
from runbook.text import Text
from tests.helpers import evidence_of
from tests.probes import dump_makers as made
from tests.probes.dump_maker import Made, make, write_joint, write_ranks, write_rollout
from tests.probes.test_rollout_drawn import SALAD
from tests.probes.test_text_quality import GARBLED, HEALTHY


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every page the time that it needs on a busy machine, so that no test depends on it."""
    monkeypatch.setattr("probes.browse_dumps.SECONDS", 600.0)
    monkeypatch.setattr("probes.browse_dumps.MORE_SECONDS", 600.0)


def opened(evidence: Evidence, *place: str, **ask: Any) -> Page:
    """Open a page as a worker does."""
    return checked(dumps.open(evidence, Ask(place, **ask)))


def sheet(evidence: Evidence, *place: str, **ask: Any) -> Sheet:
    """Open a page that is a sheet."""
    page = opened(evidence, *place, **ask)
    assert isinstance(page, Sheet)
    return page


def column(page: Sheet, id: str) -> list[Any]:
    """Return the cells of a column."""
    return [line.cells[page.column(id)] for line in page.lines]


def both(folder: Path) -> Evidence:
    """Return a folder as the evidence of both dumps."""
    return evidence_of(("rollout_dump", folder), ("train_dump", folder))


def measured(evidence: Evidence) -> float:
    """Return the mean gap that the probe measures."""
    return logprob_gap.run(evidence, silent).measurements[0].value


def some(count: int = 12) -> list[Made]:
    """Return samples of which every third has tokens that the loss leaves out, with trainer and engine far apart."""
    samples = make(count)
    for sample in samples[::3]:
        sample.mask[: sample.response // 2] = 0
        sample.trainer[: sample.response // 2] -= 3.0
    return samples


@pytest.mark.parametrize("cp_size", [1, 2, 4])
def test_the_slices_of_context_parallel_ranks_are_one_sample(cp_size: int, tmp_path: Path) -> None:
    """Whatever the ranks, each sample is one row with all its tokens, and the mean gap is the probe's."""
    samples = some()
    write_rollout(tmp_path / "0.pt", samples)
    write_ranks(tmp_path / "train", samples, cp_size)
    evidence = both(tmp_path)
    page = sheet(evidence, "0")
    assert [line.id for line in page.lines] == [str(sample.index) for sample in samples]
    assert column(page, "length") == [sample.response for sample in samples]
    wanted = [float(np.abs(s.trainer - s.engine)[s.mask > 0].mean()) for s in samples]
    assert column(page, "gap") == pytest.approx(wanted, rel=1e-4)
    assert column(sheet(evidence), "gap") == pytest.approx([measured(evidence)], rel=1e-6)


def test_slices_that_no_rank_wrote_are_told(tmp_path: Path) -> None:
    """With a file gone its tokens are not compared, the page says so, and the mean gap is still the probe's."""
    samples = make(8)
    write_rollout(tmp_path / "0.pt", samples)
    write_ranks(tmp_path / "train", samples, 4)[0].unlink()
    evidence = both(tmp_path)
    assert any("context-parallel slices of" in note.en for note in sheet(evidence, "0").notes)
    assert column(sheet(evidence), "gap") == pytest.approx([measured(evidence)], rel=1e-6)


@pytest.mark.parametrize("told", ["position", "tokens"])
def test_samples_of_one_index_find_their_own_partner(told: str, tmp_path: Path) -> None:
    """Custom rollouts number every sample 0: position, else tokens join them, and no sample meets another's tokens."""
    samples = make(6)
    for sample in samples:
        sample.index = 0
    write_rollout(tmp_path / "0.pt", samples)
    path = write_joint(tmp_path / "train" / "0_0.pt", samples)
    root = torch.load(path, weights_only=False)
    root["samples"].reverse()
    for sample in root["samples"] if told == "tokens" else ():
        sample["sample_index"] = sample["rollout_position"] = None
    torch.save(root, path)
    evidence = both(tmp_path)
    page = sheet(evidence, "0")
    assert [line.id for line in page.lines] == ["0", *(f"0.{n}" for n in range(2, 7))]
    wanted = [float(np.abs(sample.trainer - sample.engine).mean()) for sample in samples]
    assert column(page, "gap") == pytest.approx(wanted, rel=1e-4)
    for line in page.lines:
        reading = opened(evidence, "0", line.id)
        assert isinstance(reading, Reading)
        assert reading.notes == () or not any("other tokens" in note.en for note in reading.notes)


def test_a_sample_that_one_side_lacks_is_kept(tmp_path: Path) -> None:
    """Three of the train dump, three of the rollout dump, two of them the same: four rows."""
    samples = make(4)
    write_rollout(tmp_path / "0.pt", samples[:3])
    write_joint(tmp_path / "train" / "0_0.pt", samples[1:])
    (step,) = steps_of(both(tmp_path))
    read = read_step(step)
    kinds = [(sample.id, bool(sample.train), bool(sample.rollout)) for sample in read.samples]
    assert kinds == [("0", False, True), ("1", True, True), ("2", True, True), ("3", True, False)]


@pytest.mark.parametrize("cp_size", [1, 2])
def test_a_tensor_that_cannot_be_read_leaves_the_samples_alone(cp_size: int, tmp_path: Path) -> None:
    """Where a storage is cut nothing of the rollout is joined, the fault is named and every sample is still shown."""
    samples = make(2, ranks=1)
    write_rollout(tmp_path / "0.pt", samples)
    path = write_ranks(tmp_path / "train", samples, cp_size)[0]
    cut_storage(path, samples[1].tokens.tobytes())
    evidence = both(tmp_path)
    (step,) = steps_of(evidence)
    read = read_step(step)
    assert len(read.faults) == 1
    assert "archive" in read.faults[0] or path.name in read.faults[0]
    assert [(bool(sample.train), bool(sample.rollout)) for sample in read.samples[:2]] == [(False, True)] * 2
    assert len(read.samples) == 2 + 2 * cp_size
    for line in sheet(evidence, "0").lines:
        assert isinstance(opened(evidence, "0", line.id), Reading)


def test_a_slice_without_ids_shows_places(tmp_path: Path) -> None:
    """One context-parallel rank alone, whose place no other file tells: its numbers have neither text nor ids."""
    for other in write_ranks(tmp_path, make(1), 2)[1:]:
        other.unlink()
    path = tmp_path / "0_0.pt"
    root = torch.load(path, weights_only=False)
    for name in ("tokens", "total_lengths"):
        del root["rollout_data"][name]
    torch.save(root, path)
    page = opened(evidence_of(("train_dump", tmp_path)), "0", "0")
    assert isinstance(page, Reading)
    count = len(page.passages[-1].pieces)
    assert page.passages[-1].pieces == tuple(f"{place} " for place in range(count))
    assert count == len(root["rollout_data"]["log_probs"][0])
    assert any("neither text nor token ids" in note.en for note in page.notes)


def cut_storage(path: Path, content: bytes) -> None:
    """Take the second half of one storage out of a file that torch.save wrote."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    assert content in entries.values()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data[: len(data) // 2] if data == content else data)


RANDOM_IDS = [(n * 7919) % 150001 for n in range(300)]
ODD = " was. multiplepe take= best x, explain toPrefix and,- proud to Social flight ing inflamm below members" * 2
SAMPLES: dict[str, dict[str, Any]] = {
    "salad by its ids": {"response": SALAD, "tokens": [1, 2, *RANDOM_IDS], "response_length": 300},
    "salad without ids": {"response": SALAD, "response_length": 300, "tokens": []},
    "breaks down late": {
        "response": HEALTHY["en-prose"][:220] + ODD,
        "response_length": 384,
        "rollout_log_probs": [-0.3] * 192 + [-6.0] * 192,
    },
    "odd end alone": {
        "response": HEALTHY["en-prose"][:220] + ODD,
        "response_length": 384,
        "rollout_log_probs": [-0.3] * 384,
    },
    "unlikely end alone": {
        "response": HEALTHY["en-prose"],
        "response_length": 384,
        "rollout_log_probs": [-0.3] * 192 + [-6.0] * 192,
    },
    "no status": {"response": GARBLED["symbols"], "status": None},
    "aborted": {"response": GARBLED["symbols"], "status": "aborted"},
    "odd status": {"response": HEALTHY["de"], "status": "\ud83d"},
    "empty": {"response": ""},
}


@pytest.mark.parametrize("keeps", [False, True], ids=["read", "kept"])
def test_a_row_is_judged_as_the_probe_judges_it(keeps: bool, tmp_path: Path) -> None:
    """Text, ids and log-probs are judged alike, also when judging goes on from what was kept."""
    samples = [made.rollout_sample(n, [0], [-0.3]) | fields for n, fields in enumerate(SAMPLES.values())]
    path = made.write_rollout(tmp_path / "d", 0, samples)
    evidence = evidence_of(("rollout_dump", tmp_path / "d"))
    verdicts = {one.index: one.judgement for one in judge_dump(read_dump(steps_of(evidence)[0].files[0])).samples}
    assert [verdicts[n].kind for n in (0, 1, 2, 3, 4)] == ["garbled", "coherent", "garbled", "coherent", "coherent"]
    keep = tmp_path / "keep"
    keep.mkdir()
    page = sheet(evidence, "0", keep=str(keep) if keeps else "")
    page = sheet(evidence, "0", again=True, keep=str(keep) if keeps else "")
    for line, cell in zip(page.lines, column(page, "suspicion"), strict=True):
        judgement = verdicts.get(int(line.id))
        odd = judgement is not None and judgement.kind in ("garbled", "empty")
        assert cell == (judgement.why if odd and judgement is not None else ""), line.id
        assert isinstance(cell, Text) == odd
    finding = coherence.run(evidence, silent)
    garbled = [line.id for line in page.lines if line.role == "bad"]
    assert finding.answer == "partly-garbled"
    assert f"samples {', '.join(garbled)}" in finding.summary.en, path
