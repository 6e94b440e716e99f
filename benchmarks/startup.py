"""Start-up of the command: version, lint and the triage of the demo incident, beside a bare Python."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.timing import interleaved

ROUNDS = 9


def main() -> None:
    """Print the figures, each with what it must reach."""
    command = str(Path(sys.executable).with_name("slime-runbook"))
    timings = interleaved(
        {
            "python -c pass (yardstick)": [sys.executable, "-c", "pass"],
            "--version (reach 120 ms)": [command, "--version"],
            "flows lint (reach 120 ms)": [command, "flows", "lint"],
            "triage of the demo (reach 2,000 ms)": [command, "demo", "--plain"],
        },
        ROUNDS,
    )
    for name, timing in timings.items():
        print(f"{name:<38} {timing}")


if __name__ == "__main__":
    main()
