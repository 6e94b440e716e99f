"""Small launch scripts for the tests of launch probes, and how a probe is asked about them."""

from __future__ import annotations

from pathlib import Path

from runbook.finding import Finding
from runbook.probe import Probe
from tests.probes import asking

RAY_START = "ray start --head --node-ip-address 127.0.0.1 --num-gpus 8 --disable-usage-stats"
WHOLE = ("--hf-checkpoint /models/toy", "--ref-load /models/toy_torch_dist", "--rollout-batch-size 32")
PLACED = ("--actor-num-nodes 1", "--actor-num-gpus-per-node 8", "--colocate")


def script(*flags: str, before: str = RAY_START, exports: str = "", env: str = "", whole: bool = True) -> str:
    """Return a script with one job; `flags` come after those that slime requires, unless `whole` is off."""
    lines = "\n".join(f"   {flag}" for flag in (*(WHOLE if whole else ()), *flags))
    return (
        f"#!/bin/bash\npkill -9 sglang\nset -ex\n{exports}\nALL_ARGS=(\n{lines}\n)\n{before}\n"
        f'RUNTIME_ENV_JSON="{{\n  \\"env_vars\\": {{\n    \\"PYTHONPATH\\": \\"/root/Megatron-LM/\\"{env}\n  }}\n}}"\n'
        'ray job submit --address="http://127.0.0.1:8265" --runtime-env-json="${RUNTIME_ENV_JSON}" \\\n'
        "   -- python3 train.py ${ALL_ARGS[@]}\n"
    )


def table(**rows: object) -> str:
    """Return an arguments table as Megatron prints it (training/arguments.py, `_print_args`)."""
    return "\n".join(asking.table(**dict(sorted(rows.items())))) + "\n"


def write(folder: Path, name: str, text: str | bytes) -> str:
    """Write a file and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def ask(probe: Probe, **slots: str) -> Finding:
    """Ask a probe of evidence by slot."""
    return asking.ask(probe, **slots)


def ask_script(probe: Probe, folder: Path, text: str, **slots: str) -> Finding:
    """Ask a probe about a script with this text."""
    return ask(probe, launch=write(folder, "run.sh", text), **slots)


def cited(finding: Finding) -> list[str]:
    """Return the excerpts of a finding, stripped."""
    return [citation.excerpt.strip() for citation in finding.citations]
