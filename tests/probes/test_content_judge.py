"""Which zeros, constants and non-finite numbers are faults, and which a healthy checkpoint may have."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest

from probes.content_judge import Mark, judge
from probes.content_scan import here, pieces_of, scan
from probes.content_state import State
from probes.hf_checkpoint import open_checkpoint
from probes.readers.tensor_scan import BLOCK
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import evidence_of
from tests.probes.tiny_models import QWEN3, QWEN3_MOE, Tensor, bf16, tensors_of, write_checkpoint

INF, NAN = b"\x80\x7f", b"\xc0\xff"
ROUTER = "model.layers.2.mlp.gate.weight"
EXPERT = "model.layers.1.mlp.experts.3.down_proj.weight"
O_PROJ = "model.layers.1.self_attn.o_proj.weight"


def marks(folder: Path, config: dict[str, object], *changes: dict[str, Tensor]) -> list[Mark]:
    """Return the marks of a checkpoint of this configuration with some tensors changed or added."""
    tensors = tensors_of(config)
    for change in changes:
        tensors |= change
    checkpoint = open_checkpoint(evidence_of(("hf_checkpoint", write_checkpoint(folder, config, tensors))), silent)
    assert not isinstance(checkpoint, Finding)
    return judge(checkpoint, scan(checkpoint, pieces_of(checkpoint), here, silent, State()).looked)


def words(found: list[Mark]) -> list[tuple[str, bool, str]]:
    """Return fault, sureness and name of each mark."""
    return [(mark.fault, mark.sure, mark.name) for mark in found]


def filled(config: dict[str, object], name: str, pattern: bytes) -> dict[str, Tensor]:
    """Return a tensor of the model with every value the same pattern."""
    _, shape, _ = tensors_of(config)[name]
    return {name: ("BF16", shape, pattern * prod(shape))}


def put(config: dict[str, object], name: str, place: int, pattern: bytes) -> dict[str, Tensor]:
    """Return a tensor of the model with one value replaced."""
    _, shape, data = tensors_of(config)[name]
    return {name: ("BF16", shape, data[: 2 * place] + pattern + data[2 * place + 2 :])}


def packed(name: str, word: bytes, scale: bytes = b"\x00\x3c", point: bytes | None = None) -> dict[str, Tensor]:
    """Return the entries of an INT4 weight of 16×128 whose words and scales are all the same."""
    made: dict[str, Tensor] = {
        f"{name}_packed": ("I32", (16, 16), word * 256),
        f"{name}_scale": ("BF16", (16, 4), scale * 64),
        f"{name}_shape": ("I32", (2,), b"\x10\0\0\0\x80\0\0\0"),
    }
    if point is not None:
        made[f"{name}_zero_point"] = ("I32", (2, 32), point * 64)
    return made


@pytest.mark.parametrize("config", [QWEN3, QWEN3_MOE], ids=["qwen3", "qwen3_moe"])
def test_a_healthy_model_has_no_marks(tmp_path: Path, config: dict[str, object]) -> None:
    """Random weights are not remarkable, nor norms that are all 1."""
    ones = filled(config, "model.norm.weight", b"\x80\x3f")
    assert marks(tmp_path, config, ones) == []


@pytest.mark.parametrize(
    "name",
    [ROUTER, EXPERT, O_PROJ, "model.embed_tokens.weight", "lm_head.weight", "model.layers.3.input_layernorm.weight"],
)
@pytest.mark.parametrize("pattern", [b"\0\0", b"\0\x80"], ids=["zero", "minus-zero"])
def test_weights_that_must_not_be_zero(tmp_path: Path, name: str, pattern: bytes) -> None:
    """Each is sure by itself, -0 included, with its place in the file."""
    found = marks(tmp_path, QWEN3_MOE, filled(QWEN3_MOE, name, pattern))
    assert words(found) == [("zero", True, name)]
    citation = found[0].citation
    assert citation.offset is not None
    assert Path(citation.path).read_bytes()[citation.offset :][:2] == pattern
    assert name in citation.excerpt


def test_biases_and_corrections_may_be_zero(tmp_path: Path) -> None:
    """A fresh bias, a router's correction bias, LoRA's B and a value head begin at zero."""
    zero: Tensor = ("BF16", (16,), b"\0" * 32)
    names = (
        "model.layers.0.self_attn.q_proj.bias", "model.layers.0.mlp.gate.e_score_correction_bias",
        "model.layers.0.self_attn.q_proj.lora_B.weight", "score.weight", "model.layers.0.self_attn.k_scale",
    )  # fmt: skip
    assert marks(tmp_path, QWEN3_MOE, dict.fromkeys(names, zero)) == []


@pytest.mark.parametrize(
    "name",
    ["mtp.layers.0.self_attn.o_proj.weight", "visual.blocks.0.attn.proj.weight", "model.layers.0.mlp.new.weight"],
)
def test_what_may_have_been_left_at_zero_is_doubtful(tmp_path: Path, name: str) -> None:
    """Prediction layers, vision towers and what no table knows are shown, not accused."""
    assert words(marks(tmp_path, QWEN3, {name: ("BF16", (8, 8), b"\0" * 128)})) == [("zero", False, name)]


def test_a_tied_lm_head_is_not_used(tmp_path: Path) -> None:
    """When embeddings are tied, an lm_head of zeros in the files is doubtful only."""
    config = {**QWEN3, "tie_word_embeddings": True}
    assert words(marks(tmp_path, config, {"lm_head.weight": ("BF16", (64, 16), b"\0" * 2048)})) == [
        ("zero", False, "lm_head.weight")
    ]


def test_norms_of_one_plus_weight_may_be_zero(tmp_path: Path) -> None:
    """A model type without a table may have Gemma's norms, so its norm at zero is no fault; its o_proj is one."""
    config = {**QWEN3, "model_type": "gemma9"}
    tensors = tensors_of(QWEN3)
    norm, proj = "model.norm.weight", O_PROJ
    tensors |= {name: ("BF16", tensors[name][1], b"\0" * len(tensors[name][2])) for name in (norm, proj)}
    checkpoint = open_checkpoint(evidence_of(("hf_checkpoint", write_checkpoint(tmp_path, config, tensors))), silent)
    assert not isinstance(checkpoint, Finding)
    found = judge(checkpoint, scan(checkpoint, pieces_of(checkpoint), here, silent, State()).looked)
    assert words(found) == [("zero", True, proj)]


def test_an_inserted_identity_block_is_doubtful(tmp_path: Path) -> None:
    """Block expansion zeroes exactly o_proj and down_proj of a layer; one of them alone, or more, is a fault."""
    down = "model.layers.1.mlp.down_proj.weight"
    both = marks(tmp_path / "a", QWEN3, filled(QWEN3, O_PROJ, b"\0\0"), filled(QWEN3, down, b"\0\0"))
    assert {(mark.fault, mark.sure) for mark in both} == {("zero", False)}
    one = marks(tmp_path / "b", QWEN3, filled(QWEN3, down, b"\0\0"))
    assert words(one) == [("zero", True, down)]


@pytest.mark.parametrize(("pattern", "told"), [(INF, "1 Inf"), (b"\x80\xff", "1 Inf"), (NAN, "1 NaN")])
def test_one_value_that_is_not_finite(tmp_path: Path, pattern: bytes, told: str) -> None:
    """One NaN, Inf or -Inf is enough, and its index is told."""
    found = marks(tmp_path, QWEN3_MOE, put(QWEN3_MOE, O_PROJ, 37, pattern))
    assert words(found) == [("nonfinite", True, O_PROJ)]
    assert told in found[0].words.en
    assert "index 37" in found[0].words.en


def test_minus_infinity_in_a_correction_bias_switches_an_expert_off(tmp_path: Path) -> None:
    """Inf outside weights and scales may be meant; NaN never is."""
    name = "model.layers.0.mlp.gate.e_score_correction_bias"
    assert words(marks(tmp_path / "a", QWEN3_MOE, {name: ("BF16", (2,), b"\0\0\x80\xff")})) == [
        ("nonfinite", False, name)
    ]
    assert words(marks(tmp_path / "b", QWEN3_MOE, {name: ("BF16", (2,), b"\0\0" + NAN)})) == [("nonfinite", True, name)]


def test_packed_weights_are_judged_through_their_scales(tmp_path: Path) -> None:
    """Scales of zero make a weight zero, a scale of NaN spoils it; words of any kind alone are healthy."""
    without = {name: tensor for name, tensor in tensors_of(QWEN3_MOE).items() if name != EXPERT}
    good = packed(EXPERT, b"\x12\x34\x56\x78") | {f"{EXPERT}_packed": ("I32", (16, 16), bf16(512))}
    zero_scale: dict[str, Tensor] = good | {f"{EXPERT}_scale": ("BF16", (16, 4), b"\0" * 128)}
    nan_scale: dict[str, Tensor] = good | {f"{EXPERT}_scale": ("BF16", (16, 4), NAN * 64)}
    for number, (entries, expected) in enumerate(
        [(good, []), (zero_scale, [("zero", True, EXPERT)]), (nan_scale, [("nonfinite", True, EXPERT)])]
    ):
        folder = write_checkpoint(tmp_path / str(number), QWEN3_MOE, without | entries)
        checkpoint = open_checkpoint(evidence_of(("hf_checkpoint", folder)), silent)
        assert not isinstance(checkpoint, Finding)
        found = judge(checkpoint, scan(checkpoint, pieces_of(checkpoint), here, silent, State()).looked)
        assert words(found) == expected


@pytest.mark.parametrize(
    ("word", "point", "expected"),
    [
        (b"\x88\x88\x88\x88", None, [("zero", True)]),
        (b"\x80\x80\x80\x80", None, [("zero", True)]),
        (b"\x00\x00\x00\x00", None, [("zero", True)]),
        (b"\x77\x77\x77\x77", None, [("constant", False)]),
        (b"\x33\x33\x33\x33", b"\x33\x33\x33\x33", [("zero", True)]),
        (b"\x33\x33\x33\x33", b"\x44\x44\x44\x44", [("constant", False)]),
        (b"\x00\x00\x00\x00", b"\x44\x44\x44\x44", [("constant", False)]),
    ],
)
def test_packed_words_that_are_all_equal(
    tmp_path: Path, word: bytes, point: bytes | None, expected: list[tuple[str, bool]]
) -> None:
    """Symmetric values are stored with half their range added, so 0x88888888 is zero; else the zero point tells."""
    found = marks(tmp_path, QWEN3_MOE, packed(EXPERT, word, point=point))
    assert [(mark.fault, mark.sure) for mark in found] == expected


def test_a_weight_of_one_value_is_doubtful(tmp_path: Path) -> None:
    """A projection of equal numbers carries nothing, but no rule says that it may not be."""
    assert words(marks(tmp_path, QWEN3, filled(QWEN3, O_PROJ, b"\x80\x3c"))) == [("constant", False, O_PROJ)]


def test_a_weight_that_was_not_written_to_its_end(tmp_path: Path) -> None:
    """Whole blocks of zeros within a projection are told, with their bytes; in an embedding they may be padding."""
    names = ("model.layers.0.self_attn.o_proj.weight", "model.embed_tokens.weight")
    half: Tensor = ("BF16", (1024, 512), bf16(64) * 4096 + bytes(2 * BLOCK))
    found = marks(tmp_path, QWEN3, dict.fromkeys(names, half))
    assert words(found) == [("hollow", False, "model.layers.0.self_attn.o_proj.weight")]


def test_copies_are_told_but_not_those_that_are_meant(tmp_path: Path) -> None:
    """Two layers with the same projection are remarkable; lm_head as a copy of the embedding is not."""
    tensors = tensors_of(QWEN3)
    other = "model.layers.3.self_attn.o_proj.weight"
    copies = {other: tensors[O_PROJ], "lm_head.weight": tensors["model.embed_tokens.weight"]}
    found = marks(tmp_path, QWEN3, copies)
    assert [(mark.fault, mark.sure) for mark in found] == [("duplicate", False)]
    assert O_PROJ in found[0].words.en
    assert other in found[0].words.en


def test_what_is_sure_comes_first(tmp_path: Path) -> None:
    """NaN before zeros, and both before what is doubtful."""
    found = marks(
        tmp_path,
        QWEN3_MOE,
        filled(QWEN3_MOE, "model.layers.0.self_attn.q_proj.weight", b"\x80\x3c"),
        filled(QWEN3_MOE, ROUTER, b"\0\0"),
        put(QWEN3_MOE, O_PROJ, 3, NAN),
    )
    assert [(mark.fault, mark.sure) for mark in found] == [("nonfinite", True), ("zero", True), ("constant", False)]
