"""The desk: one open session, with its journal, its runner and its state.

It is where the pure engine meets clock, disk and processes. Every change goes through `append`, which writes the
journal first and folds the event into the state second, so that the state never shows what a crash would lose. All
methods may be called from any thread.
"""

from __future__ import annotations

import getpass
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from runbook import __version__
from runbook.catalog import Catalog
from runbook.discovery import Found as Discovered
from runbook.discovery import discover_installed
from runbook.errors import EvidenceError, RunbookError, SessionError
from runbook.finding import Finding
from runbook.runner import Job, Runner
from runbook.session import events as ev
from runbook.session.state import SessionState, fold, replay
from runbook.text import Text
from runbook.triage import Report
from runbook.walk import By, How, position

DISCOVERY_DEADLINE = 60.0
"""Seconds that looking for evidence may take: a slow shared disk answers some hundred `stat` calls in a second."""

Listener = Callable[[str, Any], None]
"""Called as (kind, payload) from any thread.

("record", Record), ("progress", (job, done, total, unit)), ("discovered", notes), ("error", RunbookError).
"""


class Log(Protocol):
    """Where records go: a journal on disk, or memory for a triage that leaves nothing behind."""

    def append(self, event: ev.Event, now: float) -> ev.Record:
        """Make the next record durable and return it; raises SessionError when it cannot be written."""

    def close(self) -> None:
        """Release what is held."""


class Memory:
    """A log that keeps nothing: triage and tests."""

    def __init__(self) -> None:
        self._n = 0

    def append(self, event: ev.Event, now: float) -> ev.Record:
        """Return the next record."""
        record = ev.Record(self._n, now, event)
        self._n += 1
        return record

    def close(self) -> None:
        """Do nothing."""


class Desk:
    """One open session. language: "en" or "zh", for what is drawn and exported."""

    def __init__(
        self,
        catalog: Catalog,
        log: Log | None = None,
        records: Iterable[ev.Record] = (),
        *,
        session_id: str = "",
        folder: str = "",
        language: str = "en",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open over `log`; records: what it already holds; folder: where the session is kept, "" for one in memory."""
        self.catalog = catalog
        self.session_id = session_id
        self.folder = folder
        self.language = language
        self.warnings: list[Text] = []
        self._log: Log = log or Memory()
        self._clock = clock
        self._lock = threading.RLock()
        self._listeners: list[Listener] = []
        self._runner = Runner(("runbook.preload",))
        self._jobs: dict[tuple[str, str], Job] = {}
        self._closing = self._closed = False
        self.state: SessionState = replay(records, catalog.flows)
        changed = [
            flow for flow, known in self.state.flow_hashes.items() if catalog.hashes.get(flow) not in (known, None)
        ]
        if changed:
            names = ", ".join(changed)
            self.warnings.append(
                Text(f"changed since this session began: {names}", f"自本会话开始以来流程已变更：{names}")
            )

    def listen(self, listener: Listener) -> None:
        """Call `listener` for everything that happens from now on."""
        self._listeners.append(listener)

    def begin(self, root: str) -> None:
        """Record that the session was opened or resumed here."""
        self.append(ev.Opened(__version__, self.catalog.hashes, root, login_name()))

    def append(self, event: ev.Event) -> SessionState:
        """Journal `event`, fold it into the state and return that; raises SessionError when it cannot be written."""
        with self._lock:
            if self._closed:
                return self.state
            record = self._log.append(event, self._clock())
            self.state = fold(self.state, record, self.catalog.flows)
            state = self.state
        self._tell("record", record)
        return state

    def report(self) -> Report:
        """Return the triage of what is known now."""
        return self.state.report(self.catalog.flows.values(), self.catalog.vocabulary)

    def discover(self, root: str, given: Sequence[tuple[str, str]] = (), run: str = "") -> Job:
        """Look for evidence in a worker; it is appended when found.

        Listeners hear "discovered" with the notes, or "error".
        """

        def done(answer: Any) -> None:
            if isinstance(answer, Discovered):
                self._guard(lambda: self.append(ev.EvidenceAdded(answer.evidence.items)))
                self._tell("discovered", answer.notes)
            elif isinstance(answer, RunbookError):
                self._tell("error", answer)
            else:
                self._tell(
                    "error", EvidenceError(f"{root}: looking for evidence failed: {answer!r}", "give files by slot")
                )

        return self._runner.call(discover_installed, (root, tuple(given), run), done, DISCOVERY_DEADLINE)

    def ask(self, probe_id: str, run: str = "") -> Job:
        """Ask a probe of one run; the finding is journalled and announced.

        A probe already running for that run is not started twice.
        """
        with self._lock:
            running = self._jobs.get((run, probe_id))
            if running is not None and not running.over:
                return running
        probe = self.catalog.probes[probe_id]
        holder: list[Job] = []

        def done(finding: Finding) -> None:
            if not self._closing:
                self._guard(lambda: self.append(ev.Found(finding, run)))
                self._guard(lambda: self._keep(finding))

        def progress(amount: float, total: float | None, unit: str) -> None:
            if holder:
                self._tell("progress", (holder[0], amount, total, unit))

        job = self._runner.start(probe, self.state.evidence(run), done, progress)
        holder.append(job)
        with self._lock:
            self._jobs[(run, probe_id)] = job
        return job

    def jobs(self) -> dict[tuple[str, str], Job]:
        """Return the jobs that wait or run, by (run, probe id)."""
        with self._lock:
            return {key: job for key, job in self._jobs.items() if not job.over}

    def triage_probes(self) -> list[str]:
        """Return the ids of all probes that the flows ask, cheap ones first, in flow order."""
        ids = dict.fromkeys(
            p for flow in self.catalog.flows.values() for node in flow.nodes.values() for p in node.probes
        )
        known = [probe for probe in ids if probe in self.catalog.probes]
        return sorted(known, key=lambda probe: self.catalog.probes[probe].heavy)

    def answer(self, flow_id: str, answer: str, who: str | None = None) -> SessionState:
        """Answer the node at which the walk stands.

        It counts as the probes' answer when they decide the same and `who` is None.
        """
        flow = self.catalog.flows[flow_id]
        node = position(flow, self.state.walk(flow_id))
        decision = self.state.decision(flow, node)
        by_probe = who is None and decision.how is How.DECIDED and decision.answer == answer
        asked = tuple(probe for probe in flow.nodes[node].probes if probe in self.state.findings_at(flow, node))
        by = By.PROBE if by_probe else By.PERSON
        return self.append(ev.Answered(flow_id, node, answer, by, "" if by_probe else who or login_name(), asked))

    def close(self) -> None:
        """Stop all jobs, record the leave and release the journal.

        What a job would still have said is not recorded.
        """
        self._closing = True
        self._runner.close()
        self._guard(lambda: self.append(ev.Left(login_name())))
        with self._lock:
            self._closed = True
            self._log.close()

    def _keep(self, finding: Finding) -> None:
        """Write the edits that a finding proposes into the session's folder; the originals stay as they are."""
        for proposal in finding.proposals if self.folder else ():
            path = os.path.join(self.folder, f"{finding.probe}.{os.path.basename(proposal.name)}")
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
                with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(proposal.diff)
            except OSError as error:
                raise SessionError(
                    f"{path}: cannot be written: {error.strerror}", "make room, then ask again"
                ) from error

    def _guard(self, action: Callable[[], object]) -> None:
        """Run `action` on a thread of the runner; an error of ours goes to the listeners instead of being lost."""
        try:
            action()
        except RunbookError as error:
            self._tell("error", error)

    def _tell(self, kind: str, payload: Any) -> None:
        for listener in tuple(self._listeners):
            listener(kind, payload)


def login_name() -> str:
    """Return the name of the person at the terminal; "someone" where the system does not know."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "someone"
