"""Tests of hf.expected_names: a planted hole is named and drawn; a lost shard is not accused a second time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from probes.hf_expected_names import expected_names
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.tiny_checkpoints import (
    MLA,
    MOE,
    Shapes,
    config_of,
    needed,
    packed,
    quantised,
    read_index,
    shard_of,
    write_checkpoint,
    write_index,
)

CONFIG = config_of("qwen3_moe", **MOE)
SHAPES = needed(CONFIG)


def ask(folder: Path) -> Finding:
    """Run the probe; its citations must be true."""
    finding = expected_names.run(evidence_of(("hf_checkpoint", folder)), silent)
    check_citations(finding)
    return finding


def without(*parts: str, shapes: Shapes = SHAPES) -> Shapes:
    """Return the shapes without the tensors whose name has one of these parts."""
    return {name: shape for name, shape in shapes.items() if not any(part in name for part in parts)}


@pytest.mark.parametrize(("model_type", "more"), [("qwen3_moe", MOE), ("kimi_k2", MLA), ("llama", {})])
def test_a_whole_checkpoint_is_complete(tmp_path: Path, model_type: str, more: dict[str, Any]) -> None:
    """Everything is there; the picture has no hole and the count is what the table needs."""
    config = config_of(model_type, **more)
    finding = ask(write_checkpoint(tmp_path, config, needed(config)))
    assert word(finding) == "ok:complete"
    assert set("".join(finding.grids[0].cells)) <= {"=", " "}
    assert finding.measurements[0].value == finding.measurements[0].threshold == len(needed(config))


@pytest.mark.parametrize(
    ("lost", "where"),
    [
        (".layers.2.", "layer 2 ("),
        (".layers.1.mlp.experts.3.down_proj", "layer 1 (1)"),
        (".layers.0.mlp.gate.", "layer 0 (1)"),
        ("model.norm", "model.norm.weight"),
    ],
)
def test_a_hole_is_named(tmp_path: Path, lost: str, where: str) -> None:
    """A layer, an expert, a router or an outer tensor that no file has is a problem that names it."""
    finding = ask(write_checkpoint(tmp_path, CONFIG, without(lost)))
    assert word(finding) == "problem:layer-keys-missing"
    assert where in finding.summary.en
    assert lost.strip(".") in finding.tables[0].rows[0][0]


def test_the_picture_shows_the_hole(tmp_path: Path) -> None:
    """A column of a lost layer is X, a single lost expert an x in the experts' row."""
    grid = ask(write_checkpoint(tmp_path, CONFIG, without(".layers.2.", ".layers.1.mlp.experts.3.up_proj"))).grids[0]
    cells = dict(zip(grid.rows, grid.cells, strict=True))
    assert cells["mlp.experts"] == "=xX="
    assert cells["self_attn.q_proj"] == "==X="
    assert grid.columns == ("0", "1", "2", "3")


def test_quantised_tensors_count_as_themselves(tmp_path: Path) -> None:
    """A packed tensor is there, drawn as packed, and neither missing nor extra."""
    experts = [name for name in SHAPES if ".experts." in name]
    config = {**CONFIG, "quantization_config": quantised(["lm_head"])}
    finding = ask(write_checkpoint(tmp_path, config, packed(SHAPES, experts)))
    assert word(finding) == "ok:complete"
    grid = finding.grids[0]
    assert dict(zip(grid.rows, grid.cells, strict=True))["mlp.experts"] == "PPPP"


@pytest.mark.parametrize("how", ["deleted", "cut-header", "reindexed"])
def test_a_lost_shard_explains_what_is_gone_with_it(tmp_path: Path, how: str) -> None:
    """No second accusation while a shard is absent, unreadable or left out of a rebuilt index."""
    folder = write_checkpoint(tmp_path, CONFIG, SHAPES)
    shard = shard_of(folder, "model.layers.3.mlp.gate.weight")
    if how == "cut-header":
        shard.write_bytes(shard.read_bytes()[:50])
    else:
        shard.unlink()
    if how == "reindexed":
        write_index(folder, {name: file for name, file in read_index(folder).items() if file != shard.name})
    finding = ask(folder)
    assert word(finding) == "not_applicable"
    assert shard.name in finding.summary.en


def test_a_poor_index_hides_nothing(tmp_path: Path) -> None:
    """Names come from the shards, so a layer that only the index lacks is not missing."""
    folder = write_checkpoint(tmp_path, CONFIG, SHAPES)
    write_index(folder, {name: file for name, file in read_index(folder).items() if ".layers.3." not in name})
    assert word(ask(folder)) == "ok:complete"


def test_a_shape_of_another_config_is_told(tmp_path: Path) -> None:
    """The tensor, its shape and the wanted one are in the summary; padding of the vocabulary is called that."""
    finding = ask(write_checkpoint(tmp_path, CONFIG, {**SHAPES, "lm_head.weight": ("BF16", (320, 64))}))
    assert word(finding) == "problem:wrong-shape"
    assert "320×64" in finding.summary.en
    assert "64 rows of vocabulary padding" in finding.summary.en


def test_more_than_needed_is_a_warning(tmp_path: Path) -> None:
    """A layer beyond num_hidden_layers is extra and breaks nothing by itself."""
    finding = ask(write_checkpoint(tmp_path, CONFIG, {**SHAPES, "model.layers.7.mlp.gate.weight": ("BF16", (4, 64))}))
    assert word(finding) == "warning:extra"


def test_an_unknown_family_says_so(tmp_path: Path) -> None:
    """Even layers pass as unknown-family; a missing layer is sure; a lone lack stays unknown."""
    config = config_of("brand_new", **MOE)
    assert word(ask(write_checkpoint(tmp_path / "a", config, SHAPES))) == "ok:unknown-family"
    assert word(ask(write_checkpoint(tmp_path / "b", config, without(".layers.1.")))) == "problem:layer-keys-missing"
    assert word(ask(write_checkpoint(tmp_path / "c", config, without(".layers.1.self_attn.k_norm")))) == "unknown"
    assert word(ask(write_checkpoint(tmp_path / "d", None, SHAPES))) == "ok:unknown-family"


def test_pickled_names_are_not_read(tmp_path: Path) -> None:
    """A .bin without an index tells no names."""
    torch.save({"a": torch.zeros(2)}, tmp_path / "pytorch_model.bin")
    assert word(ask(tmp_path)) == "unknown"
