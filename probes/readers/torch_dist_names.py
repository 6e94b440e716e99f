"""Sorts the keys of a torch_dist checkpoint: which are the model's, of which layer, and under which name in it.

Key grammar (Megatron megatron/core/transformer/transformer_block.py, sharded_state_dict; measured with megatron-core
0.14): layers that are all alike are stacked, `decoder.layers.mlp.linear_fc1.weight` with the layers as first axis;
else each has its number, `decoder.layers.3.mlp.…`. Experts are stacked behind that, `…mlp.experts.experts.…`. A
swiglu may be split into `…linear_fc1.weight_w` and `_v` (`singleton_local_shards`). Optimizer state, extra state, RNG
and scheduler lie beside the model under names of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from probes.readers.torch_dist import Stored

_MODEL = re.compile(
    r"(?:(?:module|model|language_model)\.)*(?P<part>embedding|decoder|output_layer|mtp)\.(?P<rest>.+)\Z"
)
_LAYER = re.compile(r"layers\.(?:(?P<layer>\d{1,6})\.)?(?P<name>.+)\Z")

STACKED = -1
"""In place of a layer's number: the tensor holds all layers, along its first axis."""


@dataclass
class Named:
    """The model's tensors. layers: by name behind the layer, then by layer number or STACKED. outer: all others.

    mtp: prediction layers are there. keys: the whole key of each, by (layer or None, name).
    """

    layers: dict[str, dict[int, Stored]] = field(default_factory=dict)
    outer: dict[str, Stored] = field(default_factory=dict)
    keys: dict[tuple[int | None, str], str] = field(default_factory=dict)
    mtp: bool = False

    @property
    def numbered(self) -> frozenset[int]:
        """Return the numbers of the layers that are stored one by one."""
        return frozenset(layer for found in self.layers.values() for layer in found if layer != STACKED)

    @property
    def stacked(self) -> dict[str, int]:
        """Return how many layers each stacked tensor holds, by key."""
        return {
            self.keys[STACKED, name]: found[STACKED].shape[0]
            for name, found in self.layers.items()
            if STACKED in found and found[STACKED].shape
        }


def sort_keys(tensors: Mapping[str, Stored]) -> Named:
    """Return the tensors of the language model among the keys of `.metadata`."""
    named = Named()
    for key, stored in tensors.items():
        match = _MODEL.match(key)
        if match is None or "_extra_state" in key:
            continue
        if match["part"] == "mtp":
            named.mtp = True
            continue
        layer = _LAYER.match(match["rest"]) if match["part"] == "decoder" else None
        if layer is None:
            name = f"{match['part']}.{match['rest']}"
            named.outer[name] = stored
            named.keys[None, name] = key
        else:
            number = int(layer["layer"]) if layer["layer"] is not None else STACKED
            named.layers.setdefault(layer["name"], {})[number] = stored
            named.keys[number, layer["name"]] = key
    return named
