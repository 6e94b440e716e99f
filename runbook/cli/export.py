"""`slime-runbook export (SESSION | RUN)`: the ticket. Of a run, triage is done first, in a new session."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from runbook.cli import desks, options
from runbook.errors import UsageError
from runbook.exits import ExitCode
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import new_session, read_session
from runbook.session.store import find, sessions_dir
from runbook.ticket.export import formats, write_ticket


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_target(parser, "SESSION|RUN", "id of a session, or folder or file of a run")
    options.add_slots(parser)
    options.add_heavy(parser)


def add_target(parser: argparse.ArgumentParser, metavar: str, words: str) -> None:
    """Declare what is exported, as what and where to."""
    parser.add_argument("session", metavar=metavar, help=words)
    parser.add_argument("--format", choices=formats(), default="markdown", help="default: %(default)s")
    parser.add_argument("--output", metavar="PATH", help="file to write (default: in the session; - for stdout)")
    parser.add_argument("--hide", action="append", default=[], metavar="WORD", help="a further word to hide")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--into-run", action="store_true", help="allow a file inside RUN")
    options.add_flows(parser)
    options.add_language(parser)
    options.add_sessions(parser)


def run(parsed: argparse.Namespace) -> int:
    """Write the ticket and print its path."""
    folder = sessions_dir(parsed.sessions)
    if os.path.exists(parsed.session):
        return _of_run(parsed)
    try:
        session = find(folder, parsed.session)
    except UsageError as error:
        hint = "give a session id (slime-runbook sessions list) or the path of a run"
        raise UsageError(f"{parsed.session}: neither a session nor a file or folder", hint) from error
    catalog = options.catalog(parsed.flows, parsed.lang)
    desk = read_session(catalog, str(session), parsed.lang)
    desks.tell(desk)
    path = _write(parsed, desk, session)
    if path is not None:
        print(path)
    return ExitCode.CLEAR


def _of_run(parsed: argparse.Namespace) -> int:
    catalog = options.catalog(parsed.flows, parsed.lang)
    desk = new_session(catalog, parsed.sessions, parsed.lang)
    try:
        root = os.path.abspath(parsed.session)
        desk.begin(root)
        desks.collect(desk, root, options.given(parsed))
        desks.ask_all(desk, desk.triage_probes(heavy=parsed.heavy))
        path = _write(parsed, desk, desk.folder)
        if path is not None:
            desk.append(ev.Exported(parsed.format, str(path)))
            print(path)
        print(f"session {desk.session_id}", file=sys.stderr)
        return ExitCode.CLEAR
    finally:
        desk.close()


def _write(parsed: argparse.Namespace, desk: Desk, folder: str | Path) -> Path | None:
    return write_ticket(
        desk,
        parsed.format,
        parsed.output,
        folder,
        hide=parsed.hide,
        overwrite=parsed.overwrite,
        into_run=parsed.into_run,
    )
