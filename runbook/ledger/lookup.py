"""Asks the ledger about the confirmed causes of a session. It only reads."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence

from runbook.ledger import store
from runbook.ledger.fingerprint import fingerprint
from runbook.ledger.runs import identity_of
from runbook.ledger.telling import Sighting, sighting, told
from runbook.session.journal import JOURNAL
from runbook.text import Text
from runbook.triage import Report


def sightings(sessions: str | os.PathLike[str], report: Report, session: str, root: str) -> dict[str, Sighting]:
    """Return what the ledger knows of the confirmed causes of a session, by cause; nothing for those it does not.

    sessions: folder of all sessions. session: id of the one at hand, "" for none. root: its RUN.
    """
    entries = store.read(sessions) if report.confirmed else ()
    return of_entries(entries, report, session, runs_of(report, root) if entries else {})


def runs_of(report: Report, root: str) -> dict[str, str]:
    """Return the identity of the run for each confirmed cause; reads the begin of the files that they cite."""
    return {cause.cause: identity_of(cause, root) for cause in report.confirmed}


def of_entries(
    entries: Sequence[store.Entry], report: Report, session: str, runs: Mapping[str, str]
) -> dict[str, Sighting]:
    """Return what entries know of the confirmed causes of a session, by cause. runs: `runs_of` it."""
    found = {}
    for cause in report.confirmed if entries else ():
        made = fingerprint(cause)
        seen = sighting(entries, made, session, runs.get(cause.cause, "")) if made is not None else None
        if seen is not None:
            found[cause.cause] = seen
    return found


def for_ticket(
    folder: str | os.PathLike[str], report: Report, session: str, root: str, titles: dict[str, Text], language: str
) -> tuple[str, ...]:
    """Return what a ticket says of earlier sessions, a line a cause and kind.

    folder: of the session; one that is kept nowhere has no ledger. root: its RUN. titles: words of the causes.
    Days are dates in UTC, as all times of a ticket.
    """
    if not os.path.isfile(os.path.join(folder, JOURNAL)):
        return ()
    found = sightings(os.path.dirname(os.path.abspath(folder)), report, session, root)
    return tuple(
        f"{titles[cause].say(language) if cause in titles else cause}{'：' if language == 'zh' else ': '}{words}"
        for cause, seen in found.items()
        for words in told(seen, 0.0, language, zone=dt.timezone.utc, weekdays=False)
    )
