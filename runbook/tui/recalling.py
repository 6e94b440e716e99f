"""What earlier sessions know of the causes on screen, and what this one leaves for later ones.

Invariants: the ledger is read and written on other threads only, never on the app's; a session that is kept nowhere has
none; trouble with it is said once and stops nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runbook.session.desk import Desk
from runbook.text import Text
from runbook.triage import Report
from runbook.tui.asking import Hands

if TYPE_CHECKING:
    from runbook.ledger.store import Entry

Words = Mapping[str, tuple[str, ...]]


class Recalling:
    """The ledger beside the session of one desk. trouble: what could not be written, None while all is well."""

    def __init__(self, desk: Desk, hands: Hands, tell: Callable[[Text], None]) -> None:
        """Remember for `desk`. tell: hears, on the app's thread, what a person should know."""
        self._desk, self._hands, self._tell = desk, hands, tell
        self._entries: tuple[Entry, ...] = ()
        self._kept: frozenset[str] = frozenset()
        self._words: tuple[tuple[object, ...], Words] | None = None
        self._wanted: tuple[object, ...] | None = None
        self._runs: Mapping[str, str] | None = None
        self.trouble: Text | None = None

    def load(self) -> None:
        """Read the ledger; from any thread but the app's."""
        from runbook.ledger import store

        if self._desk.folder:
            self._entries = store.read(os.path.dirname(os.path.abspath(self._desk.folder)))

    def words(self, report: Report, language: str) -> Words:
        """Return what the ledger says of the confirmed causes, by cause; nothing until their run is known.

        The files that prove them are read for that, on another thread; what comes of it is drawn with the next view.
        """
        if not self._entries or not report.confirmed:
            return {}
        from runbook.ledger.fingerprint import fingerprint
        from runbook.ledger.lookup import of_entries, runs_of
        from runbook.ledger.telling import told

        prints = tuple(map(fingerprint, report.confirmed))
        if prints != self._wanted:
            self._wanted, self._runs, root = prints, None, self._desk.state.root
            self._hands.do(lambda: runs_of(report, root), self._found)
        if self._runs is None:
            return {}
        key = (language, *prints)
        if self._words is None or self._words[0] != key:
            found = of_entries(self._entries, report, self._desk.session_id, self._runs)
            self._words = (key, {cause: told(seen, time.time(), language) for cause, seen in found.items()})
        return self._words[1]

    def _found(self, runs: Any) -> None:
        self._runs = runs if isinstance(runs, dict) else {}

    def settle(self, report: Report) -> None:
        """Enter what is confirmed, when that is not what was entered last; call it when nothing is being asked."""
        confirmed = frozenset(cause.cause for cause in report.confirmed)
        if confirmed and confirmed != self._kept and self._desk.folder and not self._desk.reads:
            self._kept = confirmed
            self._hands.do(self._remember, self._heard)

    def leave(self) -> None:
        """Record how the causes stand as the session is left."""
        if self._desk.folder:
            self._hands.do(self._remember)

    def _remember(self) -> Text | None:
        from runbook.ledger import keeping

        trouble = keeping.remember(self._desk)
        self.trouble = self.trouble or trouble
        return trouble

    def _heard(self, trouble: Any) -> None:
        if isinstance(trouble, Text):
            self._tell(trouble)
