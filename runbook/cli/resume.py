"""`slime-runbook resume SESSION`: go on with a session, in the terminal UI or in plain text.

With `--attach RUN` a new run is attached first to the experiment at which the session stands: what an engineer, or the
next shift, does hours after the changed copy was started. A session that somebody else holds is read; in the UI it is
followed live and can be taken over there. Invariant: what cannot be gone on with is said before the lock is taken.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from runbook.catalog import Catalog
from runbook.cli import desks, kept, options
from runbook.cli.terminal import interactive
from runbook.errors import HeldError, UsageError
from runbook.plain import Plain
from runbook.plain_handover import where
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import follow_session, open_or_follow, open_session, read_session
from runbook.text import Text
from runbook.triage import exit_code
from runbook.walk import position


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("session", metavar="SESSION", help="id of a session, or the first letters of one")
    parser.add_argument("--flow", metavar="FLOW", default="", help="go on in this flow (default: where it stands)")
    parser.add_argument("--attach", metavar="RUN", help="folder or log of the new run of the experiment it stands at")
    parser.add_argument("--read", action="store_true", help="only read it, also while somebody else works on it")
    parser.add_argument("--take-over", action="store_true", help="take the session from whoever holds it")
    parser.add_argument("--plain", action="store_true", help="in plain text even on a terminal")
    options.add_drawn_flows(parser)
    options.add_sessions(parser)
    options.add_who(parser)


def run(parsed: argparse.Namespace) -> int:
    """Go on where the session stands, or read it; return the exit code."""
    options.take_who(parsed)
    if parsed.read and (parsed.attach or parsed.take_over or parsed.flow):
        raise UsageError("--read: a reader changes nothing", "leave out --attach, --take-over and --flow, or --read")
    folder = str(kept.session(parsed.sessions, parsed.session))
    catalog = options.catalog(parsed.flows, parsed.lang)
    options.check_node(catalog, parsed.flow, "")
    shows = interactive() and not parsed.plain
    now = read_session(catalog, folder, parsed.lang)
    flow = parsed.flow or now.state.current
    walks = flow in catalog.flows
    if parsed.attach:
        _experiment(now, flow)
    if not (parsed.read or shows or walks):
        desks.tell(now)
        return _without_walk(parsed, now, folder)
    desk = _open(parsed, catalog, folder, shows=shows)
    try:
        if not shows:
            desks.tell(desk)
        if desk.reads and not shows:
            return _read(parsed, desk, folder)
        if parsed.flow and not desk.reads and parsed.flow != desk.state.current:
            desk.append(ev.FlowStarted(parsed.flow))
        if parsed.attach:
            _attach(desk, flow, parsed.attach)
        if shows:
            return desks.show(parsed, desk, flow or None)
        from runbook.cli.run import walk_through

        plain = Plain(parsed.lang, ascii_only=parsed.ascii)
        where(plain, desk)
        return walk_through(desk, catalog.flows[flow], plain, take_probes=False)
    finally:
        desk.close()


def _open(parsed: argparse.Namespace, catalog: Catalog, folder: str, *, shows: bool) -> Desk:
    """Return a desk that writes; a reader's where that was asked for, or somebody else holds the session in the UI."""
    if parsed.read:
        return follow_session(catalog, folder, parsed.lang)
    if shows and not parsed.attach and not parsed.take_over:
        return open_or_follow(catalog, folder, parsed.lang)
    try:
        return open_session(catalog, folder, parsed.lang, take_over=parsed.take_over)
    except HeldError as error:
        changed = follow_session(catalog, folder, parsed.lang).state.changed
        last = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(changed))
        again = f"slime-runbook resume {os.path.basename(folder)}"
        raise HeldError(
            f"{error.message}; its last record is of {last}",
            f"read it: {again} --read; take it over if you know that it is abandoned: {again} --take-over",
        ) from error


def _read(parsed: argparse.Namespace, desk: Desk, folder: str) -> int:
    """Write the session as it is now."""
    from runbook.cli.sessions import show

    show(Plain(parsed.lang, ascii_only=parsed.ascii), desk, folder)
    return exit_code(desk.report())


def _without_walk(parsed: argparse.Namespace, desk: Desk, folder: str) -> int:
    """Write a session that stands in no flow as it is, and how one goes on with it; it is neither held nor changed."""
    code = _read(parsed, desk, folder)
    sys.stdout.flush()
    report = desk.report()
    near = next((one.flow for one in (*report.confirmed, *report.possible)), "FLOW")
    again = f"slime-runbook resume {os.path.basename(folder)} --flow {near}"
    options.warn(
        Text(f"no walk is begun; begin one in it: {again}", f"尚未开始走查；在本会话中开始：{again}"), parsed.lang
    )
    return code


def _experiment(desk: Desk, flow: str) -> str:
    """Return the experiment at which a session stands in a flow. Raises UsageError when it stands at none."""
    known = desk.catalog.flows.get(flow)
    if known is None:
        hint = "resume it with --flow FLOW and walk to an experiment"
        raise UsageError(f"session {desk.session_id} stands in no flow", hint)
    node = position(known, desk.state.walk(flow))
    if known.nodes[node].kind != "experiment":
        raise UsageError(
            f"{flow}/{node}: the session stands at no experiment", "resume it without --attach and walk to one"
        )
    return node


def _attach(desk: Desk, flow: str, path: str) -> None:
    known, node = desk.catalog.flows[flow], _experiment(desk, flow)
    run = desks.attach(desk, flow, node, path)
    desks.ask_all(desk, desk.light(known.nodes[node].probes), run)
