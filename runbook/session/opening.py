"""Opens a desk over a session on disk: a new one, one to go on with, or one that is only read.

A session that somebody else holds can be followed as a reader, and a reader can take it over. Invariant: a desk writes
only while its journal holds the lock; one that lost it turns into a reader and keeps what was written.
"""

from __future__ import annotations

import os
import time

from runbook.catalog import Catalog
from runbook.errors import HeldError, SessionError
from runbook.private import PRIVATE, access_of
from runbook.session.desk import Desk
from runbook.session.journal import Journal, read
from runbook.session.lock import Holder
from runbook.session.log import Reading
from runbook.session.store import given_dir, sessions_dir


def new_session(catalog: Catalog, sessions: str | None, language: str = "en") -> Desk:
    """Return a desk over a new session on disk.

    sessions: the folder of all sessions, None for the usual one. In a folder that was given the session is for whom
    that folder is for; in the usual one it is for its owner.
    """
    folder = sessions_dir(sessions)
    access = access_of(folder) if given_dir(sessions) else PRIVATE
    journal = Journal.create(folder, time.time(), catalog.hashes, access)
    return _over(catalog, journal, language)


def open_session(catalog: Catalog, folder: str, language: str = "en", *, take_over: bool = False) -> Desk:
    """Return a desk over a kept session, to go on with it. take_over: see `runbook.session.lock.acquire`.

    Raises HeldError when somebody else holds it, SessionError when it is damaged before its last line or cannot be
    written.
    """
    desk = _over(catalog, Journal.open(folder, take_over=take_over), language)
    try:
        desk.begin(desk.state.root)
    except BaseException:
        desk.close()
        raise
    return desk


def _over(catalog: Catalog, journal: Journal, language: str) -> Desk:
    """Return a desk over an open journal; where there can be none, the journal is closed and its lock given up."""
    id, folder = journal.id, str(journal.folder)
    try:
        return Desk(
            catalog,
            journal,
            journal.records,
            session_id=id,
            folder=folder,
            language=language,
            warnings=journal.warnings,
        )
    except BaseException:
        journal.close()
        raise


def read_session(catalog: Catalog, folder: str, language: str = "en") -> Desk:
    """Return a desk over a kept session that leaves it as it is and needs no lock. Raises SessionError."""
    records, warnings = read(folder)
    return Desk(catalog, Reading(), records, session_id=os.path.basename(folder), language=language, warnings=warnings)


def follow_session(catalog: Catalog, folder: str, language: str = "en") -> Desk:
    """Return a desk for a reader who stays: its front looks for what is new with `Follower`. Raises SessionError."""
    records, warnings = read(folder)
    id = os.path.basename(folder)
    return Desk(catalog, Reading(), records, session_id=id, folder=folder, language=language, warnings=warnings)


def open_or_follow(catalog: Catalog, folder: str, language: str = "en") -> Desk:
    """Return a desk over a kept session, to go on with it; a reader's where somebody else holds it, or alone may write.

    Raises SessionError as `open_session`.
    """
    try:
        return open_session(catalog, folder, language)
    except SessionError as error:
        if isinstance(error, HeldError) or not os.access(folder, os.W_OK):
            return follow_session(catalog, folder, language)
        raise


def take_over(desk: Desk, instead_of: Holder | None) -> None:
    """Make a reader's desk the one that writes.

    instead_of: the holder that the person was told of, who may be alive; a dead one gives way anyhow. Raises HeldError
    when somebody else holds it by now, SessionError as `open_session`; the desk then stays a reader's.
    """
    journal = Journal.open(desk.folder, take_over=instead_of is not None, instead_of=instead_of)
    try:
        desk.hand(journal, journal.records)
        desk.begin(desk.state.root)
    except BaseException:
        desk.hand(Reading(), None)
        journal.close()  # also where the desk never came to hold it
        raise


def give_way(desk: Desk) -> None:
    """Turn a desk whose session was taken over into a reader's; what it knows stays until the journal is read anew."""
    desk.hand(Reading(), None)
