"""Checkpoint folders are whole, lack tracker or files, or are none; ordinary first starts are no fault."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from probes.megatron_checkpoint_dir import checkpoint_dir
from probes.readers.torch_dist import TRACKER, read_metadata
from runbook.evidence import Evidence, Item
from runbook.finding import Finding
from runbook.probe import silent
from runbook.text import Text
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.readers.pickles import DATA
from tests.probes.scripts import script, write

ITERATION = "iter_0000000"


def of(**slots: Path | str) -> Finding:
    """Run the probe on folders by slot; its citations must be true."""
    finding = checkpoint_dir.run(evidence_of(*slots.items()), silent)
    check_citations(finding)
    return finding


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Return a complete two-stage checkpoint; its data files are holes of the right size."""
    folder = tmp_path / "ckpt"
    shutil.copytree(DATA / "ckpt", folder)
    for name, size in read_metadata(str(folder / ITERATION / ".metadata")).needed.items():
        with open(folder / ITERATION / name, "wb") as file:
            file.truncate(size)
    return folder


def test_a_whole_checkpoint_is_complete_in_either_slot(whole: Path) -> None:
    """Tracker, iteration folder and every file agree; the tracker's line is cited."""
    for slot in ("megatron_load", "megatron_ref"):
        finding = of(**{slot: whole})
        assert word(finding) == "ok:complete"
        assert (finding.citations[0].line, finding.citations[0].excerpt) == (1, "0")


def test_a_released_checkpoint_is_complete(whole: Path) -> None:
    """`release` is what the converter writes."""
    (whole / ITERATION).rename(whole / "release")
    (whole / TRACKER).write_text("release\n")
    assert word(of(megatron_ref=whole)) == "ok:complete"


def test_a_missing_tracker_beside_iterations(whole: Path) -> None:
    """It is not loaded and nothing is printed; the iteration is named."""
    (whole / TRACKER).unlink()
    finding = of(megatron_load=whole)
    assert word(finding) == "problem:no-tracker"
    assert ITERATION in finding.summary.en


@pytest.fixture
def saving(whole: Path) -> Path:
    """Return a checkpoint without tracker: a save that has not ended, or a lost tracker."""
    (whole / TRACKER).unlink()
    return whole


def test_a_first_save_that_has_not_ended_is_unknown(saving: Path, tmp_path: Path) -> None:
    """--load that is also --save, as slime's scripts have it, is written to; a healthy log proves as little."""
    launch = write(tmp_path, "run.sh", script(f"--load {saving}", f"--save {saving}"))
    assert word(of(megatron_load=saving, launch=launch)) == "unknown"
    loaded = "  successfully loaded checkpoint from /models/ref [ t 1/1, p 1/1 ] at iteration 0\n"
    log = write(tmp_path, "job.log", loaded + "rollout 0: {'rollout/log_probs': -0.3}\n")
    assert word(of(megatron_load=saving, launch=launch, log=log)) == "unknown"
    assert word(of(megatron_load=saving, log=log)) == "unknown"


def test_a_folder_that_merely_lies_there_is_unknown(saving: Path) -> None:
    """What discovery found in RUN may be what the job writes; what a script or a person names was to be loaded."""
    for path in (saving, saving / ITERATION):
        found = Evidence((Item("megatron_load", str(path), Text("found", "找到"), origin="found"),))
        assert word(checkpoint_dir.run(found, silent)) == "unknown"


@pytest.mark.parametrize("flags", [("--save /ckpt/new",), ("--save {}", "--ckpt-step 0000007")])
def test_what_was_meant_to_be_loaded_is_a_problem(saving: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    """A folder that is not --save, or an iteration asked for by number, shows that the tracker is lost; it is cited."""
    given = (f"--load {saving}", *(flag.format(saving) for flag in flags))
    finding = of(megatron_load=saving, launch=write(tmp_path, "run.sh", script(*given)))
    assert word(finding) == "problem:no-tracker"
    assert finding.citations[-1].path.endswith("run.sh")


def test_a_log_that_tried_the_folder_is_a_problem(saving: Path, tmp_path: Path) -> None:
    """Megatron's line about the missing tracker names this folder, wherever the copy lies now."""
    launch = write(tmp_path, "run.sh", script("--load /old/place/ckpt", "--save /old/place/ckpt"))
    line = f"WARNING: could not find the metadata file /old/place/ckpt/{TRACKER}"
    finding = of(megatron_load=saving, launch=launch, log=write(tmp_path, "job.log", line + "\n"))
    assert word(finding) == "problem:no-tracker"
    assert finding.citations[-1].excerpt == line


def test_an_iteration_that_the_script_does_not_name_is_unknown(saving: Path, tmp_path: Path) -> None:
    """A person may point at iter_* inside the folder that the script names rightly."""
    launch = write(tmp_path, "run.sh", script(f"--load {saving}"))
    assert word(of(megatron_load=saving / ITERATION, launch=launch)) == "unknown"
    launch = write(tmp_path, "run.sh", script(f"--load {saving / ITERATION}"))
    assert word(of(megatron_load=saving / ITERATION, launch=launch)) == "problem:no-tracker"


@pytest.mark.parametrize(
    ("slot", "fate"), [("megatron_load", "silently loads --ref-load"), ("megatron_ref", "starts from random weights")]
)
def test_an_iteration_folder_given_itself(slot: str, fate: str, whole: Path) -> None:
    """The same mistake ends differently by flag, and the remedy is the folder above."""
    finding = of(**{slot: whole / ITERATION})
    assert word(finding) == "problem:no-tracker"
    assert fate in finding.summary.en
    assert f"give {whole}" in finding.summary.en


def test_the_tracker_names_an_absent_iteration(whole: Path) -> None:
    """Both the tracker's line and the folder are cited."""
    (whole / TRACKER).write_text("500")
    finding = of(megatron_load=whole)
    assert word(finding) == "problem:incomplete"
    assert finding.citations[0].excerpt == "500"
    assert "iter_0000500" in finding.citations[1].excerpt


@pytest.mark.parametrize("content", ["", "\n", "latest", "-3", "\x1b[2J7"])
def test_a_tracker_that_names_nothing(content: str, whole: Path) -> None:
    """Megatron exits on it; hostile content is cited as safe text."""
    (whole / TRACKER).write_text(content)
    assert word(of(megatron_load=whole)) == "problem:incomplete"


@pytest.mark.parametrize("name", [".metadata", "common.pt", "metadata.json", "__1_0.distcp"])
def test_a_missing_file_is_named(name: str, whole: Path) -> None:
    """Each file that a load needs is checked."""
    (whole / ITERATION / name).unlink()
    finding = of(megatron_load=whole)
    assert word(finding) == "problem:incomplete"
    assert f"{name} is missing" in finding.summary.en


@pytest.mark.parametrize("name", [".metadata", "common.pt", "__1_0.distcp"])
def test_a_cut_file_is_named(name: str, whole: Path) -> None:
    """A file of half its size is found without reading the weights."""
    os.truncate(whole / ITERATION / name, (whole / ITERATION / name).stat().st_size // 2)
    finding = of(megatron_load=whole)
    assert word(finding) == "problem:incomplete"
    assert name in finding.summary.en


def test_a_short_data_file_is_cited_with_both_sizes(whole: Path) -> None:
    """One byte is enough, and the citation tells the sizes."""
    os.truncate(whole / ITERATION / "__0_0.distcp", 759072)
    finding = of(megatron_load=whole)
    assert finding.citations[1].excerpt == "__0_0.distcp: 759072 bytes, .metadata needs 759073"


def test_an_unfinished_newer_iteration_is_no_fault(whole: Path) -> None:
    """The tracker is written last, so only the iteration it names must be whole."""
    (whole / "iter_0000009").mkdir()
    assert word(of(megatron_load=whole)) == "ok:complete"


def test_the_first_start_from_a_reference_is_no_fault(whole: Path, tmp_path: Path) -> None:
    """An empty --load beside a whole --ref-load is how every run begins; without the reference it is open."""
    empty = tmp_path / "save"
    empty.mkdir()
    assert word(of(megatron_load=empty, megatron_ref=whole)) == "ok:complete"
    assert word(of(megatron_load=empty)) == "unknown"
    assert word(of(megatron_ref=empty)) == "problem:not-a-checkpoint"


def test_a_folder_of_something_else_is_not_a_checkpoint(whole: Path, tmp_path: Path) -> None:
    """As --load it is doubtful, because the reference takes its place; as --ref-load nothing does."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("x")
    assert word(of(megatron_load=other, megatron_ref=whole)) == "warning:not-a-checkpoint"
    assert word(of(megatron_ref=other)) == "problem:not-a-checkpoint"


def test_a_hugging_face_folder_is_legitimate(whole: Path, tmp_path: Path) -> None:
    """It is converted on loading; beside a whole checkpoint the checkpoint answers."""
    model = tmp_path / "hf"
    model.mkdir()
    (model / "config.json").write_text("{}")
    assert word(of(megatron_ref=model)) == "not_applicable"
    assert word(of(megatron_load=whole, megatron_ref=model)) == "ok:complete"


def test_the_old_layout_of_ranks(tmp_path: Path) -> None:
    """mp_rank folders are complete with a model file each, and a hole in their grid is found."""
    folder = tmp_path / "old"
    for rank in ("00_000", "01_000", "00_001", "01_001"):
        (folder / "iter_0000100" / f"mp_rank_{rank}").mkdir(parents=True)
        (folder / "iter_0000100" / f"mp_rank_{rank}" / "model_optim_rng.pt").write_bytes(b"\x80\x02x")
    (folder / TRACKER).write_text("100")
    assert word(of(megatron_load=folder)) == "ok:complete"
    shutil.rmtree(folder / "iter_0000100" / "mp_rank_01_001")
    finding = of(megatron_load=folder)
    assert word(finding) == "problem:incomplete"
    assert "mp_rank_01_001 is missing" in finding.summary.en


def test_what_cannot_be_judged_is_unknown(whole: Path) -> None:
    """Hostile metadata and a layout of another backend are not called incomplete."""
    (whole / ITERATION / ".metadata").write_bytes(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.")
    finding = of(megatron_load=whole)
    assert word(finding) == "unknown"
    assert "os.system" in finding.summary.en
    shutil.rmtree(whole / ITERATION)
    (whole / ITERATION / "model").mkdir(parents=True)
    assert word(of(megatron_load=whole)) == "unknown"
