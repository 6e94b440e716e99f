"""How the plain commands open a desk, fill it with evidence and wait for its probes."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterable
from typing import Any

from runbook.catalog import Catalog
from runbook.cli.options import warn
from runbook.errors import RunbookError
from runbook.session.desk import DISCOVERY_DEADLINE, Desk
from runbook.session.journal import Journal
from runbook.session.store import sessions_dir


def new_session(loaded: Catalog, sessions: str | None, language: str) -> Desk:
    """Return a desk over a new session on disk."""
    journal = Journal.create(sessions_dir(sessions), time.time())
    return Desk(loaded, journal, session_id=journal.id, folder=str(journal.folder), language=language)


def new_screen(
    parsed: argparse.Namespace, loaded: Catalog, root: str, pairs: tuple[tuple[str, str], ...], flow: str | None
) -> int:
    """Open the terminal UI on a new session over RUN `root` and the evidence given by slot; return the exit code."""
    desk = new_session(loaded, parsed.sessions, parsed.lang)
    try:
        desk.begin(root)
        desk.discover(root, pairs)
        return show(parsed, desk, flow)
    finally:
        desk.close()


def show(parsed: argparse.Namespace, desk: Desk, flow: str | None) -> int:
    """Hand the terminal to the UI until the person leaves; return the exit code."""
    from runbook.tui.app import run_app

    parsed.frame.handed_over = True
    return int(run_app(desk, flow, ascii_only=parsed.ascii))


def collect(desk: Desk, root: str, pairs: tuple[tuple[str, str], ...], run: str = "") -> None:
    """Take the evidence and wait for it. Raises the RunbookError of the discovery; notes go to stderr."""
    over = threading.Event()
    heard: list[Any] = []

    def listen(kind: str, payload: Any) -> None:
        if kind in ("discovered", "error"):
            heard.append(payload)
            over.set()

    desk.listen(listen)
    desk.discover(root, pairs, run)
    if not over.wait(DISCOVERY_DEADLINE + 5):
        raise RunbookError(f"{root}: looking for evidence took too long", "give files by slot")
    if isinstance(heard[0], RunbookError):
        raise heard[0]
    for note in heard[0]:
        warn(note, desk.language)


def ask_all(desk: Desk, probes: Iterable[str], run: str = "") -> None:
    """Ask every probe and wait until all have answered. Raises the error that kept a finding from being written.

    A probe that is not there, since its module is broken, is passed over: its node stays open.
    """
    waiting = set(probes) & set(desk.catalog.probes)
    over = threading.Condition()
    errors: list[RunbookError] = []

    def listen(kind: str, payload: Any) -> None:
        finding = getattr(getattr(payload, "event", None), "finding", None)
        with over:
            if kind == "error":
                errors.append(payload)
            elif kind == "record" and finding is not None:
                waiting.discard(finding.probe)
            over.notify_all()

    desk.listen(listen)
    for probe in tuple(waiting):
        desk.ask(probe, run)
    with over:
        while waiting and not errors:
            over.wait(1.0)
    if errors:
        raise errors[0]
