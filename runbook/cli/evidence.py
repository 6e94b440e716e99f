"""`slime-runbook evidence RUN`: what was taken as evidence, and why."""

from __future__ import annotations

import argparse
import sys

from runbook.cli import desks, options
from runbook.exits import ExitCode
from runbook.session.desk import Desk


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    options.add_evidence(parser)
    options.add_language(parser)
    options.add_signs(parser)
    parser.add_argument("--json", action="store_true", help="print the items as JSON")


def run(parsed: argparse.Namespace) -> int:
    """Collect the evidence and print it."""
    pairs = options.given(parsed)
    if not parsed.run and not pairs:
        parsed.run = "."
    desk = Desk(options.probe_catalog(parsed.lang), language=parsed.lang)
    try:
        desks.collect(desk, options.run_root(parsed), pairs)
        if parsed.json:
            import msgspec

            sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(desk.state.items), indent=1) + b"\n")
        else:
            from runbook.plain import Plain

            Plain(parsed.lang, ascii_only=parsed.ascii).evidence(desk.state.items, desk.catalog.slots)
        return ExitCode.CLEAR if any(not item.missing for item in desk.state.items) else ExitCode.OPEN
    finally:
        desk.close()
