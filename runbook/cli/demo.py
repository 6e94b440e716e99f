"""`slime-runbook demo`: the bundled incident, in the terminal UI when there is a terminal, else as a triage."""

from __future__ import annotations

import argparse
import importlib
from importlib.metadata import entry_points
from pathlib import Path

from runbook.catalog import FLOWS
from runbook.cli import desks, options, triage
from runbook.cli.terminal import interactive
from runbook.errors import RunbookError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    options.add_drawn_flows(parser)
    options.add_sessions(parser)
    options.add_heavy(parser)
    parser.add_argument("--plain", action="store_true", help="print the triage even on a terminal")
    parser.add_argument("--json", action="store_true", help="print the triage as JSON")
    parser.set_defaults(follow=False, until_end=False)  # the bundled incident does not go on


def run(parsed: argparse.Namespace) -> int:
    """Open the demo incident, or print its triage."""
    root = str(demo_folder())
    if parsed.plain or parsed.json or not interactive():
        parsed.run = root
        return triage.run(parsed)
    return desks.new_screen(parsed, options.catalog(parsed.flows, parsed.lang), root, (), None)


def demo_folder() -> Path:
    """Return the folder of the bundled incident: `demo` beside the flows of the first flow package that has one."""
    for point in entry_points(group=FLOWS):
        for place in getattr(importlib.import_module(point.module), "__path__", ()):
            if (Path(place) / "demo").is_dir():
                return Path(place) / "demo"
    raise RunbookError("no flow package brings a demo", "install slime-runbook again")
