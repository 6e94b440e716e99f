"""Faults that several tensors have together: q, k and v cut from one matrix the wrong way, gate and up exchanged.

The sum of row hashes is additive, so "the rows of q, k and v together are the right ones" is an exact statement that
needs no tensors. Whether it is the split that ignores the groups of grouped-query attention is then tested by doing
that wrong split on the checkpoint (Megatron's linear_qkv holds, group by group, the group's query heads, its key and
its value; slime/backends/megatron_utils/megatron_to_hf).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from probes.recorder.slime_runbook_recorder.fingerprint import MASK, places
from probes.weights_fingerprint import Print, values_at
from probes.weights_places import Judged
from probes.weights_reference import Reference
from probes.weights_relation import NEAR, SOUND, distance

FAMILIES = (
    ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"),
    ("self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"),
    ("mlp.gate_proj.weight", "mlp.up_proj.weight"),
)
"""Parameters that Megatron keeps in one matrix and the converter cuts apart."""


@dataclass(frozen=True)
class Mixed:
    """Parameters of one layer whose rows are the right ones in wrong places.

    how: "ungrouped" (the split that ignores the groups), "exchanged" (two of them changed places), or "rows".
    """

    layer: int
    names: tuple[str, ...]
    how: str


def mixed(judged: Sequence[Judged], prints: dict[int, Print], reference: Reference) -> list[Mixed]:
    """Return the layers in which parameters of one family hold each other's rows.

    prints: the fingerprint of each judged tensor by its position. Raises OSError.
    """
    layers: dict[tuple[str, str, int, int | None], dict[str, int]] = defaultdict(dict)
    for number, each in enumerate(judged):
        if each.place.layer is not None:
            key = (each.sent.source, each.place.stack, each.place.layer, each.place.expert)
            layers[key][each.sent.name] = number
    found = []
    for (_, _, layer, _), names in layers.items():
        for family in FAMILIES:
            tails = [part.split(".", 1)[1] for part in family] if family[0].startswith("mlp") else list(family)
            members = [next((name for name in names if name.endswith(f".{tail}")), None) for tail in tails]
            if any(name is None for name in members):
                continue
            full = [name for name in members if name is not None]
            wrong = [name for name in full if judged[names[name]].relation.kind not in SOUND | {"permuted"}]
            if len(wrong) < 2 or any(name not in reference.stored or names[name] not in prints for name in full):
                continue
            how = _how(full, wrong, {name: prints[names[name]] for name in full}, reference)
            if how is not None:
                found.append(Mixed(layer, tuple(wrong if how == "exchanged" else full), how))
    return found


def _how(full: list[str], wrong: list[str], prints: dict[str, Print], reference: Reference) -> str | None:
    """Return how the members of one family are mixed up, None when they are not."""
    own = {name: reference.print_of(name) for name in full}
    if any(own[name].shape != prints[name].shape for name in full):
        return None
    if len(wrong) == 2 and all(_is(prints[one], own[other]) for one, other in zip(wrong, reversed(wrong), strict=True)):
        return "exchanged"
    if len(full) == 3 and _ungrouped(full, [prints[name] for name in full], reference):
        return "ungrouped"
    same = sum(prints[name].rows for name in full) & MASK == sum(own[name].rows for name in full) & MASK
    return "rows" if same else None


def _is(received: Print, own: Print) -> bool:
    """Whether a received tensor is that one of the checkpoint, trained or not."""
    same = received.shape == own.shape
    return same and (received.hash == own.hash or distance(received.values, own.values, received.dtype) <= NEAR)


def _ungrouped(names: list[str], prints: list[Print], reference: Reference) -> bool:
    """Whether q, k and v are what a split of linear_qkv gives that takes no heed of its groups."""
    import numpy as np

    groups = reference.number("kv_groups")
    heights = [each.matrix[0] if len(each.shape) > 1 else each.shape[0] for each in prints]
    if not groups or any(height % groups for height in heights):
        return False
    share = [height // groups for height in heights]
    for number, each in enumerate(prints):
        flat = len(each.shape) == 1
        expected = []
        for row, column in places(*each.matrix):
            packed = sum(heights[:number]) + (column if flat else row)
            group, inside = divmod(packed, sum(share))
            part = 0 if inside < share[0] else 1 if inside < share[0] + share[1] else 2
            at = group * share[part] + inside - sum(share[:part])
            spot = (0, at) if flat else (at, column)
            expected += values_at(reference.stored[names[part]], (spot,))
        if not distance(each.values, np.array(expected), each.dtype) <= NEAR:
            return False
    return True
