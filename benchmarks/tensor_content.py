"""The content scan of a checkpoint beside the read of the same files: one process, helper processes, and memory.

Reach: checks and hash together at 50 % or more of a warm single-thread read of the same files in the same
run, below 100 MB. Rounds are interleaved, and the ratio is that of medians. The files are random BF16 weights, or a
checkpoint folder given as argument.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from probes.content_scan import Engine, here, pieces_of, processes, scan
from probes.content_state import State
from probes.hf_checkpoint import Checkpoint, open_checkpoint
from probes.readers.tensor_scan import BLOCK
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import evidence_of
from tests.probes.tiny_models import Tensor, write_safetensors

ROUNDS = 5
SHARDS = 16
WRITTEN = 4
"""Shards that are written; the others are further names of them."""
TENSORS = 8
TENSOR_BYTES = 32 << 20


def make(folder: Path) -> None:
    """Write shards of random BF16 values, of which there are enough for helper processes to be past their start."""
    import numpy as np

    chance = np.random.default_rng(0)
    for shard in range(SHARDS):
        path = folder / f"model-{shard + 1:05d}-of-{SHARDS:05d}.safetensors"
        if shard >= WRITTEN:
            os.link(folder / f"model-{shard % WRITTEN + 1:05d}-of-{SHARDS:05d}.safetensors", path)
            continue
        tensors: dict[str, Tensor] = {}
        for number in range(TENSORS):
            values = chance.standard_normal(TENSOR_BYTES // 2, dtype=np.float32).view(np.uint32) >> 16
            name = f"model.layers.{shard}.{number}.weight"
            tensors[name] = ("BF16", (TENSOR_BYTES // 2,), values.astype(np.uint16).tobytes())
        write_safetensors(path, tensors)


def opened(folder: str) -> Checkpoint:
    """Return the checkpoint with its headers read."""
    checkpoint = open_checkpoint(evidence_of(("hf_checkpoint", folder)), silent)
    if isinstance(checkpoint, Finding):
        raise SystemExit(checkpoint.summary.en)
    return checkpoint


def read(checkpoint: Checkpoint) -> None:
    """Read every file into one page-aligned buffer, and nothing else."""
    buffer = memoryview(mmap.mmap(-1, BLOCK))
    for file in checkpoint.headers:
        descriptor = os.open(os.path.join(checkpoint.path, file), os.O_RDONLY)
        place = 0
        while got := os.preadv(descriptor, [buffer], place):
            place += got
        os.close(descriptor)


def scanned(checkpoint: Checkpoint, engine: Engine) -> None:
    """Scan everything anew."""
    result = scan(checkpoint, pieces_of(checkpoint), engine, silent, State())
    if result.failures or not result.read:
        raise SystemExit(f"nothing was scanned: {result.failures}")


def peak(folder: str) -> float:
    """Return the peak resident memory, in MB, of a process that scans the folder."""
    code = "import sys; from benchmarks import tensor_content as own; own.scanned(own.opened(sys.argv[1]), own.here)"
    code += "; print(own.mb())"
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    return float(done.stdout)


def mb() -> float:
    """Return this process's peak resident memory in MB; getrusage would count what its parent had."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


@contextlib.contextmanager
def checkpoint_folder() -> Iterator[str]:
    """Yield the folder given as argument, or one made for the run."""
    if os.path.isdir(sys.argv[-1]):
        yield sys.argv[-1]
        return
    with tempfile.TemporaryDirectory() as scratch:
        make(Path(scratch))
        yield scratch


def main() -> None:
    """Print speeds with their ratio to the read, and the peak memory."""
    with checkpoint_folder() as folder:
        checkpoint = opened(folder)
        size = sum(header.size for header in checkpoint.headers.values())
        ways: dict[str, Callable[[], None]] = {
            "read only, 1 thread (yardstick)": lambda: read(checkpoint),
            "checks and xxh3_128, this process": lambda: scanned(checkpoint, here),
            "checks and xxh3_128, 2 processes": lambda: scanned(checkpoint, processes(2)),
        }
        wall: dict[str, list[float]] = {name: [] for name in ways}
        processor: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(ROUNDS + 1):
            for name, way in ways.items():
                began, used = time.perf_counter(), time.process_time()
                way()
                if number:
                    wall[name].append(time.perf_counter() - began)
                    processor[name].append(time.process_time() - used)
        base, *_ = (statistics.median(took) for took in wall.values())
        used_base, *_ = (statistics.median(took) for took in processor.values())
        for name, took in wall.items():
            seconds, used = statistics.median(took), statistics.median(processor[name])
            own = f"{used_base / used:5.0%} of it per CPU second" if "2 processes" not in name else ""
            print(f"{name:<36}{size / seconds / 1e9:7.2f} GB/s  {base / seconds:5.0%} of the read  {own}")
        print(f"{'peak memory of a scan':<36}{peak(folder):7.0f} MB    (reach 100 MB; speed: reach 50 %)")


if __name__ == "__main__":
    main()
