"""`slime-runbook sessions fixed SESSION [--cause ID] WORDS`: what mended it, for whoever meets the fault next.

It goes into the session's journal, and into the ledger beside the sessions, out of which triage says it when the same
fingerprint is confirmed again.
"""

from __future__ import annotations

import argparse
import time

from runbook.cli import kept, options
from runbook.errors import UsageError
from runbook.exits import ExitCode
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.journal import Journal
from runbook.session.opening import read_session
from runbook.session.people import author, note_words
from runbook.session.store import sessions_dir
from runbook.text import Text, sanitise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("session", metavar="SESSION", help="id of a session, or the first letters of one")
    parser.add_argument("words", metavar="WORDS", help="what fixed it, in quotes")
    parser.add_argument("--cause", metavar="ID", default="", help="which cause (default: all that it confirmed)")
    options.add_flows(parser)
    options.add_language(parser)
    options.add_sessions(parser)
    options.add_who(parser)


def run(parsed: argparse.Namespace) -> int:
    """Record it. Raises SessionError when the session is held by somebody else or cannot be written."""
    from runbook.ledger import keeping, store

    options.take_who(parsed)
    sessions = sessions_dir(parsed.sessions)
    folder = kept.session(parsed.sessions, parsed.session)
    words = " ".join(note_words(parsed.words, 'sessions fixed SESSION "words"').split())
    desk = read_session(options.catalog(parsed.flows, parsed.lang), str(folder), parsed.lang)
    _check(desk, parsed.cause)
    with Journal.open(folder) as journal:
        journal.append(ev.Fixed(parsed.cause, words, author()), time.time())
    options.warn(Text(f"recorded in {folder.name}", f"已写入 {folder.name}"), parsed.lang)
    if not desk.report().confirmed:
        said = Text(
            "evidence confirms no cause in this session, so no other one will hear of it",
            "本会话没有证据确认的原因，因此其他会话不会得知",
        )
        options.warn(said, parsed.lang)
        return ExitCode.CLEAR
    identity, key = keeping.private_of(desk, sessions, author())
    mended = store.mended(time.time(), desk.session_id, parsed.cause, words, identity, key)
    trouble = keeping.write(sessions, (*keeping.missing(desk, sessions), mended))
    if trouble is not None:
        options.warn(trouble, parsed.lang)
    return ExitCode.CLEAR


def _check(desk: Desk, cause: str) -> None:
    """Refuse a cause that the session does not confirm, by evidence or by where a walk ended."""
    confirmed = [one.cause for one in desk.report().confirmed]
    leaves = [flow.nodes[end].cause for flow in desk.catalog.flows.values() for end in _ends(desk, flow.flow)]
    if cause and cause not in confirmed and cause not in leaves:
        known = ", ".join(confirmed) or "none"
        raise UsageError(f"{sanitise(cause)}: this session did not find that cause", f"confirmed in it: {known}")


def _ends(desk: Desk, flow: str) -> list[str]:
    from runbook.walk import position

    walk = desk.state.walk(flow)
    return [position(desk.catalog.flows[flow], walk)] if walk.steps else []
