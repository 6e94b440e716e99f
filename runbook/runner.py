"""Runs probes in worker processes: deadlines, cancelling, progress; one failure is one row and nothing else.

Each job is a process of its own, made by `pebble.concurrent` from a fork server that has the probe modules loaded.
The runner, not the process, decides when a job is over: a process that hangs in the kernel (a dead NFS mount)
cannot be killed, but its row says `timed_out` in time and the next job starts.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import Any

import msgspec
from pebble import ProcessExpired
from pebble.concurrent import process

from runbook import worker
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict
from runbook.probe import Probe
from runbook.text import Text, sanitise

OnProgress = Callable[[float, "float | None", str], None]

WORKERS = 2
"""Jobs at once: a login node is shared, and most probes wait for one disk."""

_LOADED = (
    "runbook.worker", "runbook.cli.terminal", "argparse", "pebble.concurrent", "multiprocessing.popen_forkserver",
)  # fmt: skip
"""What every job's process needs, loaded once: the imports of the main script, which it runs again (never the script
itself, which Python would run twice), and those of pebble, which bring asyncio along and take longer than many a probe.
"""

GRACE = 1.0
"""Seconds between a job's deadline and giving up on a process that does not die."""


@dataclass
class Job:
    """A job in the runner.

    label: what it is for. turn: the job that waits with the lowest starts next. started: monotonic seconds, 0.0 while
    it waits.
    """

    number: int
    label: str
    launch: Callable[[], Future[Any]] = field(repr=False)
    deadline: float
    finish: Callable[[Any], None] = field(repr=False)
    on_progress: OnProgress | None = field(default=None, repr=False)
    runner: Runner | None = field(default=None, repr=False)
    turn: tuple[int, int] = (0, 0)
    started: float = 0.0
    over: bool = False
    future: Future[Any] | None = field(default=None, repr=False)

    def cancel(self) -> None:
        """End the job now; its answer is the error `CancelledError`. Returns at once, also when the process hangs."""
        if self.runner is not None:
            self.runner.end(self, CancelledError())


class Runner:
    """Starts jobs, at most WORKERS at once, first come first served but for those that hasten.

    Callbacks come on threads of the runner.
    """

    def __init__(self, preload: tuple[str, ...] = (), workers: int = WORKERS) -> None:
        """Prepare; nothing is started before the first job. preload: modules that the fork server loads once."""
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*_LOADED, *preload])
        self._workers = workers
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._turns = itertools.count()
        self._waiting: list[Job] = []
        self._running: dict[int, Job] = {}
        self._closed = False
        self._inlet: socket.socket | None = None
        self._address = f"\0slime-runbook-{os.getpid()}-{id(self):x}"

    def start(
        self,
        probe: Probe,
        evidence: Evidence,
        on_done: Callable[[Finding], None],
        on_progress: OnProgress | None = None,
    ) -> Job:
        """Ask `probe` of `evidence`; on_done gets exactly one finding, on_progress any number of reports before it.

        A probe whose slots are not there is answered at once, without a process.
        """
        lacking = [need for need in probe.needs if not evidence.has(need)]
        if lacking:
            on_done(_lacking(probe, lacking, evidence))
            return Job(0, probe.id, Future, 0.0, lambda _: None, over=True)
        number = next(self._numbers)
        began = time.monotonic()

        def launch() -> Future[Any]:
            run = process(timeout=probe.deadline, context=self._context)(worker.run_probe)  # type: ignore[call-overload]
            return run(probe.run.__module__, probe.id, evidence, self._address, number)  # type: ignore[no-any-return]

        def finish(answer: Any) -> None:
            if isinstance(answer, Finding):
                on_done(answer)
            else:
                seconds = round(time.monotonic() - (job.started or began), 3)
                on_done(msgspec.structs.replace(_not_answered(probe, answer), probe=probe.id, seconds=seconds))

        job = Job(number, probe.id, launch, probe.deadline, finish, on_progress, self)
        self._enqueue(job)
        return job

    def call(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        on_done: Callable[[Any], None],
        deadline: float,
    ) -> Job:
        """Run a module-level function in a worker; on_done gets its result or the exception that ended it."""

        def launch() -> Future[Any]:
            run = process(timeout=deadline, context=self._context)(worker.call)  # type: ignore[call-overload]
            return run(function.__module__, function.__name__, arguments)  # type: ignore[no-any-return]

        job = Job(next(self._numbers), function.__name__, launch, deadline, on_done, None, self)
        self._enqueue(job)
        return job

    def hasten(self, job: Job) -> None:
        """Let a job start before all that wait but those that hastened earlier."""
        with self._lock:
            if job.turn[0]:
                job.turn = (0, next(self._turns))

    def end(self, job: Job, answer: Any) -> None:
        """End `job` with `answer` once; later answers are dropped."""
        with self._lock:
            if job.over:
                return
            job.over = True
            self._running.pop(job.number, None)
            with contextlib.suppress(ValueError):
                self._waiting.remove(job)
            future = job.future
        if future is not None and not future.done():
            future.cancel()
        try:
            job.finish(answer)
        finally:  # a listener that raises must not leave the jobs behind it waiting
            self._next()

    def close(self) -> None:
        """Cancel every job and stop taking new ones."""
        with self._lock:
            self._closed = True
            jobs = [*self._waiting, *self._running.values()]
        for job in jobs:
            job.cancel()
        if self._inlet is not None:
            with contextlib.suppress(OSError):
                self._inlet.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in it
            self._inlet.close()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enqueue(self, job: Job) -> None:
        with self._lock:
            if self._closed:
                raise RuntimeError("the runner is closed")
            if self._inlet is None:
                self._listen()
            job.turn = (1, next(self._turns))
            self._waiting.append(job)
        self._next()

    def _next(self) -> None:
        while True:
            with self._lock:
                if self._closed or not self._waiting or len(self._running) >= self._workers:
                    return
                job = min(self._waiting, key=lambda waiting: waiting.turn)
                self._waiting.remove(job)
                job.started = time.monotonic()
                self._running[job.number] = job
            threading.Thread(target=self._watch, args=(job,), name=f"job-{job.label}", daemon=True).start()

    def _watch(self, job: Job) -> None:
        """Launch the job's process and wait for its answer, but never past deadline and grace."""
        try:
            job.future = _lenient(job.launch())
            if job.over:
                job.future.cancel()
                return
            answer = job.future.result(timeout=job.deadline + GRACE)
        except BaseException as error:  # every way a process can end becomes an answer
            answer = error
        self.end(job, answer)

    def _listen(self) -> None:
        self._inlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._inlet.bind(self._address)
        threading.Thread(target=self._hear, name="progress", daemon=True).start()

    def _hear(self) -> None:
        """Hand progress datagrams to their jobs until the inlet is closed."""
        inlet = self._inlet
        while inlet is not None:
            try:
                number, done, total, unit = msgspec.json.decode(inlet.recv(4096))
            except (OSError, ValueError, TypeError):
                if self._closed:
                    return
                continue
            job = self._running.get(number)
            if job is not None and job.on_progress is not None and not job.over:
                job.on_progress(done, total, unit)


def _lenient(future: Future[Any]) -> Future[Any]:
    """Return `future`, which from now on takes a late result in silence.

    Pebble sets the result of a job also when it was cancelled, or given up, a moment before; the error of that would
    be printed by its thread across the terminal.
    """

    def settle(method: Callable[[Any], None], value: Any) -> None:
        with contextlib.suppress(InvalidStateError):
            method(value)

    future.set_result = functools.partial(settle, future.set_result)  # type: ignore[method-assign]
    future.set_exception = functools.partial(settle, future.set_exception)  # type: ignore[method-assign]
    return future


def _lacking(probe: Probe, lacking: list[str], evidence: Evidence) -> Finding:
    """Return the unknown finding of a probe that has nothing to look at, naming what is missing and how to give it.

    Every need has to be met; one of the slots of a need suffices.
    """
    needs = [need.split("|") for need in lacking]
    slots = tuple(dict.fromkeys(slot for need in needs for slot in need))
    named = [sanitise(item.path) for slot in slots for item in evidence.missing(slot)]
    gone = f" (named, but not there: {', '.join(named[:3])})" if named else ""
    gone_zh = f"（提到但不存在：{'、'.join(named[:3])}）" if named else ""
    flags = [[f"--{slot.replace('_', '-')} PATH" for slot in need] for need in needs]
    return Finding(
        Verdict.UNKNOWN,
        None,
        Text(
            f"No {', and no '.join(' or '.join(need) for need in needs)} in the evidence{gone}.",
            f"证据中没有 {'，也没有 '.join(' 或 '.join(need) for need in needs)}{gone_zh}。",
        ),
        settle_with=Text(
            f"Give {', and '.join(' or '.join(need) for need in flags)}.",
            f"请提供 {'，以及 '.join(' 或 '.join(need) for need in flags)}。",
        ),
        slots=slots,
        probe=probe.id,
    )


def _not_answered(probe: Probe, answer: Any) -> Finding:
    """Return the finding for a job that ended without an answer of its probe."""
    if isinstance(answer, FutureTimeout | TimeoutError):
        words = (f"No answer within {probe.deadline:g} s.", f"{probe.deadline:g} 秒内没有得到结论。")
        verdict, settle = Verdict.TIMED_OUT, ("Run it again when the disk is quicker.", "待磁盘恢复后重新运行。")
    elif isinstance(answer, CancelledError):
        words, verdict = ("It was cancelled.", "已取消。"), Verdict.UNKNOWN
        settle = ("Ask it again.", "重新询问。")
    elif isinstance(answer, ProcessExpired):
        code = answer.exitcode
        how = f"signal {-code}" if isinstance(code, int) and code < 0 else f"exit {code}"
        words, verdict = (f"Its process died ({how}).", f"其进程已退出（{how}）。"), Verdict.PROBE_ERROR
        settle = ("Report this fault; decide by hand meanwhile.", "请报告此缺陷；暂由人工判断。")
    else:
        return worker.failed(answer if isinstance(answer, BaseException) else TypeError(type(answer).__name__))
    return Finding(verdict, None, Text(*words), settle_with=Text(*settle))
