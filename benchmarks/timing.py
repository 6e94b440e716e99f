"""Interleaved timing of commands.

Each round runs every command once, so that a busy machine troubles all of them alike.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Timing(NamedTuple):
    """Wall seconds over all rounds."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median * 1e3:8.0f} ms  ({self.least * 1e3:.0f} to {self.most * 1e3:.0f})"


def interleaved(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Timing]:
    """Return the timing of each command over `rounds` rounds, after one round that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for round_number in range(rounds + 1):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            if round_number:
                seconds[name].append(time.perf_counter() - began)
    return {name: Timing(statistics.median(took), min(took), max(took)) for name, took in seconds.items()}
