"""Expands a family's table by a config.json into the names and shapes that the checkpoint must have.

Rules of which layers are what (config keys of transformers' configuration classes): "first-dense" is
first_k_dense_replace with moe_layer_freq, "sparse-step" is mlp_only_layers with decoder_sparse_step, "layer-types" is
layer_types or full_attention_interval, "indexer" is indexer_types and its older spellings. Invariants: a field that
config.json does not have makes a dimension unknown (None) or a tensor optional, never wrong; the number of names is
bounded whatever config.json says.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from probes.families import Spec, Table
from probes.readers.hf_config import NAMES, HfConfig
from probes.readers.hf_config import field as config_field

ROOTS = (
    ("model.", ""),
    ("model.language_model.", ""),
    ("language_model.model.", "language_model."),
    ("thinker.model.", "thinker."),
)
"""Prefix of the language model's layers, and of its lm_head, in plain and multimodal checkpoints."""

MAX_LAYERS = 1_000
MAX_NAMES = 2_000_000
"""Names that are worth expanding; the largest public checkpoint has under 250,000."""

Values = dict[str, Any]


@dataclass(frozen=True)
class Param:
    """What is expected of one tensor. shape: None in it is a dimension that config.json does not tell."""

    kind: str
    shape: tuple[int | None, ...]
    optional: bool = False


@dataclass(frozen=True)
class Expected:
    """The names of a family's checkpoint. layers: how many config.json says. root: prefix of the language model."""

    family: str
    params: dict[str, Param]
    root: str
    layers: int


def values_of(table: Table, config: HfConfig) -> Values:
    """Return the fields that a table's expressions may use: raw keys, our names for them, defaults, derived ones."""
    values: Values = {
        key: value for key, value in config.text.items() if isinstance(value, (int, list, str, type(None)))
    }
    for name in NAMES:
        found = config_field(config, name)
        if found is not None:
            values[name] = found.value
    for name, value in table.defaults.items():
        if values.get(name) is None:
            values[name] = value
    for name, expression in table.derive.items():
        if values.get(name) is None:
            values[name] = evaluate(expression, values)
    return values


def evaluate(expression: str, values: Values) -> int | None:
    """Return the value of a sum of products (or of one quotient); None when a field of it is not known."""
    total = 0
    for term in expression.split("+"):
        product = 1
        for number, factor in enumerate(re.split(r"[*/]", term)):
            value = int(factor) if factor.isdigit() else values.get(factor)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 40:
                return None
            if number and f"/{factor}" in term:
                if value == 0 or product % value:
                    return None
                product //= value
            else:
                product *= value
        total += product
    return total


def holds(condition: str, values: Values) -> bool | None:
    """Return whether a condition ("a", "not a", joined by "and") holds; None when config.json does not say."""
    answers: list[bool | None] = []
    for part in condition.split(" and "):
        name = part.removeprefix("not ").strip()
        if name not in values:
            answers.append(None)
        else:
            answers.append(bool(values[name]) is not part.startswith("not "))
    return False if False in answers else None if None in answers else True


def mlp_kind(rule: str, layer: int, values: Values) -> str:
    """Return "dense" or "moe" for a layer."""
    if rule == "moe" or not values.get("experts"):
        return "moe" if rule == "moe" else "dense"
    listed = values.get("mlp_layer_types")
    if isinstance(listed, list) and layer < len(listed):
        return "dense" if listed[layer] == "dense" else "moe"
    if rule == "sparse-step":
        step = values.get("decoder_sparse_step", 1)
        only = values.get("mlp_only_layers")
        sparse = isinstance(step, int) and step > 0 and (layer + 1) % step == 0
        return "moe" if sparse and layer not in (only if isinstance(only, list) else ()) else "dense"
    first, every = values.get("first_dense"), values.get("moe_layer_freq", 1)
    every = every if isinstance(every, int) and every > 0 else 1
    return "moe" if isinstance(first, int) and layer >= first and layer % every == 0 else "dense"


def mixer_kind(layer: int, values: Values) -> str:
    """Return "full" or "linear" for the attention of a layer."""
    listed = values.get("layer_types")
    if isinstance(listed, list) and layer < len(listed):
        return "linear" if listed[layer] == "linear_attention" else "full"
    interval = values.get("full_attention_interval", 4)
    return "full" if isinstance(interval, int) and interval > 0 and (layer + 1) % interval == 0 else "linear"


def indexer_kind(values: Values) -> str:
    """Return "none", "indexed" or, where some layers share another's indexer, "maybe"."""
    if not isinstance(values.get("index_n_heads"), int):
        return "none"
    freq = values.get("index_topk_freq", 1)
    shared = "indexer_types" in values or "index_topk_pattern" in values or (isinstance(freq, int) and freq > 1)
    return "maybe" if shared else "indexed"


def root_of(names: Collection[str]) -> tuple[str, str]:
    """Return the prefixes of the language model and of its lm_head in these names."""
    for root, outer in ROOTS:
        prefix = f"{root}layers."
        if any(name.startswith(prefix) for name in names):
            return root, outer
    return ROOTS[0]


def expand(table: Table, config: HfConfig, names: Collection[str]) -> Expected | None:
    """Return what a checkpoint of this family must hold; None when config.json does not say how many layers it has.

    names: the names it does hold (quantised ones under their `.weight`), which choose among the forms that a table
    allows: the prefix of the language model, fused or separate experts, prediction layers or none.
    """
    values = values_of(table, config)
    layers, experts = values.get("num_layers"), values.get("experts") or 0
    if not isinstance(layers, int) or not 0 < layers <= MAX_LAYERS or not isinstance(experts, int):
        return None
    if layers * max(experts, 0) * 3 > MAX_NAMES:
        return None
    root, outer = root_of(names)
    build = _Builder(table, values, names, {}, {})
    build.add(table.outer, "", root=root, outer=outer)
    for layer in range(layers):
        build.layer(f"{root}layers.{layer}.", _sections(table, layer, values))
    if table.mtp is not None:
        build.mtp(root)
    return Expected(table.family, build.params, root, layers)


def _sections(table: Table, layer: int, values: Values) -> tuple[str, ...]:
    """Return the sections that describe one layer."""
    sections = ["layers"]
    if "mlp" in table.kinds:
        sections.append(mlp_kind(table.kinds["mlp"], layer, values))
    if "mixer" in table.kinds:
        sections.append(mixer_kind(layer, values))
    if "indexer" in table.kinds:
        sections.append(indexer_kind(values))
    return tuple(sections)


@dataclass(frozen=True)
class _Builder:
    """Collects params. A Param is shared by the tensors of one line in all layers of one kind."""

    table: Table
    values: Values
    names: Collection[str]
    params: dict[str, Param]
    made: dict[tuple[Spec, bool], Param]

    def param(self, spec: Spec, *, optional: bool = False) -> Param:
        key = (spec, optional)
        if key not in self.made:
            wanted = holds(spec.condition, self.values) if spec.condition else True
            shape = tuple(evaluate(dim, self.values) for dim in spec.dims)
            self.made[key] = Param(spec.kind, shape, spec.optional or optional or wanted is not True)
        return self.made[key]

    def add(self, specs: tuple[Spec, ...], prefix: str, *, optional: bool = False, **fill: str) -> None:
        for spec in specs:
            name = spec.name.format(**fill) if fill else spec.name
            self.params[prefix + name] = self.param(spec, optional=optional)

    def layer(self, prefix: str, sections: tuple[str, ...]) -> None:
        for section in sections:
            name = "indexed" if section == "maybe" else section
            self.add(self.table.sections.get(name, ()), prefix, optional=section == "maybe")
        if "moe" in sections and self.table.experts:
            count = self.values.get("experts") or 0
            form = next((one for one in self.table.experts if self._stored(one, prefix, count)), self.table.experts[0])
            for spec in form:
                param = self.param(spec)
                before, hole, after = (prefix + spec.name).partition("{expert}")
                if hole:
                    self.params.update((f"{before}{expert}{after}", param) for expert in range(count))
                else:
                    self.params[before] = param

    def _stored(self, form: tuple[Spec, ...], prefix: str, count: int) -> bool:
        return any(
            prefix + spec.name.format(expert=expert) in self.names for expert in range(min(count, 4)) for spec in form
        )

    def mtp(self, root: str) -> None:
        """Add the prediction layers of which the checkpoint has anything."""
        mtp = self.table.mtp
        count, base = self.values.get("mtp"), self.values.get(mtp.after, 0) if mtp else 0
        if mtp is None or not isinstance(count, int) or not isinstance(base, int):
            return
        prefixes = [mtp.at.format(root=root, layer=base + number) for number in range(min(max(count, 1), 16))]
        kinds = tuple(
            {"mlp": "moe" if self.values.get("experts") else "dense", "mixer": "full"}.get(
                kind, indexer_kind(self.values)
            )
            for kind in self.table.kinds
        )
        base_specs = (
            *mtp.layers,
            *(spec for section in ("layers", *kinds) for spec in self.table.sections.get(section, ())),
        )
        present = [prefix for prefix in prefixes if any(prefix + spec.name in self.names for spec in base_specs)]
        if present or any(spec.name in self.names for spec in mtp.outer):
            self.add(mtp.outer, "")
        for prefix in present:
            self.add(mtp.layers, prefix)
            self.layer(prefix, ("layers", *kinds))
