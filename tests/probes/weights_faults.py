"""Updates with one fault each, as a wrong conversion or a wrong id makes them, and the answer each must get."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.probes.weights_models import Size, Weights, bits, noise, renamed, values

Change = Callable[[Weights, Size], Weights]


@dataclass(frozen=True)
class Fault:
    """A fault. says: words of the summary, as a pattern. change: applied to all weights before they are dealt out.

    moe: True for faults of experts, None for faults of any model.
    """

    name: str
    answer: str
    says: str
    change: Change
    moe: bool | None = None


def layers(order: Callable[[int], int]) -> Change:
    """Return a change of layer ids."""
    pattern = re.compile(r"layers\.(\d+)\.")
    return lambda weights, _: renamed(
        weights, lambda name: pattern.sub(lambda at: f"layers.{order(int(at[1]))}.", name)
    )


def experts(order: Callable[[int], int], only: str = "") -> Change:
    """Return a change of expert ids, in the layers whose names contain `only`."""
    pattern = re.compile(r"experts\.(\d+)\.")

    def change(name: str) -> str:
        return pattern.sub(lambda at: f"experts.{order(int(at[1]))}.", name) if only in name else name

    return lambda weights, _: renamed(weights, change)


def each(ending: str, alter: Callable[[NDArray[np.uint16]], NDArray[np.uint16]]) -> Change:
    """Return a change of every tensor whose name ends so."""
    return lambda weights, _: {name: alter(t) if name.endswith(ending) else t for name, t in weights.items()}


def names(change: Callable[[str], str]) -> Change:
    """Return a change of names."""
    return lambda weights, _: renamed(weights, change)


def without(pattern: str) -> Change:
    """Return a change that leaves names out."""
    return lambda weights, _: {name: tensor for name, tensor in weights.items() if not re.search(pattern, name)}


def exchanged(one: str, other: str, only: str = "") -> Change:
    """Return a change that exchanges two parameters of each layer."""

    def change(name: str) -> str:
        if only not in name:
            return name
        return name.replace(one, other) if one in name else name.replace(other, one)

    return names(change)


def split_without_groups(weights: Weights, size: Size) -> Weights:
    """Cut Megatron's linear_qkv into q, k and v as if it held them one after the other."""
    found = dict(weights)
    for layer in range(size.layers):
        head = f"model.layers.{layer}.self_attn."
        parts = [weights[f"{head}{part}_proj.weight"].reshape(size.groups, -1, size.hidden) for part in "qkv"]
        packed = np.concatenate([part[group] for group in range(size.groups) for part in parts])
        start = 0
        for name in "qkv":
            rows = len(weights[f"{head}{name}_proj.weight"])
            found[f"{head}{name}_proj.weight"] = packed[start : start + rows]
            start += rows
    return found


def megatron(name: str) -> str:
    """Return a name as Megatron has it."""
    for pattern, text in (
        (r"^model\.embed_tokens", "embedding.word_embeddings"),
        (r"^model\.layers", "decoder.layers"),
        (r"^model\.norm", "decoder.final_layernorm"),
        (r"^lm_head", "output_layer"),
        (r"self_attn\.o_proj", "self_attention.linear_proj"),
    ):
        name = re.sub(pattern, text, name)
    return f"module.module.{name}"


def other_rows(tensor: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return a tensor of whose rows a few are others."""
    found: NDArray[np.uint16] = tensor.copy()
    found[20:24] = bits(noise(found[20:24].shape, 991) * 0.02)
    return found


def one_nan(tensor: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return a tensor with one NaN in it."""
    found: NDArray[np.uint16] = tensor.copy()
    found[1, 2] = 0x7FC0
    return found


def padded(tensor: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return a tensor with 56 more rows, zeros."""
    return np.concatenate([tensor, np.zeros((56, tensor.shape[1]), np.uint16)])


def interleaved(tensor: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the rows of each head in the other order of rotary embeddings."""
    found: NDArray[np.uint16] = tensor.reshape(-1, 2, 8, tensor.shape[1]).transpose(0, 2, 1, 3).reshape(tensor.shape)
    return found


O2 = "layers.2.self_attn.o_proj.weight"
FAULTS = (
    Fault(
        "two-layers-exchanged", "pp-layer-ids", "Layers 2 and 3 are exchanged", layers(lambda n: {2: 3, 3: 2}.get(n, n))
    ),
    Fault("off-by-one", "pp-layer-ids", "layers 0 never came", layers(lambda n: n + 1)),
    Fault(
        "gate-up",
        "values-wrong",
        "gate_proj and up_proj of layers 0-[57] are exchanged",
        exchanged("gate_proj", "up_proj"),
    ),
    Fault("one-gate-up", "values-wrong", "of layers 1 are exchanged", exchanged("gate_proj", "up_proj", "layers.1.")),
    Fault("k-v", "values-wrong", "k_proj and v_proj .* are exchanged", exchanged("k_proj", "v_proj")),
    Fault("square-transposed", "values-wrong", "transposed", each(O2, lambda t: t.T.copy())),
    Fault("transposed", "values-wrong", "transposed", each("down_proj.weight", lambda t: t.T.copy())),
    Fault("ungrouped", "values-wrong", "the split ignored GQA groups", split_without_groups),
    Fault("vocabulary", "vocab-padding", "56 rows too many", each("lm_head.weight", padded)),
    Fault("zeros", "zero", "layers.2.self_attn.o_proj.weight arrived as zeros", each(O2, lambda t: t * 0)),
    Fault("all-zeros", "zero", "arrived as zeros", each("", lambda t: t * 0)),
    Fault("nan", "nonfinite", "NaN or Inf", each(O2, one_nan)),
    Fault("untranslated", "unknown-name", "module.module.decoder", names(megatron)),
    Fault("prefixed", "unknown-name", "module.model", names(lambda name: f"module.{name}")),
    Fault(
        "one-renamed",
        "unknown-name",
        "q_layernorm",
        names(lambda n: n.replace("2.self_attn.q_norm", "2.self_attn.q_layernorm")),
    ),
    Fault("norm-missing", "never-sent", "model.norm.weight", without(r"^model\.norm")),
    Fault("layer-missing", "never-sent", "everything of layers 3", without(r"layers\.3\.")),
    Fault(
        "one-moved",
        "values-wrong",
        r"content of model\.layers\.5",
        lambda w, _: {**w, f"model.{O2}": w[f"model.{O2.replace('2', '5')}"]},
    ),
    Fault("norms-around-zero", "values-wrong", "constant added", each("norm.weight", lambda t: bits(values(t) - 1))),
    Fault("doubled", "values-wrong", "2 times", each(O2, lambda t: bits(values(t) * 2))),
    Fault("row-shard", "values-wrong", "part 1 of 2 of its rows", each("q_proj.weight", lambda t: t[: len(t) // 2])),
    Fault(
        "column-shard",
        "values-wrong",
        "part 2 of 2 of its columns",
        each("o_proj.weight", lambda t: t[:, t.shape[1] // 2 :]),
    ),
    Fault("expert-missing", "never-sent", "experts 5 of layers 0-5", without(r"experts\.5\."), moe=True),
    Fault(
        "experts-exchanged",
        "ep-expert-ids",
        "Experts 1 and 2 are exchanged",
        experts(lambda e: {1: 2, 2: 1}.get(e, e), "layers.2."),
        moe=True,
    ),
    Fault("experts-local", "ep-expert-ids", "experts 4-7 never came", experts(lambda e: e % 4), moe=True),
    Fault("experts-turned", "ep-expert-ids", "0-3 as 4-7", experts(lambda e: (e + 4) % 8), moe=True),
)
EXACT = (
    Fault("rows-permuted", "values-wrong", "rows permuted", each(O2, lambda t: np.roll(t, 16, axis=0))),
    Fault("rope-order", "values-wrong", "rows permuted", each("q_proj.weight", interleaved)),
    Fault("columns-permuted", "values-wrong", "values in another order", each(O2, lambda t: np.roll(t, 16, axis=1))),
)
"""Faults that can only be named while nothing was trained; afterwards they are "other values"."""
PARTLY = Fault(
    "rows-replaced",
    "values-wrong",
    "4 of 64 rows, from row 20 on",
    each("layers.3.self_attn.q_proj.weight", other_rows),
)
"""A fault in so few rows that only the tensors themselves are sure to show it."""
