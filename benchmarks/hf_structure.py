"""Structure of a generated checkpoint of 100 shards and 100,000 tensors, warm, headers only.

The yardstick reads the same header bytes plainly (open, read, close), in the same rounds; `json.loads` of them is shown
too, as the least that any reader of the names must do. Data parts are holes, so the disk is not measured.

    python -m benchmarks hf_structure
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.timing import Timing
from probes.hf_expected_names import expected_names
from probes.hf_shards import shards
from runbook.finding import Verdict
from runbook.probe import silent
from tests.helpers import evidence_of
from tests.probes.tiny_checkpoints import config_of, needed, write_checkpoint

ROUNDS = 7
SHARDS = 100
CONFIG = config_of("qwen3_moe", num_hidden_layers=65, num_experts=509, moe_intermediate_size=32)


def plain(paths: list[Path]) -> list[bytes]:
    """Return the header bytes of every shard."""
    found = []
    for path in paths:
        with open(path, "rb") as file:
            found.append(file.read(int.from_bytes(file.read(8), "little")))
    return found


def main() -> None:
    """Print medians and ratios."""
    with tempfile.TemporaryDirectory() as scratch:
        shapes = needed(CONFIG)
        folder = write_checkpoint(Path(scratch), CONFIG, shapes, shards=SHARDS)
        paths = sorted(folder.glob("*.safetensors"))
        evidence = evidence_of(("hf_checkpoint", folder))
        for probe in (shards, expected_names):
            assert probe.run(evidence, silent).verdict is Verdict.OK
        size = sum(map(len, plain(paths))) / 1e6
        jobs: dict[str, Callable[[], object]] = {
            f"read the {size:.1f} MB of headers (yardstick)": lambda: plain(paths),
            "json.loads of them": lambda: [json.loads(header) for header in plain(paths)],
            "hf.shards (reach 1,000 ms)": lambda: shards.run(evidence, silent),
            "hf.expected_names": lambda: expected_names.run(evidence, silent),
        }
        took: dict[str, list[float]] = {name: [] for name in jobs}
        for number in range(ROUNDS + 1):
            for name, job in jobs.items():
                began = time.perf_counter()
                job()
                if number:
                    took[name].append(time.perf_counter() - began)
        print(f"{len(paths)} shards, {len(shapes)} tensors")
        least = statistics.median(next(iter(took.values())))
        for name, seconds in took.items():
            middle = statistics.median(seconds)
            print(f"{name:<44} {Timing(middle, min(seconds), max(seconds))}  {middle / least:6.1f} x")


if __name__ == "__main__":
    main()
