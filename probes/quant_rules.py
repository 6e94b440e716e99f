"""Three programs read the same `ignore` list and match it in three ways; each is here as a pure function.

slime's online quantiser and convert_hf_to_int4_direct.py match the full tensor name with `.weight`: `re:` from its
start, other entries by equality or as a prefix (quantizer_compressed_tensors.py:270-283). SGLang matches the module
name: `re:` from its start, other entries as a case-insensitive substring, and the shards of a fused module must agree
(compressed_tensors/utils.py:22-160). The compressed-tensors library matches the module name: `re:` from its start,
else equality, or the class name (utils/match.py). Invariant: a rule that does not compile matches nothing here and is
reported as such, where each of the programs would raise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}
"""Modules that SGLang's model classes build as one, and their shards (packed_modules_mapping)."""

DEFAULT_IGNORE = (
    "re:.*lm_head.*",
    "re:.*norm.*",
    "re:.*embed.*",
    "re:.*self_attn.*",
    "re:.*shared_experts.*",
    r"re:.*mlp\.(gate|up|gate_up|down)_proj.*",
    r"re:.*mlp\.gate\.*",
)
"""The ignore rules of slime's tools/convert_hf_to_int4_direct.py when none are given."""


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """Return a rule's pattern, None when it does not compile."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


def _regex_matches(rule: str, name: str) -> bool:
    pattern = compiled(rule[3:])
    return pattern is not None and pattern.match(name) is not None


def slime_rule_matches(rule: str, tensor: str) -> bool:
    """Return whether slime lets `rule` protect a tensor (full name with .weight)."""
    return (rule.startswith("re:") and _regex_matches(rule, tensor)) or rule == tensor or tensor.startswith(rule)


def slime_ignores(tensor: str, ignore: Iterable[str]) -> bool:
    """Return whether slime's online quantiser leaves a tensor alone because of the ignore list."""
    return any(slime_rule_matches(rule, tensor) for rule in ignore)


def slime_packs(tensor: str, dimensions: int, ignore: Iterable[str]) -> bool:
    """Return whether slime's online quantiser would pack a tensor."""
    return tensor.endswith(".weight") and dimensions >= 2 and not slime_ignores(tensor, ignore)


def sglang_rule_matches(rule: str, module: str) -> bool:
    """Return whether SGLang lets `rule` match a module (no .weight)."""
    return _regex_matches(rule, module) if rule.startswith("re:") else rule.lower() in module.lower()


def sglang_ignores(module: str, ignore: Sequence[str], fused: Mapping[str, Sequence[str]] = FUSED) -> bool | None:
    """Return whether SGLang leaves a module unquantised; None when it would raise, as shards of it disagree."""
    last = module.rsplit(".", 1)[-1]
    if last in fused and module not in ignore:
        shards = {
            any(sglang_rule_matches(rule, module.replace(last, shard)) for rule in ignore) for shard in fused[last]
        }
        return shards.pop() if len(shards) == 1 else None
    return any(sglang_rule_matches(rule, module) for rule in ignore)


def library_rule_matches(rule: str, module: str, classes: Iterable[str] = ()) -> bool:
    """Return whether the compressed-tensors library lets `rule` match a module of these class names."""
    if rule.startswith("re:"):
        return _regex_matches(rule, module)
    return rule == module or rule in tuple(classes)


def library_ignores(module: str, ignore: Iterable[str], classes: Iterable[str] = ()) -> bool:
    """Return whether the compressed-tensors library leaves a module unquantised."""
    return any(library_rule_matches(rule, module, classes) for rule in ignore)


def repaired(rule: str) -> str | None:
    """Return what a rule was probably meant to be when escaping broke it; None when it looks as meant.

    Doubled backslashes (escaped once too often on the way into JSON), control characters (what JSON makes of a single
    backslash before b, f, n, r or t), and a regex without its `re:`.
    """
    fixed = rule.replace("\\\\", "\\") if "\\\\" in rule else rule
    for char, letter in (("\b", "b"), ("\f", "f"), ("\t", "t"), ("\n", "n"), ("\r", "r")):
        fixed = fixed.replace(char, "\\" + letter)
    if not fixed.startswith("re:") and re.search(r"\.\*|\\\.|^\^|\$$|^\*|\*$", fixed):
        fixed = "re:" + (".*" + fixed[1:] if fixed.startswith("*") else fixed)
        fixed = fixed[:-1] + ".*" if fixed.endswith("*") and not fixed.endswith(".*") else fixed
    return fixed if fixed != rule and (not fixed.startswith("re:") or compiled(fixed[3:]) is not None) else None
