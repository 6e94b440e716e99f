"""Whether the engine took what it was sent, by its own parameters (the recorder notes them after each call).

SGLang's MoE models drop a name they do not know without a word and still answer success. Its parameters are partly
fused: q, k and v stand in qkv_proj, gate and up in gate_up_proj, experts in w13_weight and w2_weight. The sum of row
hashes of a fused parameter is that of its parts, whatever their order, as long as they are not sharded. Only what
can be told for certain is told: a parameter that the engine keeps under the sent name, shape and dtype, that differs
from what was sent and did not move during the update; or a name for which it has no parameter at all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from probes.readers.received_weights import Parameter, Update
from probes.recorder.slime_runbook_recorder.fingerprint import MASK
from probes.weights_fingerprint import Print
from probes.weights_places import Judged

FUSED = (
    (re.compile(r"\.(?:q|k|v)_proj\."), (".qkv_proj.",)),
    (re.compile(r"\.(?:gate|up)_proj\."), (".gate_up_proj.",)),
    (re.compile(r"\.(?:q_a_proj|kv_a_proj_with_mqa)\."), (".fused_qkv_a_proj_with_mqa.",)),
    (re.compile(r"\.experts\.\d+\.(?:gate_proj|up_proj|w1|w3)\.weight"), (".experts.w13_weight",)),
    (re.compile(r"\.experts\.\d+\.(?:down_proj|w2)\.weight"), (".experts.w2_weight",)),
    (re.compile(r"\.in_proj_(?:qkvz|ba|qkv|z|b|a)\."), (".in_proj_qkvz.", ".in_proj_ba.", ".in_proj.")),
)
"""What a sent name looks like, and what it may be in the engine's name (sglang/srt/models/*.py, stacked_params_mapping
and FusedMoE.make_expert_params_mapping)."""


@dataclass(frozen=True)
class Taken:
    """What became of an update's tensors.

    homeless: sent names for which the engine has no parameter. kept: names whose parameter kept its old content.
    proven: how many tensors are in the engine bit by bit, alone or in a fused one.
    """

    homeless: tuple[str, ...]
    kept: tuple[str, ...]
    proven: int


def homes(name: str) -> list[str]:
    """Return the names under which an engine may keep a tensor, its own first."""
    found = [name]
    for pattern, places in FUSED:
        found += [pattern.sub(place, name) for place in places if pattern.search(name)]
    return found


def taken(update: Update, judged: list[Judged], prints: Mapping[int, Print]) -> Taken | None:
    """Return what the engine's parameters say; None when they were not recorded."""
    engine = {**update.before, **update.after}
    if not engine:
        return None
    homeless, kept, proven = [], [], 0
    sums: dict[str, int] = defaultdict(int)
    parts: dict[str, int] = defaultdict(int)
    last = {each.sent.name: number for number, each in enumerate(judged)}
    for name, number in last.items():
        home = next((home for home in homes(name) if home in engine), None)
        own = prints.get(number)
        if home is None:
            homeless.append(name)
        elif home != name and own is not None:
            sums[home] = (sums[home] + own.rows) & MASK
            parts[home] += 1
        elif own is not None and _same_layout(engine[home], judged[number]):
            if engine[home].hash == f"{own.hash:016x}":
                proven += 1
            elif _still(update, home):
                kept.append(name)
    proven += sum(parts[home] for home, total in sums.items() if engine[home].rows == f"{total:016x}")
    return Taken(tuple(homeless), tuple(kept) if proven else (), proven)


def _same_layout(parameter: Parameter, each: Judged) -> bool:
    return parameter.shape == each.sent.shape and parameter.dtype == each.sent.dtype


def _still(update: Update, name: str) -> bool:
    """Whether a parameter was seen before and after the update, and is the same."""
    before, after = update.before.get(name), update.after.get(name)
    return before is not None and after is not None and before.hash == after.hash
