"""`slime-runbook [RUN]`: the terminal UI."""

from __future__ import annotations

import argparse
import os

from runbook.cli import desks, options
from runbook.cli.terminal import interactive
from runbook.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    options.add_evidence(parser)
    options.add_drawn_flows(parser)
    options.add_sessions(parser)
    options.add_who(parser)
    parser.add_argument("--flow", metavar="FLOW", help="start in this flow")


def run(parsed: argparse.Namespace) -> int:
    """Open the UI on RUN, or on this folder."""
    options.take_who(parsed)
    if not interactive():
        raise UsageError("the terminal UI needs a terminal", "use slime-runbook triage RUN or run FLOW RUN")
    catalog = options.catalog(parsed.flows, parsed.lang)
    if parsed.flow and parsed.flow not in catalog.flows:
        raise UsageError(f"unknown flow {parsed.flow!r}", f"flows: {', '.join(catalog.flows)}")
    pairs = options.given(parsed)
    root = options.run_root(parsed) or ("" if pairs else os.getcwd())
    return desks.new_screen(parsed, catalog, root, pairs, parsed.flow)
