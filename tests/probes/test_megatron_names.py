"""A torch_dist checkpoint of another model is told by what differs, one that lost layers by what it lacks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from probes.megatron_expected import layers_of, outer_of
from probes.megatron_names import Difference, compare, names
from probes.readers.torch_dist import TRACKER, Stored
from probes.readers.torch_dist_names import sort_keys
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.readers.pickles import DATA
from tests.probes.test_megatron_expected import DEEPSEEK, QWEN3_NEXT, expected
from tests.probes.tiny_models import QWEN3, QWEN3_MOE

ITERATION = "iter_0000000"
REAL = {
    **QWEN3, "num_hidden_layers": 8, "hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 32, "intermediate_size": 256, "vocab_size": 1000,
}  # fmt: skip
"""The model of the checkpoint in the test data, which Megatron wrote on two stages."""

FC1, FC2 = "mlp.linear_fc1.weight", "mlp.linear_fc2.weight"
EXPERT_FC1 = "mlp.experts.experts.linear_fc1.weight"
QKV = "self_attention.linear_qkv.weight"
HEAD = "output_layer.weight"


def ask(folder: Path, config: dict[str, object], slot: str = "megatron_load", **checkpoint: Path) -> Finding:
    """Run the probe with a config.json of this content; its citations must be true."""
    model = folder / "hf"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(config, indent=1))
    pairs = checkpoint or {slot: folder / "ckpt"}
    finding = names.run(evidence_of(("hf_checkpoint", model), *pairs.items()), silent)
    check_citations(finding)
    assert finding.answer is None or finding.answer in names.answers
    return finding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the real checkpoint in it; its data files are not needed."""
    shutil.copytree(DATA / "ckpt", tmp_path / "ckpt")
    return tmp_path


def stored(config: dict[str, object], *, numbered: bool = False) -> dict[str, Stored]:
    """Return the keys that Megatron writes for a model: stacked, or layer by layer as with different layers."""
    model = expected(config)
    keys = {one.names[0]: Stored(known(one.shape), "bf16") for one in outer_of(model) if one.sure}
    for layer, wanted in layers_of(model).items():
        for one in wanted:
            if one.sure and numbered:
                keys[f"decoder.layers.{layer}.{one.names[0]}"] = Stored(known(one.shape), "bf16")
            elif one.sure:
                keys[f"decoder.layers.{one.names[0]}"] = Stored((model.layers, *known(one.shape)), "bf16")
    return keys


def known(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """Return a shape of which every dimension is known."""
    return tuple(size for size in shape if size is not None)


def differences(keys: dict[str, Stored], config: dict[str, object]) -> list[Difference]:
    """Return what differs."""
    return list(compare(sort_keys(keys), expected(config), tied=config.get("tie_word_embeddings") is True))


def test_the_real_checkpoint_matches_its_model(folder: Path) -> None:
    """Eleven parameters, the vocabulary padded from 1000 to 1024 rows, in either slot."""
    for slot in ("megatron_load", "megatron_ref"):
        finding = ask(folder, REAL, slot)
        assert word(finding) == "ok:match"
        assert finding.measurements[0].value == 11


@pytest.mark.parametrize(
    ("field", "value", "key"),
    [
        ("num_hidden_layers", 6, "decoder.layers"),
        ("num_hidden_layers", 9, "decoder.layers"),
        ("num_attention_heads", 8, QKV),
        ("num_key_value_heads", 4, QKV),
        ("head_dim", 64, QKV),
        ("intermediate_size", 512, FC1),
        ("hidden_size", 256, "layer_norm_weight"),
        ("model_type", "qwen2", "self_attention.linear_qkv.bias"),
        ("model_type", "qwen3_moe", "mlp.router.weight"),
    ],
)
def test_another_model_differs(folder: Path, field: str, value: object, key: str) -> None:
    """Each field of config.json that shapes a parameter is told by that parameter."""
    config = {**REAL, "num_experts": 4, "moe_intermediate_size": 64, field: value}
    finding = ask(folder, config)
    assert word(finding) == "problem:differs"
    assert any(key in row[0] for row in finding.tables[0].rows)
    assert finding.citations[-1].line is not None


@pytest.mark.parametrize(
    ("change", "key"),
    [({"vocab_size": 1025}, "word_embeddings"), ({"tie_word_embeddings": True}, HEAD), ({"vocab_size": 1023}, "")],
)
def test_vocabulary_and_ties_are_doubtful(folder: Path, change: dict[str, object], key: str) -> None:
    """Fewer rows than the vocabulary, or an output layer beside tied embeddings, is a warning; padding is nothing."""
    finding = ask(folder, {**REAL, **change})
    assert word(finding) == ("warning:differs" if key else "ok:match")
    assert key in finding.summary.en


@pytest.mark.parametrize(
    "config", [QWEN3, QWEN3_MOE, DEEPSEEK, QWEN3_NEXT], ids=lambda config: str(config["model_type"])
)
@pytest.mark.parametrize("numbered", [True, False], ids=["numbered", "stacked"])
def test_each_family_matches_itself(config: dict[str, object], numbered: bool) -> None:
    """What Megatron writes for a model has no differences; models whose layers differ are never stacked."""
    if not numbered and config in (DEEPSEEK, QWEN3_NEXT):
        config = {**config, "first_k_dense_replace": 0, "full_attention_interval": 1}
    assert differences(stored(config, numbered=numbered), config) == []


def test_optimizer_and_extra_state_are_not_judged() -> None:
    """Keys beside the model change nothing, nor do prediction layers or a prefix."""
    keys = {f"module.{key}": value for key, value in stored(QWEN3_MOE).items()}
    beside = ("optimizer.state.exp_avg.decoder.layers.x", "decoder.layers.mlp._extra_state/shard_0_4", "mtp.layers.0.x")
    assert differences(keys | dict.fromkeys(beside, Stored((3,), "")), QWEN3_MOE) == []


def test_a_lost_parameter_of_one_layer_is_missing() -> None:
    """What the other numbered layers have was lost."""
    keys = stored(DEEPSEEK, numbered=True)
    del keys[f"decoder.layers.2.{EXPERT_FC1}"]
    assert [(one.answer, one.key, one.sure) for one in differences(keys, DEEPSEEK)] == [
        ("missing", f"decoder.layers.2.{EXPERT_FC1}", True)
    ]


def test_a_lost_layer_is_missing_and_a_shorter_model_differs() -> None:
    """A gap in the numbers is a loss; layers missing at the end are another --num-layers."""
    keys = stored(DEEPSEEK, numbered=True)
    gap = differences({key: value for key, value in keys.items() if ".layers.1." not in key}, DEEPSEEK)
    assert {one.answer for one in gap} == {"missing"}
    assert all(".layers.1." in one.key for one in gap)
    end = differences({key: value for key, value in keys.items() if ".layers.2." not in key}, DEEPSEEK)
    assert [(one.answer, one.key, one.found) for one in end] == [("differs", "decoder.layers", "2 layers")]


def test_a_kind_that_no_layer_has_differs() -> None:
    """Without --qk-layernorm no layer has the norms: MODEL_ARGS, not a loss."""
    keys = {key: value for key, value in stored(QWEN3, numbered=True).items() if "q_layernorm" not in key}
    found = differences(keys, QWEN3)
    assert [(one.answer, one.found) for one in found] == [("differs", "in no layer")]
    assert "self_attention.q_layernorm.weight" in found[0].key


def test_an_output_layer_that_is_not_there_differs() -> None:
    """An untied model without one was converted with tied embeddings."""
    keys = stored(QWEN3)
    del keys[HEAD]
    assert [(one.answer, one.key, one.sure) for one in differences(keys, QWEN3)] == [("differs", HEAD, True)]


def test_other_forms_of_the_same_parameter_match() -> None:
    """Norms outside their linear, a swiglu in halves, experts transposed and a critic's value head are the same."""
    keys = stored(QWEN3_MOE)
    keys["decoder.layers.input_layernorm.weight"] = keys.pop(
        "decoder.layers.self_attention.linear_qkv.layer_norm_weight"
    )
    keys[f"decoder.layers.{EXPERT_FC1}"] = Stored((4, 4, 16, 32), "bf16")
    keys[HEAD] = Stored((1, 16), "fp32")
    assert differences(keys, QWEN3_MOE) == []
    dense = stored(QWEN3)
    del dense[f"decoder.layers.{FC1}"]
    dense |= {f"decoder.layers.{FC1}_{half}": Stored((4, 32, 16), "bf16") for half in "wv"}
    assert differences(dense, QWEN3) == []


def test_a_parameter_that_the_family_does_not_have_is_doubtful() -> None:
    """Biases of the MLP come from a forgotten --disable-bias-linear."""
    keys = stored(QWEN3) | {"decoder.layers.mlp.linear_fc2.bias": Stored((4, 16), "bf16")}
    found = differences(keys, QWEN3)
    assert [(one.answer, one.sure) for one in found] == [("differs", False)]
    assert "--disable-bias-linear" in found[0].wanted


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_what_torch_writes_is_read(tmp_path: Path) -> None:
    """A checkpoint that torch's own writer made, layer by layer, matches, and without one tensor it does not."""
    import torch
    import torch.distributed.checkpoint as dcp

    for name, lost in (("whole", ""), ("lost", f"decoder.layers.1.{EXPERT_FC1}")):
        state = {key: torch.zeros(one.shape) for key, one in stored(QWEN3_MOE, numbered=True).items() if key != lost}
        dcp.save(state, checkpoint_id=str(tmp_path / name / ITERATION), no_dist=True)
        (tmp_path / name / TRACKER).write_text("0")
    assert word(ask(tmp_path, QWEN3_MOE, megatron_load=tmp_path / "whole")) == "ok:match"
    finding = ask(tmp_path, QWEN3_MOE, megatron_load=tmp_path / "lost")
    assert word(finding) == "problem:missing"
    assert f"decoder.layers.1.{EXPERT_FC1}" in finding.citations[0].excerpt


def test_the_iteration_folder_itself_is_judged_too(folder: Path) -> None:
    """Which iteration is loaded is another question than what is in it."""
    assert word(ask(folder, REAL, megatron_ref=folder / "ckpt" / ITERATION)) == "ok:match"
    (folder / "ckpt" / TRACKER).unlink()
    assert word(ask(folder, REAL)) == "ok:match"


def test_a_fault_in_either_folder_counts(folder: Path) -> None:
    """Of two folders the wrong one is told, by its argument."""
    (folder / "empty").mkdir()
    config = {**REAL, "num_hidden_layers": 4}
    finding = ask(folder, config, megatron_load=folder / "empty", megatron_ref=folder / "ckpt")
    assert word(finding) == "problem:differs"
    assert finding.summary.en.startswith("--ref-load")


def test_what_cannot_be_compared_is_not_applicable(tmp_path: Path) -> None:
    """The older layout, Hugging Face folders, empty ones, absent iterations and mere files."""
    (tmp_path / "old" / ITERATION / "mp_rank_00").mkdir(parents=True)
    (tmp_path / "old" / TRACKER).write_text("0")
    (tmp_path / "empty").mkdir()
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / TRACKER).write_text("7")
    (tmp_path / "file").touch()
    for name in ("old", "empty", "gone", "file", "hf"):
        finding = ask(tmp_path, REAL, megatron_load=tmp_path / name)
        assert word(finding) == "not_applicable", name
    assert "mp_rank" in ask(tmp_path, REAL, megatron_load=tmp_path / "old").summary.en


def test_what_cannot_be_read_or_known_is_unknown(folder: Path) -> None:
    """A family without a table, no number of layers, hostile metadata and foreign keys prove nothing."""
    assert word(ask(folder, {**REAL, "model_type": "gemma9"})) == "unknown"
    assert word(ask(folder, {"model_type": "qwen3"})) == "unknown"
    metadata = folder / "ckpt" / ITERATION / ".metadata"
    whole = metadata.read_bytes()
    metadata.write_bytes(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.")
    assert word(ask(folder, REAL)) == "unknown"
    metadata.write_bytes(whole.replace(b"decoder.layers", b"encoder.blocks"))
    assert word(ask(folder, REAL)) == "unknown"
