"""Routed experts of a rollout dump that hold only zeros where SGLang never wrote them.

`rollout_routed_experts` is [tokens - 1, layers, top-k], filled layer by layer by the engine; under pipeline parallelism
a stage that does not report leaves its layers at zero (slime's routing replay then sends every token to expert 0).
Invariants: several experts of one token are distinct, so zeros in a layer with top-k above one are no routing. Dense
layers are zero rightly: a few first ones, or every n-th. So only a block of a quarter of the layers or more counts, at
one end and beside layers that are all routed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probes.readers.torch_tensors import shaped
from probes.thresholds.places import DENSE_FIRST, UNROUTED

MAX_SAMPLES = 16


@dataclass(frozen=True)
class Unrouted:
    """Layers [first, last] of `layers` that hold zeros in all `samples` looked at, of top-k `topk`."""

    first: int
    last: int
    layers: int
    topk: int
    samples: int


def unrouted(samples: list[dict[str, Any]]) -> Unrouted | None:
    """Return the block of layers without routed experts; None where all are routed, or nothing tells.

    Raises DumpError for a tensor outside its file.
    """
    import numpy as np

    routed: Any = None
    topk = seen = 0
    for sample in samples:
        value = sample.get("rollout_routed_experts")
        if value is None or seen >= MAX_SAMPLES:
            continue
        try:
            experts = shaped(value)
        except TypeError:
            continue
        if experts.ndim != 3 or experts.shape[0] < 2 or experts.shape[2] < 2:
            continue
        used = np.any(experts != 0, axis=(0, 2))
        if routed is not None and (len(used) != len(routed) or experts.shape[2] != topk):
            return None
        routed, topk, seen = used if routed is None else routed | used, experts.shape[2], seen + 1
    if routed is None or bool(routed.all()):
        return None
    return _block([bool(one) for one in routed], topk, seen)


def _block(routed: list[bool], topk: int, seen: int) -> Unrouted | None:
    count = len(routed)
    zeros = [layer for layer, one in enumerate(routed) if not one]
    first, last = zeros[0], zeros[-1]
    whole = len(zeros) == last - first + 1
    at_end = last == count - 1
    at_start = first == 0 and len(zeros) > DENSE_FIRST.value
    if whole and (at_end or at_start) and len(zeros) >= UNROUTED.value * count:
        return Unrouted(first, last, count, topk, seen)
    return None
