"""--moe-permute-fusion of MoE models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.launch_moe_permute_fusion import moe_permute_fusion
from tests.probes.asking import word
from tests.probes.scripts import ask, ask_script, script, table, write


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--num-layers 2", "--num-experts 8", "--moe-permute-fusion"), "ok:on"),
        (("--num-layers 2", "--num-experts 8"), "warning:missing"),
        (("--num-layers 2",), "ok:dense"),
        ((), "unknown"),
    ],
)
def test_a_whole_script_tells(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """Only a model with experts needs the switch."""
    assert word(ask_script(moe_permute_fusion, tmp_path, script(*flags))) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"num_experts": None, "moe_permute_fusion": False}, "ok:dense"),
        ({"num_experts": 8, "moe_permute_fusion": False}, "warning:missing"),
    ],
)
def test_the_table_tells(tmp_path: Path, rows: dict[str, object], expected: str) -> None:
    """The arguments table alone answers as well."""
    assert word(ask(moe_permute_fusion, log=write(tmp_path, "job.log", table(**rows)))) == expected


def test_quoted_flags_leave_it_open(tmp_path: Path) -> None:
    """Nothing is concluded from what a partial command does not say."""
    assert word(ask_script(moe_permute_fusion, tmp_path, script("--micro-batch-size 1", whole=False))) == "unknown"


def test_an_moe_config_asks_for_fusion(tmp_path: Path) -> None:
    """Experts in config.json count when the script has no model script."""
    model = tmp_path / "model"
    write(model, "config.json", json.dumps({"model_type": "qwen3_moe", "num_experts": 8}))
    text = script("--num-layers 2")
    assert word(ask_script(moe_permute_fusion, tmp_path, text, hf_checkpoint=str(model))) == "warning:missing"
