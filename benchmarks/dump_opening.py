"""A rollout dump of 80 MB opened by our reader and by torch.load, with the peak memory of each.

Reach: one second for 512 samples of 8192 tokens, without running anything that the pickle names and in a child whose
memory is limited. Every opening is a process of its own that has imported what it needs; rounds are interleaved, and
the ratio is that of medians. torch.load with weights_only=True, which is as careful, is run once: it takes ten times as
long. A dump given as last argument is opened instead.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 5
SAMPLES = 512
TOKENS = 8192
PROMPT = 200

_TIMED = """
import sys, time
{before}
began = time.perf_counter()
{opening}
took = time.perf_counter() - began
status = open("/proc/self/status").read()
own = int(status.split("VmHWM:")[1].split()[0]) * 1024
import resource
print(took, own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""
_OURS = _TIMED.format(
    before="from probes.readers.rollout_dump import inspect_file, read_dump",
    opening="kept = read_dump(inspect_file(sys.argv[1]))",
)
_TORCH = _TIMED.format(before="import torch", opening="kept = torch.load(sys.argv[1], weights_only=False)")
_WEIGHTS_ONLY = _TIMED.format(before="import torch", opening="kept = torch.load(sys.argv[1], weights_only=True)")


def make(path: Path) -> None:
    """Write a rollout dump as slime does: token ids, loss mask and log-probs as Python lists."""
    import numpy as np
    import torch

    chance = np.random.default_rng(0)
    samples = []
    for index in range(SAMPLES):
        tokens = chance.integers(0, 151_000, PROMPT + TOKENS)
        samples.append(
            {
                "group_index": index // 8, "index": index, "prompt": "a question " * 40, "tokens": tokens.tolist(),
                "response": "word " * TOKENS, "response_length": TOKENS, "label": "", "reward": 0.0,
                "loss_mask": [1] * TOKENS, "weight_versions": ["1"], "status": "completed", "metadata": {},
                "rollout_log_probs": (-chance.exponential(0.3, TOKENS)).tolist(),
            }
        )  # fmt: skip
    torch.save({"rollout_id": 0, "samples": samples}, path)


def opened(code: str, path: str) -> tuple[float, float, float]:
    """Return seconds, and the peak memory in MB of the process and of its child, of one opening."""
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    seconds, own, child = map(float, done.stdout.split())
    return seconds, own / 1e6, child / 1e6


def main() -> None:
    """Print the seconds, the ratio to torch.load, and the peak memory."""
    with tempfile.TemporaryDirectory() as scratch:
        path = sys.argv[-1] if os.path.isfile(sys.argv[-1]) and sys.argv[-1].endswith(".pt") else f"{scratch}/0.pt"
        if path.startswith(scratch):
            make(Path(path))
        print(f"{'the dump':<40}{os.path.getsize(path) / 1e6:8.0f} MB")
        ways = {"torch.load (yardstick, runs the pickle)": _TORCH, "our reader, in a limited child": _OURS}
        took: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
        for number in range(ROUNDS + 1):
            for name, code in ways.items():
                measured = opened(code, path)
                if number:
                    took[name].append(measured)
        base = statistics.median(one[0] for one in took["torch.load (yardstick, runs the pickle)"])
        for name, measured_all in took.items():
            _row(name, measured_all, base)
        _row("torch.load, weights_only=True (once)", [opened(_WEIGHTS_ONLY, path)], base)
        print(f"{'reach':<40}{1.0:8.2f} s")


def _row(name: str, measured: list[tuple[float, float, float]], base: float) -> None:
    seconds = statistics.median(one[0] for one in measured)
    own, child = (max(one[at] for one in measured) for at in (1, 2))
    beside = f" and {child:.0f} MB in its child" if child > 1 else ""
    print(f"{name:<40}{seconds:8.2f} s  {seconds / base:6.2f} x torch.load   {own:6.0f} MB{beside}")


if __name__ == "__main__":
    main()
