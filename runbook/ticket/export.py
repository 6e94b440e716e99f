"""Writes a ticket: transcript, redaction, what a person dropped, layout, a second look, and only then the file.

Invariants: what is written was scanned as it is written; a scan that finds something writes nothing; the file appears
whole, readable by its owner only, never over another one and never inside the run unless that was asked for; the key
to the pseudonyms stays in the session.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runbook import __version__
from runbook.errors import RedactionError, SessionError, UsageError
from runbook.ledger.lookup import for_ticket
from runbook.private import PRIVATE, Access, access_of, write_whole
from runbook.session.journal import JOURNAL
from runbook.session.people import login_name
from runbook.session.state import SessionState
from runbook.ticket.build import transcript
from runbook.ticket.choices import choices
from runbook.ticket.draft import Draft
from runbook.ticket.outgoing import WHOLE_FORMAT, WHOLE_NAME, Attachment, Outgoing
from runbook.ticket.preview import remaining
from runbook.ticket.redact import Identity, Key, redact_transcript
from runbook.ticket.renderers import Renderer, formats, renderer
from runbook.ticket.scan import scan
from runbook.ticket.span import CHOSEN
from runbook.ticket.transcript import Transcript

if TYPE_CHECKING:
    from runbook.session.desk import Desk

__all__ = ["KEY_FILE", "draft_of", "finish", "formats", "local_identity", "prepare", "tool_facts", "write_ticket"]

KEY_FILE = "pseudonyms.json"
"""Name of the key in the session folder: who is user-1. It never leaves."""


def write_ticket(
    desk: Desk,
    format: str,
    output: str | None,
    session: str | os.PathLike[str],
    *,
    hide: Sequence[str] = (),
    drop: Sequence[str] | None = None,
    overwrite: bool = False,
    into_run: bool = False,
    also: Callable[[Path], None] | None = None,
) -> Path | None:
    """Write the ticket of an open session and return its path, None when it went to stdout.

    output: file to write, "-" for stdout, None for a new file in the session folder. session: that folder. hide:
    words to hide besides what is found and what was chosen in the session. drop: texts of the session to leave out,
    None for those chosen in it. overwrite: replace an existing file. into_run: allow a file inside RUN. also: gets the
    path of each file that goes along; it stands beside the ticket, or in the session folder when that went to stdout.
    Raises RedactionError, and writes nothing, when the finished ticket still holds something private; UsageError or
    SessionError when it cannot be written there.
    """
    if output not in (None, "-"):
        check_target(output or "", desk.state.root, overwrite=overwrite, into_run=into_run)
    leaving = prepare(desk, format, session, hide=hide, drop=drop, keep_key=output is None)
    if output == "-":
        written = _written(
            [(free_name(session, f"-stdout-{_beside(one)}"), one.content) for one in leaving.attachments]
        )
        sys.stdout.buffer.write(leaving.body)
        sys.stdout.buffer.flush()
        path = None
    else:
        path, *written = put(leaving, output or free_name(session, leaving.suffix), overwrite=overwrite)
    if also is not None:
        for one in written:
            also(one)
    return path


def put(leaving: Outgoing, path: str, *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write a finished ticket to `path` and what goes along beside it, and return the paths, the ticket's first.

    Raises UsageError when one is there and is not to be overwritten, SessionError when one cannot be written.
    """
    beside = ((f"{path}-{_beside(one)}", one.content) for one in leaving.attachments)
    return tuple(_written([(path, leaving.body), *beside], overwrite=overwrite))


def _beside(attachment: Attachment) -> str:
    """Return what an attachment is called behind the name of its ticket."""
    return attachment.name.removeprefix("ticket-")


def _written(files: Sequence[tuple[str, bytes]], *, overwrite: bool = False) -> list[Path]:
    """Write files, none when one of them is there already and is not to be overwritten, and return their paths."""
    for path, _ in files:
        if not overwrite and os.path.lexists(path):
            raise UsageError(f"{path}: the file exists already", "choose another name, or allow overwriting it")
    for path, content in files:
        folder = os.path.dirname(os.path.abspath(path))
        access = access_of(folder) if os.path.isfile(os.path.join(folder, JOURNAL)) else PRIVATE
        write_private(path, content, overwrite=overwrite, access=access)
    return [Path(path) for path, _ in files]


def prepare(
    desk: Desk,
    format: str,
    session: str | os.PathLike[str],
    *,
    hide: Sequence[str] = (),
    drop: Sequence[str] | None = None,
    keep_key: bool = False,
) -> Outgoing:
    """Return the finished ticket of a session in one format: the one way out.

    session, hide, drop: as `write_ticket`. keep_key: it is an error when the key to the pseudonyms cannot be kept.
    Raises RedactionError when the finished ticket still holds something private or dropped, SessionError when what was
    chosen in the session cannot be read.
    """
    draft = draft_of(desk, session, hide=hide)
    return finished(draft, format, session, drop=choices(session).drop if drop is None else drop, keep_key=keep_key)


def finished(
    draft: Draft, format: str, session: str | os.PathLike[str], *, drop: Sequence[str] = (), keep_key: bool = False
) -> Outgoing:
    """Return the finished ticket of a draft that was looked at, as `prepare` does of the session as it is now."""
    chosen = renderer(format)
    leaving = draft.leaving(drop)
    laid = chosen.laid(leaving)
    content = _looked_through(chosen, laid.content, leaving, draft.key, draft.dropped(drop))
    whole: tuple[Attachment, ...] = ()
    if laid.shortened:
        text = renderer(WHOLE_FORMAT)
        rest = _looked_through(text, text.render(leaving), leaving, draft.key, draft.dropped(drop))
        whole = (Attachment(WHOLE_NAME, "text/plain; charset=utf-8", rest),)
    keep_key_at(key_path(session), draft.key, needed=keep_key)
    return Outgoing(leaving.title, format, chosen.suffix, content, whole)


def draft_of(desk: Desk, session: str | os.PathLike[str], *, hide: Sequence[str] = (), kept: bool = True) -> Draft:
    """Return the ticket of a session before it is laid out.

    hide: words to hide besides what is found; kept: and besides those that were chosen in the session. Writes nothing,
    not even the key. Raises SessionError when what was chosen in the session cannot be read.
    """
    state, report = desk.state, desk.report()
    titles = {name: cause.title for name, cause in desk.catalog.vocabulary.items()}
    raw = transcript(
        state,
        desk.catalog.flows,
        desk.catalog.vocabulary,
        report,
        language=desk.language,
        session=desk.session_id,
        facts=tool_facts(),
        seen=for_ticket(session, report, desk.session_id, state.root, titles, desk.language),
    )
    identity = local_identity(people_of(state), (*(choices(session).hide if kept else ()), *hide))
    return Draft.of(raw, identity, read_key(key_path(session)))


def people_of(state: SessionState) -> tuple[str, ...]:
    """Return the names of all who worked on a session."""
    steps = (step.who for walk in state.walks.values() for step in (*walk.steps, *walk.stale))
    return (*state.who, *steps, *(note.who for note in state.notes), *(fix.who for fix in state.fixes))


def finish(raw: Transcript, chosen: Renderer, identity: Identity, key: Key | None = None) -> tuple[bytes, Key]:
    """Return the finished ticket and the key to its pseudonyms.

    Raises RedactionError naming the place when the second look finds anything; no secret stands in the message.
    """
    hidden, key = redact_transcript(raw, identity, key)
    return _looked_through(chosen, chosen.render(hidden), hidden, key), key


def _looked_through(chosen: Renderer, content: bytes, of: Transcript, key: Key, dropped: Collection[str] = ()) -> bytes:
    """Return the finished content when nothing private or dropped is left in it, else raise RedactionError.

    It names the place. of: what was laid out; looked through as well where the layout breaks words into lines.
    """
    parts = list(chosen.read(content))
    if chosen.wraps:
        unbroken = renderer("json")
        parts += (("before lines were broken", text) for _, text in unbroken.read(unbroken.render(of)))
    for name, text in parts:
        part = f"{name}, " if name else ""
        for line, wanted in remaining(text, dropped):
            raise RedactionError(
                f"the ticket was not written: {part}line {line} still holds a text that was to be left out "
                f"({len(wanted)} characters)",
                "take that line back in the preview, and hide a word of it instead",
                line=wanted,
            )
        left = scan(text, key.words)
        if left:
            first = left[0]
            more = f", and {len(left) - 1} more places" if len(left) > 1 else ""
            ours = key.words.get(first.word) == CHOSEN
            raise RedactionError(
                f"the ticket was not written: {part}line {first.line}, column {first.column} "
                f"still holds {first.what} ({first.shown}){more}",
                "it is a word that tickets are written with: hide it no longer (--unhide WORD)"
                if ours
                else "hide the word by name as well (--hide WORD), or take that evidence out of the session",
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


def write_private(path: str, content: bytes, *, overwrite: bool, access: Access = PRIVATE) -> None:
    """Write a file that appears whole, with mode 0600 or what `access` allows.

    Raises UsageError when it exists and is not to be overwritten, SessionError when it cannot be written.
    """
    try:
        write_whole(path, content, overwrite=overwrite, access=access)
    except FileExistsError as error:
        raise UsageError(f"{path}: the file exists already", "choose another name, or allow overwriting it") from error
    except OSError as error:
        raise SessionError(f"{path}: cannot be written: {error.strerror}", "choose another place") from error


def check_target(path: str, root: str, *, overwrite: bool, into_run: bool) -> None:
    """Raise UsageError when no file may be written at `path`: it is there already, is no file, or lies in the run."""
    if not overwrite and os.path.lexists(path):
        raise UsageError(f"{path}: the file exists already", "choose another name, or allow overwriting it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"{path}: this is no regular file", "choose the name of a file, or - for standard output")
    run = os.path.realpath(root) if root else ""
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    if run and os.path.isdir(run) and not into_run and os.path.commonpath((run, folder)) == run:
        raise UsageError(f"{path}: this is inside the run, which stays as it is", "choose a place outside of it")


def free_name(session: str | os.PathLike[str], suffix: str) -> str:
    """Return a name in the session folder that is not taken."""
    number = 1
    while os.path.lexists(path := os.path.join(session, f"ticket-{number}{suffix}")):
        number += 1
    return path


def key_path(session: str | os.PathLike[str]) -> str:
    """Return where the key of a session is: beside another person's, which nobody else may read, there is one's own."""
    path = os.path.join(session, KEY_FILE)
    if os.path.exists(path) and not os.access(path, os.R_OK):
        stem, suffix = os.path.splitext(path)
        return f"{stem}-{os.getuid()}{suffix}"
    return path


def keep_key_at(path: str, key: Key, *, needed: bool) -> None:
    """Write the key beside the journal; a session without one, or that can only be read, keeps none."""
    if not os.path.isfile(os.path.join(os.path.dirname(path), JOURNAL)):
        return
    try:
        write_private(path, msgspec.json.format(msgspec.json.encode(key.to_keep()), indent=2), overwrite=True)
    except SessionError:
        if needed:
            raise


def read_key(path: str) -> Key | None:
    """Return the key of an earlier export, None when there is none that can be read."""
    try:
        with open(path, "rb") as file:
            return Key.kept(msgspec.json.decode(file.read(), type=dict[str, dict[str, str]]))
    except (OSError, msgspec.DecodeError, ValueError):
        return None
