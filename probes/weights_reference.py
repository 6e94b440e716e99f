"""The checkpoint as what load_weights ought to be given: names, places in the model, fingerprints on demand.

Fused experts of a checkpoint (`experts.gate_up_proj` of shape [experts, 2 × size, hidden]) are sent one by one
(slime's megatron_to_hf/qwen3_5.py), so they stand here under the names they are sent by as well. A fingerprint is
computed when it is first asked for and then kept; a comparison without faults reads every tensor once and keeps some
500 bytes of it.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from probes.hf_checkpoint import PACKED_PARTS, SIDE_PARTS, Checkpoint
from probes.hf_names import EXPERT, LAYER, OPEN, TOLERATED
from probes.readers.hf_config import HfConfig
from probes.readers.hf_config import field as config_field
from probes.readers.received_weights import Line, Sent
from probes.readers.safetensors_header import BITS, Entry
from probes.recorder.slime_runbook_recorder.fingerprint import block_rows, matrix, places
from probes.weights_fingerprint import ITEM, SHORT, Print, Stats, Stored, fingerprint

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FUSED = re.compile(r"(?P<head>.*\.experts)\.(?P<part>gate_up_proj|down_proj)\Z")


_HASH = re.compile(r"[0-9a-f]{16}")
_LARGEST = 1 << 40
"""Size of a dimension beyond which a recording is not believed."""


@dataclass(frozen=True)
class Address:
    """A name's place in the model.

    stack: what stands before the number of the layer, "" outside the layers. layer, expert: numbers, None where there
    is none. kind: the name with "#" for both numbers, the same for all peers.
    """

    stack: str
    layer: int | None
    expert: int | None
    kind: str


def address(name: str) -> Address:
    """Return where a tensor belongs, by its name alone."""
    found = LAYER.match(name)
    if found is None:
        return Address("", None, None, name)
    rest, expert = found["rest"], None
    inner = EXPERT.match(rest)
    if inner is not None:
        expert, rest = int(inner["expert"]), f"{inner['before']}.#.{inner['after']}"
    return Address(found["stack"], int(found["layer"]), expert, f"{found['stack']}.#.{rest}")


@dataclass
class Reference:
    """The tensors of a checkpoint by name, and their fingerprints as far as they were asked for."""

    path: str
    config: HfConfig | None
    stored: dict[str, Stored]
    fused: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _prints: dict[str, Print] = field(default_factory=dict)
    _peers: dict[tuple[str, tuple[int, ...]], tuple[str, ...]] = field(default_factory=dict)
    _beside: dict[tuple[str, int | None, int | None], list[str]] = field(default_factory=dict)
    _tables: dict[tuple[str, tuple[int, ...]], NDArray[Any]] = field(default_factory=dict)

    def print_of(self, name: str) -> Print:
        """Return the fingerprint of a tensor of the checkpoint. Raises OSError, EOFError, KeyError."""
        if name not in self._prints:
            self._prints[name] = fingerprint(self.stored[name])
        return self._prints[name]

    def peers(self, kind: str, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Return the names of one kind and shape."""
        if not self._peers:
            groups: dict[tuple[str, tuple[int, ...]], list[str]] = defaultdict(list)
            for name, stored in self.stored.items():
                groups[address(name).kind, stored.shape].append(name)
            self._peers = {key: tuple(names) for key, names in groups.items()}
        return self._peers.get((kind, shape), ())

    def beside(self, name: str) -> list[str]:
        """Return the other names of the same layer and expert, such as q, k and v."""
        if not self._beside:
            for other in self.stored:
                at = address(other)
                self._beside.setdefault((at.stack, at.layer, at.expert), []).append(other)
        place = address(name)
        return [other for other in self._beside.get((place.stack, place.layer, place.expert), ()) if other != name]

    def samples(self, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the samples of all peers as a matrix, one row each, in the order of `peers`."""
        import numpy as np

        key = (kind, shape)
        if key not in self._tables:
            rows = [self.print_of(name).values for name in self.peers(kind, shape)]
            self._tables[key] = np.array(rows) if rows else np.zeros((0, 0))
        return self._tables[key]

    @property
    def layers(self) -> int | None:
        """Return how many layers config.json says, None when it does not."""
        found = config_field(self.config, "num_layers") if self.config is not None else None
        return found.value if found is not None and isinstance(found.value, int) else None

    @property
    def tied(self) -> bool:
        """Return whether lm_head shares the embedding's weight."""
        found = config_field(self.config, "tied") if self.config is not None else None
        return found is not None and found.value is True

    def number(self, name: str) -> int | None:
        """Return a whole number of config.json by our name for it."""
        found = config_field(self.config, name) if self.config is not None else None
        return found.value if found is not None and type(found.value) is int else None


def reference_of(checkpoint: Checkpoint) -> Reference:
    """Return the tensors of a checkpoint whose bytes are there; a shard that is cut off has fewer."""
    stored: dict[str, Stored] = {}
    fused: dict[str, tuple[str, ...]] = {}
    reference = Reference(checkpoint.path, checkpoint.config, stored, fused)
    for file, header in checkpoint.headers.items():
        path = os.path.join(checkpoint.path, file)
        for name, entry in header.tensors.items():
            if _whole(entry, header.size - header.data):
                stored[name] = Stored(path, header.data + entry.data_offsets[0], entry.dtype, entry.shape)
    hidden = reference.number("hidden_size")
    for name in [name for name in stored if _FUSED.match(name)]:
        parts = dict(_split(name, stored[name], hidden))
        stored.update(parts)
        if parts:
            fused[name] = tuple(parts)
    return reference


def _whole(entry: Entry, room: int) -> bool:
    start, end = entry.data_offsets
    bits = BITS.get(entry.dtype, 0)
    return 0 <= start <= end <= room and bits >= 8 and prod(entry.shape) * bits == (end - start) * 8


def _split(name: str, stored: Stored, hidden: int | None) -> list[tuple[str, Stored]]:
    """Return the single experts' tensors inside a fused one, if its layout is the one with rows of output features."""
    match = _FUSED.match(name)
    if match is None or len(stored.shape) != 3:
        return []
    experts, rows, columns = stored.shape
    item = ITEM.get(stored.dtype, 1)
    if match["part"] == "down_proj":
        names: tuple[str, ...] = ("down_proj",)
        height = rows
        if hidden is not None and rows != hidden:
            return []
    else:
        names, height = ("gate_proj", "up_proj"), rows // 2
        if rows % 2 or (hidden is not None and columns != hidden):
            return []
    found = []
    for expert in range(experts):
        for place, part in enumerate(names):
            offset = stored.offset + (expert * rows + place * height) * columns * item
            full = f"{match['head']}.{expert}.{part}.weight"
            found.append((full, Stored(stored.path, offset, stored.dtype, (height, columns))))
    return found


def print_of_sent(sent: Sent) -> Print | None:
    """Return the fingerprint of what was sent; None when only its name is known, or its fingerprint is damaged.

    Raises OSError, EOFError, KeyError.
    """
    dtype = SHORT.get(sent.dtype, sent.dtype)
    stored = Stored(sent.file, sent.start, dtype, sent.shape) if sent.start >= 0 else None
    if sent.line is not None:
        return _recorded(sent.line, sent.shape, dtype, stored)
    return fingerprint(stored) if stored is not None else None


def _recorded(line: Line, shape: tuple[int, ...], dtype: str, stored: Stored | None) -> Print | None:
    """Return the fingerprint that a recording holds, if all of its parts are as they must be."""
    import numpy as np

    if not all(0 <= size < _LARGEST for size in shape) or not all(_HASH.fullmatch(x) for x in (line.hash, line.rows)):
        return None
    rows, columns = matrix(shape)
    blocks = -(-rows // block_rows(rows)) if columns else 0
    sample = [np.nan if value is None else value for value in line.sample]
    if len(sample) != len(places(rows, columns)) or not re.fullmatch(rf"[0-9a-f]{{{16 * blocks}}}", line.blocks):
        return None
    return Print(
        dtype,
        shape,
        int(line.hash, 16),
        int(line.rows, 16),
        bytes.fromhex(line.blocks),
        np.array(sample, np.float64).tobytes(),
        Stats(line.min or 0.0, line.max or 0.0, line.mean or 0.0, line.zeros, line.nonfinite),
        stored,
    )


def missing(reference: Reference, came: set[str]) -> tuple[list[str], list[str]]:
    """Return the names of the checkpoint that never came: those that are needed, and those that may stay away.

    May stay away: lm_head of tied embeddings, tables that loaders recompute, prediction layers and the parts outside
    the language model when none of them was sent, the parts of a quantised tensor when its plain weight came.
    """
    spare: set[str] = set()
    for whole, parts in reference.fused.items():
        spare.update(parts if whole in came else (whole,))
    absent = [name for name in reference.stored if name not in came and name not in spare]
    count = reference.layers
    sent_parts = {part for name in came if (part := _apart(name, count))}
    needed, free = [], []
    for name in absent:
        part = _apart(name, count)
        head, _, last = name.rpartition(".")
        plain = PACKED_PARTS.get(last) or SIDE_PARTS.get(last)
        if (
            TOLERATED.search(name)
            or (reference.tied and name.endswith("lm_head.weight"))
            or (part and part not in sent_parts)
            or (plain is not None and f"{head}.{plain}" in came)
        ):
            free.append(name)
        else:
            needed.append(name)
    return needed, free


def _apart(name: str, layers: int | None) -> str:
    """Return which separable part of the model a name belongs to, "" for the language model proper."""
    outer = OPEN.match(name)
    if outer is not None:
        return outer[0]
    place = address(name)
    if layers is not None and place.layer is not None and place.layer >= layers:
        return f"{place.stack}.{place.layer}"
    return ""


def unknown_names(reference: Reference, came: set[str]) -> list[str]:
    """Return names that came and that the checkpoint does not have, apart from those that may come all the same."""
    return sorted(
        name
        for name in came
        if name not in reference.stored
        and not TOLERATED.search(name)
        and not name.endswith("lm_head.weight")
        and name.rpartition(".")[2] not in SIDE_PARTS
        and name.rpartition(".")[2] not in PACKED_PARTS
    )
