"""Planted differences are found where they were planted, and healthy noise is called agreement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from probes.dump_join import join
from probes.dump_logprob_gap import logprob_gap
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.dump_maker import Made, make, rollout_sample, write_joint, write_ranks, write_rollout
from tests.probes.readers.pickles import DUMPS


def of(folder: Path) -> Finding:
    """Run the probe on a folder of train and rollout dumps; its citations must be true."""
    finding = join.run(evidence_of(("train_dump", folder), ("rollout_dump", folder)), silent)
    check_citations(finding)
    return finding


def made(plant: Callable[[Made], Any] | None = None, seed: int = 0) -> list[Made]:
    """Return 48 samples; those of more than 350 tokens are truncated, every fifth is of older weights."""
    samples = make(48, seed=seed)
    for sample in samples:
        sample.status = "truncated" if sample.response > 350 else "completed"
        sample.version = "0" if sample.index % 5 == 0 else "1"
        if plant is not None:
            sample.trainer = sample.trainer + plant(sample)
    return samples


def at(place: int, by: float) -> Callable[[Made], Any]:
    """Plant a difference at one token."""
    return lambda sample: np.where(np.arange(sample.response) == place % sample.response, by, 0.0)


PLANTS: dict[str, tuple[str, Callable[[Made], Any], str]] = {
    "first": ("warning:first-token", at(0, -0.8), "at the first token"),
    "last": ("warning:tail", at(-1, -0.8), "at the last token"),
    "behind 300": (
        "after-position",
        lambda sample: np.where(sample.prompt + np.arange(sample.response) >= 300, -0.6, 0.0),
        "from position 300",
    ),
    "long": ("long-samples", lambda sample: -0.5 * (sample.total >= 380), "in samples of"),
    "truncated": ("truncated", lambda sample: -0.5 * (sample.status == "truncated"), "in truncated samples"),
    "rank": ("one-rank", lambda sample: -0.5 * (sample.rank == 2), "on data-parallel rank 2"),
    "version": ("weight-version", lambda sample: -0.4 * (sample.version == "0"), "of weight version 0"),
    "one sample": ("few-samples", lambda sample: -0.7 * (sample.index == 5), "in sample 5 "),
    "everywhere": ("problem:everywhere", lambda sample: np.full(sample.response, -0.5), "at no place more"),
    "shift": ("problem:misaligned", lambda sample: np.roll(sample.engine, 1) - sample.trainer, "one token later"),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_difference_is_found_at_its_place(name: str, tmp_path: Path) -> None:
    """Whatever the rest of the sample does, the place that was changed is named."""
    answer, plant, words = PLANTS[name]
    samples = made(plant)
    write_rollout(tmp_path / "0.pt", samples)
    write_joint(tmp_path / "train" / "0_0.pt", samples)
    finding = of(tmp_path)
    assert word(finding).endswith(answer)
    assert words in finding.summary.en


@pytest.mark.parametrize("seed", range(4))
def test_healthy_noise_agrees_at_every_place(seed: int, tmp_path: Path) -> None:
    """bf16-like noise with heavy tails names no place, and both probes measure the same mean."""
    samples = made(seed=seed)
    write_rollout(tmp_path / "0.pt", samples)
    write_joint(tmp_path / "train" / "0_0.pt", samples)
    finding = of(tmp_path)
    assert word(finding) == "ok:agree"
    gap = logprob_gap.run(evidence_of(("train_dump", tmp_path), ("rollout_dump", tmp_path)), silent)
    assert gap.measurements[0].value == pytest.approx(finding.measurements[0].value)
    assert len(finding.plots[0].curves[0].points) == 40


@pytest.mark.parametrize("name", ["kl-zero", "ref-off"])
def test_recorded_healthy_dumps_agree(name: str) -> None:
    """Dumps of real layouts whose two sides are a hundredth of a nat apart."""
    assert word(of(DUMPS / name)) == "ok:agree"


def beside_edges(sample: Made) -> Any:
    """Plant 1.5 nat at the first token of each of the eight chunks of context parallelism of size 4."""
    size = -(-sample.total // 8)
    logits = sample.prompt + np.arange(sample.response) - 1
    return np.where(logits % size == 0, -1.5, 0.0)


def slices_of_rank_one(sample: Made) -> Any:
    """Plant half a nat in the two chunks that context-parallel rank 1 of 4 holds."""
    number = (sample.prompt + np.arange(sample.response) - 1) // -(-sample.total // 8)
    return np.where((number == 1) | (number == 6), -0.5, 0.0)


@pytest.mark.parametrize(
    ("plant", "answer", "words"),
    [(None, "ok:agree", "12672 tokens"), (beside_edges, "warning:cp-boundary", "edge (size 4)"),
     (slices_of_rank_one, "warning:cp-boundary", "slices of context-parallel rank 1")],
    ids=["healthy", "edges", "rank 1"],
)  # fmt: skip
def test_slices_of_ranks_are_put_together_again(
    plant: Callable[[Made], Any] | None, answer: str, words: str, tmp_path: Path
) -> None:
    """Sixteen files of 4 data-parallel by 4 context-parallel ranks hold every token once."""
    samples = made(plant)
    assert sum(sample.response for sample in samples) == 12672
    write_rollout(tmp_path / "0.pt", samples)
    write_ranks(tmp_path / "train", samples, 4)
    finding = of(tmp_path)
    assert word(finding) == answer
    assert words in finding.summary.en


def test_slices_that_no_file_holds_are_unknown_and_not_zero(tmp_path: Path) -> None:
    """With one context-parallel rank's file gone its tokens are missing, and the rest still agrees."""
    samples = made()
    write_rollout(tmp_path / "0.pt", samples)
    paths = write_ranks(tmp_path / "train", samples, 4)
    paths[0].unlink()
    finding = of(tmp_path)
    assert word(finding) == "ok:agree"
    assert "missing: context-parallel slices of" in finding.summary.en


def test_the_joint_dump_says_which_shards_are_missing(tmp_path: Path) -> None:
    """A data-parallel rank without a shard, and samples that a shard names and the dump lacks, are told."""
    samples = made()
    path = write_joint(tmp_path / "train" / "0_0.pt", samples)
    root = torch.load(path, weights_only=False)
    root["dp_shards"] = [shard for shard in root["dp_shards"] if shard["data_parallel_rank"] != 1]
    root["samples"] = root["samples"][:-4]
    torch.save(root, path)
    finding = of(tmp_path)
    assert "missing: data-parallel rank 1" in finding.summary.en
    assert "3 samples that its shards name" in finding.summary.en


def test_a_dump_without_index_is_joined_by_tokens(tmp_path: Path) -> None:
    """Where slime could not restore the order, equal tokens make the pairs, whatever the order."""
    samples = made()
    write_rollout(tmp_path / "0.pt", samples)
    path = write_joint(tmp_path / "train" / "0_0.pt", samples[::-1], engine=False)
    root = torch.load(path, weights_only=False)
    for sample in root["samples"]:
        sample["sample_index"] = sample["rollout_position"] = None
    torch.save(root, path)
    finding = of(tmp_path)
    assert word(finding) == "ok:agree"
    assert "joined by tokens" in finding.summary.en


def test_other_tokens_are_told_and_not_compared(tmp_path: Path) -> None:
    """A tenth of the samples was tokenised again: named with the first place; all of them mean another run."""
    samples = made()
    for sample in samples[:5]:
        sample.extra["tokens"] = [int(token) for token in sample.tokens[:30]] + [7] * (sample.total - 30)
    write_rollout(tmp_path / "0.pt", samples)
    write_joint(tmp_path / "train" / "0_0.pt", samples, engine=False)
    finding = of(tmp_path)
    assert word(finding) == "warning:other-tokens"
    assert "5 samples hold other tokens (sample 0 from token 30)" in finding.summary.en
    for sample in samples:
        sample.extra["tokens"] = [1] * sample.total
    write_rollout(tmp_path / "0.pt", samples)
    assert word(of(tmp_path)) == "unknown"


def test_fields_of_another_length_are_misaligned(tmp_path: Path) -> None:
    """A loss mask that is a token short in every sample does not pass for agreement."""
    samples = made()
    for sample in samples:
        sample.mask = sample.mask[:-1]
    write_joint(tmp_path / "train" / "0_0.pt", samples)
    finding = of(tmp_path)
    assert word(finding) == "warning:misaligned"
    assert "loss_masks has" in finding.summary.en


def with_experts(folder: Path, routed: range, layers: int = 12) -> Finding:
    """Write a rollout dump whose routed experts are filled in some layers only, and ask the probe."""
    chance = np.random.default_rng(0)
    samples = made()[:4]
    for sample in samples:
        sample.experts = np.zeros((sample.total - 1, layers, 4), dtype=np.int32)
        for layer in routed:
            sample.experts[:, layer] = np.argsort(chance.random((sample.total - 1, 64)), axis=1)[:, :4]
    torch.save({"rollout_id": 0, "samples": [rollout_sample(sample) for sample in samples]}, folder / "0.pt")
    return of(folder)


def test_layers_without_routing_are_proven(tmp_path: Path) -> None:
    """The second pipeline half reports nothing; three dense layers at the start, or all routed, prove nothing."""
    finding = with_experts(tmp_path, range(6))
    assert word(finding) == "problem:routing"
    assert "layers 6 to 11 of 12" in finding.summary.en
    assert word(with_experts(tmp_path, range(3, 12))) == "unknown"
    assert word(with_experts(tmp_path, range(12))) == "unknown"
