"""The quick look reads all routers and one layer of each kind, and everything of a small checkpoint."""

from __future__ import annotations

from probes import content_sample
from probes.content_sample import FIRST_EXPERTS, WHOLE_BYTES, choose
from probes.readers.tensor_scan import Piece

GIB = 1 << 30


def model(layers: int, dense: int, experts: int, size: int) -> dict[str, list[Piece]]:
    """Return the tensors of a mixture of experts, each of `size` bytes, in two files."""
    names = ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"]
    for layer in range(layers):
        names += [f"model.layers.{layer}.self_attn.o_proj.weight"]
        if layer < dense:
            names += [f"model.layers.{layer}.mlp.down_proj.weight"]
        else:
            names += [f"model.layers.{layer}.mlp.gate.weight", f"model.layers.{layer}.mlp.gate.e_score_correction_bias"]
            names += [f"model.layers.{layer}.mlp.experts.{expert}.w1.weight" for expert in range(experts)]
    pieces = [Piece(name, "BF16", number * size, (number + 1) * size) for number, name in enumerate(names)]
    return {"a": pieces[::2], "b": pieces[1::2]}


def chosen(pieces: dict[str, list[Piece]], limit: int = content_sample.SAMPLE_BYTES) -> set[str]:
    """Return the names in the sample."""
    return {piece.name for some in choose(pieces, limit).values() for piece in some}


def test_a_small_checkpoint_is_taken_whole() -> None:
    """Up to WHOLE_BYTES nothing is left out."""
    pieces = model(4, 1, 8, 1000)
    assert choose(pieces) == pieces


def test_a_large_one_by_kind() -> None:
    """Routers of every layer, the tensors outside, and the first dense, first MoE and last layer."""
    pieces = model(10, 2, 64, 40 << 20)
    assert sum(piece.end - piece.start for some in pieces.values() for piece in some) > WHOLE_BYTES
    names = chosen(pieces)
    assert {f"model.layers.{layer}.mlp.gate.weight" for layer in range(2, 10)} <= names
    assert {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"} <= names
    looked_into = {int(name.split(".")[2]) for name in names if "o_proj" in name}
    assert looked_into == {0, 2, 9}
    experts = {int(name.split(".")[5]) for name in names if ".experts." in name}
    assert experts == {*range(FIRST_EXPERTS), 63}


def test_a_dense_one_is_sampled_by_its_first_and_last_layer() -> None:
    """Without experts the first layer stands for the dense ones."""
    names = chosen(model(40, 40, 0, GIB))
    assert {int(name.split(".")[2]) for name in names if ".layers." in name} == {0, 39}


def test_the_sample_has_a_limit() -> None:
    """Routers come first; what does not fit is left out and smaller things behind it still count."""
    pieces = model(10, 2, 64, 40 << 20)
    names = chosen(pieces, limit=(40 << 20) * 9)
    assert len(names) == 9
    assert all(".gate." in name for name in names)


def test_pieces_stay_in_file_order() -> None:
    """A disk reads forwards."""
    for some in choose(model(10, 2, 64, 40 << 20)).values():
        assert [piece.start for piece in some] == sorted(piece.start for piece in some)
