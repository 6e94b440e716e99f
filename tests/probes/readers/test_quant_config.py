"""Tests of the quantization_config reader: kinds, groups, and the line of each rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.hf_config import read_config
from probes.readers.quant_config import QuantConfig, read_quant
from tests.probes.tiny_checkpoints import quantised


def quant_of(folder: Path, config: dict[str, Any]) -> QuantConfig | None:
    """Return the quantisation of a config.json with this content."""
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3", **config}, indent=2))
    read = read_config(str(folder))
    assert read is not None
    return read_quant(read)


def test_each_rule_knows_its_line(tmp_path: Path) -> None:
    """The cited line of a rule is the line of the file that holds it."""
    quant = quant_of(tmp_path, {"quantization_config": quantised(["lm_head", r"re:.*mlp\.gate\..*"])})
    assert quant is not None
    lines = (tmp_path / "config.json").read_text().splitlines()
    number = quant.line("ignore", 1)
    assert number is not None
    assert lines[number - 1].strip() == r'"re:.*mlp\\.gate\\..*"'
    assert quant.cite("ignore", 1).excerpt.strip() == lines[number - 1].strip()
    group = quant.group()
    assert group is not None
    assert (group.num_bits, group.group_size, group.symmetric, group.targets) == (4, 32, True, ("Linear",))


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, "fp8"),
        ({"quantization_config": {"quant_method": "awq"}}, "awq"),
        ({"text_config": {"model_type": "q", "quantization_config": {"quant_method": "gptq"}}}, "gptq"),
        ({"quantization_config": {"config_groups": {}, "ignore": []}}, "compressed-tensors"),
        ({"compression_config": {"quant_method": "compressed-tensors"}}, "compressed-tensors"),
    ],
)
def test_the_kind_is_recognised_wherever_it_stands(tmp_path: Path, config: dict[str, Any], kind: str) -> None:
    """Kinds are told by quant_method, at the top or under text_config."""
    quant = quant_of(tmp_path, config)
    assert quant is not None
    assert quant.kind == kind


def test_blocks_and_the_list_of_fp8_are_read(tmp_path: Path) -> None:
    """FP8 has a block size and names its unquantised modules in another key."""
    quant = quant_of(
        tmp_path,
        {
            "quantization_config": {
                "quant_method": "fp8",
                "weight_block_size": [128, 64],
                "modules_to_not_convert": ["x"],
            }
        },
    )
    assert quant is not None
    assert (quant.block, quant.ignore) == ((128, 64), ("x",))


def test_no_quantisation_is_none(tmp_path: Path) -> None:
    """Absent, null and empty all mean that there is none."""
    empty: tuple[dict[str, Any], ...] = ({}, {"quantization_config": None}, {"quantization_config": {}})
    assert [quant_of(tmp_path, config) for config in empty] == [None, None, None]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["quant_method", "config_groups", "group_0", "weights", "ignore", "targets", "group_size"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=10,
    )
)
def test_any_shape_of_config_is_read(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """Values of unexpected types never raise; entries of the list that are no text are left out."""
    quant = quant_of(tmp_path_factory.mktemp("q"), {"quantization_config": value})
    if quant is not None:
        assert all(isinstance(rule, str) for rule in quant.ignore)
        assert quant.cite("ignore").line is not None
