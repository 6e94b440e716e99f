"""Enters what a session confirmed into the ledger: where desk, clock and disk meet.

Invariant: whatever happens to the ledger, the session goes on; what could not be written is said, not raised.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from runbook.errors import RunbookError
from runbook.ledger import store
from runbook.ledger.fingerprint import fingerprint
from runbook.ledger.runs import identity_of
from runbook.session.desk import Desk
from runbook.session.judging import judged
from runbook.text import Text, sanitise
from runbook.ticket.choices import choices
from runbook.ticket.export import KEY_FILE, local_identity, people_of, read_key
from runbook.ticket.redact import Identity, Key


def remember(desk: Desk, *, enter: bool = True) -> Text | None:
    """Record how the causes of a kept session stand, and enter those confirmed into the ledger, each once.

    enter: False leaves the ledger alone. A session in memory, or one that is only read, leaves nothing. Returns what a
    person should know when something could not be written.
    """
    if not desk.folder or desk.reads:
        return None
    try:
        judgement = judged(desk.state, desk.report(), desk.catalog.flows)
        if judgement != desk.state.judged:
            desk.append(judgement)
        if not enter:
            return None
        sessions = os.path.dirname(os.path.abspath(desk.folder))
        return write(sessions, missing(desk, sessions))
    except RunbookError as error:
        said = sanitise(error.message)
        return Text(said, said)


def private_of(desk: Desk, sessions: str | os.PathLike[str], *people: str) -> tuple[Identity, Key | None]:
    """Return what must not stand in the ledger: what a ticket of the session hides, and `people` besides.

    Raises SessionError when what was chosen to be hidden cannot be read.
    """
    folder = os.path.join(sessions, desk.session_id)
    identity = local_identity((*people_of(desk.state), *people), choices(folder).hide)
    return identity, read_key(os.path.join(folder, KEY_FILE))


def missing(desk: Desk, sessions: str | os.PathLike[str]) -> list[store.Entry]:
    """Return the entries of a session's confirmed causes that the ledger of a folder of sessions lacks."""
    made = [(cause, one) for cause in desk.report().confirmed if (one := fingerprint(cause)) is not None]
    if not made:
        return []
    known = {
        one.print for one in store.read(sessions) if isinstance(one, store.Confirmed) and one.session == desk.session_id
    }
    state, now = desk.state, time.time()
    identity, key = private_of(desk, sessions)
    return [
        store.confirmed(
            one, now, desk.session_id, state.root, cause.flow, cause.node, identity, identity_of(cause, state.root), key
        )
        for cause, one in made
        if one.id not in known
    ]


def write(sessions: str | os.PathLike[str], entries: Iterable[store.Entry]) -> Text | None:
    """Add entries to the ledger; returns what a person should know when that failed."""
    try:
        store.append(sessions, tuple(entries))
    except OSError as error:
        path, why = sanitise(os.path.join(sessions, store.LEDGER)), error.strerror
        return Text(
            f"{path}: cannot be written ({why}): other sessions will not hear of this one's causes",
            f"{path}：无法写入（{why}）：其他会话将不知道本会话的原因",
        )
    return None
