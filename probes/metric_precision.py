"""How far trainer and engine may be apart on the same tokens, by what the run's arguments say of its precision.

What is not known is judged by the widest band that is no fault: a limit for dense bf16 must not make a mixture of
experts look broken.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.readers.arguments import Arguments
from probes.thresholds import Threshold
from probes.thresholds import metrics as limits
from runbook.text import Text


@dataclass(frozen=True)
class Precision:
    """What a run computes in. agree: distance up to which trainer and engine agree. words: what it is."""

    agree: Threshold
    words: Text


_ALIGNED = Precision(
    limits.GAP_ALIGNED, Text("aligned kernels (--true-on-policy-mode)", "对齐 kernel（true-on-policy）")
)
_WIDE = Precision(limits.GAP_WIDE, Text("fp8 or a mixture of experts", "fp8 或 MoE"))
_DENSE = Precision(limits.GAP_AGREE, Text("bf16, dense or with routing replay", "bf16，稠密或启用 routing replay"))
_UNTOLD = Precision(limits.GAP_AGREE, Text("a precision that no argument tells", "参数未说明的精度"))


def precision(table: Arguments | None) -> Precision:
    """Return the precision of the run whose arguments table this is."""
    if table is None:
        return _UNTOLD
    if table.true("true_on_policy_mode"):
        return _ALIGNED
    if any("fp8" in (table.value(name) or "").lower() for name in _EIGHT_BIT) or _set(table, "fp8"):
        return _WIDE
    if _set(table, "num_experts"):
        return _DENSE if table.true("use_rollout_routing_replay") else _WIDE
    return _DENSE if table.whole and "num_experts" in table.rows else _UNTOLD


def scaled(table: Arguments | None) -> bool | None:
    """Return whether losses are scaled, as in fp16: a gradient of infinity is then how the scaler finds its scale."""
    if table is None:
        return None
    if table.true("fp16") or _set(table, "loss_scale"):
        return True
    return False if table.true("bf16") else None


_EIGHT_BIT = ("sglang_quantization", "sglang_kv_cache_dtype", "fp8_format", "sglang_dtype")


def _set(table: Arguments, name: str) -> bool:
    return table.value(name) not in (None, "None", "False", "0")
