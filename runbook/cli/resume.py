"""`slime-runbook resume SESSION`: go on with a session, in the terminal UI or in plain text.

With `--attach RUN` a new run is attached first to the experiment at which the session stands: what an engineer, or the
next shift, does hours after the changed copy was started.
"""

from __future__ import annotations

import argparse
import os

from runbook.cli import desks, options
from runbook.cli.terminal import interactive
from runbook.errors import UsageError
from runbook.plain import Plain
from runbook.session.desk import Desk
from runbook.session.opening import open_session
from runbook.session.store import find, sessions_dir
from runbook.walk import position


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("session", metavar="SESSION", help="id of a session, or the first letters of one")
    parser.add_argument("--attach", metavar="RUN", help="folder or log of the new run of the experiment it stands at")
    parser.add_argument("--take-over", action="store_true", help="take the session from whoever holds it")
    parser.add_argument("--plain", action="store_true", help="in plain text even on a terminal")
    options.add_drawn_flows(parser)
    options.add_sessions(parser)


def run(parsed: argparse.Namespace) -> int:
    """Go on where the session stands; return the exit code."""
    folder = find(sessions_dir(parsed.sessions), parsed.session)
    catalog = options.catalog(parsed.flows, parsed.lang)
    desk = open_session(catalog, str(folder), parsed.lang, take_over=parsed.take_over)
    try:
        flow = desk.state.current
        shows = interactive() and not parsed.plain
        if not shows:
            desks.tell(desk)
        if flow not in catalog.flows and (parsed.attach or not shows):
            raise UsageError(
                f"session {os.path.basename(folder)} stands in no flow", "start one: slime-runbook run FLOW RUN"
            )
        if parsed.attach:
            _attach(desk, flow, parsed.attach)
        if shows:
            return desks.show(parsed, desk, flow or None)
        from runbook.cli.run import walk_through

        return walk_through(desk, catalog.flows[flow], Plain(parsed.lang, ascii_only=parsed.ascii), take_probes=False)
    finally:
        desk.close()


def _attach(desk: Desk, flow: str, path: str) -> None:
    known = desk.catalog.flows[flow]
    node = position(known, desk.state.walk(flow))
    if known.nodes[node].kind != "experiment":
        raise UsageError(
            f"{flow}/{node}: the session stands at no experiment", "resume it without --attach and walk to one"
        )
    run = desks.attach(desk, flow, node, path)
    desks.ask_all(desk, desk.light(known.nodes[node].probes), run)
