"""Chooses which tensors of a large checkpoint a quick look reads.

What goes wrong in a conversion goes wrong by kind of tensor or by layer, so one of each tells most: the routers of all
layers, the embedding and lm_head, the first dense layer, the first MoE layer and the last layer, of whose experts the
first few and the last. Names alone decide, so that an unknown family is sampled too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from probes.hf_names import EXPERT, LAYER
from probes.readers.tensor_scan import Piece

WHOLE_BYTES = 20_000_000_000
"""Bytes of a checkpoint that is read whole: a minute on ordinary shared storage."""
SAMPLE_BYTES = 8_000_000_000
FIRST_EXPERTS = 3

_ROUTER = re.compile(r"\.(?:gate|router)(?:\.\w+)?\.(?:weight|weight_packed|weight_scale|e_score_correction_bias)\Z")
_OUTSIDE = re.compile(r"(?:embed_tokens|word_embeddings|lm_head|norm)\.weight\Z")


def choose(pieces: Mapping[str, Iterable[Piece]], limit: int = SAMPLE_BYTES) -> dict[str, list[Piece]]:
    """Return some of the pieces by file, at most `limit` bytes of them; all of them when they fit WHOLE_BYTES."""
    every = [(file, piece) for file, some in pieces.items() for piece in some]
    if sum(piece.end - piece.start for _, piece in every) <= WHOLE_BYTES:
        return {file: list(some) for file, some in pieces.items()}
    layers = _layers(piece.name for _, piece in every)
    ranked = sorted(
        (
            (rank, piece.end - piece.start, file, piece)
            for file, piece in every
            if (rank := _rank(piece.name, layers)) >= 0
        ),
        key=lambda entry: entry[:2],
    )
    chosen: dict[str, list[Piece]] = {}
    for _, size, file, piece in ranked:
        if size <= limit:
            limit -= size
            chosen.setdefault(file, []).append(piece)
    return {file: sorted(some, key=lambda piece: piece.start) for file, some in chosen.items()}


class _Layers:
    """Which layers are looked into, and the last expert of the model."""

    def __init__(self, numbers: set[int], moe: set[int], last_expert: int) -> None:
        dense = numbers - moe
        self.chosen = {
            *([min(dense)] if dense else []),
            *([min(moe)] if moe else []),
            *([max(numbers)] if numbers else []),
        }
        self.experts = {*range(FIRST_EXPERTS), last_expert}


def _layers(names: Iterable[str]) -> _Layers:
    numbers: set[int] = set()
    moe: set[int] = set()
    last_expert = 0
    for name in names:
        layer, expert = LAYER.match(name), EXPERT.match(name)
        if layer:
            numbers.add(int(layer["layer"]))
            if ".experts" in name:
                moe.add(int(layer["layer"]))
        if expert:
            last_expert = max(last_expert, int(expert["expert"]))
    return _Layers(numbers, moe, last_expert)


def _rank(name: str, layers: _Layers) -> int:
    """Return in which turn a tensor is read, -1 for never."""
    layer, expert = LAYER.match(name), EXPERT.match(name)
    if _ROUTER.search(name):
        return 0
    if layer is None:
        return 2 if _OUTSIDE.search(name) else -1
    if int(layer["layer"]) not in layers.chosen:
        return -1
    if expert is None:
        return 1
    return 3 if int(expert["expert"]) in layers.experts else -1
