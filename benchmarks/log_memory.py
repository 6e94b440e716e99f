"""What a log of gigabytes costs in memory, and how soon its end is seen.

Reach: below 300 MB resident however large the log, the first findings from its end within a second. The log is made in
a temporary folder: pieces of ordinary lines with faults among them, as large as LOG_BYTES says (2 GB), or as a tenth of
the free disk allows. Two ways are measured, each in a process of its own: one pass that builds the index, and a look at
the end. Peaks are resident bytes of that process.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.log_scan import look, make, measured, signatures
from probes.log_early import log_early
from probes.readers.logfiles import expand
from runbook.evidence import Evidence, Item
from runbook.probe import silent
from runbook.text import Text

SIZE = 2_000_000_000
"""Bytes of the log, unless LOG_BYTES says otherwise."""
SHARE = 10
"""Part of the free disk that the log may take."""


def main() -> None:
    """Print peak memory and times over a log of this machine's size."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        size = min(int(os.environ.get("LOG_BYTES", SIZE)), shutil.disk_usage(scratch).free // SHARE)
        path = folder / "job.log"
        make(path, size)
        (file,) = expand([str(path)])[0]
        wanted = signatures()
        evidence = Evidence((Item("log", str(path), Text("made", "生成")),))
        print(f"{file.size / 1e6:.0f} MB, {len(wanted)} signatures")
        began = time.perf_counter()
        finding = log_early.run(evidence, silent)
        took = time.perf_counter() - began
        print(f"{'first findings from the end (reach 1 s)':<46}{took:8.3f} s  ({finding.answer})")
        cost = measured(lambda: log_early.run(evidence, silent), str(folder / "cache"))
        print(f"{'  peak memory':<46}{cost.peak / 1e6:8.0f} MB")
        cost = measured(lambda: look(file, wanted, wanted), str(folder / "cache"))
        speed = file.size / cost.processor / 1e9
        print(f"{'one pass, index built, all hits':<46}{cost.wall:8.2f} s  {speed:.2f} GB/s of processor time")
        print(f"{'  peak memory (reach 300 MB)':<46}{cost.peak / 1e6:8.0f} MB")
        cost = measured(lambda: look(file, wanted[:3], wanted), str(folder / "cache"))
        print(f"{'second look, by the index':<46}{cost.wall:8.2f} s")
        print(f"{'  peak memory (reach 300 MB)':<46}{cost.peak / 1e6:8.0f} MB")


if __name__ == "__main__":
    main()
