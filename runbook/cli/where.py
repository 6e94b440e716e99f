"""`slime-runbook where`: where sessions are kept and where flows and probes come from.

Folders and counts by default; `--all` names every flow and every module of probes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from importlib.util import find_spec

from runbook.catalog import probe_module_names
from runbook.cli import options
from runbook.exits import ExitCode
from runbook.session.store import sessions_dir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    options.add_flows(parser)
    options.add_sessions(parser)
    parser.add_argument("--all", action="store_true", help="name every flow and every module of probes")


def run(parsed: argparse.Namespace) -> int:
    """Print the places."""
    catalog = options.catalog(parsed.flows, options.default_language())
    print(f"python     {sys.executable}")
    print(f"sessions   {sessions_dir(parsed.sessions)}")
    flows, modules = catalog.loaded.values(), probe_module_names()
    if parsed.all:
        for loaded in flows:
            print(f"flow       {loaded.flow.flow:<14} {loaded.source.path}")
        for name in modules:
            print(f"probes     {name}")
        return ExitCode.CLEAR
    for folder, count in Counter(os.path.dirname(loaded.source.path) for loaded in flows).items():
        print(f"flows      {count:>4} in {folder}")
    for folder, count in Counter(map(_folder, modules)).items():
        print(f"probes     {count:>4} modules in {folder}")
    print("           `where --all` names each")
    return ExitCode.CLEAR


def _folder(module: str) -> str:
    """Return the folder of a module, its name where it has none; the module itself is not imported."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return module
    return os.path.dirname(spec.origin) if spec is not None and spec.origin else module
