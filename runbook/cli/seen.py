"""What the plain commands enter into the ledger and say out of it. It is loaded only where it is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from runbook.cli.options import warn
from runbook.session.desk import Desk
from runbook.triage import Report

if TYPE_CHECKING:
    from runbook.ledger.telling import Sighting


def remember(desk: Desk) -> None:
    """Enter what the session confirms into the ledger beside it; what could not be written is said."""
    from runbook.ledger import keeping

    if (trouble := keeping.remember(desk)) is not None:
        warn(trouble, desk.language)


def sightings(report: Report, sessions: str | os.PathLike[str], session: str = "") -> dict[str, Sighting]:
    """Return what other sessions of a folder know of the confirmed causes, by cause. session: the one at hand."""
    if not report.confirmed:
        return {}
    from runbook.ledger import lookup

    return lookup.sightings(sessions, report, session)


def words(seen: Mapping[str, Sighting], language: str) -> dict[str, tuple[str, ...]]:
    """Return sightings in words, by cause, with the days of this machine."""
    if not seen:
        return {}
    from runbook.ledger.telling import told

    return {cause: told(one, time.time(), language) for cause, one in seen.items()}


def of_session(
    report: Report, folder: str | os.PathLike[str], session: str, language: str
) -> dict[str, tuple[str, ...]]:
    """Return the words about the confirmed causes of a kept session, by cause. folder: of the session."""
    return words(sightings(report, os.path.dirname(os.path.abspath(folder)), session), language)
