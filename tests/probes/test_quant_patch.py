"""Tests of the corrected ignore list: the patched file is the same JSON but for the rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.quant_patch import NEW_LINE, advise, corrected, patch_text, rules_for, table
from probes.quant_rules import slime_ignores
from probes.readers.hf_config import HfConfig
from probes.readers.quant_config import QuantConfig, read_quant
from tests.probes.tiny_checkpoints import config_of, quantised

rules = st.lists(st.text(alphabet='re:.*mlp\\gate"é\u4e2d', max_size=10), max_size=4)


def quant_of(ignore: list[str] | None, indent: int | None = 2) -> QuantConfig:
    """Return the quantisation of a config.json with this list."""
    part: dict[str, Any] = quantised(ignore or [])
    if ignore is None:
        del part["ignore"]
    config = config_of("qwen3_moe", quantization_config=part, torch_dtype="bfloat16")
    quant = read_quant(HfConfig("config.json", config, config, json.dumps(config, indent=indent).encode()))
    assert quant is not None
    return quant


@given(st.none() | rules, rules, st.sampled_from([None, 2, 4]), st.data())
def test_only_the_list_changes(
    ignore: list[str] | None, add: list[str], indent: int | None, data: st.DataObject
) -> None:
    """The corrected file holds the old rules, replaced where asked, then the new ones, and all else as before."""
    quant = quant_of(ignore, indent)
    numbers = range(len(ignore or []))
    replace = data.draw(st.dictionaries(st.sampled_from(numbers), st.just("re:new"))) if numbers else {}
    before, after = json.loads(quant.config.data), json.loads(corrected(quant, add, replace))
    wanted = [replace.get(number, rule) for number, rule in enumerate(ignore or [])] + add
    assert after["quantization_config"].pop("ignore", []) == wanted
    before["quantization_config"].pop("ignore", None)
    assert after == before


def test_the_patch_applies(tmp_path: Path) -> None:
    """`patch -p0` makes the corrected file of the original one."""
    quant = quant_of(["lm_head", "re:.*norm.*"])
    add = rules_for(["model.layers.0.mlp.gate.weight"])
    (tmp_path / "config.json").write_bytes(quant.config.data)
    done = subprocess.run(
        ["patch", "-p0"], cwd=tmp_path, input=patch_text(quant, add, {}).encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "config.json").read_bytes() == corrected(quant, add, {})


def test_the_table_shows_the_line_and_the_new_one() -> None:
    """The last entry gets its comma and the rule its own line, numbered as in the file."""
    quant = quant_of(["lm_head", "re:.*norm.*"])
    shown = table(quant, [r"re:.*mlp\.gate\..*"], {})
    assert shown is not None
    lines = quant.config.data.decode().splitlines()
    number = next(place for place, line in enumerate(lines, 1) if "norm" in line)
    assert shown.rows == (
        (str(number), '"re:.*norm.*"', '"re:.*norm.*",'),
        (NEW_LINE, "", r'"re:.*mlp\\.gate\\..*"'),
    )
    assert f"end line {number} with a comma" in advise(quant, [r"re:.*mlp\.gate\..*"]).words.en


def test_a_list_on_one_line_is_changed_in_place() -> None:
    """Without a line of its own for each entry the advice names the line of the list."""
    quant = quant_of(["lm_head"], indent=None)
    assert "line 1, add" in advise(quant, ["x"]).words.en
    assert advise(quant, []).words.en == ""


@pytest.mark.parametrize(
    ("tensor", "rule"),
    [
        ("model.layers.0.mlp.gate.weight", r"re:.*mlp\.gate\..*"),
        ("model.layers.9.block_sparse_moe.gate.weight", r"re:.*block_sparse_moe\.gate\..*"),
        ("model.embed_tokens.weight", "model.embed_tokens.weight"),
        ("lm_head.weight", "lm_head"),
        ("model.layers.1.mlp.experts.3.up_proj.weight", r"re:.*mlp\.experts\.\d+\.up_proj\..*"),
    ],
)
def test_the_rule_for_a_tensor_is_the_guides_and_protects_it_in_slime(tensor: str, rule: str) -> None:
    """One rule covers all layers and experts, and nothing that only begins alike."""
    assert rules_for([tensor, tensor]) == (rule,)
    assert slime_ignores(tensor, [rule])
    assert not slime_ignores("model.layers.0.mlp.gate_proj.weight", [rule])
