"""Which probes are asked next, and which run now.

Keeps few in flight, so that the node a person looks at never waits behind triage.

Invariants: all methods run on the app's thread; the desk is called only on the desk thread (`Hands`), since asking
may journal a finding; a probe is asked once a run unless asked for again.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runbook.runner import Job
from runbook.session.desk import Desk
from runbook.tui.view import Running

IN_FLIGHT = 3
"""Probes handed to the runner at once: one more than it runs, so that it is never idle."""

Key = tuple[str, str]


class Hands:
    """One daemon thread that carries out what blocks, in order.

    A disk that hangs holds up neither the screen nor the exit.
    """

    def __init__(self, tell: Callable[[Callable[[], None]], None]) -> None:
        """Start. tell: runs a callable on the app's thread, from any thread."""
        self._tell = tell
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None] | None] | None] = (
            queue.SimpleQueue()
        )
        self.pending = 0
        self._thread = threading.Thread(target=self._run, name="hands", daemon=True)
        self._thread.start()

    def do(self, action: Callable[[], Any], then: Callable[[Any], None] | None = None) -> None:
        """Carry out `action` in its turn; `then` gets its result, or what it raised, on the app's thread."""
        self.pending += 1
        self._work.put((action, then))

    def finish(self, seconds: float) -> None:
        """Let what is queued end, but wait no longer than `seconds`."""
        self._work.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (job := self._work.get()) is not None:
            action, then = job
            try:
                result = action()
            except Exception as error:  # handed to the person, who must know that something was not done
                result = error
            self._tell(lambda then=then, result=result: self._done(then, result))  # type: ignore[misc]

    def _done(self, then: Callable[[Any], None] | None, result: Any) -> None:
        self.pending -= 1
        if then is not None:
            then(result)


class Asking:
    """The queue of probes to ask and the jobs in flight."""

    def __init__(self, desk: Desk, hands: Hands, trouble: Callable[[BaseException], None]) -> None:
        """Watch over `desk`. trouble: hears of a probe that could not even be asked."""
        self._desk, self._hands, self._trouble = desk, hands, trouble
        self.open = True  # whether there is anything to ask: a bundle holds no evidence
        self._queue: list[Key] = []
        self._flying: dict[Key, Job | None] = {}
        self._stale: set[Key] = set()
        self._reports: dict[int, tuple[float, float | None, str]] = {}

    def want(self, probes: Iterable[str], run: str = "", *, again: bool = False, first: bool = False) -> None:
        """Ask `probes` of a run. again: also those that answered. first: before all others.

        One that runs already is not asked twice; what was wanted again meanwhile is asked when it has answered.
        """
        may = self.open and not self._desk.reads
        keys = [(run, probe) for probe in probes if may and probe in self._desk.catalog.probes]
        if again:
            self._stale.update(key for key in keys if key in self._flying)
        known = self._desk.state.findings
        fresh = [key for key in keys if key not in self._flying and (again or key not in known)]
        if first:
            self._queue = [*fresh, *(key for key in self._queue if key not in fresh)]
        else:
            self._queue += [key for key in fresh if key not in self._queue]
        self._feed()

    def found(self, run: str, probe: str) -> None:
        """Note that a finding was journalled."""
        self._flying.pop((run, probe), None)
        if (run, probe) in self._stale:
            self._stale.discard((run, probe))
            self._queue.insert(0, (run, probe))
        self._feed()

    def forget(self) -> None:
        """Ask nothing more of what was wanted: the session is somebody else's."""
        self._queue, self._flying, self._stale = [], {}, set()

    def report(self, job: Job, done: float, total: float | None, unit: str) -> None:
        """Note how far a job is."""
        self._reports[job.number] = (done, total, unit)

    def cancel(self, keys: Iterable[Key]) -> None:
        """Cancel jobs, waiting or running."""
        for key in keys:
            job = self._flying.get(key)
            self._stale.discard(key)
            if key in self._queue:
                self._queue.remove(key)
            if job is not None:
                self._hands.do(job.cancel)

    @property
    def busy(self) -> bool:
        """Whether anything waits or runs."""
        return bool(self._queue or self._flying)

    def running(self) -> Mapping[Key, Running]:
        """Return what waits and runs, with the time each has taken."""
        now = time.monotonic()
        result = {key: Running() for key in self._queue}
        for key, job in self._flying.items():
            if job is None or not job.started:
                result[key] = Running()
            else:
                done, total, unit = self._reports.get(job.number, (0.0, None, ""))
                result[key] = Running(max(0.0, now - job.started), done, total, unit)
        return result

    def _feed(self) -> None:
        while self._queue and len(self._flying) < IN_FLIGHT:
            key = self._queue.pop(0)
            self._flying[key] = None
            run, probe = key
            self._hands.do(
                lambda probe=probe, run=run: self._desk.ask(probe, run),  # type: ignore[misc]
                lambda job, key=key: self._started(key, job),  # type: ignore[misc]
            )

    def _started(self, key: Key, job: Job | BaseException) -> None:
        if isinstance(job, BaseException):
            self._flying.pop(key, None)
            self._trouble(job)
            self._feed()
        elif key in self._flying and not job.over:
            self._flying[key] = job
        else:
            self._flying.pop(key, None)
            self._feed()
