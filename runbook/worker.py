"""What runs inside a worker process: one probe or one discovery, whose answer is checked against the contract.

The process may be killed at any moment. Its standard output and error are closed off, so that nothing it or a C
library prints can reach the terminal; it dies with its parent; progress leaves by datagrams, which need no lock
that a kill could leave held.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import multiprocessing
import os
import signal
import socket
import time
import traceback
from multiprocessing import forkserver
from typing import Any

import msgspec

from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict
from runbook.probe import Probe, Progress
from runbook.text import Text, sanitise

PROGRESS_INTERVAL = 0.05
"""Seconds between two progress datagrams of one probe."""

_PR_SET_PDEATHSIG = 1


def prepare() -> None:
    """Make this process die with the tool and keep its output off the terminal.

    The parent of a worker is the fork server, which ends when nobody holds its alive pipe any more. Every worker
    inherits an end of that pipe, so it is given up here: else server and worker would keep each other alive.
    """
    if multiprocessing.parent_process() is not None:
        server = forkserver._forkserver  # noqa: SLF001  # the standard library has no public way to it
        alive = getattr(server, "_forkserver_alive_fd", None)
        if alive is not None:
            server._forkserver_alive_fd = None  # type: ignore[attr-defined]  # noqa: SLF001
            os.close(alive)
    with contextlib.suppress(
        OSError, AttributeError
    ):  # not Linux: the parent kills its workers when it ends in good order
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(null, stream)
    os.close(null)


def progress_to(address: str, job: int) -> Progress:
    """Return a Progress that sends JSON datagrams to the Unix socket `address`; what cannot be sent is dropped."""
    outlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    outlet.setblocking(False)
    last = 0.0

    def report(done: float, total: float | None, unit: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PROGRESS_INTERVAL and done != total:
            return
        last = now
        try:
            outlet.sendto(msgspec.json.encode((job, done, total, unit)), address)
        except OSError:
            return

    return report


def run_probe(module: str, probe_id: str, evidence: Evidence, address: str, job: int) -> Finding:
    """Run one probe of `module` and return its finding, or a probe_error that says where it failed."""
    prepare()
    began = time.monotonic()
    probe = _find(module, probe_id)
    try:
        finding = probe.run(evidence, progress_to(address, job))
        finding = _checked(probe, finding)
    except Exception as error:  # a failing probe is a row of its own, whatever it raised
        finding = failed(error)
    return msgspec.structs.replace(finding, probe=probe_id, seconds=round(time.monotonic() - began, 3))


def call(module: str, name: str, arguments: tuple[Any, ...]) -> Any:
    """Call a module-level function inside the worker and return its result."""
    prepare()
    return getattr(importlib.import_module(module), name)(*arguments)


def failed(error: BaseException) -> Finding:
    """Return the probe_error finding for an exception, naming the innermost place."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    words = sanitise(f"{type(error).__name__}: {error}{place}", 300)
    return Finding(
        Verdict.PROBE_ERROR,
        None,
        Text(f"The probe failed: {words}", f"探针出错：{words}"),
        settle_with=Text("Report this fault; decide by hand meanwhile.", "请报告此缺陷；暂由人工判断。"),
    )


def _find(module: str, probe_id: str) -> Probe:
    for value in vars(importlib.import_module(module)).values():
        if isinstance(value, Probe) and value.id == probe_id:
            return value
    raise LookupError(f"{module} has no probe {probe_id}")


def _checked(probe: Probe, finding: Finding) -> Finding:
    """Return the finding if it keeps the contract of probes; raise ValueError if it does not.

    The verdict is one of a probe's own, the answer one that it declares, a problem is proved by a citation, and the
    journal can hold all of it.
    """
    if finding.verdict in (Verdict.TIMED_OUT, Verdict.PROBE_ERROR):
        raise ValueError(f"{probe.id} gave the runner's verdict {finding.verdict.value}")
    if finding.verdict.decides and finding.answer not in probe.answers:
        raise ValueError(f"{probe.id} answered {finding.answer!r}, which it does not declare")
    if finding.verdict is Verdict.PROBLEM and not finding.citations:
        raise ValueError(f"{probe.id} reports a problem without a citation")
    msgspec.json.encode(finding)  # raises for what the journal could not hold, such as a path that is not UTF-8
    return finding
