"""Tensors that an update sent as they were before, while their peers had been trained.

A small step leaves some values where they were, and an expert that saw no token stays as it is; so a tensor is only
called stale when nearly every block of rows of nearly every other matrix changed and not one of its own did.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from probes.weights_fingerprint import Print
from probes.weights_places import Judged

BLOCKS = 8
"""Fewest blocks of rows that a matrix must have to be judged."""
CHANGED = 0.9
"""Share of blocks that must have changed in the middle of all changed matrices."""
MOVED = 0.67
"""Share of matrices that must have changed at all."""


def unchanged(judged: Sequence[Judged], prints: Mapping[int, Print], before: Mapping[str, Print]) -> list[int]:
    """Return the positions in `judged` of the matrices that are as they were in `before` while the rest changed.

    Experts are left out unless everything in their layer is unchanged as well.
    """
    shares: dict[int, float] = {}
    for number, each in enumerate(judged):
        own, old = prints.get(number), before.get(each.sent.name)
        if own is None or old is None or own.shape != old.shape or own.matrix[0] < 2 or own.dtype != old.dtype:
            continue
        count = len(own.blocks) // 8
        if count < BLOCKS or len(own.blocks) != len(old.blocks):
            continue
        differ = sum(own.blocks[at : at + 8] != old.blocks[at : at + 8] for at in range(0, len(own.blocks), 8))
        shares[number] = differ / count
    plain = {number: share for number, share in shares.items() if judged[number].place.expert is None}
    moving = [share for share in plain.values() if share > 0]
    if len(moving) < BLOCKS or len(moving) < MOVED * len(plain) or statistics.median(moving) < CHANGED:
        return []
    kinds = {judged[number].place.kind for number, share in plain.items() if share > 0}
    still = [number for number, share in plain.items() if share == 0]
    frozen = {judged[number].place.kind for number in still} - kinds
    stale = [
        number for number in still if judged[number].place.kind not in frozen or judged[number].place.layer is None
    ]
    layers = {judged[number].place.layer for number in stale}
    whole = {
        layer
        for layer in layers
        if layer is not None and all(shares[number] == 0 for number in shares if judged[number].place.layer == layer)
    }
    more = [
        number
        for number, share in shares.items()
        if share == 0 and judged[number].place.expert is not None and judged[number].place.layer in whole
    ]
    return sorted(stale + more)
