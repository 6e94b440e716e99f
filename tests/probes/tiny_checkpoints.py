"""Writes tiny (or sparse) checkpoints for tests and benchmarks: real safetensors files with an index and a config.json.

Values are zeros that are never written, so a checkpoint of any size costs little more than its headers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from probes.families import tables
from probes.families.expand import expand
from probes.readers.hf_config import HfConfig
from probes.readers.safetensors_header import BITS

Shapes = dict[str, tuple[str, tuple[int, ...]]]
"""dtype and shape by tensor name."""

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 256,
    "tie_word_embeddings": False,
}
"""A model that every family can be."""

MOE: dict[str, Any] = {"num_experts": 4, "moe_intermediate_size": 32, "num_experts_per_tok": 2}
MLA: dict[str, Any] = {
    "num_key_value_heads": 4,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
}
LINEAR: dict[str, Any] = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
    "shared_expert_intermediate_size": 48,
}


def config_of(model_type: str, **more: Any) -> dict[str, Any]:
    """Return a config.json of a family, small unless `more` says otherwise."""
    return {"model_type": model_type, "architectures": ["ForCausalLM"], **SIZES, **more}


def needed(config: Mapping[str, Any]) -> Shapes:
    """Return every tensor that the family's table needs by this config, in BF16."""
    raw = dict(config)
    expected = expand(tables()[raw["model_type"]], HfConfig("config.json", raw, raw), frozenset())
    assert expected is not None
    return {
        name: ("BF16", tuple(size or 1 for size in param.shape))
        for name, param in expected.params.items()
        if not param.optional
    }


def packed(shapes: Shapes, names: Sequence[str], *, bits: int = 4, group: int = 32, zero_point: bool = False) -> Shapes:
    """Return the shapes with these matrices packed as compressed-tensors does."""
    found = dict(shapes)
    for name in names:
        _, (rows, columns) = found.pop(name)
        base = name.removesuffix(".weight")
        found[f"{base}.weight_packed"] = ("I32", (rows, -(-columns * bits // 32)))
        found[f"{base}.weight_scale"] = ("BF16", (rows, -(-columns // group)))
        found[f"{base}.weight_shape"] = ("I32", (2,))
        if zero_point:
            found[f"{base}.weight_zero_point"] = ("I32", (-(-rows * bits // 32), -(-columns // group)))
    return found


def write_shard(path: str | Path, shapes: Shapes) -> None:
    """Write one safetensors file; its data is a hole of the right size."""
    place, header = 0, {}
    for name, (dtype, shape) in shapes.items():
        size = prod(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [place, place + size]}
        place += size
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + place)


def write_checkpoint(
    folder: Path,
    config: Mapping[str, Any] | None,
    shapes: Shapes,
    *,
    shards: int = 4,
    first: int = 1,
    index: bool = True,
) -> Path:
    """Write a checkpoint of `shards` files numbered from `first`; layers are spread over them in order."""
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config, indent=2))
    names, weight_map = list(shapes), {}
    for number in range(shards):
        part = names[len(names) * number // shards : len(names) * (number + 1) // shards]
        file = f"model-{number + first:05d}-of-{shards:05d}.safetensors"
        write_shard(folder / file, {name: shapes[name] for name in part})
        weight_map.update(dict.fromkeys(part, file))
    if index:
        write_index(folder, weight_map)
    return folder


def write_index(folder: Path, weight_map: Mapping[str, str]) -> None:
    """Write the index, with the unreliable total_size that slime's tools write."""
    text = json.dumps({"metadata": {"total_size": 7}, "weight_map": weight_map}, indent=2)
    (folder / "model.safetensors.index.json").write_text(text)


def read_index(folder: Path) -> dict[str, str]:
    """Return the weight_map of a checkpoint."""
    found: dict[str, str] = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    return found


def shard_of(folder: Path, tensor: str) -> Path:
    """Return the file that the index names for a tensor."""
    return folder / read_index(folder)[tensor]


def cut(path: Path, lost: int) -> None:
    """Remove the last bytes of a file."""
    os.truncate(path, path.stat().st_size - lost)


def quantised(ignore: Sequence[str], *, symmetric: bool = True, group: int = 32) -> dict[str, Any]:
    """Return a quantization_config as slime's convert_hf_to_int4_direct.py writes it."""
    weights = {"num_bits": 4, "type": "int", "symmetric": symmetric, "group_size": group, "strategy": "group"}
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": list(ignore),
    }
