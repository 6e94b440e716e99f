"""`slime-runbook sessions [list|show|note|fixed|diff|resume|export]`: what was kept. Without an action it lists."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from runbook.cli import desks, export, kept, options, resume, seen, sessions_diff, sessions_fixed
from runbook.errors import SessionError
from runbook.exits import ExitCode
from runbook.plain import Plain
from runbook.plain_handover import brief, held, notes, readers, where
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.journal import Journal
from runbook.session.lock import holder_of
from runbook.session.opening import read_session
from runbook.session.people import author, note_words
from runbook.session.store import SessionInfo, list_sessions, sessions_dir
from runbook.text import Text, counted, sanitise
from runbook.triage import exit_code
from runbook.whereabouts import moment

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--sessions", dest="of_list", metavar="DIR", help="where sessions are kept, for the list")
    actions = parser.add_subparsers(dest="action")
    listing = actions.add_parser("list", help="every session, latest first")
    options.add_sessions(listing)
    showing = actions.add_parser("show", help="the state of one session")
    _add_session(showing)
    showing.add_argument("--brief", action="store_true", help="only where it stands, in at most five lines")
    options.add_drawn_flows(showing)
    noting = actions.add_parser("note", help="write a note into one")
    _add_session(noting)
    noting.add_argument("words", metavar="WORDS", help="the note, also of several lines; - reads it from stdin")
    noting.add_argument("--flow", metavar="FLOW", default="", help="flow of the node that it is about")
    noting.add_argument("--node", metavar="NODE", default="", help="node that it is about")
    options.add_flows(noting)
    options.add_language(noting)
    options.add_who(noting)
    fixing = actions.add_parser("fixed", help="say what fixed it, for whoever meets the same fault next")
    sessions_fixed.add_arguments(fixing)
    comparing = actions.add_parser("diff", help="what differs between two sessions or runs")
    sessions_diff.add_arguments(comparing)
    resuming = actions.add_parser("resume", help="go on with one, in the terminal UI where there is a terminal")
    resume.add_arguments(resuming)
    exporting = actions.add_parser("export", help="write the ticket of one session")
    export.add_target(exporting, "SESSION", "id of a session, or the first letters of one")


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="id of a session, or the first letters of one")
    options.add_sessions(parser)


def run(parsed: argparse.Namespace) -> int:
    """Carry out the action; the folder of sessions may stand before it or behind it."""
    parsed.sessions = getattr(parsed, "sessions", None) or parsed.of_list
    actions: dict[str | None, Callable[[argparse.Namespace], int]] = {
        None: _list,
        "list": _list,
        "show": _show,
        "note": _note,
        "fixed": sessions_fixed.run,
        "diff": sessions_diff.run,
        "resume": resume.run,
        "export": export.run,
    }
    return actions[parsed.action](parsed)


def _list(parsed: argparse.Namespace) -> int:
    now = time.time()
    for info in list_sessions(sessions_dir(parsed.sessions)):
        print("  ".join(_columns(info, now)).rstrip())
        if info.damaged:
            print(f"  DAMAGED  {sanitise(info.damaged)}; {sanitise(info.remedy)}")
    return ExitCode.CLEAR


def _columns(info: SessionInfo, now: float) -> tuple[str, ...]:
    """Return what the list says of a session; what its journal's ends do not tell is a dash."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.changed))
    cause = "-" if info.cause is None else sanitise(info.cause) or "open"
    cause += " (fixed)" if info.fixed else ""
    noted = [counted(info.notes, "note")] if info.notes else []
    held_by = [f"held by {info.locked_by}"] if info.locked_by else []
    age = f"{when} ({_age(now - info.changed)})"
    root = sanitise(info.root)
    return (info.id, f"{age:<27}", f"{sanitise(info.current) or '-':<14}", f"{cause:<24}", root, *noted, *held_by)


def _age(seconds: float) -> str:
    """Return how long ago something was, in its largest unit."""
    return next((f"{int(seconds // size)} {unit} ago" for size, unit in _UNITS if seconds >= size), "just now")


def _show(parsed: argparse.Namespace) -> int:
    folder = str(kept.session(parsed.sessions, parsed.session))
    catalog = options.catalog(parsed.flows, parsed.lang)
    desk = read_session(catalog, folder, parsed.lang)
    desks.tell(desk)
    plain = Plain(parsed.lang, ascii_only=parsed.ascii)
    if parsed.brief:
        for line in brief(desk, ascii_only=plain.ascii):
            print(line)
        return exit_code(desk.report())
    show(plain, desk, folder)
    return exit_code(desk.report())


def show(plain: Plain, desk: Desk, folder: str) -> None:
    """Write a session in plain text: where it stands, who has it, the walks, the notes, the triage."""
    where(plain, desk)
    for words in (held(holder_of(folder)), readers(folder)):
        plain.line(words.say(plain.language), 2, "dim")
    for name, walk in desk.state.walks.items():
        plain.path(desk.catalog.flows.get(name), walk)
    _posted(plain, folder)
    notes(plain, desk.state.notes, 2)
    for fix in desk.state.fixes:
        of = f" ({fix.cause})" if fix.cause else ""
        by = ", ".join(filter(None, (fix.who, moment(fix.time))))
        plain.line(f"{plain.say('fixed by', '修复')}{of}: {fix.words} ({by})", 2, "green")
    plain.line()
    report = desk.report()
    plain.triage(desk, report, seen.of_session(desk, report, folder))


def _posted(plain: Plain, folder: str) -> None:
    """Write where the tickets of a session are."""
    from runbook.trackers.posted import postings

    try:
        for one in postings(folder):
            plain.line(one.say().say(plain.language), 2)
    except SessionError as error:
        plain.line(error.message, 2, "dim")


def _note(parsed: argparse.Namespace) -> int:
    """Write a note; a session that somebody else holds is left alone."""
    options.take_who(parsed)
    folder = kept.session(parsed.sessions, parsed.session)
    options.check_node(options.catalog(parsed.flows, parsed.lang), parsed.flow, parsed.node)
    words = note_words(sys.stdin.read() if parsed.words == "-" else parsed.words)
    with Journal.open(folder) as journal:
        journal.append(ev.Noted(words, author(), parsed.flow, parsed.node), time.time())
    options.warn(Text(f"noted in {folder.name}", f"已写入 {folder.name}"), parsed.lang)
    return ExitCode.CLEAR
