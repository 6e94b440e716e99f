"""`slime-runbook sessions list|show|resume|export`: what was kept."""

from __future__ import annotations

import argparse
import datetime as dt

from runbook.cli import desks, export, options, resume
from runbook.exits import ExitCode
from runbook.plain import Plain
from runbook.session.opening import read_session
from runbook.session.store import find, list_sessions, sessions_dir
from runbook.text import sanitise
from runbook.triage import exit_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="every session, latest first")
    showing = actions.add_parser("show", help="the state of one session")
    resuming = actions.add_parser("resume", help="go on with one, in the terminal UI where there is a terminal")
    resume.add_arguments(resuming)
    exporting = actions.add_parser("export", help="write the ticket of one session")
    export.add_target(exporting, "SESSION", "id of a session, or the first letters of one")
    showing.add_argument("session", metavar="SESSION", help="id of a session, or the first letters of one")
    options.add_drawn_flows(showing)
    for sub in (listing, showing):
        options.add_sessions(sub)


def run(parsed: argparse.Namespace) -> int:
    """Carry out the action."""
    actions = {"list": _list, "show": _show, "resume": resume.run, "export": export.run}
    return actions[parsed.action](parsed)


def _list(parsed: argparse.Namespace) -> int:
    folder = sessions_dir(parsed.sessions)
    for info in list_sessions(folder):
        when = dt.datetime.fromtimestamp(info.changed).astimezone().strftime("%Y-%m-%d %H:%M")
        held = f"  held by {info.locked_by}" if info.locked_by else ""
        damaged = "  DAMAGED" if info.damaged else ""
        print(f"{info.id}  {when}  {info.current or '-':<14} {sanitise(info.root)}{held}{damaged}")
    return ExitCode.CLEAR


def _show(parsed: argparse.Namespace) -> int:
    folder = find(sessions_dir(parsed.sessions), parsed.session)
    catalog = options.catalog(parsed.flows, parsed.lang)
    desk = read_session(catalog, str(folder), parsed.lang)
    desks.tell(desk)
    plain = Plain(parsed.lang, ascii_only=parsed.ascii)
    for name, walk in desk.state.walks.items():
        plain.path(catalog.flows.get(name), walk)
    for note in desk.state.notes:
        plain.line(f"{note.who}: {note.words}" if note.who else note.words, 2)
    plain.triage(desk, desk.report())
    return exit_code(desk.report())
