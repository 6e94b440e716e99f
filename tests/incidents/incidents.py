"""Whole incidents, built from real logs, dumps and checkpoints of the test data: what an engineer has in one folder.

Each incident names the flow that the symptom leads to, the way that evidence alone must take through it, and the places
that must be cited on that way.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.probes import tiny_checkpoints as tiny

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Incident:
    """One incident.

    build: puts its files into an empty folder. flow: to be walked. way: (node, answer) in order. leaf: where it ends.
    cause: of the leaf, None for a clear one. cites: (file, words) of what must be cited on the way.
    """

    build: Callable[[Path], None]
    flow: str
    way: tuple[tuple[str, str], ...]
    leaf: str
    cause: str | None
    cites: tuple[tuple[str, str], ...]


def log(name: str, folder: Path) -> None:
    """Put a real log into the folder as its job.log."""
    shutil.copy(DATA / "logs" / f"{name}.log", folder / "job.log")


def lines_of(name: str) -> list[str]:
    """Return the lines of a real log."""
    return (DATA / "logs" / f"{name}.log").read_text().splitlines()


def launch(folder: Path, *changes: tuple[str, str]) -> None:
    """Put the launch script and what it sources into the folder, with some words of it changed."""
    shutil.copytree(DATA / "launch" / "models", folder / "models")
    text = (DATA / "launch" / "toy.sh").read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "launch.sh").write_text(text)


def tracker_missing(folder: Path) -> None:
    """Build a garbled rollout whose checkpoint has lost its tracker, so that slime took it for a Hugging Face one."""
    log("taken-for-hf", folder)
    shutil.copytree(DATA / "ckpt", folder / "ckpt")
    (folder / "ckpt" / "latest_checkpointed_iteration.txt").unlink()
    shutil.copytree(DATA / "dumps" / "garbled", folder / "dump")


def unsafe_dump(folder: Path) -> None:
    """Build a run whose dump holds code."""
    log("healthy", folder)
    launch(folder)
    (folder / "dump").mkdir()
    shutil.copy(DATA / "dumps" / "malicious.pt", folder / "dump" / "0.pt")


def shard_lost(folder: Path) -> None:
    """Build a copy of a checkpoint that lost a shard which its index names."""
    config = tiny.config_of("qwen3")
    shutil.rmtree(folder)
    tiny.write_checkpoint(folder, config, tiny.needed(config))
    (folder / "model-00003-of-00004.safetensors").unlink()


def device_assert(folder: Path) -> None:
    """Build a run in which a kernel asserts that an index is in range."""
    log("device-assert", folder)


def debugger_misspelt(folder: Path) -> None:
    """Build a run whose switch for the debugger is spelt as in the guide, which Ray does not read."""
    log("healthy", folder)
    launch(
        folder,
        ("export PYTHONUNBUFFERED=1\n", "export PYTHONUNBUFFERED=1\nexport RAY_DEBUG_POSTMORTEM=1\n"),
        ('\\"CUDA_DEVICE_MAX_CONNECTIONS\\"', '\\"RAY_DEBUG_POSTMORTEM\\": \\"1\\", \\"CUDA_DEVICE_MAX_CONNECTIONS\\"'),
    )
    (folder / "train.py").write_text(
        "import ray\n\nfrom slime.utils.arguments import parse_args\n\n\ndef train(args):\n    ray.init()\n"
        '    breakpoint()\n\n\nif __name__ == "__main__":\n    train(parse_args())\n'
    )


def started_from_random(folder: Path) -> None:
    """Build a run in which Megatron was given an iteration folder and started from random weights."""
    log("random-init", folder)


def host_memory(folder: Path) -> None:
    """Build a run in which a node ran out of host memory and Ray killed a trainer."""
    log("ray-host-oom", folder)


def silent_step(folder: Path) -> None:
    """Build a run whose last train step never ended; for hours only the engines answer health checks."""
    lines = lines_of("ray-ok")
    at = max(number for number, line in enumerate(lines) if "Timer actor_train start" in line)
    engine = "(SGLangEngine pid=2002) [2026-11-29 {:02d}:{:02d}:00] http_server.py:1 - GET /health 200"
    checks = [engine.format(19 + number // 6, number % 6 * 10) for number in range(24)]
    (folder / "job.log").write_text("\n".join([*lines[: at + 1], *checks]) + "\n")


def too_many_gpus(folder: Path) -> None:
    """Build a run whose flags ask for more GPUs than the only node has."""
    launch(
        folder,
        ("--actor-num-gpus-per-node 8", "--actor-num-gpus-per-node 16"),
        ("--node-ip-address ${MASTER_ADDR}", "--node-ip-address 127.0.0.1"),
    )
    log("ray-pending", folder)


def no_reward(folder: Path) -> None:
    """Build a run whose model is well, but no sample ever gets a reward, so that there are no advantages either."""
    text = (DATA / "logs" / "healthy.log").read_text()
    (folder / "job.log").write_text(re.sub(r"('(?:rollout/raw_reward|train/pg_loss)': )[-0-9.e]+", r"\g<1>0.0", text))


INCIDENTS = (
    Incident(
        tracker_missing,
        "precision",
        (("rollout-coherent", "garbled"), ("load-log", "failed"), ("load-error", "folder")),
        "checkpoint-not-loaded",
        "checkpoint-not-loaded",
        (
            ("dump/0.pt", "sample 0: "),
            ("job.log", "Load checkpoint from HuggingFace model into Megatron (path="),
            ("job.log", "ValueError: Unrecognized model in /data/ckpt/b-tracker-missing."),
        ),
    ),
    Incident(
        unsafe_dump,
        "separate",
        (("dump-flags", "fine"), ("mode-bug", "none"), ("dump-opens", "unsafe")),
        "debug-dump-unreadable",
        "debug-dump-unreadable",
        (("launch.sh", "--save-debug-rollout-data /dumps/data_{rollout_id}.pt"), ("dump/0.pt", "")),
    ),
    Incident(
        shard_lost,
        "int4",
        (("quantised", "none"), ("shards", "missing")),
        "shard-missing",
        "shard-missing",
        (("config.json", ""), ("model.safetensors.index.json", "model-00003-of-00004.safetensors")),
    ),
    Incident(
        device_assert,
        "ima",
        (("ima-present", "device-assert"),),
        "device-side-assert",
        "device-side-assert",
        (("job.log", "Assertion `"),),
    ),
    Incident(
        debugger_misspelt,
        "ray-debugger",
        (("paused", "none"), ("driver", "init-before-breakpoint"), ("enabled", "misspelt")),
        "not-enabled",
        "ray-debugger-not-enabled",
        (("train.py", "ray.init()"), ("train.py", "breakpoint()"), ("launch.sh", "export RAY_DEBUG_POSTMORTEM=1")),
    ),
    Incident(
        started_from_random,
        "checkpoint",
        (("load-log", "random-init"),),
        "checkpoint-not-loaded",
        "checkpoint-not-loaded",
        (("job.log", "could not find the metadata file"), ("job.log", "will start from random")),
    ),
    Incident(
        host_memory,
        "job-died",
        (("waits", "none"), ("memory", "host")),
        "oom-host-memory",
        "oom-host-memory",
        (("job.log", "low on memory"),),
    ),
    Incident(
        silent_step,
        "hang",
        (("phase", "train-step"),),
        "hang-train-step",
        "hang-train-step",
        (("job.log", "Timer actor_train start"), ("job.log", "22:50:00] http_server.py:1 - GET /health 200")),
    ),
    Incident(
        too_many_gpus,
        "never-starts",
        (("gpu-count", "mismatch"),),
        "gpu-count-mismatch",
        "gpu-count-mismatch",
        (("launch.sh", "--actor-num-gpus-per-node 16"), ("launch.sh", "--num-gpus 8")),
    ),
    Incident(
        no_reward,
        "reward",
        (
            ("reward-given", "all-zero"),
            ("model-well", "equal"),
            ("values-small", "small"),
            ("reward-still-zero", "all-zero"),
        ),
        "reward-degenerate",
        "reward-degenerate",
        (("job.log", "'rollout/raw_reward': 0.0"),),
    ),
    Incident(lambda folder: log("ray-ok", folder), "hang", (("phase", "none"),), "moves-on", None, ()),
)
