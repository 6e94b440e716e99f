"""Whether the architecture that Megatron is told agrees with the checkpoint's config.json.

Megatron does not read config.json: MODEL_ARGS describe the model a second time. slime asserts some of the fields
(_hf_validate_args in slime/backends/megatron_utils/arguments.py: layers, hidden size, heads, FFN, rotary base,
tied embeddings, norm epsilon); groups, vocabulary, experts, top-k, biases and q/k norms it does not. Only flags
that are given are compared; a switch counts as absent only when the whole model command line is known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from probes.readers.hf_config import Field, HfConfig, field, read_config
from probes.settings import Given, Settings, given, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

_NUMBERS = (
    ("num-layers", "num_layers"),
    ("hidden-size", "hidden_size"),
    ("num-attention-heads", "heads"),
    ("num-query-groups", "kv_groups"),
    ("kv-channels", "head_dim"),
    ("ffn-hidden-size", "ffn"),
    ("rotary-base", "rope_theta"),
    ("vocab-size", "vocab"),
    ("num-experts", "experts"),
    ("moe-router-topk", "topk"),
    ("moe-ffn-hidden-size", "moe_ffn"),
    ("moe-shared-expert-intermediate-size", "shared_ffn"),
    ("norm-epsilon", "norm_eps"),
    ("q-lora-rank", "q_lora_rank"),
    ("kv-lora-rank", "kv_lora_rank"),
    ("mtp-num-layers", "mtp"),
)
_QK_NORM = {"qwen3": True, "qwen3_moe": True, "qwen2": False, "qwen2_moe": False, "llama": False}
_QKV_BIAS = {"qwen2": True, "qwen2_moe": True}
"""Families whose modelling code in transformers fixes these, whatever the configuration says."""


@dataclass(frozen=True)
class _Pair:
    """One field on both sides, each as it is written. default: the launch script's side rests on a default."""

    flag: str
    launch: str
    config: str
    agree: bool
    citations: tuple[Citation, ...]
    default: bool = False


@probe(
    "launch.model_args",
    needs=("launch|log", "hf_checkpoint"),
    answers=("match", "mismatch"),
    en="Do MODEL_ARGS agree with the checkpoint's config.json?",
    zh="MODEL_ARGS 与检查点的 config.json 一致吗？",
)
def model_args(evidence: Evidence, report: Progress) -> Finding:
    """Compare field by field; every difference cites both lines."""
    del report
    settings = read_settings(evidence)
    config = next((one for path in evidence.paths("hf_checkpoint") if (one := read_config(path)) is not None), None)
    pairs = list(_compare(settings, config)) if config is not None else []
    if not pairs or config is None:
        return unknown(
            "The script gives no model arguments (its model script is not at hand), or there is no config.json.",
            "脚本没有给出模型参数（模型脚本不在手边），或没有 config.json。",
            settle_en="put the sourced scripts/models/*.sh beside the script, or attach a log with the arguments table",
            settle_zh="把被 source 的 scripts/models/*.sh 放到启动脚本旁边，或附上含参数表的日志",
            slots=("launch", "log", "hf_checkpoint"),
        )
    wrong = [pair for pair in pairs if not pair.agree]
    table = Table(
        Text("MODEL_ARGS and config.json", "MODEL_ARGS 与 config.json"),
        ("flag", "launch", "config.json", ""),
        tuple(
            (pair.flag, sanitise(pair.launch, 40), sanitise(pair.config, 40), "=" if pair.agree else "DIFFERS")
            for pair in pairs
        ),
    )
    if not wrong:
        return found(
            Verdict.OK,
            "match",
            f"All {len(pairs)} model arguments that are given agree with config.json ({config.model_type}).",
            f"给出的 {len(pairs)} 个模型参数都与 config.json 一致（{config.model_type}）。",
            citations=pairs[0].citations,
            tables=(table,),
        )
    words = "; ".join(f"{pair.flag}: {pair.launch}, config.json: {pair.config}" for pair in wrong[:4])
    only_defaults = all(pair.default for pair in wrong)
    hint = (
        " The value is the default of an environment variable, which the caller may have set." if only_defaults else ""
    )
    hint_zh = "该值来自环境变量的默认值，调用者可能另有设置。" if only_defaults else ""
    return found(
        Verdict.WARNING if only_defaults else Verdict.PROBLEM,
        "mismatch",
        f"{len(wrong)} model argument(s) disagree with config.json: {words}.{hint}",
        f"{len(wrong)} 个模型参数与 config.json 不一致：{words}。{hint_zh}",
        citations=tuple(citation for pair in wrong for citation in pair.citations),
        tables=(table,),
    )


def _compare(settings: Settings, config: HfConfig) -> Iterator[_Pair]:
    for flag, name in _NUMBERS:
        one, other = given(settings, flag, _row(settings, flag)), field(config, name)
        if one is None or other is None or not one.sure or _skip(settings, config, name):
            continue
        left, right = _number(one.value), _number(other.value)
        if (
            left is None or right is None or (name == "mtp" and left < right)
        ):  # fewer MTP layers may be trained than there are
            continue
        yield _Pair(
            f"--{flag}", one.shown, str(other.value), left == right, (one.citation, other.citation), one.default
        )
    yield from _dense_layers(settings, config)
    yield from _switches(settings, config)


def _row(settings: Settings, flag: str) -> str:
    """Return the flag's row in the arguments table; Megatron renamed one of them."""
    name = flag.replace("-", "_")
    if name == "norm_epsilon" and settings.table is not None and name not in settings.table.rows:
        return "layernorm_epsilon"
    return name


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _skip(settings: Settings, config: HfConfig, name: str) -> bool:
    latent = field(config, "kv_lora_rank") is not None
    if name == "kv_groups" and switched(settings, "group-query-attention", of_model=True)[0] is not True:
        return True  # Megatron ignores the number without the switch, and its table shows 1 then
    if name in ("kv_groups", "head_dim") and latent:  # multi-head latent attention has its own head sizes
        return True
    if name == "ffn" and field(config, "experts") is not None:  # unused when no layer is dense; slime skips it then too
        frequency = given(settings, "moe-layer-freq")
        return frequency is None or "0" not in re.findall(r"\b\d+\b", frequency.shown)
    return False


def _pattern(text: str) -> list[int] | None:
    """Return the layer pattern of --moe-layer-freq, such as `[0]*3+[1]*58`; None for any other form."""
    if (
        re.fullmatch(r"\s*\[[01,\s]*\](?:\s*\*\s*\d{1,4})?(?:\s*\+\s*\[[01,\s]*\](?:\s*\*\s*\d{1,4})?)*\s*", text)
        is None
    ):
        return None
    layers: list[int] = []
    for inner, times in re.findall(r"(\[[01,\s]*\])(?:\s*\*\s*(\d{1,4}))?", text):
        try:
            layers += ast.literal_eval(inner) * int(times or 1)
        except (SyntaxError, ValueError):
            return None
    return layers


def _dense_layers(settings: Settings, config: HfConfig) -> Iterator[_Pair]:
    frequency, dense = given(settings, "moe-layer-freq"), field(config, "first_dense")
    if frequency is None or frequency.value is None or dense is None or not frequency.sure:
        return
    layers = _pattern(frequency.value)
    count = _number(dense.value)
    if layers is None or count is None or 1 not in layers:
        return
    first = layers.index(1)
    yield _Pair(
        "--moe-layer-freq",
        f"first {first} layers dense",
        f"first_k_dense_replace {int(count)}",
        first == count,
        (frequency.citation, dense.citation),
        frequency.default,
    )


def _switches(settings: Settings, config: HfConfig) -> Iterator[_Pair]:
    anchor = given(settings, "num-layers")
    tied = field(config, "tied")
    bias = field(config, "attention_bias")
    if tied is not None and isinstance(tied.value, bool):
        yield from _switch(settings, "untie-embeddings-and-output-weights", not tied.value, tied, anchor)
    if config.model_type in _QK_NORM:
        yield from _switch(settings, "qk-layernorm", _QK_NORM[config.model_type], _type(config), anchor)
    unbiased, _ = switched(settings, "disable-bias-linear", "add_bias_linear", of_model=True)
    if settings.table is not None and "add_bias_linear" in settings.table.rows:
        unbiased = settings.table.value("add_bias_linear") == "False"
    if not unbiased:
        return
    if config.model_type in _QKV_BIAS or (
        config.model_type in ("qwen3", "qwen3_moe", "glm4", "glm4_moe", "llama")
        and bias is not None
        and isinstance(bias.value, bool)
    ):
        want = _QKV_BIAS.get(config.model_type, bool(bias.value) if bias is not None else False)
        yield from _switch(settings, "add-qkv-bias", want, bias or _type(config), anchor)


def _type(config: HfConfig) -> Field:
    from probes.readers.hf_config import cite_key

    return Field(config.model_type, "model_type", cite_key(config.path, config.data, "model_type", config.model_type))


def _switch(settings: Settings, flag: str, want: bool, other: Field, anchor: Given | None) -> Iterator[_Pair]:
    on, line = switched(settings, flag, of_model=True)
    if on is None or anchor is None:
        return
    proof = line or anchor
    yield _Pair(
        f"--{flag}",
        "given" if on else "not given",
        f"{other.key} {other.value}",
        on == want,
        (proof.citation, other.citation),
        bool(line and line.default),
    )
