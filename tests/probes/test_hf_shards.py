"""Tests of hf.shards: each planted fault is the answer, with the file named; what nobody minds is no fault."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from probes.hf_shards import shards
from runbook.finding import Finding, Verdict
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.tiny_checkpoints import (
    MOE,
    Shapes,
    config_of,
    cut,
    needed,
    read_index,
    shard_of,
    write_checkpoint,
    write_index,
    write_shard,
)

CONFIG = config_of("qwen3_moe", **MOE)
SHAPES = needed(CONFIG)
LAYER_3 = [name for name in SHAPES if ".layers.3." in name]


def ask(folder: Path) -> Finding:
    """Run the probe; its citations must be true."""
    finding = shards.run(evidence_of(("hf_checkpoint", folder)), silent)
    check_citations(finding)
    return finding


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Return a whole checkpoint of four shards."""
    return write_checkpoint(tmp_path / "model", CONFIG, SHAPES)


def remove(folder: Path) -> None:
    """Delete a shard that the index names."""
    shard_of(folder, LAYER_3[0]).unlink()


def remove_and_reindex(folder: Path) -> None:
    """Delete a shard and rebuild the index from what is left, as slime's INT4 tool does."""
    gone = shard_of(folder, LAYER_3[0])
    write_index(folder, {name: file for name, file in read_index(folder).items() if file != gone.name})
    gone.unlink()


def forget_layer(folder: Path) -> None:
    """Take a layer out of the index."""
    write_index(folder, {name: file for name, file in read_index(folder).items() if name not in LAYER_3})


def name_too_much(folder: Path) -> None:
    """Let the index name a tensor that no file holds."""
    index = read_index(folder)
    write_index(folder, {**index, "model.layers.4.mlp.gate.weight": next(iter(index.values()))})


def misplace(folder: Path) -> None:
    """Let the index put a tensor into another shard."""
    index = read_index(folder)
    write_index(folder, {**index, "lm_head.weight": index["model.layers.3.mlp.gate.weight"]})


def pointer(folder: Path) -> None:
    """Leave a git-LFS pointer in a shard's place."""
    shard_of(folder, LAYER_3[0]).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")


FAULTS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "deleted": (remove, "missing", "model-00004-of-00004"),
    "deleted-and-reindexed": (remove_and_reindex, "missing", "model-00004-of-00004"),
    "cut": (lambda folder: cut(shard_of(folder, LAYER_3[0]), 9), "corrupt", "9 of the"),
    "cut-in-header": (lambda folder: os.truncate(shard_of(folder, LAYER_3[0]), 60), "corrupt", "inside its header"),
    "empty": (lambda folder: shard_of(folder, LAYER_3[0]).write_bytes(b""), "corrupt", "empty"),
    "lfs": (pointer, "corrupt", "git-LFS"),
    "html": (lambda folder: shard_of(folder, LAYER_3[0]).write_text("<html>"), "corrupt", "HTML"),
    "forgotten": (forget_layer, "index-incomplete", "of layer 3"),
    "too-much": (name_too_much, "index-incomplete", "in no file"),
    "misplaced": (misplace, "index-incomplete", "lm_head.weight"),
    "index-cut": (lambda folder: os.truncate(folder / "model.safetensors.index.json", 50), "index-incomplete", "JSON"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_the_answer(whole: Path, name: str) -> None:
    """The kind is the answer, proven by citations, and the summary says which file and what."""
    plant, answer, words = FAULTS[name]
    plant(whole)
    finding = ask(whole)
    assert word(finding) == f"problem:{answer}"
    assert words in finding.summary.en


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("count", [1, 4])
def test_a_whole_checkpoint_is_complete(tmp_path: Path, first: int, count: int) -> None:
    """Numbering from 0 or 1, one shard or several; total_size in the index is wrong and no fault."""
    finding = ask(write_checkpoint(tmp_path, CONFIG, SHAPES, shards=count, first=first))
    assert word(finding) == "ok:complete"
    assert f"{len(SHAPES)} tensors" in finding.summary.en


def test_a_single_file_needs_no_index(tmp_path: Path) -> None:
    """model.safetensors alone is a whole checkpoint."""
    write_shard(tmp_path / "model.safetensors", SHAPES)
    assert word(ask(tmp_path)) == "ok:complete"


def test_shards_without_an_index_are_a_warning(tmp_path: Path) -> None:
    """SGLang and slime load them, transformers does not."""
    assert word(ask(write_checkpoint(tmp_path, CONFIG, SHAPES, index=False))) == "warning:index-incomplete"


def test_what_nobody_minds_is_no_fault(whole: Path) -> None:
    """Leftovers of another conversion, a consolidated copy, rotary tables and other damaged files beside it."""
    write_shard(whole / "consolidated.safetensors", {"tok_embeddings.weight": ("BF16", (4, 4))})
    write_shard(whole / "model-00001-of-00009.safetensors", {"old.weight": ("BF16", (4, 4))})
    (whole / "adapter_model.safetensors").write_bytes(b"broken")
    rotary: Shapes = {"model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (8,))}
    file = read_index(whole)["lm_head.weight"]
    held = {name: SHAPES[name] for name, one in read_index(whole).items() if one == file}
    write_shard(whole / file, {**held, **rotary})
    finding = ask(whole)
    assert word(finding) == "ok:complete"
    assert {row[1] for row in finding.tables[0].rows} == {
        "adapter_model.safetensors",
        "consolidated.safetensors",
        "model-00001-of-00009.safetensors",
    }


def test_a_hole_that_takes_nothing_away_is_only_told(whole: Path) -> None:
    """When the index leaves a number out and everything the family needs is there, nothing is missing."""
    names = sorted(set(read_index(whole).values()))
    for old in names:
        number = int(old[6:11])
        os.rename(whole / old, whole / f"model-{number:05d}-of-00005.safetensors")
    write_index(whole, {name: file.replace("of-00004", "of-00005") for name, file in read_index(whole).items()})
    finding = ask(whole)
    assert word(finding) == "ok:complete"
    assert finding.tables[0].rows[0][0] == "note"


def test_a_copy_without_weights_is_unknown(whole: Path, tmp_path: Path) -> None:
    """The small files alone are an ordinary thing to hand over, as is an empty folder."""
    for path in whole.glob("*.safetensors"):
        path.unlink()
    assert word(ask(whole)) == "unknown"
    (tmp_path / "empty").mkdir()
    assert word(ask(tmp_path / "empty")) == "unknown"


def test_a_file_of_the_folder_stands_for_it(whole: Path) -> None:
    """config.json given as the checkpoint means its folder."""
    assert word(ask(whole / "config.json")) == "ok:complete"


def test_a_download_in_progress_is_mentioned(whole: Path) -> None:
    """A partial file beside a missing shard explains it."""
    remove(whole)
    (whole / "x.incomplete").write_bytes(b"")
    assert "x.incomplete" in ask(whole).summary.en


def test_bin_checkpoints_are_told_as_far_as_possible(tmp_path: Path) -> None:
    """Files, index and zip directories are checked; a cut file is corrupt, an absent one missing."""
    weight_map = {}
    for number in (1, 2):
        name = f"pytorch_model-0000{number}-of-00002.bin"
        torch.save({f"t{number}": torch.zeros(300)}, tmp_path / name)
        weight_map[f"t{number}"] = name
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weight_map}))
    finding = ask(tmp_path)
    assert word(finding) == "ok:complete"
    assert "pickles" in finding.summary.en
    os.truncate(tmp_path / "pytorch_model-00002-of-00002.bin", 700)
    assert word(ask(tmp_path)) == "problem:corrupt"
    (tmp_path / "pytorch_model-00002-of-00002.bin").unlink()
    assert word(ask(tmp_path)) == "problem:missing"


def test_several_faults_are_all_listed_and_the_gravest_leads(whole: Path) -> None:
    """A missing shard comes before a cut one; both are in the table."""
    cut(shard_of(whole, "model.embed_tokens.weight"), 5)
    remove(whole)
    finding = ask(whole)
    assert word(finding) == "problem:missing"
    assert [row[0] for row in finding.tables[0].rows] == ["missing", "corrupt"]


def test_hostile_names_are_drawn_safely(tmp_path: Path) -> None:
    """Escape sequences in file and tensor names reach neither summary nor table."""
    shapes: Shapes = {"model.layers.0.\x1b[2J.weight": ("BF16", (2, 2)), "model.layers.1.x.weight": ("BF16", (2, 2))}
    folder = write_checkpoint(tmp_path, None, shapes, shards=2)
    write_index(
        folder, {"model.layers.1.x.weight": "model-00002-of-00002.safetensors", "\x1b[31m": "a\u202eb.safetensors"}
    )
    finding = ask(folder)
    assert finding.verdict is Verdict.PROBLEM
    assert "\x1b" not in finding.summary.en + repr(finding.tables)
