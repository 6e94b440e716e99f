"""`slime-runbook outbox list|send|drop`: tickets that were not sent (whole), and those that were.

`send` says one line an entry, with its id: on stdout where it is posted, on stderr why it is not.

Exit codes: 0 all is posted; 3 something waits or was refused; 2 something is damaged, or the command was wrong.
"""

from __future__ import annotations

import argparse
import datetime as dt

from runbook.cli import options
from runbook.errors import RunbookError
from runbook.exits import ExitCode
from runbook.text import Text, sanitise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="every entry, the oldest first")
    sending = actions.add_parser("send", help="send what waits, from where it stopped")
    sending.add_argument("ids", nargs="*", metavar="ID", help="entries to send (default: all that are not posted)")
    sending.add_argument("--take-over", action="store_true", help="also those that somebody seems to be sending")
    options.add_language(sending)
    dropping = actions.add_parser("drop", help="take entries out; nothing is undone in the tracker")
    words = "id of an entry, or the first or last letters of one (default: all that are posted)"
    dropping.add_argument("ids", nargs="*", metavar="ID", help=words)


def run(parsed: argparse.Namespace) -> int:
    """Carry out the action."""
    actions = {"list": _list, "send": _send, "drop": _drop}
    return actions[parsed.action](parsed)


def _list(_: argparse.Namespace) -> int:
    from runbook.trackers.outbox import Damaged, entries, outbox_dir

    code = ExitCode.CLEAR
    for entry in entries(outbox_dir()):
        if isinstance(entry, Damaged):
            print(f"{sanitise(entry.id, 60)}  DAMAGED  {sanitise(entry.error.message)}")
            code = ExitCode.USAGE
            continue
        when = dt.datetime.fromtimestamp(entry.made).astimezone().strftime("%Y-%m-%d %H:%M")
        steps = f"{len(entry.done)}/{len(entry.content.steps)}"
        rest = entry.url if entry.state == "posted" else entry.trouble
        title = sanitise(entry.content.title or f"(session {entry.content.session})", 60)
        print(f"{entry.id}  {when}  {entry.state:<8} {steps:<5} {sanitise(entry.content.to)}  {title}")
        if rest:
            print(f"    {sanitise(rest)}")
        if entry.state != "posted" and entry.url:
            print(f"    {sanitise(entry.url)}")
    return code


def _send(parsed: argparse.Namespace) -> int:
    from runbook.trackers.outbox import Damaged, OutboxError, entries, find_id, outbox_dir
    from runbook.trackers.send import resume

    outbox, language = outbox_dir(), parsed.lang
    codes = {ExitCode.CLEAR}
    wanted = list(dict.fromkeys(find_id(outbox, words) for words in parsed.ids))
    for entry in entries(outbox) if not wanted else ():
        if isinstance(entry, Damaged):
            codes.add(_complain(entry.id, entry.error, language))
        elif entry.state != "posted":
            wanted.append(entry.id)
    for id in wanted:
        try:
            done = resume(id, take_over=parsed.take_over, report=lambda words: options.warn(words, language))
            print(f"{id}  posted  {sanitise(done.url)}")
        except OutboxError as error:
            codes.add(_complain(id, error, language))
        except RunbookError as error:
            _complain(id, error, language)
            codes.add(ExitCode.OPEN)
    return ExitCode.USAGE if ExitCode.USAGE in codes else max(codes)


def _complain(id: str, error: RunbookError, language: str) -> ExitCode:
    """Say in one line which entry is kept back, and by what; the others go on."""
    hint = f" ({error.hint})" if error.hint else ""
    said = f"{sanitise(error.message)}{sanitise(hint)}"
    options.warn(Text(f"{sanitise(id, 60)}  not posted: {said}", f"{sanitise(id, 60)}  未提交：{said}"), language)
    return ExitCode.USAGE


def _drop(parsed: argparse.Namespace) -> int:
    from runbook.trackers.outbox import Entry, drop, entries, find_id, outbox_dir

    outbox = outbox_dir()
    wanted = [find_id(outbox, words) for words in parsed.ids]
    if not wanted:
        wanted = [one.id for one in entries(outbox) if isinstance(one, Entry) and one.state == "posted"]
    for id in dict.fromkeys(wanted):
        drop(outbox, id)
    return ExitCode.CLEAR
