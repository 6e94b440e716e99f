"""Where sessions are kept, and which there are.

A session is a folder with a journal in it; there is no index to go wrong. Listing reads only the ends of each journal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from runbook.errors import SessionError, UsageError
from runbook.session import events as ev
from runbook.session.journal import JOURNAL, decode_header, parse, read
from runbook.session.judging import confirmed
from runbook.session.lock import holder_of

__all__ = ["APP", "SessionInfo", "UnknownSessionError", "find", "list_sessions", "read", "sessions_dir"]

APP = "slime-runbook"
"""Name of the folder under the user's state directory."""

SESSIONS = "SLIME_RUNBOOK_SESSIONS"
"""Environment variable with the folder of sessions, where --sessions is not given."""

_BLOCK = 64 * 1024
_FURTHEST = 4 << 20
"""Bytes from the end of a journal beyond which nothing is looked for, so that a slow disk lists 500 sessions."""
_KINDS = tuple(b'"type":"%s"' % kind for kind in (b"flow", b"answered", b"back", b"left", b"note", b"judged", b"fixed"))


class UnknownSessionError(UsageError):
    """No session has such an id; several that might be meant are a plain UsageError."""


@dataclass(frozen=True)
class SessionInfo:
    """A session in a list.

    began, changed: seconds since the epoch. root: the RUN it is about. current: id of the flow in front, "" when
    none. locked_by: who holds it, "" when it is free. damaged: why it cannot be opened as far as its ends tell, ""
    when they are well; remedy: what to do about that. cause: the first confirmed cause when that was recorded last, ""
    when there was none, None when that is not known. fixed: a person said since what fixed it. notes: how many are
    known of.
    """

    id: str
    began: float
    changed: float
    root: str
    current: str
    locked_by: str
    damaged: str
    remedy: str = ""
    cause: str | None = None
    notes: int = 0
    fixed: bool = False


@dataclass
class _Ends:
    """What the end of a journal tells. left: the notes before it are counted in it. fixed: the causes that were."""

    current: str | None = None
    cause: str | None = None
    left: bool = False
    notes: int = 0
    fixed: set[str] = field(default_factory=set)

    @property
    def mended(self) -> bool:
        """Whether a person said what fixed the first confirmed cause."""
        return bool(self.cause) and bool({"", self.cause} & self.fixed)


def given_dir(override: str | None = None) -> str:
    """Return the folder that was given for sessions, on the command line or by SLIME_RUNBOOK_SESSIONS; "" for none."""
    return override or os.environ.get(SESSIONS, "")


def sessions_dir(override: str | None = None) -> Path:
    """Return the folder of all sessions.

    `override`, else SLIME_RUNBOOK_SESSIONS, else `sessions` in the user's state directory (XDG_STATE_HOME).
    """
    if given := given_dir(override):
        return Path(given).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_state_dir(APP, appauthor=False), "sessions")


def find(sessions: str | os.PathLike[str], id_or_prefix: str) -> Path:
    """Return the folder of the session with this id, or whose id alone begins or ends so.

    Raises UnknownSessionError when there is none, UsageError when there are several.
    """
    ids = _ids(sessions)
    if id_or_prefix in ids:
        return Path(sessions, id_or_prefix)
    fitting = [id for id in ids if id_or_prefix and (id.startswith(id_or_prefix) or id.endswith(f"-{id_or_prefix}"))]
    if len(fitting) == 1:
        return Path(sessions, fitting[0])
    if not fitting:
        raise UnknownSessionError(
            f"{os.fspath(sessions)}: there is no session {id_or_prefix!r}",
            "list the sessions to see their ids: slime-runbook sessions",
        )
    shown = ", ".join(fitting[:5]) + (", …" if len(fitting) > 5 else "")
    raise UsageError(f"{id_or_prefix!r} may be any of {len(fitting)} sessions: {shown}", "give more of the id")


def list_sessions(sessions: str | os.PathLike[str]) -> list[SessionInfo]:
    """Return every session under a folder, the newest first; a folder that does not exist holds none."""
    return [_info(os.path.join(sessions, id), id) for id in sorted(_ids(sessions), reverse=True)]


def _ids(sessions: str | os.PathLike[str]) -> list[str]:
    try:
        with os.scandir(sessions) as entries:
            return [e.name for e in entries if e.is_dir() and os.path.isfile(os.path.join(e.path, JOURNAL))]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SessionError(f"{os.fspath(sessions)}: cannot be read: {error.strerror}", "check its rights") from error


def _info(folder: str, id: str) -> SessionInfo:
    path = os.path.join(folder, JOURNAL)
    began = changed = 0.0
    root = damaged = remedy = locked_by = ""
    ends = _Ends()
    try:
        changed = os.stat(path).st_mtime
        holder = holder_of(folder)
        locked_by = holder.describe() if holder is not None else ""
        with open(path, "rb") as file:
            head, _, rest = file.read(_BLOCK).partition(b"\n")
            began = decode_header(path, head).began
            root = _root(rest)
            ends = _ends(file)
    except SessionError as error:
        damaged, remedy = error.message, error.hint
    except OSError as error:
        damaged, remedy = f"{path}: cannot be read: {error.strerror}", "check its rights"
    return SessionInfo(
        id,
        began,
        changed,
        root,
        ends.current or "",
        locked_by,
        damaged,
        remedy,
        ends.cause,
        ends.notes,
        ends.mended,
    )


def _root(head: bytes) -> str:
    """Return the RUN that the first `opened` event names."""
    for line in head.split(b"\n")[:-1]:
        event = _event(line)
        if isinstance(event, ev.Opened):
            return event.root
    return ""


def _ends(file: BinaryIO) -> _Ends:
    """Return what the journal tells from its end: the flow in front, the first cause, how many notes there are."""
    size = file.seek(0, os.SEEK_END)
    reach, found = 0, _Ends()
    while reach < min(size, _FURTHEST) and (found.current is None or found.cause is None):
        reach, found = min(size, max(_BLOCK, reach * 4)), _Ends()
        file.seek(size - reach)
        tail = file.read(reach)
        for line in reversed(tail[: tail.rfind(b"\n") + 1].split(b"\n")):
            if any(kind in line for kind in _KINDS):
                _note_end(found, _event(line))
    return found


def _note_end(found: _Ends, event: ev.Event | None) -> None:
    """Take in an event, going backwards."""
    if isinstance(event, ev.FlowStarted | ev.Answered | ev.WentBack) and found.current is None:
        found.current = event.flow
    elif isinstance(event, ev.Noted) and not found.left:
        found.notes += 1
    elif isinstance(event, ev.Fixed):
        found.fixed.add(event.cause)
    elif isinstance(event, ev.Judged) and found.cause is None:
        found.cause = next(iter(confirmed(event)), "")
    elif isinstance(event, ev.Left) and event.cause is not None and not found.left:
        found.left, found.notes = True, found.notes + event.notes
        found.cause = event.cause if found.cause is None else found.cause
        found.fixed.update([event.cause] if event.fixed else ())


def _event(line: bytes) -> ev.Event | None:
    try:
        found = parse(line)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(found, int) else found.event
