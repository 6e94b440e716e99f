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


def remember(desk: Desk, *, enter: bool = True) -> None:
    """Record how the causes stand and enter them into the ledger beside the session; what could not be is said.

    enter: False for a preview and a dry run, of which nobody else is to hear.
    """
    from runbook.ledger import keeping

    if (trouble := keeping.remember(desk, enter=enter)) is not None:
        warn(trouble, desk.language)


def sightings(desk: Desk, report: Report, sessions: str | os.PathLike[str]) -> dict[str, Sighting]:
    """Return what the sessions of a folder over other runs know of the confirmed causes of a desk, by cause."""
    if not report.confirmed:
        return {}
    from runbook.ledger import lookup

    return lookup.sightings(sessions, report, desk.session_id, desk.state.root)


def words(seen: Mapping[str, Sighting], language: str) -> dict[str, tuple[str, ...]]:
    """Return sightings in words, by cause, with the days of this machine."""
    if not seen:
        return {}
    from runbook.ledger.telling import told

    return {cause: told(one, time.time(), language) for cause, one in seen.items()}


def of_session(desk: Desk, report: Report, folder: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """Return the words about the confirmed causes of a kept session, by cause. folder: of the session."""
    return words(sightings(desk, report, os.path.dirname(os.path.abspath(folder))), desk.language)
