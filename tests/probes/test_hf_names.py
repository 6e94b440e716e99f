"""Tests of the comparison by names: a planted hole is found, and only it; unknown families by their peers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.hf_checkpoint import Weight
from probes.hf_names import compare
from probes.readers.hf_config import HfConfig
from probes.readers.safetensors_header import Entry
from tests.probes.tiny_checkpoints import LINEAR, MLA, MOE, Shapes, config_of, needed

FAMILIES: dict[str, dict[str, Any]] = {
    "qwen2": {}, "qwen3": {}, "llama": {}, "mimo": {}, "glm4": {}, "qwen3_moe": MOE, "minimax_m2": MOE,
    "qwen2_moe": {**MOE, "shared_expert_intermediate_size": 48}, "qwen3_next": {**MOE, **LINEAR},
    "qwen3_5_moe": {**MOE, **LINEAR}, "qwen3_5": LINEAR, "deepseek_v3": MLA, "kimi_k2": MLA,
    "glm4_moe": {**MOE, "n_routed_experts": 4},
    "glm_moe_dsa": {**MLA, "index_n_heads": 4, "index_head_dim": 16},
}  # fmt: skip


def weights(shapes: Shapes, without: Iterable[str] = ()) -> dict[str, Weight]:
    """Return tensors of these shapes as the headers give them."""
    lost = set(without)
    return {
        name: Weight({name.rsplit(".", 1)[-1]: Entry(dtype, shape, (0, 0))}, "m.safetensors")
        for name, (dtype, shape) in shapes.items()
        if name not in lost
    }


def hf(config: dict[str, Any]) -> HfConfig:
    """Return a config as the reader gives it."""
    return HfConfig("config.json", config, config)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_exactly_the_planted_hole_is_missing(family: str, data: st.DataObject) -> None:
    """Any set of needed tensors taken away is what is reported missing, and nothing is extra or misshapen."""
    config = config_of(family, **FAMILIES[family])
    shapes = needed(config)
    lost = data.draw(st.sets(st.sampled_from(sorted(shapes)), max_size=4))
    found = compare(hf(config), weights(shapes, lost))
    assert (set(found.missing), found.extra, found.misshapen) == (lost, (), ())


def test_an_optional_tensor_is_missed_where_most_have_it() -> None:
    """A correction bias that three of four layers have is missing in the fourth, and never in none of them."""
    config = config_of("minimax_m2", **MOE)
    biases = {f"model.layers.{layer}.block_sparse_moe.e_score_correction_bias": ("F32", (4,)) for layer in range(3)}
    assert compare(hf(config), weights(needed(config))).missing == ()
    found = compare(hf(config), weights({**needed(config), **biases}))
    assert found.missing == ("model.layers.3.block_sparse_moe.e_score_correction_bias",)


def test_names_beyond_the_table_are_extra_and_tolerated_ones_are_not() -> None:
    """A layer too many and a Megatron name are extra; rotary tables, vision towers and KV scales are not."""
    config = config_of("qwen3")
    more: Shapes = {
        "model.layers.9.mlp.up_proj.weight": ("BF16", (96, 64)),
        "module.module.decoder.final_layernorm.weight": ("BF16", (64,)),
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (8,)),
        "model.visual.blocks.0.attn.qkv.weight": ("BF16", (4, 4)),
        "model.layers.0.self_attn.k_scale": ("F32", (1,)),
    }
    found = compare(hf(config), weights({**needed(config), **more}))
    assert found.extra == ("model.layers.9.mlp.up_proj.weight", "module.module.decoder.final_layernorm.weight")


def test_a_shape_that_config_does_not_ask_for_is_misshapen() -> None:
    """The name, what is wanted and what is there are told; fused experts may order their axes either way."""
    config = config_of("qwen3")
    shapes = {**needed(config), "lm_head.weight": ("BF16", (320, 64))}
    (one,) = compare(hf(config), weights(shapes)).misshapen
    assert (one.name, one.wanted, one.found) == ("lm_head.weight", (256, 64), (320, 64))
    fused = config_of("qwen3_moe", **MOE)
    plain = {name: shape for name, shape in needed(fused).items() if ".experts." not in name}
    two: Shapes = {f"model.layers.{n}.mlp.experts.down_proj": ("BF16", (4, 64, 32)) for n in range(4)}
    for order, wrong in (((4, 64, 64), 0), ((64, 4, 64), 0), ((4, 64, 32), 4)):
        three: Shapes = {f"model.layers.{n}.mlp.experts.gate_up_proj": ("BF16", order) for n in range(4)}
        assert len(compare(hf(fused), weights({**plain, **three, **two})).misshapen) == wrong


OTHER = config_of("brand_new", **MOE)
BASE = needed(config_of("qwen3_moe", **{**MOE, "mlp_only_layers": [0]}))


@pytest.mark.parametrize(
    ("lost", "missing"),
    [
        ((), ()),
        (("model.layers.2.mlp.experts.1.up_proj.weight",), ("model.layers.2.mlp.experts.1.up_proj.weight",)),
        (tuple(name for name in BASE if ".layers.2." in name), ("model.layers.2.*",)),
        (tuple(name for name in BASE if ".layers.1.mlp.experts.3." in name), ("model.layers.1.mlp.experts.3.*",)),
    ],
)
def test_an_unknown_family_is_compared_by_its_peers(lost: tuple[str, ...], missing: tuple[str, ...]) -> None:
    """Holes in layers and experts are sure without a table; a dense first layer beside MoE layers is none."""
    found = compare(hf(OTHER), weights(BASE, lost))
    assert (found.family, found.missing) == ("", missing)


def test_what_one_layer_of_an_unknown_family_lacks_is_only_odd() -> None:
    """An architecture may leave it out by design, so it is not called missing."""
    shapes = needed(config_of("qwen3", num_hidden_layers=6))
    found = compare(hf(OTHER), weights(shapes, ["model.layers.4.self_attn.k_norm.weight"]))
    assert (found.missing, found.odd) == ((), ("model.layers.4.self_attn.k_norm.weight",))


def test_no_config_is_compared_by_peers_too() -> None:
    """Without config.json the family is not known and nothing is accused."""
    assert compare(None, weights(BASE)).missing == ()


@given(st.lists(st.text(alphabet="layers.0123experts_ab", max_size=24), max_size=20))
def test_any_names_can_be_compared(names: list[str]) -> None:
    """Names of any shape never raise, with a table and without."""
    plain = weights(dict.fromkeys(names, ("BF16", (1,))))
    assert compare(hf(OTHER), plain).family == ""
    assert compare(hf(config_of("qwen3")), plain).family == "qwen3"
