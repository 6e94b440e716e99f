"""Makes train and rollout dumps as slime writes them, with bf16-like noise and, where asked, a planted difference.

The numbers are drawn, not measured: log-probs are exponential with a mean of 0.3 nat, the noise between trainer and
engine is Laplacian with a mean of 0.012 nat and three times as wide on unlikely tokens, as public bf16 runs print it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

Plant = Callable[["Made"], Any]
"""Returns what is added to the trainer's log-probs of a sample: a number or an array of its response length."""


@dataclass
class Made:
    """One sample to be written."""

    index: int
    prompt: int
    response: int
    rank: int = 0
    version: str = "1"
    status: str = "completed"
    tokens: Any = None
    engine: Any = None
    trainer: Any = None
    mask: Any = None
    experts: Any = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Return prompt and response length."""
        return self.prompt + self.response


def make(
    count: int = 32,
    *,
    plant: Plant | None = None,
    seed: int = 0,
    length: int = 200,
    longest: int = 1000,
    ranks: int = 4,
) -> list[Made]:
    """Return samples of random lengths; the longest are truncated, as a limit on the response makes them."""
    chance = np.random.default_rng(seed)
    samples = []
    for index in range(count):
        response = min(int(chance.integers(length // 2, length * 2)), longest)
        made = Made(index, int(chance.integers(20, 60)), response, index % ranks)
        made.tokens = chance.integers(0, 150_000, made.total)
        made.engine = -chance.exponential(0.3, response)
        wide = np.where(made.engine < -1, 3.0, 1.0)
        made.trainer = np.minimum(made.engine + wide * chance.laplace(0, 0.012, response), 0.0)
        made.mask = np.ones(response, dtype=int)
        samples.append(made)
    for made in samples:
        if plant is not None:
            made.trainer = made.trainer + plant(made)
    return samples


def rollout_sample(made: Made) -> dict[str, Any]:
    """Return a sample as Sample.to_dict() gives it."""
    return {
        "group_index": made.index // 4, "index": made.index, "prompt": "p", "tokens": [int(t) for t in made.tokens],
        "response": "a plain answer", "response_length": made.response, "label": "", "reward": 1.0,
        "loss_mask": [int(m) for m in made.mask], "weight_versions": [made.version],
        "rollout_log_probs": [float(v) for v in made.engine], "rollout_routed_experts": made.experts,
        "status": made.status, "metadata": {}, **made.extra,
    }  # fmt: skip


def write_rollout(path: Path, samples: list[Made], rollout: int = 0) -> Path:
    """Write a rollout dump with torch.save."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"rollout_id": rollout, "samples": [rollout_sample(made) for made in samples]}, path)
    return path


def write_joint(path: Path, samples: list[Made], rollout: int = 0, *, engine: bool = True) -> Path:
    """Write the joint train dump of slime after v0.3.1 (train_data_utils.py, _build_dump_payload)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    train = []
    for position, made in enumerate(samples):
        sample = {"data_parallel_rank": made.rank, "sample_index": made.index, "rollout_position": position}
        sample |= columns(made, engine=engine)
        train.append(sample)
    ranks = sorted({made.rank for made in samples})
    shards = [
        {
            "rank": rank, "data_parallel_rank": rank,
            "sample_indices": [made.index for made in samples if made.rank == rank],
            "partition": [place for place, made in enumerate(samples) if made.rank == rank],
        }
        for rank in ranks
    ]  # fmt: skip
    root = {"format_version": 2, "rollout_id": rollout, "rank": 0, "samples": train, "dp_shards": shards}
    torch.save(root | {"raw_reward": [1.0] * len(samples)}, path)
    return path


def columns(made: Made, *, engine: bool = True) -> dict[str, Any]:
    """Return the per-sample fields of a train dump."""
    fields = {
        "tokens": torch.tensor(made.tokens), "response_lengths": made.response, "total_lengths": made.total,
        "loss_masks": torch.tensor(made.mask, dtype=torch.int), "rewards": 1.0,
        "truncated": int(made.status == "truncated"), "log_probs": torch.tensor(made.trainer, dtype=torch.float32),
        "ref_log_probs": torch.tensor(made.trainer, dtype=torch.float32),
    }  # fmt: skip
    if engine:
        fields["rollout_log_probs"] = torch.tensor(made.engine, dtype=torch.float32)
    return fields


def write_ranks(folder: Path, samples: list[Made], cp_size: int, rollout: int = 0) -> list[Path]:
    """Write a file a rank as slime did up to v0.3.1: per data-parallel rank, each context-parallel rank its slices."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for dp_rank in sorted({made.rank for made in samples}):
        mine = [made for made in samples if made.rank == dp_rank]
        for cp_rank in range(cp_size):
            rows = [columns(made) for made in mine]
            for row, made in zip(rows, mine, strict=True):
                for name in ("log_probs", "ref_log_probs", "rollout_log_probs"):
                    row[name] = sliced(row[name], made, cp_size, cp_rank)
            data = {name: [row[name] for row in rows] for name in rows[0]}
            data["sample_indices"] = [made.index for made in mine]
            rank = dp_rank * cp_size + cp_rank
            path = folder / f"{rollout}_{rank}.pt"
            torch.save({"rollout_id": rollout, "rank": rank, "rollout_data": data}, path)
            paths.append(path)
    return paths


def sliced(values: torch.Tensor, made: Made, cp_size: int, cp_rank: int) -> torch.Tensor:
    """Return a rank's two slices, worked out token by token: token t needs the logits of position t - 1."""
    if cp_size == 1:
        return values
    size = -(-made.total // (2 * cp_size))
    for_rank = (cp_rank, 2 * cp_size - 1 - cp_rank)
    kept = [
        place for number in for_rank for place in range(made.response) if (made.prompt + place - 1) // size == number
    ]
    return values[torch.tensor(kept, dtype=torch.long)]
