"""One rule by which every command finds a kept session, and tells a session from a run and from a bundle."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from runbook.errors import EvidenceError, UsageError
from runbook.session.store import UnknownSessionError, find, sessions_dir


def session(sessions: str | None, word: str) -> Path:
    """Return the folder of the session that a word names. sessions: the folder that was given, None for the usual one.

    Raises UsageError when it names none or several, and says so where it names a bundle.
    """
    try:
        return find(sessions_dir(sessions), word)
    except UnknownSessionError as error:
        if _is_bundle(word):
            raise _bundle(word) from error
        raise


def session_or_run(sessions: str | None, word: str) -> Path | None:
    """Return the folder of the session that a word names, None when it is the path of a run.

    Raises UsageError as `session`, also when it names neither, EvidenceError when it is the path of a bundle.
    """
    if os.path.exists(word):
        if _is_bundle(word):
            raise _bundle(word)
        return None
    try:
        return session(sessions, word)
    except UnknownSessionError as error:
        hint = "give a session id (slime-runbook sessions list) or the path of a run"
        raise UsageError(f"{word}: neither a session nor a file or folder", hint) from error


def _is_bundle(word: str) -> bool:
    from runbook.bundle.archive import is_bundle

    return os.path.isfile(word) and is_bundle(word)


def _bundle(word: str) -> EvidenceError:
    hint = f"open it with slime-runbook open {shlex.quote(word)}"
    return EvidenceError(f"{word}: this is a bundle: what was cited of a run, without its bulk data", hint)
