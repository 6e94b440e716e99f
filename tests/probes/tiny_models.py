"""Writes small Hugging Face checkpoints of real families, with random values, for tests of their content."""

from __future__ import annotations

import json
import random
from math import prod
from pathlib import Path

from probes.families import tables
from probes.families.expand import expand
from probes.readers.hf_config import HfConfig

Tensor = tuple[str, tuple[int, ...], bytes]
"""dtype as safetensors names it, shape, bytes."""

QWEN3_MOE = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_hidden_layers": 4, "hidden_size": 16,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 32, "vocab_size": 64,
    "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "tie_word_embeddings": False,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "rms_norm_eps": 1e-6,
}  # fmt: skip
QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 4, "hidden_size": 16,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 32, "vocab_size": 64,
    "tie_word_embeddings": False, "rms_norm_eps": 1e-6,
}  # fmt: skip


def bf16(count: int, seed: int = 0) -> bytes:
    """Return `count` random finite numbers around 0, none of them zero, as BF16."""
    chance = random.Random(seed)
    return b"".join(
        (0x3C00 + chance.randrange(0x100) | chance.getrandbits(1) << 15).to_bytes(2, "little") for _ in range(count)
    )


def tensors_of(config: dict[str, object]) -> dict[str, Tensor]:
    """Return every tensor that the family's table asks for by this configuration, in BF16."""
    found = expand(tables()[str(config["model_type"])], HfConfig("", config, config), ())
    assert found is not None
    made: dict[str, Tensor] = {}
    for name, param in found.params.items():
        if not param.optional:
            shape = tuple(size for size in param.shape if size is not None)
            made[name] = ("BF16", shape, bf16(prod(shape), len(made)))
    return made


def write_safetensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write a file as the safetensors library does: header padded to 8 bytes, tensors in the order given."""
    header, place = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [place, place + len(data)]}
        place += len(data)
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + b"".join(data for _, _, data in tensors.values()))


def write_checkpoint(
    folder: Path, config: dict[str, object], tensors: dict[str, Tensor] | None = None, shards: int = 2
) -> Path:
    """Write config.json, numbered shards and the index; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    every = list((tensors_of(config) if tensors is None else tensors).items())
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    weight_map: dict[str, str] = {}
    for number in range(shards):
        name = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        some = dict(every[number * len(every) // shards : (number + 1) * len(every) // shards])
        write_safetensors(folder / name, some)
        weight_map |= dict.fromkeys(some, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder
