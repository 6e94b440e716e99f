"""`slime-runbook send (SESSION | RUN) --to ADDRESS`: the ticket goes to a tracker; without --yes, what would go.

Exit codes: 0 it is posted, or this was a dry run; 2 it was refused, or cannot be sent like this, or is posted there
already; 3 it waits in the outbox.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from runbook.cli import desks, kept, options, seen
from runbook.errors import UsageError
from runbook.exits import ExitCode
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import read_session
from runbook.text import Text, sanitise
from runbook.ticket.renderers import formats

if TYPE_CHECKING:
    from runbook.trackers.address import Address
    from runbook.trackers.model import Kind
    from runbook.trackers.outbox import Entry
    from runbook.trackers.trouble import TrackerError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("session", metavar="SESSION|RUN", help="id of a session, or folder or file of a run")
    parser.add_argument(
        "--to", required=True, metavar="ADDRESS",
        help="github:owner/repo, gitlab:group/project, jira+https://host/PROJECT, roundup+https://host/tracker; "
        "#N after it comments on a ticket that is there",
    )  # fmt: skip
    parser.add_argument("--comment-on", default="", metavar="N", help="comment on a ticket that is there")
    parser.add_argument("--yes", action="store_true", help="send it; without this, print what would be sent")
    parser.add_argument("--again", action="store_true", help="another ticket where the session has one already")
    parser.add_argument("--title", default="", help="instead of the ticket's own title")
    parser.add_argument("--format", default="", choices=formats(), help="default: the best that the tracker shows")
    parser.add_argument(
        "--label", action="append", default=[], metavar="X", help="a label of the new ticket (Roundup takes none)"
    )
    parser.add_argument(
        "--attach", action="append", default=[], choices=formats(), help="the whole ticket in this format as a file"
    )
    parser.add_argument(
        "--hide",
        action="append",
        default=[],
        metavar="WORD",
        help="a further word to hide; what `export SESSION --hide/--drop` chose holds as well",
    )
    options.add_slots(parser)
    options.add_heavy(parser)
    options.add_flows(parser)
    options.add_language(parser)
    options.add_sessions(parser)


def run(parsed: argparse.Namespace) -> int:
    """Print what would be sent, or send it and print where it stands."""
    from runbook.trackers.registry import place_of

    kind, address = place_of(parsed.to, parsed.comment_on)
    if parsed.title and address.item:
        raise UsageError(f"{address}: a comment has no title", "leave out --title")
    session = kept.session_or_run(parsed.sessions, parsed.session)
    if session is None:
        return _of_run(parsed, kind, address)
    desk = read_session(options.catalog(parsed.flows, parsed.lang), str(session), parsed.lang)
    desks.tell(desk)
    return _send(parsed, desk, session, kind, address)[0]


def _of_run(parsed: argparse.Namespace, kind: Kind, address: Address) -> int:
    with desks.triaged(parsed, parsed.session) as desk:
        seen.remember(desk)
        print(f"session {desk.session_id}", file=sys.stderr)
        code, entry = _send(parsed, desk, desk.folder, kind, address)
        if entry is not None:
            desk.append(ev.Exported(entry.content.format, entry.url))
        return code


def _send(
    parsed: argparse.Namespace,
    desk: Desk,
    folder: str | Path,
    kind: Kind,
    address: Address,
) -> tuple[int, Entry | None]:
    """Return the exit code, and what was posted."""
    from runbook.trackers.describe import describe
    from runbook.trackers.ready import ready
    from runbook.trackers.send import labels_of, plan, post, settled
    from runbook.trackers.trouble import TrackerError

    leaving = ready(
        desk,
        folder,
        kind,
        format=parsed.format,
        title=parsed.title,
        labels=labels_of(parsed.label),
        hide=parsed.hide,
        attach=labels_of(parsed.attach),
    )
    planned = settled(plan(leaving, kind, address, now=time.time(), again=parsed.again), folder)
    if not parsed.yes:
        for line in describe(planned, os.environ, parsed.lang):
            print(line)
        return ExitCode.CLEAR, None
    try:
        entry = post(planned, folder, report=lambda words: options.warn(words, parsed.lang))
    except TrackerError as error:
        return tell(error, planned.entry.id, parsed.lang), None
    except KeyboardInterrupt:
        _say_where(planned.entry.id, parsed.lang)
        raise
    print(sanitise(entry.url))
    return ExitCode.CLEAR, entry


def tell(error: TrackerError, id: str, language: str) -> int:
    """Say why an entry was not sent and where it is; return the exit code."""
    options.warn(Text(error.message, error.message), language)
    if error.hint:
        print(f"  {sanitise(error.hint)}", file=sys.stderr)
    _say_where(id, language)
    return ExitCode.OPEN if error.again else ExitCode.USAGE


def _say_where(id: str, language: str) -> None:
    words = Text(
        f"it is kept in the outbox; send it with: slime-runbook outbox send {id}",
        f"已存入发件箱；发送命令：slime-runbook outbox send {id}",
    )
    options.warn(words, language)
