"""What a pickle holds that opened and is no dump of slime: weights, a checkpoint shard, another tool's dump.

Invariants: told by content (class names as the pickle spells them, keys, values); the name of a file only confirms.
"""

from __future__ import annotations

from typing import Any

from probes.readers.safe_pickle import Record, top_package
from probes.readers.torch_tensors import Tensor

_TOOLS = {
    "verl": ("verl", "a dump of verl"),
    "tensordict": ("verl", "a TensorDict, as verl's DataProto holds"),
    "openrlhf": ("openrlhf", "a dump of OpenRLHF"),
    "trl": ("other-tool", "a dump of TRL"),
    "nemo_rl": ("other-tool", "a dump of NeMo-RL"),
    "transformers": ("other-tool", "objects of transformers, such as training arguments"),
    "megatron": ("checkpoint", "a part of a Megatron checkpoint"),
}
_CHECKPOINT = {"model", "optimizer", "opt_param_scheduler", "checkpoint_version", "iteration", "args", "rng_state"}
_EXPERIENCE = {"sequences", "action_log_probs", "base_action_log_probs", "action_mask"}
_PROTO = {"batch", "non_tensor_batch", "meta_info"}
_SOME = 4


def instead(root: Any, opaque: tuple[str, ...], path: str) -> tuple[str, str]:
    """Return the kind, a key of `probes.dump_remedies.REMEDIES`, and the words for the root of a pickle."""
    if isinstance(root, Tensor):
        words = "a single tensor, as in a .distcp file" if path.endswith(".distcp") else "a single tensor"
        return "weights", f"holds {words}, not a slime dump"
    for name in opaque:
        if top_package(name) in _TOOLS:
            kind, words = _TOOLS[top_package(name)]
            return kind, f"holds {words} ({name}), not a slime dump"
    if isinstance(root, dict):
        return _of_dict(root)
    if isinstance(root, list) and root and isinstance(root[0], dict):
        return _of_dict(root[0], "a list of dicts")
    what = type(root).source if isinstance(root, Record) else type(root).__name__
    return "unknown", f"holds a {what}, not a slime dump"


def _of_dict(root: dict[Any, Any], what: str = "a dict") -> tuple[str, str]:
    keys = {key for key in root if isinstance(key, str)}
    if len(keys & _EXPERIENCE) >= 2:
        return "openrlhf", "holds an Experience as OpenRLHF makes it, not a slime dump"
    if keys >= _PROTO:
        return "verl", "holds a DataProto as verl makes it, not a slime dump"
    tensors = sum(isinstance(value, Tensor) for value in root.values())
    if tensors > len(root) / 2 and any("." in key for key in keys):
        return "weights", f"holds {tensors} weights by name, as a Hugging Face .bin does, not a slime dump"
    if len(keys & _CHECKPOINT) >= 2:
        return "checkpoint", f"holds a checkpoint ({', '.join(sorted(keys & _CHECKPOINT)[:_SOME])}), not a slime dump"
    named = ", ".join(sorted(str(key)[:40] for key in list(root)[:8]))
    return "unknown", f"{what} without samples or rollout_data (keys: {named})"
