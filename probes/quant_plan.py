"""For every matrix of a checkpoint: how the files hold it, and what slime, SGLang and compressed-tensors do with it.

The kind of a matrix (Linear, expert, router, embedding, …) comes from the family's table, else from its name. Rules:
SGLang loads packed only what is a LinearBase or an expert (compressed_tensors.py, get_quant_method) and builds routers,
gates of shared experts, `eh_proj`, `mtp.fc` and convolutions without quantisation; experts are matched as
`…experts.0.{gate,up,down}_proj`, which must agree (get_moe_scheme).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from probes.hf_checkpoint import Checkpoint, Weight, open_checkpoint, weights_of
from probes.hf_names import LAYER, OPEN, compare
from probes.quant_rules import FUSED, compiled, library_ignores, sglang_ignores, slime_packs
from probes.readers.quant_config import QuantConfig, read_quant
from runbook.evidence import Evidence
from runbook.finding import Finding
from runbook.probe import Progress

LOADED_PACKED = ("linear", "expert")
"""Kinds that SGLang may hold packed."""

_BY_NAME = (
    (
        re.compile(r"(^|\.)(mlp|block_sparse_moe|feed_forward|ffn|moe)\.(gate|router)\.weight\Z|\.router\.weight\Z"),
        "router",
    ),
    (
        re.compile(r"(^|[._])(embed_tokens|wte|word_embeddings|embed|embeddings|pos_embed|embedding)\.weight\Z"),
        "embedding",
    ),
    (re.compile(r"(^|\.)(lm_head|output_layer|shared_head\.head)\.weight\Z"), "head"),
    (re.compile(r"conv\d?d?\.weight\Z|patch_embed\.proj"), "conv"),
    (re.compile(r"norm\d?\.weight\Z|layernorm"), "norm"),
    (re.compile(r"(shared_expert_gate|eh_proj|mtp\.fc|weights_proj)\.weight\Z"), "plain"),
    (re.compile(r"\.experts\.\d+\."), "expert"),
)
_SHARD = {shard: fused for fused, shards in FUSED.items() for shard in shards}


@dataclass(frozen=True)
class Matrix:
    """One tensor of two or more dimensions.

    name: with .weight. kind: as in the tables, or "vision". packed: how the files hold it. slime: its online quantiser
    would pack it. sglang: the engine holds it packed, None when that is not sure. library: compressed-tensors packs it.
    """

    name: str
    kind: str
    packed: bool
    slime: bool
    sglang: bool | None
    library: bool

    @property
    def module(self) -> str:
        """Return the name of the module that owns it."""
        return self.name.removesuffix(".weight")


@dataclass(frozen=True)
class Plan:
    """A checkpoint with its quantisation. quant: None when config.json has none. known: the family has a table."""

    checkpoint: Checkpoint
    weights: Mapping[str, Weight]
    quant: QuantConfig | None
    matrices: tuple[Matrix, ...]
    known: bool

    @property
    def whole(self) -> bool:
        """Return whether every file is there with a readable header, so that what is not found is not there.

        Costs a pass over the index.
        """
        folder = self.checkpoint.folder
        return not (folder.absent or folder.gaps) and all(one.readable for one in self.checkpoint.headers.values())

    @property
    def quantised(self) -> bool:
        """Return whether config.json or the files say so."""
        return self.quant is not None or any(matrix.packed for matrix in self.matrices)

    def of(self, *kinds: str) -> tuple[Matrix, ...]:
        """Return the matrices of these kinds."""
        return tuple(matrix for matrix in self.matrices if matrix.kind in kinds)


def open_plan(evidence: Evidence, report: Progress) -> Plan | Finding:
    """Read the checkpoint of the evidence and decide for every matrix; or say why there is none to judge."""
    checkpoint = open_checkpoint(evidence, report)
    if isinstance(checkpoint, Finding):
        return checkpoint
    weights = weights_of(checkpoint)
    comparison = compare(checkpoint.config, weights)
    params = comparison.expected.params if comparison.expected else {}
    quant = read_quant(checkpoint.config) if checkpoint.config else None
    kinds = {name: params[name].kind if name in params else kind_of(name) for name in weights}
    matrices = tuple(
        _matrix(name, kinds[name], weight, quant)
        for name, weight in weights.items()
        if name.endswith(".weight") and _dimensions(weight, kinds[name]) >= 2
    )
    return Plan(checkpoint, weights, quant, matrices, bool(comparison.family))


def kind_of(name: str) -> str:
    """Return the kind of a tensor by its name alone."""
    if OPEN.match(name) and not name.startswith(("mtp", "model.mtp")):
        return "vision"
    return next((kind for pattern, kind in _BY_NAME if pattern.search(name)), "linear")


def _dimensions(weight: Weight, kind: str) -> int:
    """Return how many dimensions a tensor has; 0 when its values are not there, 1 or 2 by its kind when unknown."""
    if "weight" not in weight.parts and not weight.packed:
        return 0
    if weight.packed:
        return 2
    shape = weight.shape
    return len(shape) if shape is not None else (1 if kind in ("norm", "bias", "state") else 2)


def _matrix(name: str, kind: str, weight: Weight, quant: QuantConfig | None) -> Matrix:
    if quant is None or quant.kind != "compressed-tensors":
        return Matrix(name, kind, weight.packed, slime=False, sglang=None, library=False)
    ignore, module = quant.ignore, name.removesuffix(".weight")
    classes = ("Linear", "Module") if kind not in ("embedding", "router", "conv", "norm") else ("Module",)
    targets = tuple(target for group in quant.groups for target in group.targets)
    targeted = "Linear" in targets or any(_targets(target, module) for target in targets)
    return Matrix(
        name,
        kind,
        weight.packed,
        slime=slime_packs(name, 2, ignore),
        sglang=_engine_packs(module, kind, ignore) if targeted else False,
        library=targeted and "Linear" in classes and not library_ignores(module, ignore, classes),
    )


def _targets(target: str, module: str) -> bool:
    if target.startswith("re:"):
        pattern = compiled(target[3:])
        return pattern is not None and pattern.match(module) is not None
    return target == module


def _engine_packs(module: str, kind: str, ignore: Sequence[str]) -> bool | None:
    """Return whether SGLang holds a module packed.

    None when that is not sure: shards of a fused module disagree, or the fused name fares differently from its shards
    (not every model class tells SGLang how it fuses).
    """
    if kind not in LOADED_PACKED:
        return False
    if kind == "expert":
        return _experts_packed(module.split(".experts.", maxsplit=1)[0] + ".experts", tuple(ignore))
    head, _, last = module.rpartition(".")
    built = f"{head}.{_SHARD.get(last, last)}"
    ignored = {sglang_ignores(built, ignore), sglang_ignores(built, ignore, {})}
    return not ignored.pop() if len(ignored) == 1 and None not in ignored else None


@lru_cache(maxsize=4096)
def _experts_packed(experts: str, ignore: tuple[str, ...]) -> bool | None:
    """Return whether SGLang holds the experts of a layer packed, as it asks for the first one's projections."""
    ignored = {sglang_ignores(f"{experts}.0.{part}", ignore) for part in ("gate_proj", "up_proj", "down_proj")}
    return not ignored.pop() if len(ignored) == 1 and None not in ignored else None


def in_prediction_layer(plan: Plan, name: str) -> bool:
    """Return whether a tensor belongs to an MTP layer, which only a draft model loads."""
    if name.startswith(("mtp.", "model.mtp")):
        return True
    match = LAYER.match(name)
    layers = plan.checkpoint.config.text.get("num_hidden_layers") if plan.checkpoint.config else None
    return bool(match and isinstance(layers, int) and int(match["layer"]) >= layers)
