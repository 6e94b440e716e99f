"""Small dumps for tests of what looks into them: the same samples as a rollout dump and as a train dump."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from tests.probes.readers.pickles import torch_zip

VOCAB = ("The", "Ġanswer", "Ġis", "Ġ12", ".", "Ċ", "Ġplease", "Ġ[bold]red[/bold]")
"""Spellings of a byte-level tokenizer; Ġ is a blank, Ċ a line end."""

TEXTS = ("The", " answer", " is", " 12", ".", "\n", " please", " [bold]red[/bold]")

PROMPT = [6, 6]
"""Token ids of every prompt."""


def rollout_sample(index: int, ids: list[int], engine: list[float], **fields: Any) -> dict[str, Any]:
    """Return a sample as a rollout dump holds it."""
    return {
        "index": index,
        "group_index": index // 2,
        "prompt": "How many? please please",
        "tokens": PROMPT + ids,
        "response": "".join(TEXTS[id] for id in ids),
        "response_length": len(ids),
        "reward": 1.0,
        "loss_mask": [1] * len(ids),
        "rollout_log_probs": engine,
        "status": "completed",
        "metadata": {"source": "kitchen"},
    } | fields


def train_sample(
    index: int, ids: list[int], engine: list[float], trainer: list[float], **fields: Any
) -> dict[str, Any]:
    """Return a sample as a joint train dump holds it."""
    return {
        "data_parallel_rank": 0,
        "sample_index": index,
        "rollout_position": index,
        "tokens": PROMPT + ids,
        "response_lengths": len(ids),
        "loss_masks": [1] * len(ids),
        "rollout_log_probs": engine,
        "log_probs": trainer,
        "rewards": 1.0,
    } | fields


def write_rollout(folder: Path, rollout: int, samples: list[dict[str, Any]], name: str = "") -> Path:
    """Write a rollout dump."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"rollout_id": rollout, "samples": samples}
    return torch_zip(folder / f"{name or rollout}.pt", pickle.dumps(data, 2))


def write_train(folder: Path, rollout: int, samples: list[dict[str, Any]]) -> Path:
    """Write a joint train dump."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"format_version": 2, "rollout_id": rollout, "rank": 0, "samples": samples, "dp_shards": []}
    return torch_zip(folder / f"{rollout}_0.pt", pickle.dumps(data, 2))


def write_tokenizer(folder: Path) -> Path:
    """Write a checkpoint folder with the tokenizer of TEXTS."""
    folder.mkdir(parents=True, exist_ok=True)
    vocab = {piece: id for id, piece in enumerate(VOCAB)}
    parts = {"model": {"type": "BPE", "vocab": vocab}, "decoder": {"type": "ByteLevel"}}
    (folder / "tokenizer.json").write_text(json.dumps(parts))
    (folder / "config.json").write_text('{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}')
    return folder


def run_folder(folder: Path, rollouts: int = 3) -> Path:
    """Write a run: in the last rollout, of samples 0 to 3, sample 2 disagrees from its response token 4 on."""
    ids = [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4]
    engine = [-0.25] * len(ids)
    for rollout in range(rollouts):
        told, trained = [], []
        for index in range(4):
            trainer = [value + 0.01 for value in engine]
            if rollout == rollouts - 1 and index == 2:
                trainer[4:] = [value - 2.0 for value in trainer[4:]]
            told.append(rollout_sample(index, ids, engine, reward=float(index)))
            trained.append(train_sample(index, ids, engine, trainer))
        write_rollout(folder / "dump", rollout, told)
        write_train(folder / "dump" / "train", rollout, trained)
    write_tokenizer(folder / "model")
    return folder
