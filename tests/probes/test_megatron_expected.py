"""Megatron's parameters follow from the Hugging Face tensors of each family: fused, stacked and renamed."""

from __future__ import annotations

import pytest

from probes.families import tables
from probes.families.expand import Expected, expand
from probes.megatron_expected import Shape, Wanted, layers_of, outer_of
from probes.readers.hf_config import HfConfig
from tests.probes.tiny_models import QWEN3, QWEN3_MOE

DEEPSEEK = {
    "model_type": "deepseek_v3", "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
    "num_key_value_heads": 4, "intermediate_size": 96, "moe_intermediate_size": 24, "n_routed_experts": 8,
    "n_shared_experts": 2, "first_k_dense_replace": 1, "q_lora_rank": 20, "kv_lora_rank": 12, "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 6, "v_head_dim": 8, "tie_word_embeddings": False,
}  # fmt: skip
QWEN3_NEXT = {
    "model_type": "qwen3_next", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "moe_intermediate_size": 24, "num_experts": 8,
    "shared_expert_intermediate_size": 40, "full_attention_interval": 4, "decoder_sparse_step": 1,
    "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_num_value_heads": 4, "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4, "tie_word_embeddings": False,
}  # fmt: skip
MINIMAX = {
    "model_type": "minimax_m2", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 24, "num_local_experts": 8,
    "tie_word_embeddings": False,
}  # fmt: skip
GLM4 = {
    "model_type": "glm4", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "attention_bias": True,
    "tie_word_embeddings": False,
}  # fmt: skip


def expected(config: dict[str, object]) -> Expected:
    """Return what the family's table expects."""
    found = expand(tables()[str(config["model_type"])], HfConfig("", config, config), ())
    assert found is not None
    return found


def sure(wanted: tuple[Wanted, ...]) -> dict[str, Shape]:
    """Return the shapes of what must be there, by its usual name."""
    return {one.names[0]: one.shape for one in wanted if one.sure}


def test_a_dense_layer() -> None:
    """q, k and v are rows of one matrix, gate and up the halves of fc1; norms belong to the linear behind them."""
    layers = layers_of(expected(QWEN3))
    assert sorted(layers) == [0, 1, 2, 3]
    assert sure(layers[0]) == sure(layers[3]) == {
        "self_attention.linear_qkv.layer_norm_weight": (16,),
        "mlp.linear_fc1.layer_norm_weight": (16,),
        "self_attention.linear_qkv.weight": (32 + 16 + 16, 16),
        "self_attention.linear_proj.weight": (16, 32),
        "self_attention.q_layernorm.weight": (8,),
        "self_attention.k_layernorm.weight": (8,),
        "mlp.linear_fc1.weight": (64, 16),
        "mlp.linear_fc2.weight": (16, 32),
    }  # fmt: skip


def test_experts_have_an_axis_of_their_own() -> None:
    """Four experts of 16: fc1 holds gate and up of each."""
    shapes = sure(layers_of(expected(QWEN3_MOE))[2])
    assert shapes["mlp.experts.experts.linear_fc1.weight"] == (4, 32, 16)
    assert shapes["mlp.experts.experts.linear_fc2.weight"] == (4, 16, 16)
    assert shapes["mlp.router.weight"] == (4, 16)
    assert "mlp.linear_fc1.weight" not in shapes


def test_latent_attention_with_dense_and_moe_layers() -> None:
    """The projections of MLA keep their own shapes; the first layer is dense; the correction bias is not required."""
    layers = layers_of(expected(DEEPSEEK))
    dense, moe = sure(layers[0]), sure(layers[1])
    assert dense["mlp.linear_fc1.weight"] == (192, 64)
    assert dense["self_attention.linear_q_down_proj.weight"] == (20, 64)
    assert dense["self_attention.linear_q_up_proj.weight"] == (4 * 16, 20)
    assert dense["self_attention.linear_kv_down_proj.weight"] == (18, 64)
    assert dense["self_attention.linear_kv_up_proj.weight"] == (4 * 18, 12)
    assert dense["self_attention.linear_proj.weight"] == (64, 32)
    assert "self_attention.linear_qkv.weight" not in dense
    assert "self_attention.linear_q_proj.weight" not in dense
    assert moe["mlp.experts.experts.linear_fc1.weight"] == (8, 48, 64)
    assert moe["mlp.shared_experts.linear_fc1.weight"] == (2 * 2 * 24, 64)
    assert "mlp.router.expert_bias" not in moe


def test_queries_that_are_not_compressed() -> None:
    """Moonlight has no q_lora_rank: one projection of the queries."""
    shapes = sure(layers_of(expected({**DEEPSEEK, "q_lora_rank": None}))[0])
    assert shapes["self_attention.linear_q_proj.weight"] == (4 * 16, 64)
    assert "self_attention.linear_q_up_proj.weight" not in shapes


def test_linear_attention_is_not_required_by_name() -> None:
    """Of Qwen3-Next, full layers hold query and output gate in qkv; how linear ones are named is only a hint."""
    layers = layers_of(expected(QWEN3_NEXT))
    assert sure(layers[3])["self_attention.linear_qkv.weight"] == (2 * 64 + 32 + 32, 64)
    assert "self_attention.linear_qkv.weight" not in sure(layers[0])
    assert not any("linear_attn" in name for name in sure(layers[0]))
    assert {one.names[0] for one in layers[0] if "linear_attn" in one.names[0]}
    assert sure(layers[0])["mlp.shared_experts.gate_weight"] == (1, 64)
    assert sure(layers[0])["mlp.shared_experts.linear_fc1.weight"] == (80, 64)


def test_other_names_of_the_same_things() -> None:
    """MiniMax calls gate, up and down w1, w3 and w2; GLM-4 has gate and up in one tensor already, and biases."""
    assert sure(layers_of(expected(MINIMAX))[1])["mlp.experts.experts.linear_fc1.weight"] == (8, 48, 64)
    glm = sure(layers_of(expected(GLM4))[0])
    assert glm["mlp.linear_fc1.weight"] == (192, 64)
    assert glm["self_attention.linear_qkv.bias"] == (64 + 32 + 32,)


@pytest.mark.parametrize(("tied", "head"), [(False, True), (True, False), (None, False)])
def test_outside_the_layers(tied: bool | None, head: bool) -> None:
    """The output layer is required only of a model whose config.json says that embeddings are not tied."""
    config = {**QWEN3, "tie_word_embeddings": tied}
    wanted = sure(outer_of(expected(config)))
    assert wanted["embedding.word_embeddings.weight"] == (64, 16)
    assert wanted["decoder.final_layernorm.weight"] == (16,)
    assert ("output_layer.weight" in wanted) is head


@pytest.mark.parametrize("model_type", sorted(tables()))
def test_every_family_has_rules(model_type: str) -> None:
    """Whatever family: every layer has norms, an output projection or linear attention, and an MLP or experts."""
    config = {**DEEPSEEK, **QWEN3_NEXT, **MINIMAX, "model_type": model_type, "num_hidden_layers": 4}
    if "moe" not in tables()[model_type].sections:
        config = {key: value for key, value in config.items() if "expert" not in key}
    for wanted in layers_of(expected(config)).values():
        names = {name for one in wanted for name in one.names}
        assert "mlp.linear_fc1.layer_norm_weight" in names
        assert {"self_attention.linear_proj.weight", "self_attention.linear_attn.out_proj.weight"} & names
        assert {"mlp.linear_fc1.weight", "mlp.experts.experts.linear_fc1.weight"} & names
