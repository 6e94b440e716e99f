"""`slime-runbook where`: where sessions are kept and where flows and probes come from."""

from __future__ import annotations

import argparse
import sys

from runbook.catalog import load_catalog, probe_module_names
from runbook.cli import options
from runbook.exits import ExitCode
from runbook.session.store import sessions_dir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    options.add_common(parser)
    options.add_sessions(parser)


def run(parsed: argparse.Namespace) -> int:
    """Print the places."""
    catalog = load_catalog(parsed.flows)
    print(f"python     {sys.executable}")
    print(f"sessions   {sessions_dir(parsed.sessions)}")
    for loaded in catalog.loaded.values():
        print(f"flow       {loaded.flow.flow:<14} {loaded.source.path}")
    for name in probe_module_names():
        print(f"probes     {name}")
    return ExitCode.CLEAR
