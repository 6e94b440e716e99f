"""Compares the tensors of a checkpoint with what its family must have, or, for an unknown family, with each other.

Invariants: a tensor that only some releases have is missed only where most layers of its kind have it; a prediction
(MTP) layer may be absent as a whole; what lies outside the language model (vision towers) is not judged. For an
unknown family only gaps that no architecture has by design are sure: a hole in the numbering of layers or experts,
and an expert with fewer tensors than its neighbours.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from probes.families import tables
from probes.families.expand import Expected, Param, expand
from probes.hf_checkpoint import Weight
from probes.readers.hf_config import HfConfig

TOLERATED = re.compile(
    r"(rotary_emb\.inv_freq|\.(k|v|q|kv|attn)_scale|\.(masked_)?bias_mask|\.attn\.(masked_)?bias|position_ids)\Z"
)
"""Names that are neither needed nor wrong in any family: tables that loaders recompute, scales of the KV cache."""

OPEN = re.compile(
    r"(model\.)?(visual|vision_tower|vision_model|vision_embed|vision|mm_projector|multi_modal_projector|audio_tower|audio|talker"
    r"|code2wav|mtp|mtp_layers|token2wav)[._]"
)
"""Beginnings of names outside the language model proper, which are not judged."""

LAYER = re.compile(r"(?P<stack>(?:.*?\.)?(?:layers|h|blocks|mtp_layers))\.(?P<layer>\d{1,6})\.(?P<rest>.+)\Z")
EXPERT = re.compile(r"(?P<before>(?:.*?\.)?experts)\.(?P<expert>\d{1,6})\.(?P<after>.+)\Z")


@dataclass(frozen=True)
class Misshapen:
    """A tensor whose shape is not the one that config.json asks for; None is a dimension it does not tell."""

    name: str
    wanted: tuple[int | None, ...]
    found: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """The result. family: "" when unknown. missing: names, sure to be needed. odd: names that peers have, not sure."""

    family: str
    missing: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    misshapen: tuple[Misshapen, ...] = ()
    expected: Expected | None = None


def compare(config: HfConfig | None, weights: Mapping[str, Weight]) -> Comparison:
    """Compare by the family of `config` when there is a table for it, else by peers."""
    table = tables().get(config.model_type) if config is not None else None
    expected = expand(table, config, weights) if table is not None and config is not None else None
    if expected is None:
        return _by_peers(weights)
    return Comparison(
        expected.family,
        missing=tuple(_missing(expected.params, weights)),
        extra=tuple(name for name in weights if name not in expected.params and not _tolerated(name)),
        misshapen=tuple(_misshapen(expected.params, weights)),
        expected=expected,
    )


def _tolerated(name: str) -> bool:
    return TOLERATED.search(name) is not None or OPEN.match(name) is not None


def _missing(params: Mapping[str, Param], weights: Mapping[str, Weight]) -> Iterator[str]:
    """Yield the names that are needed, and optional ones that most of their kind have."""
    optional: dict[int, list[str]] = defaultdict(list)
    have: Counter[int] = Counter()
    for name, param in params.items():
        if name in weights:
            if param.optional:
                have[id(param)] += 1
        elif param.optional:
            optional[id(param)].append(name)
        else:
            yield name
    for key, names in optional.items():
        if have[key] > len(names):
            yield from names


def _misshapen(params: Mapping[str, Param], weights: Mapping[str, Weight]) -> Iterator[Misshapen]:
    for name, param in params.items():
        weight = weights.get(name)
        shape = weight.shape if weight is not None else None
        if shape is None or shape == param.shape:
            continue
        wanted = param.shape
        if param.kind == "fused" and None not in wanted:  # releases differ in the order of the axes
            if sorted(shape) == sorted(size for size in wanted if size is not None):
                continue
        elif len(shape) == len(wanted) and all(want in (None, size) for want, size in zip(wanted, shape, strict=True)):
            continue
        yield Misshapen(name, wanted, shape)


def _by_peers(weights: Mapping[str, Weight]) -> Comparison:
    """Compare layers with layers and experts with experts."""
    layers: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    experts: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name in weights:
        match = EXPERT.match(name)
        if match:
            experts[match["before"]][int(match["expert"])].add(match["after"])
        match = LAYER.match(name)
        if match and not OPEN.match(name):
            rest = EXPERT.sub(r"\g<before>.*.\g<after>", match["rest"])
            layers[match["stack"]][int(match["layer"])].add(rest)
    missing = [name for before, members in experts.items() for name in _uneven_experts(before, members)]
    missing += _experts_of_layers(experts)
    missing += [f"{stack}.{layer}.*" for stack, members in layers.items() for layer in _holes(members)]
    odd = [name for stack, members in layers.items() for name in _odd_layers(stack, members)]
    return Comparison("", tuple(dict.fromkeys(missing)), tuple(odd))


def _holes(members: Collection[int]) -> list[int]:
    """Return the numbers between 0 and the largest that are not there; none when most are not."""
    absent = [number for number in range(max(members, default=-1) + 1) if number not in members]
    return absent if len(absent) * 2 < len(members) else []


def _uneven_experts(before: str, members: Mapping[int, set[str]]) -> Iterator[str]:
    """Yield what one expert lacks and most others of its layer have, and the experts that the numbering lacks."""
    counts = Counter(part for parts in members.values() for part in parts)
    usual = [part for part, count in counts.items() if count * 2 > len(members)]
    for expert, parts in sorted(members.items()):
        yield from (f"{before}.{expert}.{part}" for part in usual if part not in parts)
    for expert in _holes(members):
        yield from (f"{before}.{expert}.{part}" for part in usual)


def _experts_of_layers(experts: Mapping[str, Mapping[int, set[str]]]) -> list[str]:
    """Return the experts that a layer lacks at its end and all other layers have."""
    sizes = Counter(len(members) for members in experts.values())
    if len(experts) < 3 or not sizes:
        return []
    usual, often = sizes.most_common(1)[0]
    return [
        f"{before}.{expert}.*"
        for before, members in experts.items()
        for expert in range(len(members), usual)
        if often == len(experts) - 1 and len(members) < usual
    ]


def _odd_layers(stack: str, members: Mapping[int, set[str]]) -> Iterator[str]:
    """Yield what a single layer lacks whose other names are those of three or more peers."""
    signatures = Counter(frozenset(parts) for parts in members.values())
    for layer, parts in sorted(members.items()):
        own = frozenset(parts)
        peers = [one for one, count in signatures.items() if count >= 3 and own < one and len(own) * 2 >= len(one)]
        if signatures[own] == 1 and peers:
            nearest = min(peers, key=len)
            yield from (f"{stack}.{layer}.{part}" for part in sorted(nearest - own))
