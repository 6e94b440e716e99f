"""Small models in Hugging Face's layout, and updates of them with one fault each, as tests of received weights need.

Values come from a counter-based generator of fixed bits, so that recordings kept as test data stay true to the
checkpoint that a test builds again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.recorder.slime_runbook_recorder.fingerprint import fingerprint

Weights = dict[str, NDArray[np.uint16]]
"""Tensors by name, each the bits of bfloat16."""


@dataclass(frozen=True)
class Size:
    """The sizes of a model. experts: 0 for a dense one."""

    layers: int = 8
    hidden: int = 64
    heads: int = 4
    groups: int = 2
    head: int = 16
    ffn: int = 96
    vocab: int = 200
    experts: int = 0


DENSE = Size()
MOE = Size(layers=6, ffn=32, experts=8)


def bits(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Round float32 values to bfloat16 and return the bits."""
    raw = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((raw + 0x7FFF + (raw >> 16 & 1)) >> 16).astype(np.uint16)


def values(raw: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the values of bfloat16 bits."""
    found: NDArray[np.float32] = (raw.astype(np.uint32) << 16).view(np.float32)
    return found


def noise(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """Return numbers of mean 0 and deviation 1: sums of twelve 5-bit parts of one 64-bit word, the same everywhere."""
    words = np.random.PCG64(seed).random_raw(int(np.prod(shape)))
    total = np.zeros(len(words), np.float64)
    for part in range(12):
        total += (words >> np.uint64(5 * part)) & np.uint64(31)
    found: NDArray[np.float32] = ((total - 12 * 15.5) / np.sqrt(12 * 1023 / 12)).astype(np.float32).reshape(shape)
    return found


def build(size: Size) -> Weights:
    """Return the weights of a Qwen3 or Qwen3-MoE model."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (size.vocab, size.hidden)}
    for layer in range(size.layers):
        head = f"model.layers.{layer}."
        norms = ("input_layernorm", "post_attention_layernorm")
        shapes |= {f"{head}{name}.weight": (size.hidden,) for name in norms}
        shapes |= {f"{head}self_attn.{name}.weight": (size.head,) for name in ("q_norm", "k_norm")}
        shapes[f"{head}self_attn.q_proj.weight"] = (size.heads * size.head, size.hidden)
        shapes[f"{head}self_attn.o_proj.weight"] = (size.hidden, size.heads * size.head)
        shapes |= {f"{head}self_attn.{name}_proj.weight": (size.groups * size.head, size.hidden) for name in "kv"}
        blocks = [f"{head}mlp."]
        if size.experts:
            shapes[f"{head}mlp.gate.weight"] = (size.experts, size.hidden)
            blocks = [f"{head}mlp.experts.{expert}." for expert in range(size.experts)]
        for block in blocks:
            shapes |= {f"{block}{name}_proj.weight": (size.ffn, size.hidden) for name in ("gate", "up")}
            shapes[f"{block}down_proj.weight"] = (size.hidden, size.ffn)
    shapes |= {"model.norm.weight": (size.hidden,), "lm_head.weight": (size.vocab, size.hidden)}
    return {
        name: bits(noise(shape, seed) * (0.05 if len(shape) == 1 else 0.02) + (len(shape) == 1))
        for seed, (name, shape) in enumerate(shapes.items())
    }


def config(size: Size) -> dict[str, Any]:
    """Return the config.json of such a model."""
    kind = "Qwen3Moe" if size.experts else "Qwen3"
    found = {
        "architectures": [f"{kind}ForCausalLM"],
        "model_type": "qwen3_moe" if size.experts else "qwen3",
        "dtype": "bfloat16",
        "head_dim": size.head,
        "hidden_act": "silu",
        "hidden_size": size.hidden,
        "intermediate_size": size.ffn,
        "max_position_embeddings": 2048,
        "num_attention_heads": size.heads,
        "num_hidden_layers": size.layers,
        "num_key_value_heads": size.groups,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "vocab_size": size.vocab,
    }
    if size.experts:
        found |= {
            "num_experts": size.experts,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": size.ffn,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        }
    return found


def save(path: Path, weights: Mapping[str, NDArray[Any]], dtype: str = "BF16") -> None:
    """Write tensors as one safetensors file."""
    header: dict[str, Any] = {}
    offset = 0
    for name, tensor in weights.items():
        end = offset + tensor.nbytes
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    raw = json.dumps(header).encode()
    data = b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in weights.values())
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)


def checkpoint(folder: Path, size: Size) -> Weights:
    """Write a checkpoint of two shards with its index and config.json; return its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = build(size)
    names = list(weights)
    shards = (names[: len(names) // 2], names[len(names) // 2 :])
    where: dict[str, str] = {}
    for number, part in enumerate(shards, start=1):
        file = f"model-{number:05}-of-00002.safetensors"
        save(folder / file, {name: weights[name] for name in part})
        where |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    (folder / "config.json").write_text(json.dumps(config(size)))
    return weights


def stages(weights: Weights, layers: int, count: int = 2) -> list[Weights]:
    """Deal the weights out to pipeline stages of equal depth: the embedding to the first, head and norm to the last."""
    found: list[Weights] = [{} for _ in range(count)]
    for name, tensor in weights.items():
        layer = layer_of(name)
        stage = 0 if name.startswith("model.embed") else count - 1
        if layer is not None:
            stage = min(layer * count // layers, count - 1)
        found[stage][name] = tensor
    return found


def send(folder: Path, sent: list[Weights]) -> Path:
    """Write what each stage sent, one file a stage, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, weights in enumerate(sent):
        save(folder / f"stage{number}.safetensors", weights)
    return folder


def layer_of(name: str) -> int | None:
    """Return the layer in a name."""
    parts = name.split(".")
    return int(parts[2]) if parts[1:2] == ["layers"] else None


def renamed(weights: Weights, change: Callable[[str], str]) -> Weights:
    """Return the weights under other names; of two with one name the last stays."""
    return {change(name): tensor for name, tensor in weights.items()}


def trained(weights: Weights, seed: int = 7, step: float = 2e-5) -> Weights:
    """Return the weights after a small step: every value moved a little, then rounded."""
    return {
        name: bits(values(tensor) + step * noise(tensor.shape, seed + number))
        for number, (name, tensor) in enumerate(weights.items())
    }


def record(folder: Path, weights: Mapping[str, NDArray[Any]], *, version: str = "1", idle: bool = True) -> Path:
    """Write the recording of one update as the recorder would, by its own fingerprint, without the tensors."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = [
        {
            "ev": "begin",
            "call": 0,
            "model": "Qwen3ForCausalLM",
            "kind": "tensor",
            "weight_version": version,
            "group": "",
        }
    ]
    for name, tensor in weights.items():
        facts = fingerprint(torch.from_numpy(tensor.view(np.int16).copy()).view(torch.bfloat16))
        lines.append({"ev": "tensor", "call": 0, "name": name, "device": "cpu", **facts})
    lines.append({"ev": "end", "call": 0, "error": None, "tensors": len(weights)})
    if idle:
        lines.append({"ev": "idle"})
    (folder / "received.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


TINY = Size(layers=2, ffn=32, vocab=128, experts=4)
"""The checkpoint that tests/data/weights/recorded-moe was recorded with, on the real SGLang 0.5.15."""
