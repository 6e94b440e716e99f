"""Writes a ticket: transcript, redaction, layout, a second look, and only then the file.

Invariants: what is written was scanned as it is written; a scan that finds something writes nothing; the file appears
whole, readable by its owner only, never over another one and never inside the run unless that was asked for; the key
to the pseudonyms stays in the session.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runbook import __version__
from runbook.errors import RedactionError, SessionError, UsageError
from runbook.private import write_whole
from runbook.session.lock import login_name
from runbook.session.state import SessionState
from runbook.ticket.build import transcript
from runbook.ticket.outgoing import Outgoing
from runbook.ticket.redact import Identity, Key, redact_transcript
from runbook.ticket.renderers import Renderer, formats, renderer
from runbook.ticket.scan import scan
from runbook.ticket.transcript import Transcript

if TYPE_CHECKING:
    from runbook.session.desk import Desk

__all__ = ["KEY_FILE", "finish", "formats", "local_identity", "prepare", "tool_facts", "write_ticket"]

KEY_FILE = "pseudonyms.json"
"""Name of the key in the session folder: who is user-1. It never leaves."""


def write_ticket(
    desk: Desk,
    format: str,
    output: str | None,
    session: str | os.PathLike[str],
    *,
    hide: Sequence[str] = (),
    overwrite: bool = False,
    into_run: bool = False,
) -> Path | None:
    """Write the ticket of an open session and return its path, None when it went to stdout.

    output: file to write, "-" for stdout, None for a new file in the session folder. session: that folder. hide:
    words to hide besides what is found. overwrite: replace an existing file. into_run: allow a file inside RUN.
    Raises RedactionError, and writes nothing, when the finished ticket still holds something private; UsageError or
    SessionError when it cannot be written there.
    """
    if output not in (None, "-"):
        _check_target(output or "", desk.state.root, overwrite=overwrite, into_run=into_run)
    leaving = prepare(desk, format, session, hide=hide, keep_key=output is None)
    if output == "-":
        sys.stdout.buffer.write(leaving.body)
        sys.stdout.buffer.flush()
        return None
    path = output or _free_name(session, leaving.suffix)
    write_private(path, leaving.body, overwrite=overwrite)
    return Path(path)


def prepare(
    desk: Desk, format: str, session: str | os.PathLike[str], *, hide: Sequence[str] = (), keep_key: bool = False
) -> Outgoing:
    """Return the finished ticket of a session in one format: the one way out.

    session, hide: as `write_ticket`. keep_key: it is an error when the key to the pseudonyms cannot be kept. Raises
    RedactionError when the finished ticket still holds something private.
    """
    chosen = renderer(format)
    state = desk.state
    raw = transcript(
        state,
        desk.catalog.flows,
        desk.catalog.vocabulary,
        desk.report(),
        language=desk.language,
        session=desk.session_id,
        facts=tool_facts(),
    )
    key_path = os.path.join(session, KEY_FILE)
    hidden, key = redact_transcript(raw, local_identity(people_of(state), hide), _read_key(key_path))
    content = _looked_through(chosen, chosen.render(hidden), key)
    _keep_key(key_path, key, needed=keep_key)
    return Outgoing(hidden.title, format, chosen.suffix, content)


def people_of(state: SessionState) -> tuple[str, ...]:
    """Return the names of all who worked on a session."""
    steps = (step.who for walk in state.walks.values() for step in (*walk.steps, *walk.stale))
    return (*state.who, *steps, *(note.who for note in state.notes))


def finish(raw: Transcript, chosen: Renderer, identity: Identity, key: Key | None = None) -> tuple[bytes, Key]:
    """Return the finished ticket and the key to its pseudonyms.

    Raises RedactionError naming the place when the second look finds anything; no secret stands in the message.
    """
    hidden, key = redact_transcript(raw, identity, key)
    return _looked_through(chosen, chosen.render(hidden), key), key


def _looked_through(chosen: Renderer, content: bytes, key: Key) -> bytes:
    """Return the finished content when nothing private is left in it, else raise RedactionError naming the place."""
    for name, text in chosen.read(content):
        left = scan(text, key.words)
        if left:
            first = left[0]
            part = f"{name}, " if name else ""
            more = f", and {len(left) - 1} more places" if len(left) > 1 else ""
            raise RedactionError(
                f"the ticket was not written: {part}line {first.line}, column {first.column} "
                f"still holds {first.what} ({first.shown}){more}",
                "hide the word by name as well (--hide WORD), or take that evidence out of the session",
                word=first.word,
                shown=first.shown,
            )
    return content


def local_identity(people: Sequence[str] = (), hide: Sequence[str] = ()) -> Identity:
    """Return what is private on this machine: its name, the login name, and whoever worked on the session."""
    home = os.path.basename(os.path.expanduser("~").rstrip("/"))
    known = dict.fromkeys(name for name in (*people, login_name(), home) if name)
    machines = dict.fromkeys(name for name in (socket.gethostname(), platform.node()) if name)
    return Identity(tuple(known), tuple(machines), tuple(hide))


def tool_facts() -> tuple[tuple[str, str], ...]:
    """Return what the receiver may want to know of the machine that made the ticket."""
    return (
        ("ticket by", __version__),
        ("Python", platform.python_version()),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
    )


def write_private(path: str, content: bytes, *, overwrite: bool) -> None:
    """Write a file that appears whole, with mode 0600.

    Raises UsageError when it exists and is not to be overwritten, SessionError when it cannot be written.
    """
    try:
        write_whole(path, content, overwrite=overwrite)
    except FileExistsError as error:
        raise UsageError(f"{path}: the file exists already", "choose another name, or allow overwriting it") from error
    except OSError as error:
        raise SessionError(f"{path}: cannot be written: {error.strerror}", "choose another place") from error


def _check_target(path: str, root: str, *, overwrite: bool, into_run: bool) -> None:
    if not overwrite and os.path.lexists(path):
        raise UsageError(f"{path}: the file exists already", "choose another name, or allow overwriting it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"{path}: this is no regular file", "choose the name of a file, or - for standard output")
    run = os.path.realpath(root) if root else ""
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    if run and os.path.isdir(run) and not into_run and os.path.commonpath((run, folder)) == run:
        raise UsageError(f"{path}: this is inside the run, which stays as it is", "choose a place outside of it")


def _free_name(session: str | os.PathLike[str], suffix: str) -> str:
    """Return a name in the session folder that is not taken."""
    number = 1
    while os.path.lexists(path := os.path.join(session, f"ticket-{number}{suffix}")):
        number += 1
    return path


def _keep_key(path: str, key: Key, *, needed: bool) -> None:
    """Write the key beside the journal; a session that can only be read is exported without keeping one."""
    try:
        write_private(path, msgspec.json.format(msgspec.json.encode(key.to_keep()), indent=2), overwrite=True)
    except SessionError:
        if needed:
            raise


def _read_key(path: str) -> Key | None:
    """Return the key of an earlier export, None when there is none that can be read."""
    try:
        with open(path, "rb") as file:
            return Key.kept(msgspec.json.decode(file.read(), type=dict[str, dict[str, str]]))
    except (OSError, msgspec.DecodeError, ValueError):
        return None
