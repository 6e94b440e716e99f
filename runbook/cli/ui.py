"""`slime-runbook [RUN]`: the terminal UI."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time

from runbook.cli.terminal import interactive
from runbook.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Show a first frame at once, then declare the command's arguments."""
    if interactive() and not {"-h", "--help"} & set(sys.argv):
        from runbook.tui.frame import first_frame

        size = shutil.get_terminal_size()
        sys.stdout.write(first_frame(size.columns, size.lines))
        sys.stdout.flush()
    from runbook.cli import options

    options.add_evidence(parser, run_required=False)
    options.add_common(parser)
    options.add_sessions(parser)
    parser.add_argument("--flow", metavar="FLOW", help="start in this flow")


def run(parsed: argparse.Namespace) -> int:
    """Open the UI on RUN, or on this folder."""
    from runbook.cli import desks, options

    if not interactive():
        raise UsageError("the terminal UI needs a terminal", "use slime-runbook triage RUN or run FLOW RUN")
    catalog = options.catalog(parsed)
    if parsed.flow and parsed.flow not in catalog.flows:
        raise UsageError(f"unknown flow {parsed.flow!r}", f"flows: {', '.join(catalog.flows)}")
    pairs = options.given(parsed)
    root = options.run_root(parsed) or ("" if pairs else os.getcwd())
    desk = desks.new_session(catalog, parsed.sessions, parsed.lang, time.time())
    from runbook.tui.app import run_app

    try:
        desk.begin(root)
        desk.discover(root, pairs)
        return int(run_app(desk, parsed.flow))
    finally:
        desk.close()
