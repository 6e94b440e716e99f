"""Reads what a Hugging Face checkpoint says about itself: config.json and generation_config.json.

Fields get one name each, whatever the file calls them (`num_experts`, `n_routed_experts`, `num_local_experts`) and
however deep they lie: the language model of a multimodal checkpoint is in `text_config`, and transformers 5 writes
`rope_theta` into `rope_parameters`. A field that the file does not have is None; nothing is filled in with a
default.
"""

from __future__ import annotations

import json
import os
from typing import Any

import msgspec

from runbook.finding import Citation, cite

LIMIT = 8 << 20
"""Bytes of one JSON file; real ones have kilobytes."""


class Field(msgspec.Struct, frozen=True):
    """A value of config.json, the key it is under, and the line of that key."""

    value: Any
    key: str
    citation: Citation


class HfConfig(msgspec.Struct, frozen=True):
    """config.json. raw: the whole object. text: the part that describes the language model. path: the file."""

    path: str
    raw: dict[str, Any]
    text: dict[str, Any]
    data: bytes = b""

    @property
    def model_type(self) -> str:
        """Return the language model's type, such as "qwen3_moe"; empty when not given."""
        return str(self.text.get("model_type") or self.raw.get("model_type") or "")


NAMES: dict[str, tuple[str, ...]] = {
    "num_layers": ("num_hidden_layers", "n_layer"),
    "hidden_size": ("hidden_size", "n_embd"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_groups": ("num_key_value_heads", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels"),
    "ffn": ("intermediate_size", "ffn_hidden_size"),
    "rope_theta": ("rope_theta",),
    "tied": ("tie_word_embeddings",),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "experts": ("num_experts", "n_routed_experts", "num_local_experts"),
    "topk": ("num_experts_per_tok", "moe_topk"),
    "moe_ffn": ("moe_intermediate_size",),
    "shared_ffn": ("shared_expert_intermediate_size",),
    "first_dense": ("first_k_dense_replace",),
    "mtp": ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"),
    "norm_eps": ("rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps"),
    "attention_bias": ("attention_bias", "add_qkv_bias"),
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
}
"""Our name of a field and the keys under which families write it."""


def load_json(path: str) -> tuple[dict[str, Any] | None, bytes]:
    """Return a JSON object and its bytes; (None, bytes) when the file is absent, too large or not an object."""
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT)
        value = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return None, b""
    return (value, data) if isinstance(value, dict) else (None, data)


def read_config(path: str) -> HfConfig | None:
    """Read config.json of the folder `path` (or `path` itself); None when there is none."""
    file = os.path.join(path, "config.json") if os.path.isdir(path) else path
    raw, data = load_json(file)
    if raw is None:
        return None
    text = next(
        (
            raw[key]
            for key in ("text_config", "llm_config", "language_config", "thinker_config")
            if isinstance(raw.get(key), dict)
        ),
        raw,
    )
    if isinstance(text.get("text_config"), dict):
        text = text["text_config"]
    return HfConfig(file, raw, text, data)


def field(config: HfConfig, name: str) -> Field | None:
    """Return a field by our name; None when the file does not have it or has null."""
    for key in NAMES[name]:
        value = config.text.get(key)
        if value is None and name in ("tied", "vocab"):  # some multimodal files keep these at the top
            value = config.raw.get(key)
        if key == "rope_theta":
            for holder in ("rope_parameters", "rope_scaling"):
                inner = config.text.get(holder)
                if isinstance(inner, dict):
                    nested = inner.get("full_attention") if isinstance(inner.get("full_attention"), dict) else inner
                    value = nested.get(key, value) if isinstance(nested, dict) else value
                    break
        if value is not None:
            return Field(value, key, cite_key(config.path, config.data, key, value))
    return None


def cite_key(path: str, data: bytes, key: str, value: Any) -> Citation:
    """Cite the line that holds `"key": value`; the last such line, as nested parts come after the outer ones."""
    offset, best = 0, None
    written = json.dumps(value)
    for number, line in enumerate(data.split(b"\n"), start=1):
        text = line.decode("utf-8", "replace")
        if f'"{key}"' in text and (best is None or written in text):
            best = cite(path, line, line=number, offset=offset)
        offset += len(line) + 1
    return best or Citation(path, excerpt=f"{key}: {written}"[:200])
