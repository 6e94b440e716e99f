"""Tests of the family tables: they name what transformers itself writes, and follow config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.families import FOLDER, load_table, parse, tables
from probes.families.expand import MAX_NAMES, evaluate, expand, holds, mixer_kind, mlp_kind
from probes.readers.hf_config import HfConfig
from tests.probes.tiny_checkpoints import LINEAR, MLA, MOE, config_of, needed

WRITTEN: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "hf" / "transformers_names.json").read_text()
)
"""config.json and shapes that transformers 5.24 wrote of a tiny model of each family (save_pretrained)."""

KINDS = {"linear", "expert", "router", "plain", "embedding", "head", "norm", "bias", "conv", "state", "fused"}


def hf(config: dict[str, Any]) -> HfConfig:
    """Return a config as the reader gives it."""
    return HfConfig("config.json", config, config)


@pytest.mark.parametrize("family", WRITTEN)
def test_a_table_names_exactly_what_transformers_writes(family: str) -> None:
    """Every tensor written is in the table with its shape, and every tensor that the table needs was written."""
    config, shapes = WRITTEN[family]["config"], {name: tuple(size) for name, size in WRITTEN[family]["tensors"].items()}
    expected = expand(tables()[config["model_type"]], hf(config), shapes)
    assert expected is not None
    assert {name: expected.params[name].shape for name in shapes} == shapes
    assert {name for name, param in expected.params.items() if not param.optional} <= set(shapes)


@pytest.mark.parametrize("name", sorted(path.name for path in Path(FOLDER).glob("*.yaml")))
def test_a_table_is_well_formed(name: str) -> None:
    """Kinds are known, matrices have two dimensions or more, and every dimension can be computed from a real config."""
    table = load_table(str(Path(FOLDER) / name))
    assert table.family == name.removesuffix(".yaml")
    specs = [*table.outer, *(one for part in table.sections.values() for one in part)]
    specs += [one for form in table.experts for one in form]
    specs += [*table.mtp.outer, *table.mtp.layers] if table.mtp else []
    for spec in specs:
        assert spec.kind in KINDS
        assert (len(spec.dims) >= 2) == (
            spec.kind in {"linear", "expert", "router", "plain", "embedding", "head", "conv", "fused"}
        )


def test_every_family_of_slime_has_a_table() -> None:
    """The model types that slime's HF loader knows (hf_to_megatron/__init__.py) are all described."""
    slime = {
        *(
            "deepseek_v3",
            "deepseek_v32",
            "glm4",
            "glm4_moe",
            "glm4_moe_lite",
            "glm_moe_dsa",
            "kimi_k2",
            "llama",
            "mimo",
        ),
        *("minimax_m2", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_5", "qwen3_5_moe"),
    }
    assert slime <= set(tables())


def test_the_tied_head_is_not_needed() -> None:
    """lm_head is needed when config.json unties it, and not when it ties it or does not say."""
    assert "lm_head.weight" in needed(config_of("qwen3"))
    assert "lm_head.weight" not in needed(config_of("qwen3", tie_word_embeddings=True))
    assert "lm_head.weight" not in needed({key: value for key, value in config_of("qwen3").items() if "tie" not in key})


def test_the_large_models_have_their_numbers() -> None:
    """Layers, dense layers and experts of the published models (slime's scripts/models) give their counts."""
    kimi = needed(config_of("kimi_k2", **{**MLA, "num_hidden_layers": 61, "n_routed_experts": 384}))
    assert sum(".experts." in name for name in kimi) == 60 * 384 * 3
    assert "model.layers.0.mlp.gate_proj.weight" in kimi
    assert "model.layers.1.mlp.gate.weight" in kimi
    moonlight = needed(config_of("deepseek_v3", **{**MLA, "q_lora_rank": None}))
    assert moonlight["model.layers.0.self_attn.q_proj.weight"][1] == (4 * 24, 64)
    assert not any("q_a_proj" in name for name in moonlight)
    full = needed(config_of("qwen3_next", **MOE, **LINEAR, num_hidden_layers=8))
    assert {name.split(".")[2] for name in full if ".self_attn." in name} == {"3", "7"}


@pytest.mark.parametrize(
    ("family", "more", "prefix", "name"),
    [
        ("deepseek_v3", MLA, "model.layers.4.", "eh_proj.weight"),
        ("glm4_moe", {**MOE, "n_routed_experts": 4}, "model.layers.4.", "shared_head.norm.weight"),
        ("mimo", {}, "model.mtp_layers.0.", "input_proj.weight"),
        ("qwen3_next", {**MOE, **LINEAR}, "mtp.layers.0.", "self_attn.q_norm.weight"),
    ],
)
def test_a_prediction_layer_is_needed_whole_or_not_at_all(
    family: str, more: dict[str, Any], prefix: str, name: str
) -> None:
    """No MTP tensor is asked for unless one is there; then the rest of its layer is."""
    config = config_of(family, **more, num_nextn_predict_layers=1)
    without = expand(tables()[family], hf(config), frozenset())
    within = expand(tables()[family], hf(config), {prefix + "input_layernorm.weight"})
    assert without is not None
    assert within is not None
    assert not any(one.startswith(prefix) for one in without.params)
    assert not within.params[prefix + name].optional


def test_the_language_model_of_a_multimodal_checkpoint_is_found_by_its_prefix() -> None:
    """Names follow where the layers are: under model.language_model or language_model.model, with their lm_head."""
    config = hf(config_of("deepseek_v3", **MLA))
    expected = expand(tables()["deepseek_v3"], config, {"language_model.model.layers.0.input_layernorm.weight"})
    assert expected is not None
    assert "language_model.lm_head.weight" in expected.params
    assert "language_model.model.layers.3.mlp.gate.weight" in expected.params


@pytest.mark.parametrize(
    ("rule", "values", "kinds"),
    [
        ("first-dense", {"experts": 4, "first_dense": 2}, "ddmm"),
        ("first-dense", {"experts": 4, "first_dense": 0, "moe_layer_freq": 2}, "mdmd"),
        ("sparse-step", {"experts": 4, "mlp_only_layers": [0]}, "dmmm"),
        ("sparse-step", {"experts": 4, "decoder_sparse_step": 2}, "dmdm"),
        ("sparse-step", {"experts": 0}, "dddd"),
        ("moe", {}, "mmmm"),
        ("first-dense", {"experts": 4, "mlp_layer_types": ["dense", "sparse", "sparse", "dense"]}, "dmmd"),
    ],
)
def test_the_kind_of_each_layer_follows_the_config(rule: str, values: dict[str, Any], kinds: str) -> None:
    """Dense and MoE layers are those that transformers builds from the same fields."""
    assert "".join(mlp_kind(rule, layer, values)[0] for layer in range(4)) == kinds


def test_attention_kinds_follow_the_list_or_the_interval() -> None:
    """layer_types wins over the interval, whose default is four."""
    assert [mixer_kind(layer, {}) for layer in range(4)] == ["linear", "linear", "linear", "full"]
    assert mixer_kind(0, {"layer_types": ["full_attention"]}) == "full"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("3", 3),
        ("a*b", 6),
        ("2*a+b", 7),
        ("b/a", None),
        ("12/a", 6),
        ("a/zero", None),
        ("missing*a", None),
        ("flag", None),
    ],
)
def test_expressions_are_sums_of_products(expression: str, value: int | None) -> None:
    """An unknown field, a division with rest or by zero and a truth value make the whole unknown."""
    assert evaluate(expression, {"a": 2, "b": 3, "zero": 0, "flag": True}) == value


def test_conditions_that_config_does_not_decide_are_unknown() -> None:
    """A false part decides, an absent one leaves it open."""
    assert holds("a and not b", {"a": 1, "b": 0}) is True
    assert holds("a and b", {"a": 0}) is False
    assert holds("not b", {}) is None
    assert holds("q", {"q": None}) is False


def test_a_line_of_a_table_is_parsed() -> None:
    """Kind, dimensions, question mark and condition are those written."""
    spec = parse("x.weight", "bias? a*b if c and d")
    assert (spec.kind, spec.dims, spec.optional, spec.condition) == ("bias", ("a*b",), True, "c and d")


@given(
    st.dictionaries(
        st.sampled_from(["num_hidden_layers", "num_experts", "hidden_size", "mlp_only_layers", "decoder_sparse_step"]),
        st.integers(-5, 10**12) | st.text(max_size=3) | st.lists(st.integers(0, 3), max_size=3) | st.none(),
    )
)
def test_a_hostile_config_is_bounded(more: dict[str, Any]) -> None:
    """Absurd numbers give no more names than the bound, or none at all."""
    expected = expand(tables()["qwen3_moe"], hf(config_of("qwen3_moe", **MOE) | more), frozenset())
    assert expected is None or len(expected.params) <= MAX_NAMES + 20_000
