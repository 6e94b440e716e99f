"""`python -m benchmarks [NAME …]`: prints every figure beside its yardstick.

Each module here with a `main` is one benchmark.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main(chosen: list[str]) -> None:
    """Run the named benchmarks, or all of them."""
    for info in pkgutil.iter_modules(benchmarks.__path__):
        if info.name == "__main__" or (chosen and info.name not in chosen):
            continue
        run = getattr(importlib.import_module(f"benchmarks.{info.name}"), "main", None)
        if run is not None:
            print(f"\n== {info.name}", flush=True)
            run()


if __name__ == "__main__":
    main(sys.argv[1:])
