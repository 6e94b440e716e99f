"""How the plain commands fill a desk with evidence and wait for its probes, and how the UI is opened over one."""

from __future__ import annotations

import argparse
import contextlib
import queue
import shlex
import shutil
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from runbook.catalog import Catalog
from runbook.cli import options
from runbook.cli.options import warn
from runbook.errors import EvidenceError, RunbookError
from runbook.session import arrivals
from runbook.session import events as ev
from runbook.session.desk import DISCOVERY_DEADLINE, Desk
from runbook.session.opening import new_session

if TYPE_CHECKING:
    from runbook.window import Source


@contextlib.contextmanager
def triaged(parsed: argparse.Namespace, path: str) -> Iterator[Desk]:
    """Give a desk over a new session in which RUN at `path` was triaged, for what takes a session or a run.

    Raises EvidenceError for a bundle, and when there is no evidence of any kind; no session is left behind then.
    """
    root, pairs = options.run_at(path), options.given(parsed)
    desk = new_session(options.catalog(parsed.flows, parsed.lang), parsed.sessions, parsed.lang)
    try:
        try:
            desk.begin(root)
            collect(desk, root, pairs)
            if not desk.state.items:
                raise EvidenceError(f"{path}: there is no evidence in it", "give the folder of a run, or files by slot")
        except RunbookError:
            desk.close()
            shutil.rmtree(desk.folder, ignore_errors=True)
            raise
        ask_all(desk, desk.triage_probes(heavy=parsed.heavy))
        yield desk
    finally:
        desk.close()


def tell(desk: Desk) -> None:
    """Say on stderr what a person should know about the session before it goes on."""
    for words in desk.warnings:
        warn(words, desk.language)


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


def show(parsed: argparse.Namespace, desk: Desk, flow: str | None, kept: Source | None = None) -> int:
    """Hand the terminal to the UI until the person leaves; return the exit code.

    kept: what a bundle holds of the files; then nothing is asked, read or kept.
    """
    from runbook.tui.running import run_app

    parsed.frame.handed_over = True
    return int(run_app(desk, flow, ascii_only=parsed.ascii, kept=kept))


def collect(desk: Desk, root: str, pairs: tuple[tuple[str, str], ...]) -> None:
    """Take the evidence of the first run and wait for it.

    Raises the RunbookError of the discovery; notes go to stderr.
    """
    with _Discovery(desk, root) as discovery:
        desk.discover(root, pairs)
        discovery.wait()


def look_again(desk: Desk, root: str, pairs: tuple[tuple[str, str], ...]) -> None:
    """Take what is new in the evidence of the first run; its notes were told before. Raises as `collect` does."""
    with _Discovery(desk, root) as discovery:
        desk.discover(root, pairs)
        discovery.wait(notes=False)


def attach(desk: Desk, flow: str, node: str, path: str) -> str:
    """Attach the run in `path` to an experiment, wait for its evidence and return the run's name.

    Raises the RunbookError of the discovery, and nothing is attached then; notes go to stderr.
    """
    with _Discovery(desk, path) as discovery:
        run = desk.attach(flow, node, path)
        discovery.wait()
    return run


def change(desk: Desk, flow: str, node: str) -> ev.CopyChanged:
    """Write the changed copy of an experiment, wait for it and return it. Raises the RunbookError that prevented it."""
    heard: queue.SimpleQueue[ev.CopyChanged | RunbookError] = queue.SimpleQueue()
    stop = desk.listen(lambda kind, payload: heard.put(payload) if kind == "error" else None)
    try:
        desk.change(flow, node, heard.put)
        result = heard.get()
    finally:
        stop()
    if isinstance(result, RunbookError):
        raise result
    return result


class _Discovery:
    """Waits for one discovery of a desk to end."""

    def __init__(self, desk: Desk, root: str) -> None:
        self._desk, self._root = desk, root
        self._over = threading.Event()
        self._heard: list[Any] = []

    def __enter__(self) -> _Discovery:
        self._stop = self._desk.listen(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _hear(self, kind: str, payload: Any) -> None:
        if kind in ("discovered", "error"):
            self._heard.append(payload)
            self._over.set()

    def wait(self, *, notes: bool = True) -> None:
        """Wait; raise what it failed with, or tell its notes."""
        if not self._over.wait(DISCOVERY_DEADLINE + arrivals.DEADLINE + 5):
            raise RunbookError(f"{self._root}: looking for evidence took too long", "give files by slot")
        if isinstance(self._heard[0], RunbookError):
            raise self._heard[0]
        for note in self._heard[0] if notes else ():
            warn(note, self._desk.language)


def walk_command(desk: Desk, flow: str) -> str:
    """Return the command that walks another flow over the same evidence."""
    words = [desk.state.root] if desk.state.root else []
    for item in desk.state.items:
        if item.origin == "given" and not item.run and item.slot in desk.catalog.slots:
            words += [desk.catalog.slots[item.slot].flag, item.path]
    return shlex.join(("slime-runbook", "run", flow, *words))


def ask_all(desk: Desk, probes: Iterable[str], run: str = "") -> None:
    """Ask every probe, in this order and before what waits, and return when all have answered.

    Raises the error that kept a finding from being written. A probe that is not there, since its module is broken, is
    passed over: its node stays open.
    """
    asked = [probe for probe in dict.fromkeys(probes) if probe in desk.catalog.probes]
    waiting = set(asked)
    over = threading.Condition()
    errors: list[RunbookError] = []

    def listen(kind: str, payload: Any) -> None:
        event = payload.event if kind == "record" else None
        with over:
            if kind == "error":
                errors.append(payload)
            elif isinstance(event, ev.Found) and event.run == run:
                waiting.discard(event.finding.probe)
            over.notify_all()

    stop = desk.listen(listen)
    try:
        for probe in asked:
            desk.ask(probe, run, first=True)
        with over:
            while waiting and not errors:
                over.wait(1.0)
    finally:
        stop()
    if errors:
        raise errors[0]
