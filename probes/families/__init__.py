"""The tensors that each model family's checkpoint holds: one YAML table a family, and what reads and expands them.

A table is data. `outer` lists tensors outside the layers, `layers` those of every layer, `dense`, `moe`, `full`,
`linear` and `indexed` those of layers of that kind (`kinds` names the rule, see `expand`), `experts` the forms in which
experts are stored, `mtp` the optional prediction layers. A tensor is written

    name: KIND[?] DIMENSION ... [if CONDITION]

KIND is linear (SGLang may load it packed), expert (the same, in a fused MoE), router, plain (a matrix that SGLang
builds without quantisation), embedding, head, norm, bias, conv, state or fused; "?" marks a tensor that only some
releases have. A dimension is a sum of products of config fields. Sources: transformers' modeling files, SGLang 0.5.9's
model files, slime's megatron_to_hf and hf_to_megatron.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

FOLDER = os.path.dirname(os.path.abspath(__file__))

SECTIONS = ("layers", "dense", "moe", "full", "linear", "indexed")


@dataclass(frozen=True)
class Spec:
    """How a table describes one tensor. dims: expressions. condition: "" for always."""

    name: str
    kind: str
    dims: tuple[str, ...]
    optional: bool = False
    condition: str = ""


@dataclass(frozen=True)
class Mtp:
    """Prediction layers. at: prefix with {root} and {layer}. after: config field whose value is added to {layer}."""

    at: str
    after: str
    outer: tuple[Spec, ...]
    layers: tuple[Spec, ...]


@dataclass(frozen=True)
class Table:
    """One family. kinds: rule by section pair ("mlp", "mixer", "indexer"). experts: alternative forms."""

    family: str
    model_types: tuple[str, ...]
    defaults: dict[str, Any] = field(default_factory=dict)
    derive: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    outer: tuple[Spec, ...] = ()
    sections: dict[str, tuple[Spec, ...]] = field(default_factory=dict)
    experts: tuple[tuple[Spec, ...], ...] = ()
    mtp: Mtp | None = None


def parse(name: str, text: str) -> Spec:
    """Read one tensor's line of a table."""
    body, _, condition = text.partition(" if ")
    kind, *dims = body.split()
    return Spec(name, kind.rstrip("?"), tuple(dims), kind.endswith("?"), condition.strip())


def _specs(data: dict[str, str] | None) -> tuple[Spec, ...]:
    return tuple(parse(name, text) for name, text in (data or {}).items())


def load_table(path: str) -> Table:
    """Read one table. Raises KeyError, ValueError or yaml.YAMLError when it is malformed."""
    with open(path, encoding="utf-8") as file:
        data = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    mtp = data.get("mtp")
    return Table(
        data["family"],
        tuple(data["model_types"]),
        data.get("defaults", {}),
        {name: str(value) for name, value in data.get("derive", {}).items()},
        data.get("kinds", {}),
        _specs(data["outer"]),
        {section: _specs(data[section]) for section in SECTIONS if section in data},
        tuple(_specs(form) for form in data.get("experts", ())),
        Mtp(mtp["at"], mtp.get("after", ""), _specs(mtp.get("outer")), _specs(mtp.get("layers"))) if mtp else None,
    )


@cache
def tables() -> dict[str, Table]:
    """Return every table by each model_type that it describes."""
    found = {}
    for name in sorted(os.listdir(FOLDER)):
        if name.endswith(".yaml"):
            table = load_table(os.path.join(FOLDER, name))
            found.update(dict.fromkeys(table.model_types, table))
    return found
