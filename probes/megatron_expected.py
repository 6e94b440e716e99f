"""What Megatron stores for a model, told from the tensors that its Hugging Face family has.

The families' tables stay the only description of a model: each Megatron parameter names the Hugging Face tensors that
it is made of (slime/backends/megatron_utils/megatron_to_hf/*.py), and its shape is theirs, stacked. q, k and v are
rows of one matrix, gate and up are the halves of linear_fc1, experts get an axis of their own. Names differ by layer
spec (a norm is fused into the linear behind it or not), so a parameter has alternatives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probes.families.expand import Expected, Param

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Rule:
    """names: alternatives, the first is the usual one. parts: tensors whose rows it holds, in order.

    sure: its absence proves that the checkpoint is of another model; else only its shape is judged. expert: it has an
    axis of experts before the rows, and `parts` are those of one expert.
    """

    names: tuple[str, ...]
    parts: tuple[str, ...]
    sure: bool = True
    expert: bool = False


def _rule(names: str, parts: str, *, sure: bool = True, expert: bool = False) -> Rule:
    return Rule(tuple(names.split()), tuple(parts.split()), sure, expert)


_ATTENTION = "self_attention."
_FC1, _FC2 = "mlp.linear_fc1.weight", "mlp.linear_fc2.weight"
_EXPERT_FC1, _EXPERT_FC2 = "mlp.experts.experts.linear_fc1.weight", "mlp.experts.experts.linear_fc2.weight"
_SHARED_FC1, _SHARED_FC2 = "mlp.shared_experts.linear_fc1.weight", "mlp.shared_experts.linear_fc2.weight"

RULES = (
    _rule(
        "self_attention.linear_qkv.layer_norm_weight input_layernorm.weight self_attention.input_layernorm.weight",
        "input_layernorm.weight",
    ),
    _rule("mlp.linear_fc1.layer_norm_weight pre_mlp_layernorm.weight", "post_attention_layernorm.weight"),
    _rule("post_self_attn_layernorm.weight", "post_self_attn_layernorm.weight", sure=False),
    _rule("post_mlp_layernorm.weight", "post_mlp_layernorm.weight", sure=False),
    _rule(f"{_ATTENTION}linear_qkv.weight", "self_attn.q_proj.weight self_attn.k_proj.weight self_attn.v_proj.weight"),
    _rule(f"{_ATTENTION}linear_qkv.bias", "self_attn.q_proj.bias self_attn.k_proj.bias self_attn.v_proj.bias"),
    _rule(f"{_ATTENTION}linear_proj.weight", "self_attn.o_proj.weight"),
    _rule(f"{_ATTENTION}q_layernorm.weight {_ATTENTION}q_norm.weight", "self_attn.q_norm.weight"),
    _rule(f"{_ATTENTION}k_layernorm.weight {_ATTENTION}k_norm.weight", "self_attn.k_norm.weight"),
    _rule(
        f"{_ATTENTION}linear_q_down_proj.weight {_ATTENTION}linear_qkv_down_proj.weight", "self_attn.q_a_proj.weight"
    ),
    _rule(
        f"{_ATTENTION}linear_q_up_proj.layer_norm_weight {_ATTENTION}q_layernorm.weight",
        "self_attn.q_a_layernorm.weight",
    ),
    _rule(f"{_ATTENTION}linear_q_up_proj.weight", "self_attn.q_b_proj.weight"),
    _rule(
        f"{_ATTENTION}linear_kv_down_proj.weight {_ATTENTION}linear_qkv_down_proj.weight",
        "self_attn.kv_a_proj_with_mqa.weight",
    ),
    _rule(
        f"{_ATTENTION}linear_kv_up_proj.layer_norm_weight {_ATTENTION}kv_layernorm.weight",
        "self_attn.kv_a_layernorm.weight",
    ),
    _rule(f"{_ATTENTION}linear_kv_up_proj.weight", "self_attn.kv_b_proj.weight"),
    _rule(_FC1, "mlp.gate_proj.weight mlp.up_proj.weight"),
    _rule(_FC1, "mlp.gate_up_proj.weight"),
    _rule(_FC2, "mlp.down_proj.weight"),
    _rule("mlp.router.weight", "mlp.gate.weight"),
    _rule("mlp.router.weight", "block_sparse_moe.gate.weight"),
    _rule("mlp.router.expert_bias", "mlp.gate.e_score_correction_bias", sure=False),
    _rule("mlp.router.expert_bias", "block_sparse_moe.e_score_correction_bias", sure=False),
    _rule(_EXPERT_FC1, "mlp.experts.{e}.gate_proj.weight mlp.experts.{e}.up_proj.weight", expert=True),
    _rule(_EXPERT_FC2, "mlp.experts.{e}.down_proj.weight", expert=True),
    _rule(_EXPERT_FC1, "block_sparse_moe.experts.{e}.w1.weight block_sparse_moe.experts.{e}.w3.weight", expert=True),
    _rule(_EXPERT_FC2, "block_sparse_moe.experts.{e}.w2.weight", expert=True),
    _rule(_SHARED_FC1, "mlp.shared_experts.gate_proj.weight mlp.shared_experts.up_proj.weight"),
    _rule(_SHARED_FC2, "mlp.shared_experts.down_proj.weight"),
    _rule(_SHARED_FC1, "mlp.shared_expert.gate_proj.weight mlp.shared_expert.up_proj.weight"),
    _rule(_SHARED_FC2, "mlp.shared_expert.down_proj.weight"),
    _rule("mlp.shared_experts.gate_weight", "mlp.shared_expert_gate.weight"),
)
"""Of one layer. `self_attn.q_proj` alone (MLA without q_lora_rank) is below."""

MLA_Q = _rule(f"{_ATTENTION}linear_q_proj.weight", "self_attn.q_proj.weight")
_LINEAR = "linear_attn."

OUTER = {
    "embedding.word_embeddings.weight": "embed_tokens.weight",
    "decoder.final_layernorm.weight": "norm.weight",
}
HEAD, HEAD_HF = "output_layer.weight", "lm_head.weight"

UNKNOWN_TO = {
    f"{_ATTENTION}linear_qkv.bias": "--add-qkv-bias",
    f"{_ATTENTION}linear_proj.bias": "--disable-bias-linear",
    "mlp.linear_fc1.bias": "--disable-bias-linear",
    "mlp.linear_fc2.bias": "--disable-bias-linear",
    f"{_ATTENTION}q_layernorm.weight": "--qk-layernorm",
    "mlp.router.weight": "--num-experts",
}
"""Parameters that some architectures have, by the argument that makes them: remarkable where the family has none."""


@dataclass(frozen=True)
class Wanted:
    """A parameter of one layer, or outside the layers. shape: None in it is a dimension that is not known."""

    names: tuple[str, ...]
    shape: Shape
    sure: bool


def layers_of(expected: Expected) -> dict[int, tuple[Wanted, ...]]:
    """Return what Megatron stores for each layer; layers of one kind share one tuple."""
    prefix = re.compile(re.escape(f"{expected.root}layers.") + r"(\d+)\.(.+)\Z")
    by_layer: dict[int, dict[str, Param]] = {layer: {} for layer in range(expected.layers)}
    for name, param in expected.params.items():
        match = prefix.match(name)
        if match and int(match[1]) < expected.layers:
            by_layer[int(match[1])][match[2]] = param
    made: dict[tuple[tuple[str, Shape], ...], tuple[Wanted, ...]] = {}
    wanted = {}
    for layer, parts in by_layer.items():
        key = tuple((name, param.shape) for name, param in parts.items())
        if key not in made:
            made[key] = tuple(_wanted(parts))
        wanted[layer] = made[key]
    return wanted


def _wanted(parts: Mapping[str, Param]) -> list[Wanted]:
    found = []
    experts = sum(1 for name in parts if re.search(r"\.experts\.\d+\.(?:gate_proj|w1)\.weight\Z", name))
    latent = "self_attn.kv_a_proj_with_mqa.weight" in parts
    for rule in (*RULES, *((MLA_Q,) if latent else ())):
        names = [part.format(e=0) for part in rule.parts]
        members = [parts[name] for name in names if name in parts]
        if len(members) < len(names):
            continue
        shape = _stacked([member.shape for member in members])
        sure = rule.sure and not any(member.optional for member in members)
        found.append(Wanted(rule.names, (experts, *shape) if rule.expert else shape, sure))
    for name, param in parts.items():
        if name.startswith(_LINEAR):
            found.append(Wanted((f"{_ATTENTION}{name}",), param.shape, sure=False))
    return found


def _stacked(shapes: Sequence[Shape]) -> Shape:
    """Return the shape of matrices set one above the other."""
    rows = [shape[0] for shape in shapes]
    total = None if None in rows else sum(row for row in rows if row is not None)
    return (total, *shapes[0][1:])


def outer_of(expected: Expected) -> tuple[Wanted, ...]:
    """Return what Megatron stores outside the layers; the rows of embedding and head may be padded."""
    found = []
    for name, part in OUTER.items():
        param = expected.params.get(f"{expected.root}{part}")
        if param is not None:
            found.append(Wanted((name,), param.shape, sure=True))
    head = next((param for name, param in expected.params.items() if name.endswith(HEAD_HF)), None)
    if head is not None:
        found.append(Wanted((HEAD,), head.shape, sure=not head.optional))
    return tuple(found)
