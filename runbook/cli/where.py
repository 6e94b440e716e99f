"""`slime-runbook where`: where sessions are kept and where flows and probes come from."""

from __future__ import annotations

import argparse
import sys

from runbook.catalog import probe_module_names
from runbook.cli import options
from runbook.exits import ExitCode
from runbook.session.store import sessions_dir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    options.add_flows(parser)
    options.add_sessions(parser)


def run(parsed: argparse.Namespace) -> int:
    """Print the places."""
    catalog = options.catalog(parsed.flows, options.default_language())
    print(f"python     {sys.executable}")
    print(f"sessions   {sessions_dir(parsed.sessions)}")
    for loaded in catalog.loaded.values():
        print(f"flow       {loaded.flow.flow:<14} {loaded.source.path}")
    for name in probe_module_names():
        print(f"probes     {name}")
    return ExitCode.CLEAR
