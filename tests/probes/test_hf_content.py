"""The content probes: what they answer, what they leave unknown, and that the quick one learns from the long one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probes import content_sample as sample
from probes import content_state
from probes.hf_content import content, content_sample
from probes.hf_grid import NONFINITE, ZERO
from runbook.finding import Finding
from runbook.probe import Probe, silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.tiny_models import QWEN3_MOE, tensors_of, write_checkpoint

ROUTER = "model.layers.2.mlp.gate.weight"
DOWN = "model.layers.1.mlp.experts.2.down_proj.weight"
BOTH = pytest.mark.parametrize("probe", [content, content_sample], ids=["content", "sample"])


def ask(probe: Probe, folder: Path, **more: str) -> Finding:
    """Run a probe over a folder; its citations must be true and its answer declared."""
    finding = probe.run(evidence_of(("hf_checkpoint", folder), *more.items()), silent)
    check_citations(finding)
    assert finding.answer is None or finding.answer in probe.answers
    return finding


def with_zero(folder: Path, *names: str) -> Path:
    """Write a checkpoint in which these tensors are zero."""
    tensors = tensors_of(QWEN3_MOE)
    for name in names:
        dtype, shape, data = tensors[name]
        tensors[name] = (dtype, shape, bytes(len(data)))
    return write_checkpoint(folder, QWEN3_MOE, tensors)


def cell(finding: Finding, row: str, column: str) -> str:
    """Return a cell of the finding's picture."""
    grid = finding.grids[0]
    return grid.cells[grid.rows.index(row)][grid.columns.index(column)]


@BOTH
def test_a_healthy_checkpoint_is_finite(tmp_path: Path, probe: Probe) -> None:
    """Everything was read, and the number of tensors is told against the headers' number."""
    folder = write_checkpoint(tmp_path, QWEN3_MOE)
    finding = ask(probe, folder)
    assert word(finding) == "ok:finite"
    assert finding.measurements[0].value == finding.measurements[0].threshold == len(tensors_of(QWEN3_MOE))


@BOTH
def test_a_zero_router_is_found_and_drawn(tmp_path: Path, probe: Probe) -> None:
    """The tensor is named, and the picture shows the layer and the router."""
    finding = ask(probe, with_zero(tmp_path, ROUTER))
    assert word(finding) == "problem:zero"
    assert ROUTER in finding.summary.en
    assert cell(finding, "mlp.gate", "2") == ZERO
    assert cell(finding, "mlp.gate", "1") != ZERO


def test_one_zero_expert_is_drawn_as_a_part(tmp_path: Path) -> None:
    """One of many experts makes the cell's mark a small letter."""
    finding = ask(content, with_zero(tmp_path, DOWN))
    assert word(finding) == "problem:zero"
    assert cell(finding, "mlp.experts", "1") == ZERO.lower()


def test_nan_comes_before_zero(tmp_path: Path) -> None:
    """With both, NaN is the answer, and both are cited and listed."""
    tensors = tensors_of(QWEN3_MOE)
    dtype, shape, data = tensors[DOWN]
    tensors[DOWN] = (dtype, shape, data[:-2] + b"\xc0\x7f")
    dtype, shape, data = tensors[ROUTER]
    tensors[ROUTER] = (dtype, shape, bytes(len(data)))
    finding = ask(content, write_checkpoint(tmp_path, QWEN3_MOE, tensors))
    assert word(finding) == "problem:nonfinite"
    assert {DOWN in finding.citations[0].excerpt, ROUTER in finding.citations[1].excerpt} == {True}
    assert len(finding.tables[0].rows) == 2
    assert cell(finding, "mlp.experts", "1") == NONFINITE.lower()
    assert cell(finding, "mlp.gate", "2") == ZERO


def test_a_doubtful_tensor_is_a_warning(tmp_path: Path) -> None:
    """A copied projection is shown without being called a fault."""
    tensors = tensors_of(QWEN3_MOE)
    tensors["model.layers.3.self_attn.o_proj.weight"] = tensors["model.layers.0.self_attn.o_proj.weight"]
    assert word(ask(content, write_checkpoint(tmp_path, QWEN3_MOE, tensors))) == "warning:suspicious"


@pytest.mark.parametrize("how", ["cut", "absent", "empty"])
def test_a_lost_shard_leaves_the_rest_unknown(tmp_path: Path, how: str) -> None:
    """Where a shard is missing or damaged, that nothing was found is not "finite"; it is the shards' matter."""
    folder = write_checkpoint(tmp_path, QWEN3_MOE)
    shard = folder / "model-00002-of-00002.safetensors"
    if how == "absent":
        shard.unlink()
    else:
        os.truncate(shard, shard.stat().st_size - 8 if how == "cut" else 0)
    finding = ask(content, folder)
    assert word(finding) == "unknown"
    assert shard.name in finding.summary.en
    assert "hf.shards" in finding.summary.en


def test_a_fault_in_what_is_left_is_found_all_the_same(tmp_path: Path) -> None:
    """A zero tensor in a whole shard is proven although another shard is gone."""
    folder = with_zero(tmp_path, "model.embed_tokens.weight")
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert word(ask(content, folder)) == "problem:zero"


def test_pickled_weights_are_unknown(tmp_path: Path) -> None:
    """Content inside pickles is not read, and that is said."""
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    assert word(ask(content, tmp_path)) == "unknown"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every checkpoint a large one: sampled, its results kept."""
    monkeypatch.setattr(sample, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(content_state, "WORTH", 0)


@pytest.mark.usefixtures("large")
def test_a_sample_proves_faults_and_nothing_else(tmp_path: Path) -> None:
    """A sound sample is unknown with the command that settles it; a router is in every sample."""
    finding = ask(content_sample, write_checkpoint(tmp_path / "good", QWEN3_MOE))
    assert word(finding) == "unknown"
    assert finding.settle_with is not None
    assert "hf.content" in finding.settle_with.en
    assert word(ask(content_sample, with_zero(tmp_path / "bad", ROUTER))) == "problem:zero"
    assert word(ask(content_sample, with_zero(tmp_path / "missed", DOWN))) == "unknown"


@pytest.mark.usefixtures("large")
def test_the_quick_look_knows_what_the_long_one_read(tmp_path: Path) -> None:
    """After the whole checkpoint was read once, the quick probe gives the whole answer."""
    good, bad = write_checkpoint(tmp_path / "good", QWEN3_MOE), with_zero(tmp_path / "bad", DOWN)
    assert word(ask(content, good)) == word(ask(content_sample, good)) == "ok:finite"
    assert word(ask(content, bad)) == word(ask(content_sample, bad)) == "problem:zero"
    again = ask(content, good)
    assert [one.name for one in again.measurements] == ["tensors looked at", "taken from an earlier scan"]


@pytest.mark.parametrize(
    ("address", "why"),
    [("http://127.0.0.1:8265", "dashboard"), ("127.0.0.1:1", "nothing answers"), ("ray://x:y", "no Ray address")],
)
def test_an_unusable_cluster_is_said_and_the_scan_goes_on(tmp_path: Path, address: str, why: str) -> None:
    """A wrong address costs a note, never the answer."""
    finding = ask(content, write_checkpoint(tmp_path, QWEN3_MOE), ray=address)
    assert word(finding) == "ok:finite"
    assert why in finding.summary.en
