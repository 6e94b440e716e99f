"""The lines of healthy runs raise nothing, in whatever order they stand: no fault has an ordinary line for a sign."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from runbook.catalog import load_catalog
from runbook.finding import Verdict
from runbook.probe import Probe
from tests.probes.asking import DATA, HEALTHY, ask

FAULTS = (
    "converter.in_log", "cuda.ima_frames", "cuda.ima_in_log", "cuda.ima_process", "debug_mode.in_log", "engine.in_log",
    "inductor_cache.in_log", "job.last_words", "known.in_log", "log.early", "megatron.args_in_log",
    "memory.oom_in_log", "nccl.in_log",
    "port.in_log", "ray.in_log", "ray_debugger.no_core_worker", "ray_debugger.paused",
    "routing_replay.in_log",
)  # fmt: skip
SIZE = 600_000
"""Bytes of the log: enough for the index to be used."""


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a healthy log with the lines of healthy logs behind it, in a random order, again and again."""
    whole = [(DATA / f"{name}.log").read_bytes() for name in (*HEALTHY, "loaded")]
    lines = [line for content in whole for line in content.split(b"\n")]
    chance = random.Random(7)
    path = tmp_path_factory.mktemp("healthy") / "job.log"
    with path.open("wb") as file:
        file.write(whole[0])
        while file.tell() < SIZE:
            file.write(b"\n".join(chance.sample(lines, len(lines))) + b"\n")
    return path


@pytest.mark.parametrize("name", FAULTS)
def test_no_fault_is_seen(shuffled: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a problem nor a warning, of any probe of faults."""
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path))
    probe: Probe = load_catalog().probes[name]
    assert ask(probe, shuffled).verdict in (Verdict.OK, Verdict.NOT_APPLICABLE)
