"""Opens a desk over a session on disk: a new one, one to go on with, or one that is only read."""

from __future__ import annotations

import os
import time

from runbook.catalog import Catalog
from runbook.session.desk import Desk
from runbook.session.journal import Journal, read
from runbook.session.store import sessions_dir


def new_session(catalog: Catalog, sessions: str | None, language: str = "en") -> Desk:
    """Return a desk over a new session on disk. sessions: the folder of all sessions, None for the usual one."""
    journal = Journal.create(sessions_dir(sessions), time.time(), catalog.hashes)
    return Desk(catalog, journal, session_id=journal.id, folder=str(journal.folder), language=language)


def open_session(catalog: Catalog, folder: str, language: str = "en", *, take_over: bool = False) -> Desk:
    """Return a desk over a kept session, to go on with it. take_over: see `runbook.session.lock.acquire`.

    Raises SessionError when it is locked, damaged before its last line, or cannot be written.
    """
    journal = Journal.open(folder, take_over=take_over)
    desk = Desk(
        catalog,
        journal,
        journal.records,
        session_id=journal.id,
        folder=folder,
        language=language,
        warnings=journal.warnings,
    )
    try:
        desk.begin(desk.state.root)
    except BaseException:
        desk.close()
        raise
    return desk


def read_session(catalog: Catalog, folder: str, language: str = "en") -> Desk:
    """Return a desk over a kept session that leaves it as it is and needs no lock. Raises SessionError."""
    records, warnings = read(folder)
    return Desk(catalog, None, records, session_id=os.path.basename(folder), language=language, warnings=warnings)
