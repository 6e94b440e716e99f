"""Tests of the three matchers of an ignore list: equal to what the real programs answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.quant_rules import (
    DEFAULT_IGNORE,
    compiled,
    library_ignores,
    repaired,
    sglang_ignores,
    slime_ignores,
    slime_packs,
)

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "hf" / "ignore_rules.json").read_text())
"""Answers of the programs themselves; `about` in the file says of which versions."""

CODES = {True: "1", False: "0", None: "!"}


@pytest.mark.parametrize("rule", RECORDED["rules"])
def test_a_rule_matches_what_the_real_programs_say(rule: str) -> None:
    """For each module slime, SGLang and compressed-tensors were asked, and the answers are the same."""
    row, modules = RECORDED["rules"].index(rule), RECORDED["modules"]
    assert "".join(CODES[slime_ignores(one + ".weight", [rule])] for one in modules) == RECORDED["slime"][row]
    assert "".join(CODES[sglang_ignores(one, [rule])] for one in modules) == RECORDED["sglang"][row]
    assert "".join(CODES[library_ignores(one, [rule], ("Linear",))] for one in modules) == RECORDED["library"][row]
    assert "".join(CODES[sglang_ignores(one, [rule])] for one in RECORDED["fused"]) == RECORDED["sglang_fused"][row]


rules = st.builds(
    lambda regex, text: ("re:" if regex else "") + text,
    st.booleans(),
    st.text(alphabet="mlp.gate_proj*\\$^03", max_size=12),
)
modules = st.lists(st.sampled_from(["model", "layers", "3", "mlp", "gate", "gate_proj", "lm_head"]), min_size=1).map(
    ".".join
)


@given(st.lists(rules, max_size=3), modules)
def test_the_library_itself_agrees(ignore: list[str], module: str) -> None:
    """compressed-tensors' own is_match gives the same answer for any rule that compiles."""
    match = pytest.importorskip(
        "compressed_tensors.utils.match",
        reason="compressed-tensors (with transformers) is not installed; the recorded answers stand",
    )
    torch = pytest.importorskip("torch")
    valid = [rule for rule in ignore if not rule.startswith("re:") or compiled(rule[3:]) is not None]
    linear = torch.nn.Linear(1, 1)
    assert library_ignores(module, valid, ("Linear", "Module")) == match.is_match(module, linear, valid)


def test_the_router_rule_of_the_guide_protects_in_slime_and_gate_dollar_does_not() -> None:
    """The prefix rules of slime, its `re:` rules and SGLang's treat the same words differently."""
    router, dense = "model.layers.3.mlp.gate.weight", "model.layers.3.mlp.gate_proj.weight"
    assert slime_packs(router, 2, ["re:.*mlp.gate$"])
    assert sglang_ignores(router.removesuffix(".weight"), ["re:.*mlp.gate$"])
    assert not slime_packs(router, 2, [r"re:.*mlp\.gate\..*"])
    assert slime_packs(dense, 2, [r"re:.*mlp\.gate\..*"])
    assert not slime_packs(dense, 2, ["model.layers.3.mlp.gate"])
    assert not slime_packs("model.layers.13.x.weight", 2, ["model.layers.1"])


def test_only_matrices_with_weight_are_packed() -> None:
    """A bias, a norm and a name without .weight stay as they are."""
    assert slime_packs("a.weight", 2, [])
    assert slime_packs("a.weight", 3, [])
    assert not slime_packs("a.weight", 1, [])
    assert not slime_packs("a.A_log", 2, [])
    assert not slime_packs("lm_head.weight", 2, DEFAULT_IGNORE)


def test_a_rule_that_does_not_compile_matches_nothing() -> None:
    """Each program would raise; here it is reported elsewhere and protects nothing."""
    assert not slime_ignores("a.weight", ["re:("])
    assert not sglang_ignores("a", ["re:*"])
    assert not library_ignores("a", ["re:["])


@pytest.mark.parametrize(
    ("rule", "meant"),
    [
        (r"re:.*mlp\\.gate\\..*", r"re:.*mlp\.gate\..*"),
        ("re:.*mlp.gate\b", r"re:.*mlp.gate\b"),
        (r".*mlp\.gate\..*", r"re:.*mlp\.gate\..*"),
        ("*mlp.gate*", "re:.*mlp.gate.*"),
        (r"re:.*mlp\.gate\..*", None),
        ("model.layers.0.mlp.gate", None),
        ("lm_head", None),
        ("re:.*self_attn.*", None),
    ],
)
def test_broken_escaping_is_repaired_and_sound_rules_are_left_alone(rule: str, meant: str | None) -> None:
    """Doubled backslashes, JSON's control characters and a forgotten re: are recognised."""
    assert repaired(rule) == meant


@given(st.text(max_size=30))
def test_a_repair_always_compiles_and_is_stable(rule: str) -> None:
    """Whatever a rule is, its repair compiles and needs no repair of the same sort twice."""
    fixed = repaired(rule)
    if fixed is not None and fixed.startswith("re:"):
        assert compiled(fixed[3:]) is not None
