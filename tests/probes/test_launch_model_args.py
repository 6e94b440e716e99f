"""MODEL_ARGS against config.json, field by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probes.launch_model_args import model_args
from runbook.finding import Finding
from tests.probes.asking import word
from tests.probes.scripts import ask, ask_script, cited, script, table, write

DENSE: dict[str, Any] = {
    "model_type": "qwen3",
    "num_hidden_layers": 8,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 256,
    "rope_parameters": {"rope_theta": 10000.0},
    "tie_word_embeddings": False,
    "vocab_size": 1000,
    "rms_norm_eps": 1e-06,
    "attention_bias": False,
}
MOE: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 5,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "kv_lora_rank": 32,
    "intermediate_size": 256,
    "moe_intermediate_size": 64,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 2,
    "num_nextn_predict_layers": 1,
    "rope_theta": 10000,
    "tie_word_embeddings": False,
}
DENSE_ARGS = {
    "num-layers": "8",
    "hidden-size": "128",
    "num-attention-heads": "4",
    "group-query-attention": "",
    "num-query-groups": "2",
    "kv-channels": "32",
    "ffn-hidden-size": "256",
    "rotary-base": "10000",
    "untie-embeddings-and-output-weights": "",
    "vocab-size": "1000",
    "norm-epsilon": "1e-6",
    "qk-layernorm": "",
    "disable-bias-linear": "",
}
MOE_ARGS = {
    "num-layers": "5",
    "kv-channels": "99",
    "num-experts": "8",
    "moe-router-topk": "2",
    "moe-ffn-hidden-size": "64",
    "ffn-hidden-size": "256",
    "moe-layer-freq": "[0]*2+[1]*3",
    "untie-embeddings-and-output-weights": "",
    "kv-lora-rank": "32",
}


def asked(folder: Path, config: dict[str, Any], args: dict[str, str], **changes: str | None) -> Finding:
    """Ask with arguments, some of them changed (None: left out)."""
    given = {**args, **{name.replace("_", "-"): value for name, value in changes.items()}}
    model = folder / "model"
    write(model, "config.json", json.dumps(config, indent=2))
    flags = [f"--{name} {value}".strip() for name, value in given.items() if value is not None]
    return ask_script(model_args, folder, script(*flags), hf_checkpoint=str(model))


@pytest.mark.parametrize(("config", "args"), [(DENSE, DENSE_ARGS), (MOE, MOE_ARGS)])
def test_agreeing_arguments_match(tmp_path: Path, config: dict[str, Any], args: dict[str, str]) -> None:
    """Numbers compare as numbers, and latent attention has no key-value groups or head size to compare."""
    finding = asked(tmp_path, config, args)
    assert word(finding) == "ok:match"
    assert {row[3] for row in finding.tables[0].rows} == {"="}


@pytest.mark.parametrize(
    ("config", "args", "flag", "value", "proof"),
    [
        (DENSE, DENSE_ARGS, "num_layers", "7", ["--num-layers 7", '"num_hidden_layers": 8,']),
        (DENSE, DENSE_ARGS, "num_query_groups", "4", ["--num-query-groups 4", '"num_key_value_heads": 2,']),
        (DENSE, DENSE_ARGS, "rotary_base", "1000000", ["--rotary-base 1000000", '"rope_theta": 10000.0']),
        (DENSE, DENSE_ARGS, "vocab_size", "1024", ["--vocab-size 1024", '"vocab_size": 1000,']),
        (DENSE, DENSE_ARGS, "norm_epsilon", "1e-5", ["--norm-epsilon 1e-5", '"rms_norm_eps": 1e-06,']),
        (
            DENSE,
            DENSE_ARGS,
            "untie_embeddings_and_output_weights",
            None,
            ["--num-layers 8", '"tie_word_embeddings": false,'],
        ),
        (DENSE, DENSE_ARGS, "qk_layernorm", None, ["--num-layers 8", '"model_type": "qwen3",']),
        (DENSE, DENSE_ARGS, "add_qkv_bias", "", ["--add-qkv-bias", '"attention_bias": false']),
        (MOE, MOE_ARGS, "num_experts", "16", ["--num-experts 16", '"n_routed_experts": 8,']),
        (
            MOE,
            MOE_ARGS,
            "moe_layer_freq",
            "[0]*1+[1]*4",
            ["--moe-layer-freq [0]*1+[1]*4", '"first_k_dense_replace": 2,'],
        ),
    ],
)
def test_each_difference_cites_both_sides(
    tmp_path: Path, config: dict[str, Any], args: dict[str, str], flag: str, value: str | None, proof: list[str]
) -> None:
    """A wrong number, a missing or an extra switch is proven by the flag's line and config.json's."""
    finding = asked(tmp_path, config, args, **{flag: value})
    assert word(finding) == "problem:mismatch"
    assert cited(finding) == proof


def test_a_default_of_the_environment_only_warns(tmp_path: Path) -> None:
    """`${MODEL_ARGS_ROTARY_BASE:-…}` may be set by the caller, so it is no proof."""
    assert (
        word(asked(tmp_path, DENSE, DENSE_ARGS, rotary_base='"${MODEL_ARGS_ROTARY_BASE:-5000000}"'))
        == "warning:mismatch"
    )


def test_dense_ffn_is_not_compared_where_no_layer_is_dense(tmp_path: Path) -> None:
    """Slime skips it as well: the field has no meaning then."""
    config = {**MOE, "first_k_dense_replace": None}
    assert word(asked(tmp_path, config, MOE_ARGS, moe_layer_freq="[1]*5", ffn_hidden_size="9")) == "ok:match"


def test_fewer_mtp_layers_may_be_trained(tmp_path: Path) -> None:
    """Leaving MTP layers out is allowed; more than there are is not."""
    assert word(asked(tmp_path, {**MOE, "num_nextn_predict_layers": 2}, MOE_ARGS, mtp_num_layers="1")) == "ok:match"
    assert word(asked(tmp_path, MOE, MOE_ARGS, mtp_num_layers="2")) == "problem:mismatch"


def test_without_model_arguments_it_is_unknown(tmp_path: Path) -> None:
    """A script without its model script compares nothing."""
    assert word(asked(tmp_path, DENSE, {})) == "unknown"


def test_the_table_is_what_applied(tmp_path: Path) -> None:
    """A table row is compared and cited; the unused group count of a table is not."""
    model = tmp_path / "model"
    write(model, "config.json", json.dumps({**DENSE, "num_key_value_heads": 4}, indent=2))
    rows = {"num_layers": 7, "hidden_size": 128, "num_query_groups": 1, "group_query_attention": False}
    log = write(tmp_path, "job.log", table(**rows, untie_embeddings_and_output_weights=True, qk_layernorm=True))
    finding = ask(model_args, log=log, hf_checkpoint=str(model))
    assert word(finding) == "problem:mismatch"
    assert [line.split()[0] for line in cited(finding)] == ["num_layers", '"num_hidden_layers":']
