"""The desk: one open session, with its journal, its runner and its state.

It is where the pure engine meets clock, disk and processes. Every change goes through `append`, which writes the
journal first and folds the event into the state second, so that the state never shows what a crash would lose. All
methods may be called from any thread.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from runbook import __version__
from runbook.catalog import Catalog
from runbook.changing import Changed, Checked
from runbook.discovery import Found as Discovered
from runbook.discovery import discover_installed
from runbook.errors import EvidenceError, RunbookError, UsageError
from runbook.finding import Finding
from runbook.runner import Job, Runner
from runbook.session import arrivals, copies
from runbook.session import events as ev
from runbook.session.judging import judged, moved
from runbook.session.log import Log, Memory, Reading
from runbook.session.people import author
from runbook.session.state import SessionState, fix_of, flows_now, fold, replay
from runbook.text import Text
from runbook.triage import Report
from runbook.walk import By, How, position

DISCOVERY_DEADLINE = 60.0
"""Seconds that looking for evidence may take: a slow shared disk answers some hundred `stat` calls in a second."""

Listener = Callable[[str, Any], None]
"""Called as (kind, payload) from any thread.

("record", Record), ("progress", (job, done, total, unit)), ("discovered", notes), ("error", RunbookError).
"""


class Due(NamedTuple):
    """Probes that should be asked of a run. again: also those that answered. first: before all others."""

    probes: tuple[str, ...]
    run: str = ""
    again: bool = False
    first: bool = False


class Desk:
    """One open session.

    language: "en" or "zh", for what is drawn and exported. warnings: what a person should know before going on; every
    front tells it. resumed: there was something in the session when it was opened.
    """

    def __init__(
        self,
        catalog: Catalog,
        log: Log | None = None,
        records: Iterable[ev.Record] = (),
        *,
        session_id: str = "",
        folder: str = "",
        language: str = "en",
        warnings: Iterable[Text] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open over `log`.

        records: what it already holds. folder: where the session is kept, "" for one in memory. warnings: what was
        noticed when the log was read.
        """
        self.catalog = catalog
        self.session_id = session_id
        self.folder = folder
        self.language = language
        self.warnings: list[Text] = list(warnings)
        self._log: Log = log or Memory()
        self._clock = clock
        self._lock = threading.RLock()
        self._listeners: list[Listener] = []
        self._runner = Runner(("runbook.preload",))
        self._jobs: dict[tuple[str, str], Job] = {}
        self._run_names: set[str] = set()
        self._closing = self._closed = False
        self.state: SessionState = replay(records, catalog.flows)
        self.resumed = self.state.revision > 0
        self.warnings += flows_now(self.state.flow_hashes, catalog.hashes)

    @property
    def reads(self) -> bool:
        """Whether the session is only read here, since somebody else writes it."""
        return isinstance(self._log, Reading)

    def held(self) -> bool:
        """Return whether the session is still ours to write; may read a file. Raises as `Lock.held`."""
        return self._log.held()

    def hand(self, log: Log, records: Iterable[ev.Record] | None) -> None:
        """Go on over another log: the session was taken over, by us or from us.

        records: what it holds, None to keep what is known. What runs is stopped when nothing more can be written.
        """
        with self._lock:
            state = self.state if records is None else replay(records, self.catalog.flows)  # it may fail: first
            self._log, before, self.state = log, self._log, state
        before.close()
        if self.reads:
            for job in self.jobs().values():
                job.cancel()

    def take_in(self, record: ev.Record) -> None:
        """Fold a record that somebody else wrote into the state and announce it."""
        with self._lock:
            self.state = fold(self.state, record, self.catalog.flows)
        self._tell("record", record)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for everything that happens from now on, until what is returned is called."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def begin(self, root: str) -> None:
        """Record that the session was opened or resumed here."""
        self.append(ev.Opened(__version__, self.catalog.hashes, root, author()))

    def append(self, event: ev.Event) -> SessionState:
        """Journal `event`, fold it into the state and return that; raises SessionError when it cannot be written."""
        with self._lock:
            if self._closed:
                return self.state
            record = self._write(event)
            state = self.state
        self._tell("record", record)
        return state

    def _write(self, event: ev.Event) -> ev.Record:
        record = self._log.append(event, self._clock())
        self.state = fold(self.state, record, self.catalog.flows)
        return record

    def report(self) -> Report:
        """Return the triage of what is known now."""
        return self.state.report(self.catalog.flows.values(), self.catalog.vocabulary)

    def discover(self, root: str, given: Sequence[tuple[str, str]] = (), run: str = "") -> Job:
        """Look for evidence in a worker; it is appended when found.

        Listeners hear "discovered" with the notes, or "error".
        """

        def take(answer: Discovered) -> None:
            self.append(ev.EvidenceAdded(answer.evidence.items))
            self._tell("discovered", answer.notes)

        return self._look(root, given, run, take)

    def _look(self, root: str, given: Sequence[tuple[str, str]], run: str, take: Callable[[Discovered], object]) -> Job:
        """Look for evidence in a worker and hand it to `take`, or tell why there is none."""

        def done(answer: Any) -> None:
            try:
                if isinstance(answer, Discovered):
                    take(answer)
                    return
                why = EvidenceError(f"{root}: looking for evidence failed: {answer!r}", "give files by slot")
                raise answer if isinstance(answer, RunbookError) else why
            except RunbookError as error:
                with self._lock:  # a run that was not attached gives its name back
                    self._run_names.discard(run)
                self._tell("error", error)

        return self._runner.call(discover_installed, (root, tuple(given), run), done, DISCOVERY_DEADLINE)

    def attach(self, flow_id: str, node: str, path: str) -> str:
        """Attach the run in `path` to an experiment and return its name, which no run of the session had before.

        Its evidence is looked for as `discover` does and checked against the experiment's change; only when there
        is some, and it is not the first run's, is the run attached, and the node's probes are then due. Raises
        UsageError when the node is no experiment.
        """
        if self.catalog.flows[flow_id].nodes[node].kind != "experiment":
            raise UsageError(f"{flow_id}/{node}: this node is no experiment", "attach runs where a change is described")
        with self._lock:
            taken = {*self.state.runs, *(item.run for item in self.state.items), *self._run_names}
            run = next(name for number in itertools.count(2) if (name := f"run-{number}") not in taken)
            self._run_names.add(run)
        root = os.path.abspath(os.path.expanduser(path))
        flow = self.catalog.flows[flow_id]

        def take(found: Discovered) -> None:
            arrivals.refuse(self.catalog, self.state, flow, node, found.evidence)
            check = arrivals.plan(self.catalog, flow, node, found.evidence)
            if check is None:
                joined(found, Checked())
            else:
                self._runner.call(*check, lambda answer: self._guard(lambda: joined(found, answer)), arrivals.DEADLINE)

        def joined(found: Discovered, answer: object) -> None:
            said = arrivals.remarks(self.catalog, self.state, flow, node, found.evidence)
            self.append(ev.EvidenceAdded(found.evidence.items))
            self.append(arrivals.arrival(flow_id, node, run, root, answer, said))
            self._tell("discovered", found.notes)

        self._look(root, (), run, take)
        return run

    def change(self, flow_id: str, node: str, then: Callable[[ev.CopyChanged], object] = lambda _: None) -> Job:
        """Write the changed copy that an experiment asks for into the session's folder, by a worker.

        The copy is recorded and `then` called with it; listeners hear "error" when it cannot be made. Raises as
        `runbook.session.copies.plan`.
        """
        planned = copies.plan(self.catalog, self.state.evidence(), flow_id, node)

        def take(made: Changed) -> None:
            event = copies.keep(self.folder, flow_id, node, made)
            self.append(event)
            then(event)

        def done(answer: Any) -> None:
            if isinstance(answer, Changed):
                self._guard(lambda: take(answer))
            else:
                self._tell("error", copies.failure(planned.path, answer))

        return self._runner.call(planned.function, (planned.path, planned.change), done, copies.DEADLINE)

    def due(self, event: ev.Event) -> tuple[Due, ...]:
        """Return what should be asked because `event` was recorded.

        New evidence, or evidence taken out: the probes that lacked or need its slots, and all that were not asked yet;
        of an attached run, the probes of its experiments, then those of the flow, so that runs can be compared.
        """
        if isinstance(event, ev.RunAttached):
            return (*self._due_of(event.run, set()), Due(tuple(self.flow_probes(event.flow)), event.run))
        if isinstance(event, ev.EvidenceDropped):
            return self._due_of(event.run, {event.slot})
        if isinstance(event, ev.EvidenceAdded):
            runs = dict.fromkeys(item.run for item in event.items)
            return tuple(
                due for run in runs for due in self._due_of(run, {item.slot for item in event.items if item.run == run})
            )
        return ()

    def _due_of(self, run: str, slots: set[str]) -> tuple[Due, ...]:
        if run:
            experiments = [key for key, attached in self.state.attached.items() if attached == run]
            return tuple(
                Due(tuple(self.light(self.catalog.flows[flow].nodes[node].probes)), run, again=True, first=True)
                for flow, node in experiments
                if flow in self.catalog.flows and node in self.catalog.flows[flow].nodes
            )
        stale = [
            name
            for name, finding in self.state.findings_of().items()
            if (probe := self.catalog.probes.get(name)) is not None
            and (not finding.verdict.decides or slots & {slot for need in probe.needs for slot in need.split("|")})
        ]
        return (Due(tuple(stale), again=True), Due(tuple(self.triage_probes())))

    def ask(self, probe_id: str, run: str = "", *, first: bool = False) -> Job:
        """Ask a probe of one run; the finding is journalled and announced. first: before all that wait.

        A probe already running for that run is not started twice.
        """
        with self._lock:
            running = self._jobs.get((run, probe_id))
        if running is not None and not running.over:
            if first:
                self._runner.hasten(running)
            return running
        holder: list[Job] = []

        def done(finding: Finding) -> None:
            if not self._closing and not self.reads:
                self._guard(lambda: self.append(ev.Found(finding, run)))
                self._guard(self._judge)
                self._guard(lambda: copies.keep_edits(self.folder, finding))

        def progress(amount: float, total: float | None, unit: str) -> None:
            if holder:
                self._tell("progress", (holder[0], amount, total, unit))

        job = self._runner.start(self.catalog.probes[probe_id], self.state.evidence(run), done, progress)
        holder.append(job)
        with self._lock:
            self._jobs[(run, probe_id)] = job
        if first:
            self._runner.hasten(job)
        return job

    def glance(self, probe_id: str, done: Callable[[Finding], None]) -> Job:
        """Ask a probe of the first run without keeping what it says; `done` hears its finding."""
        return self._runner.start(self.catalog.probes[probe_id], self.state.evidence(""), done)

    def fetch(self, function: Callable[..., Any], arguments: tuple[Any, ...], deadline: float) -> Any:
        """Return what a module-level function gives in a worker, or the exception that ended it: a disk may hang."""
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._runner.call(function, arguments, answers.put, deadline)
        return answers.get()

    def jobs(self) -> dict[tuple[str, str], Job]:
        """Return the jobs that wait or run, by (run, probe id)."""
        with self._lock:
            return {key: job for key, job in self._jobs.items() if not job.over}

    def triage_probes(self, *, heavy: bool = False) -> list[str]:
        """Return the ids of all probes that the flows ask, in flow order, then of those that ask an address given.

        heavy: also those that read bulk data, behind all others; without it they run only where a person asks them.
        """
        ids = dict.fromkeys(
            p for flow in self.catalog.flows.values() for node in flow.nodes.values() for p in node.probes
        )
        ids.update(dict.fromkeys(self._of_addresses()))
        known = [probe for probe in ids if probe in self.catalog.probes]
        light = self.light(known)
        return [*light, *(probe for probe in known if probe not in light)] if heavy else light

    def _of_addresses(self) -> Iterator[str]:
        """Yield the ids of the probes that need nothing but addresses, which were all given."""
        evidence = self.state.evidence("")
        for name, probe in self.catalog.probes.items():
            named = [self.catalog.slots.get(slot) for need in probe.needs for slot in need.split("|")]
            if all(slot is not None and slot.holds == "url" for slot in named) and all(map(evidence.has, probe.needs)):
                yield name

    def flow_probes(self, flow_id: str) -> list[str]:
        """Return the ids of the probes that a flow asks and that read no bulk data, in flow order."""
        nodes = self.catalog.flows[flow_id].nodes.values() if flow_id in self.catalog.flows else ()
        return self.light(dict.fromkeys(probe for node in nodes for probe in node.probes))

    def light(self, probes: Iterable[str]) -> list[str]:
        """Return those of `probes` that are there and read no bulk data."""
        known = self.catalog.probes
        return [probe for probe in probes if probe in known and not known[probe].heavy]

    def answer(self, flow_id: str, answer: str, who: str | None = None, *, at: str | None = None) -> SessionState:
        """Answer the node at which the walk stands; nothing happens when that is not `at`, where one is named.

        It counts as the probes' answer when they decide the same and `who` is None, else as the person's.
        """
        flow = self.catalog.flows[flow_id]
        with self._lock:
            state = self.state
            node = position(flow, state.walk(flow_id))
            if at not in (None, node):
                return state
            decision = state.decision(flow, node)
            by_probe = who is None and decision.how is How.DECIDED and decision.answer == answer
            asked = tuple(probe for probe in flow.nodes[node].probes if probe in state.findings_at(flow, node))
            by, name = (By.PROBE, "") if by_probe else (By.PERSON, author() if who is None else who)
            return self.append(ev.Answered(flow_id, node, answer, by, name, asked))

    def close(self) -> None:
        """Stop all jobs, record the leave and release the journal.

        What a job would still have said is not recorded.
        """
        self._closing = True
        self._runner.close()
        if not self.reads:
            cause, state = next((one.cause for one in self.report().confirmed), ""), self.state
            fixed = bool(cause) and fix_of(state, cause) is not None
            self._guard(lambda: self.append(ev.Left(author(), cause, len(state.notes), fixed)))
        with self._lock:
            self._closed = True
            self._log.close()

    def _judge(self) -> None:
        """Record how the causes of a kept session stand, when other ones are confirmed than was recorded."""
        with self._lock:
            report = self.report() if self.folder and not self._closed else None
            if report is None or not moved(self.state, report):
                return
            record = self._write(judged(self.state, report, self.catalog.flows))
        self._tell("record", record)

    def _guard(self, action: Callable[[], object]) -> None:
        """Run `action` on a thread of the runner; an error of ours goes to the listeners instead of being lost."""
        try:
            action()
        except RunbookError as error:
            self._tell("error", error)

    def _tell(self, kind: str, payload: Any) -> None:
        for listener in tuple(self._listeners):
            listener(kind, payload)
