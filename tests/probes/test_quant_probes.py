"""Tests of quant.kind, quant.config, quant.router and quant.nonlinear on generated checkpoints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from probes.quant_kind import kind
from probes.quant_nonlinear import nonlinear
from probes.quant_router import router
from probes.quant_rules import DEFAULT_IGNORE, slime_packs
from probes.quant_validity import config as validity
from runbook.finding import Finding
from runbook.probe import Probe, silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.tiny_checkpoints import (
    LINEAR,
    MLA,
    MOE,
    Shapes,
    config_of,
    needed,
    packed,
    quantised,
    shard_of,
    write_checkpoint,
)

DENSE = config_of("qwen3")
QWEN = config_of("qwen3_moe", **MOE)
EXPERT_RULES = [rule for rule in DEFAULT_IGNORE if "gate\\.*" not in rule]
"""slime's default rules without the one that protects the router."""


def ask(probe: Probe, folder: Path) -> Finding:
    """Run a probe of the checkpoint; its citations must be true and its answer declared."""
    finding = probe.run(evidence_of(("hf_checkpoint", folder)), silent)
    check_citations(finding)
    assert finding.answer is None or finding.answer in probe.answers
    return finding


def convert(
    folder: Path, config: dict[str, Any], ignore: Sequence[str], *, written: Sequence[str] | None = None
) -> Path:
    """Write a checkpoint as slime's INT4 tool converts it under these rules; config.json may say others."""
    shapes = needed(config)
    chosen = [name for name, (_, shape) in shapes.items() if len(shape) == 2 and slime_packs(name, 2, ignore)]
    said = ignore if written is None else written
    return write_checkpoint(folder, {**config, "quantization_config": quantised(said)}, packed(shapes, chosen))


def genuine(folder: Path, config: dict[str, Any], ignore: Sequence[str]) -> Path:
    """Write a checkpoint as compressed-tensors does: every Linear packed but lm_head, routers and embeddings plain."""
    shapes = needed(config)
    chosen = [name for name, (_, shape) in shapes.items() if len(shape) == 2 and "_proj." in name]
    return write_checkpoint(folder, {**config, "quantization_config": quantised(ignore)}, packed(shapes, chosen))


@pytest.mark.parametrize(
    ("config", "answer"), [(DENSE, "no-router"), (QWEN, "ignored"), (config_of("kimi_k2", **MLA), "ignored")]
)
def test_slimes_default_rules_are_well(tmp_path: Path, config: dict[str, Any], answer: str) -> None:
    """A conversion with the default rules is silent in all four probes."""
    folder = convert(tmp_path, config, DEFAULT_IGNORE)
    assert word(ask(kind, folder)) == "ok:compressed-tensors"
    assert word(ask(validity, folder)) == "ok:valid"
    assert word(ask(router, folder)) == f"ok:{answer}"
    assert word(ask(nonlinear, folder)) == "ok:covered"


def test_a_packed_router_names_the_line_to_change(tmp_path: Path) -> None:
    """The finding says which line of config.json to end with a comma, which line to add, and to convert again."""
    folder = convert(tmp_path, QWEN, EXPERT_RULES)
    finding = ask(router, folder)
    lines = (folder / "config.json").read_text().splitlines()
    number = next(place for place, line in enumerate(lines, 1) if "gate_up" in line)
    assert word(finding) == "problem:not-ignored"
    assert f"end line {number} with a comma" in finding.summary.en
    assert r'"re:.*mlp\\.gate\\..*"' in finding.summary.en
    assert "convert again" in finding.summary.en
    assert finding.tables[0].rows[-1][-1] == r'"re:.*mlp\\.gate\\..*"'
    assert word(ask(nonlinear, folder)) == "ok:covered"


def test_a_router_that_only_slime_would_pack_is_a_problem_too(tmp_path: Path) -> None:
    """`re:.*mlp.gate$` protects it in SGLang and the files are right; slime packs it at the first update."""
    folder = convert(tmp_path, QWEN, DEFAULT_IGNORE, written=[*EXPERT_RULES, "re:.*mlp.gate$"])
    finding = ask(router, folder)
    assert word(finding) == "problem:not-ignored"
    assert "though it does in SGLang" in finding.summary.en
    assert "files themselves are right" in finding.summary.en
    row = next(row for row in finding.tables[-1].rows if "gate$" in row[1])
    assert row[2:] == ("-", "covers", "covers")


@pytest.mark.parametrize("rule", [r"re:.*mlp\.gate\..*", r"re:.*mlp\.gate\.*", "model.layers.", "re:.*gate.*"])
def test_every_rule_that_protects_in_slime_is_enough(tmp_path: Path, rule: str) -> None:
    """Prefixes and patterns are taken as slime takes them."""
    folder = convert(tmp_path, QWEN, DEFAULT_IGNORE, written=[*EXPERT_RULES, rule])
    assert word(ask(router, folder)) == "ok:ignored"


def test_the_router_of_another_family_gets_its_own_rule(tmp_path: Path) -> None:
    """MiniMax-M2's router is block_sparse_moe.gate, which the default rules do not cover."""
    finding = ask(router, convert(tmp_path, config_of("minimax_m2", **MOE), DEFAULT_IGNORE))
    assert word(finding) == "problem:not-ignored"
    assert r'"re:.*block_sparse_moe\\.gate\\..*"' in finding.summary.en


def test_experts_without_a_router_are_unknown(tmp_path: Path) -> None:
    """A router that is nowhere is not called protected."""
    shapes = {name: shape for name, shape in needed(QWEN).items() if ".mlp.gate." not in name}
    config = {**QWEN, "quantization_config": quantised(["lm_head"])}
    assert word(ask(router, write_checkpoint(tmp_path, config, shapes))) == "unknown"


def test_a_genuine_checkpoint_is_not_accused(tmp_path: Path) -> None:
    """compressed-tensors lists only lm_head: the files are right, and the update's difference is a warning."""
    folder = genuine(tmp_path, DENSE, ["lm_head"])
    assert word(ask(validity, folder)) == "ok:valid"
    assert word(ask(router, folder)) == "ok:no-router"
    finding = ask(nonlinear, folder)
    assert word(finding) == "warning:update-differs"
    assert '"model.embed_tokens.weight"' in finding.summary.en


@pytest.mark.parametrize(
    ("lost", "tensor"),
    [("re:.*embed.*", "model.embed_tokens.weight"), ("re:.*lm_head.*", "lm_head.weight")],
)
def test_a_packed_embedding_or_head_is_a_problem(tmp_path: Path, lost: str, tensor: str) -> None:
    """SGLang holds them plain whatever the config says."""
    folder = convert(tmp_path, QWEN, [rule for rule in DEFAULT_IGNORE if rule != lost])
    finding = ask(nonlinear, folder)
    assert word(finding) == "problem:not-covered"
    assert tensor in finding.summary.en
    assert word(ask(router, folder)) == "ok:ignored"


def test_a_packed_gate_of_a_shared_expert_is_a_problem(tmp_path: Path) -> None:
    """The default rules do not know shared_expert_gate (convert_hf_to_int4_direct.py), which SGLang builds plain."""
    config = config_of("qwen3_next", **MOE, **{**LINEAR, "shared_expert_intermediate_size": 64})
    finding = ask(nonlinear, convert(tmp_path, config, DEFAULT_IGNORE))
    assert word(finding) == "problem:not-covered"
    assert "shared_expert_gate" in finding.summary.en


def test_a_rule_that_slime_does_not_understand_is_a_difference(tmp_path: Path) -> None:
    """`re:.*o_proj$` keeps o_proj plain in files and SGLang; slime would pack it, and the mending rule is told."""
    shapes = needed(DENSE)
    chosen = [name for name in shapes if "_proj." in name and "o_proj" not in name]
    rules = ["lm_head", "model.embed_tokens.weight", "re:.*o_proj$"]
    config = {**DENSE, "quantization_config": quantised(rules)}
    folder = write_checkpoint(tmp_path, config, packed(shapes, chosen))
    assert word(ask(validity, folder)) == "ok:valid"
    finding = ask(nonlinear, folder)
    assert word(finding) == "warning:update-differs"
    assert r'"re:.*self_attn\\.o_proj\\..*"' in finding.summary.en


def test_a_plain_rule_that_matches_too_much_in_sglang_contradicts_the_files(tmp_path: Path) -> None:
    """`model.layers.1` was meant for one layer; in SGLang it is a substring of layers 10 and 11 as well."""
    config = config_of("qwen3", num_hidden_layers=12)
    shapes = needed(config)
    chosen = [name for name in shapes if "_proj." in name and ".layers.1." not in name]
    rules = ["lm_head", "model.embed_tokens.weight", "model.layers.1"]
    folder = write_checkpoint(tmp_path, {**config, "quantization_config": quantised(rules)}, packed(shapes, chosen))
    finding = ask(validity, folder)
    assert word(finding) == "problem:invalid"
    assert "model.layers.10." in finding.summary.en


def test_a_rule_for_one_shard_of_a_fused_module_is_not_accused(tmp_path: Path) -> None:
    """Whether SGLang raises depends on its model class, so it is only mentioned."""
    folder = genuine(tmp_path, DENSE, ["lm_head", "model.embed_tokens.weight", "re:.*q_proj$"])
    assert word(ask(validity, folder)) == "warning:valid"


def edit(folder: Path, **changes: Any) -> Path:
    """Change keys of group_0.weights in config.json."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    weights = config["quantization_config"]["config_groups"]["group_0"]["weights"]
    for key, value in changes.items():
        weights[key] = value
        if value is None:
            del weights[key]
    path.write_text(json.dumps(config, indent=2))
    return folder


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"group_size": None}, "no group_size"),
        ({"symmetric": None}, "no symmetric"),
        ({"group_size": 64}, "not groups of 64"),
        ({"group_size": 16}, "not groups of 16"),
        ({"symmetric": False}, "no zero points"),
        ({"num_bits": 8}, "not groups of 32"),
    ],
)
def test_a_config_that_contradicts_the_files_is_invalid(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    """Each contradiction with group_0 is a problem that says what."""
    finding = ask(validity, edit(convert(tmp_path, QWEN, DEFAULT_IGNORE), **changes))
    assert word(finding) == "problem:invalid"
    assert words in finding.summary.en


def broken(shapes: Shapes, how: str) -> Shapes:
    """Return packed shapes with one piece wrong."""
    name = next(one for one in shapes if one.endswith(".weight_scale"))
    base = name.removesuffix("_scale")
    if how == "no-scale":
        return {one: shape for one, shape in shapes.items() if one != name}
    if how == "scale-alone":
        return {one: shape for one, shape in shapes.items() if one != f"{base}_packed"}
    if how == "twice":
        return {**shapes, base: ("BF16", (32, 64))}
    return {**shapes, f"{base}_zero_point": ("I32", (4, 2))}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no-scale", "no scale"),
        ("scale-alone", "no values"),
        ("twice", "both plain and packed"),
        ("zero", "zero points"),
    ],
)
def test_a_piece_without_its_partner_is_invalid(tmp_path: Path, how: str, words: str) -> None:
    """Packed values need a scale, scales need values, a symmetric scheme has no zero points."""
    shapes = needed(QWEN)
    chosen = [name for name in shapes if ".experts." in name]
    config = {**QWEN, "quantization_config": quantised(DEFAULT_IGNORE)}
    finding = ask(validity, write_checkpoint(tmp_path, config, broken(packed(shapes, chosen), how)))
    assert word(finding) == "problem:invalid"
    assert words in finding.summary.en


def test_a_lost_shard_takes_no_partner_away(tmp_path: Path) -> None:
    """What a missing shard held is its own consequence, not a missing scale."""
    shapes = packed(needed(QWEN), [name for name in needed(QWEN) if ".experts." in name])
    config = {**QWEN, "quantization_config": quantised(DEFAULT_IGNORE)}
    folder = write_checkpoint(tmp_path, config, dict(sorted(shapes.items())), shards=40)
    shard_of(folder, "model.layers.1.mlp.experts.1.up_proj.weight_scale").unlink()
    assert word(ask(validity, folder)) == "ok:valid"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("re:.*mlp\\.gate\\.(", "not a regular expression"),
        ("re:.*mlp\\\\.gate\\\\..*", "matches nothing"),
        (".*mlp\\.gate\\..*", "matches nothing"),
    ],
)
def test_a_broken_rule_is_named_with_its_line(tmp_path: Path, rule: str, words: str) -> None:
    """A rule that cannot match what it was meant for is invalid, and its router is exposed."""
    folder = convert(tmp_path, QWEN, DEFAULT_IGNORE, written=[*EXPERT_RULES, rule])
    finding = ask(validity, folder)
    assert word(finding) == "problem:invalid"
    assert words in finding.summary.en
    line = (folder / "config.json").read_text().splitlines()[(finding.citations[0].line or 0) - 1]
    assert json.loads(line.strip().rstrip(",")) == rule
    assert word(ask(router, folder)) == "problem:not-ignored"


def test_a_broken_rule_that_exposes_nothing_is_only_mentioned(tmp_path: Path) -> None:
    """Another rule covers what it was meant for."""
    folder = convert(tmp_path, QWEN, DEFAULT_IGNORE, written=[*DEFAULT_IGNORE, "re:.*mlp\\\\.gate\\\\..*"])
    assert word(ask(validity, folder)) == "warning:valid"


def test_config_json_with_a_single_backslash_is_named(tmp_path: Path) -> None:
    """A regex pasted into JSON without doubling its backslashes breaks the whole file; the line is cited."""
    folder = convert(tmp_path, QWEN, DEFAULT_IGNORE)
    text = (folder / "config.json").read_text().replace(r"mlp\\.gate", r"mlp\.gate")
    (folder / "config.json").write_text(text)
    finding = ask(validity, folder)
    assert word(finding) == "problem:invalid"
    assert "backslashes doubled" in finding.summary.en
    assert r"mlp\.gate" in finding.citations[0].excerpt


def test_packed_files_without_a_config_are_invalid(tmp_path: Path) -> None:
    """quantization_config was lost on the way."""
    shapes = packed(needed(QWEN), [name for name in needed(QWEN) if ".experts." in name])
    folder = write_checkpoint(tmp_path, QWEN, shapes)
    assert word(ask(kind, folder)) == "warning:compressed-tensors"
    assert word(ask(validity, folder)) == "problem:invalid"


def test_files_in_another_form_than_the_config_says_are_invalid(tmp_path: Path) -> None:
    """Plain experts that no rule excepts: SGLang waits for them packed."""
    config = {**QWEN, "quantization_config": quantised(DEFAULT_IGNORE)}
    finding = ask(validity, write_checkpoint(tmp_path, config, needed(QWEN)))
    assert word(finding) == "problem:invalid"
    assert "waits for it packed" in finding.summary.en


def test_no_quantisation_asks_nothing_further(tmp_path: Path) -> None:
    """A plain checkpoint is none, and the other questions do not arise."""
    folder = write_checkpoint(tmp_path, QWEN, needed(QWEN))
    assert word(ask(kind, folder)) == "ok:none"
    assert [word(ask(probe, folder)) for probe in (validity, router, nonlinear)] == ["not_applicable"] * 3


FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [32, 32]}


def fp8(folder: Path, scale: str = "weight_scale_inv", quant: dict[str, Any] = FP8, extra: int = 0) -> Path:
    """Write an FP8 checkpoint with scales of this name, `extra` rows too many."""
    shapes: Shapes = {}
    for name, (dtype, shape) in needed(DENSE).items():
        if "_proj." in name:
            shapes[name] = ("F8_E4M3", shape)
            if scale:
                rows, columns = (-(-size // 32) for size in shape)
                shapes[name.removesuffix("weight") + scale] = ("F32", (rows + extra, columns))
        else:
            shapes[name] = (dtype, shape)
    return write_checkpoint(folder, {**DENSE, "quantization_config": quant}, shapes)


def test_fp8_scales_are_checked(tmp_path: Path) -> None:
    """Scales by block fit; absent or misshapen ones do not, nor does a config of FP8 over plain files."""
    assert word(ask(kind, fp8(tmp_path / "a"))) == "ok:fp8"
    assert word(ask(validity, fp8(tmp_path / "b"))) == "ok:valid"
    assert word(ask(nonlinear, fp8(tmp_path / "c"))) == "ok:covered"
    assert "weight_scale_inv" in ask(validity, fp8(tmp_path / "d", scale="")).summary.en
    assert "need" in ask(validity, fp8(tmp_path / "e", extra=1)).summary.en
    plain = write_checkpoint(tmp_path / "f", {**DENSE, "quantization_config": FP8}, needed(DENSE))
    assert word(ask(validity, plain)) == "problem:invalid"


def test_awq_and_gptq_are_recognised_as_other(tmp_path: Path) -> None:
    """Their update would be plain BF16, which is worth a warning; whole files are valid."""
    shapes: Shapes = {}
    for name, (dtype, shape) in needed(DENSE).items():
        if "_proj." in name:
            base = name.removesuffix("weight")
            shapes |= {
                base + "qweight": ("I32", (shape[1], shape[0] // 8)),
                base + "scales": ("F16", (shape[1] // 32, shape[0])),
            }
            shapes |= {base + "qzeros": ("I32", (shape[1] // 32, shape[0] // 8))}
        else:
            shapes[name] = (dtype, shape)
    folder = write_checkpoint(tmp_path, {**DENSE, "quantization_config": {"quant_method": "awq", "bits": 4}}, shapes)
    assert word(ask(kind, folder)) == "warning:other"
    assert word(ask(validity, folder)) == "ok:valid"
    assert word(ask(nonlinear, folder)) == "ok:covered"
