"""Reads `quantization_config` of a checkpoint's config.json: what kind it is, its groups and its ignore list.

Kinds by quant_method: "compressed-tensors", "fp8" (block or per tensor, as DeepSeek and slime write it), "awq", "gptq"
and whatever else it says. Multimodal files keep it at the top or under `text_config`. Invariants: nothing is filled
in; every ignore entry knows its line, so that a finding can say which line to change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probes.readers.hf_config import HfConfig
from probes.readers.json_places import Path, Place, cite_place, line_of, places
from runbook.finding import Citation

HOLDERS: tuple[Path, ...] = (
    ("quantization_config",),
    ("text_config", "quantization_config"),
    ("compression_config",),
    ("text_config", "compression_config"),
)
"""Where families and versions of transformers keep it."""


@dataclass(frozen=True)
class Group:
    """One group of `config_groups`. A field is None when the file does not have it."""

    name: str
    num_bits: int | None
    group_size: int | None
    symmetric: bool | None
    strategy: str | None
    type: str | None
    targets: tuple[str, ...]


@dataclass(frozen=True)
class QuantConfig:
    """A quantization_config.

    kind: "compressed-tensors", "fp8", or what quant_method says. at: its keys from the root. ignore: entries of the
    ignore list (modules_to_not_convert for the other kinds). groups: of compressed-tensors.
    """

    config: HfConfig
    kind: str
    format: str
    raw: dict[str, Any]
    at: Path
    ignore_key: str
    ignore: tuple[str, ...]
    groups: tuple[Group, ...]
    places: dict[Path, Place]

    @property
    def block(self) -> tuple[int, int] | None:
        """Return weight_block_size of FP8, None when it is per tensor or per channel."""
        size = self.raw.get("weight_block_size")
        if isinstance(size, list) and len(size) == 2 and all(isinstance(one, int) and one > 0 for one in size):
            return size[0], size[1]
        return None

    def group(self, name: str = "group_0") -> Group | None:
        """Return a group by its name."""
        return next((one for one in self.groups if one.name == name), None)

    def cite(self, *keys: str | int) -> Citation:
        """Cite the line of a value inside quantization_config, or of the whole when it is not there."""
        place = self.places.get((*self.at, *keys)) or self.places.get(self.at)
        return cite_place(self.config.path, self.config.data, place.start if place else 0)

    def line(self, *keys: str | int) -> int | None:
        """Return the 1-based line of a value inside quantization_config."""
        place = self.places.get((*self.at, *keys))
        return line_of(self.config.data, place.start) if place else None


def read_quant(config: HfConfig) -> QuantConfig | None:
    """Return the quantization_config of a config.json, None when it has none."""
    for at in HOLDERS:
        raw: Any = config.raw
        for key in at:
            raw = raw.get(key) if isinstance(raw, dict) else None
        if isinstance(raw, dict) and raw:
            return _read(config, at, raw)
    return None


def _read(config: HfConfig, at: Path, raw: dict[str, Any]) -> QuantConfig:
    method = str(raw.get("quant_method") or "")
    kind = {"compressed_tensors": "compressed-tensors", "sparseml": "compressed-tensors"}.get(method, method)
    if not kind and "config_groups" in raw:
        kind = "compressed-tensors"
    keys = (
        ("ignore",)
        if kind == "compressed-tensors"
        else ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules")
    )
    key = next((one for one in keys if isinstance(raw.get(one), list)), keys[0])
    listed = raw.get(key)
    ignore = tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()
    groups = raw.get("config_groups")
    found = tuple(_group(name, one) for name, one in groups.items()) if isinstance(groups, dict) else ()
    return QuantConfig(config, kind, str(raw.get("format") or ""), raw, at, key, ignore, found, places(config.data))


def _group(name: str, raw: Any) -> Group:
    weights = raw.get("weights") if isinstance(raw, dict) else None
    weights = weights if isinstance(weights, dict) else {}
    targets = raw.get("targets") if isinstance(raw, dict) else None

    def number(key: str) -> int | None:
        value = weights.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    symmetric = weights.get("symmetric")
    return Group(
        str(name),
        number("num_bits"),
        number("group_size"),
        symmetric if isinstance(symmetric, bool) else None,
        str(weights["strategy"]) if weights.get("strategy") else None,
        str(weights["type"]) if weights.get("type") else None,
        tuple(one for one in targets if isinstance(one, str)) if isinstance(targets, list) else (),
    )
