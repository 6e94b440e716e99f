"""Tests of runbook.runner and runbook.worker with real processes that behave badly in every way."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runbook.evidence import Evidence, Item
from runbook.finding import Finding, Verdict
from runbook.probe import Probe
from runbook.runner import Job, Runner
from runbook.text import Text
from tests.helpers import check_citations, evidence_of, is_safe
from tests.runbook import misbehaving as bad

PATIENCE = 30.0
"""Seconds after which a test gives up; nothing is measured by it."""


class Rows:
    """Collects what a runner says, as a front would."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.arrived: queue.Queue[Finding] = queue.Queue()
        self.progress: list[tuple[float, float | None, str]] = []

    def start(self, probe: Probe, evidence: Evidence) -> Job:
        """Start a probe whose row goes to this collection."""
        return self.runner.start(probe, evidence, self.arrived.put, lambda *said: self.progress.append(said))

    def next(self) -> Finding:
        """Return the next row."""
        return self.arrived.get(timeout=PATIENCE)


@pytest.fixture
def rows() -> Iterator[Rows]:
    """Return the rows of a runner that is closed after the test."""
    with Runner(("tests.runbook.misbehaving",)) as runner:
        yield Rows(runner)


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """Return a log of two lines as evidence."""
    (tmp_path / "job.log").write_bytes(b"first line\nsecond\n")
    return evidence_of(("log", tmp_path / "job.log"))


def wait_for(path: Path) -> str:
    """Return the content of `path` as soon as it is there."""
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} did not appear"
        time.sleep(0.02)
    return path.read_text()


def is_dead(pid: int) -> bool:
    """Return whether a process is gone, or is a zombie that nobody collects."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def wait_until_dead(pid: int) -> None:
    """Wait until a process is dead."""
    until = time.monotonic() + PATIENCE
    while not is_dead(pid):
        assert time.monotonic() < until, f"process {pid} lives on"
        time.sleep(0.05)


def test_an_answer_arrives_whole(rows: Rows, evidence: Evidence) -> None:
    """The finding of a probe comes back from its process with its citation, its id and its time."""
    rows.start(bad.answers, evidence)
    finding = rows.next()
    assert (finding.verdict, finding.answer, finding.probe) == (Verdict.PROBLEM, "yes", "bad.answers")
    assert finding.citations[0].excerpt == "first line"
    check_citations(finding)
    assert finding.seconds >= 0


@pytest.mark.parametrize(
    ("probe", "verdict", "words"),
    [
        (bad.cannot_tell, Verdict.UNKNOWN, "Cut off."),
        (bad.raises, Verdict.PROBE_ERROR, "ValueError: broken at misbehaving.py:"),
        (bad.segfaults, Verdict.PROBE_ERROR, f"signal {signal.SIGSEGV.value}"),
        (bad.exits, Verdict.PROBE_ERROR, "exit 7"),
        (bad.sys_exit, Verdict.PROBE_ERROR, "SystemExit"),
        (bad.hangs, Verdict.TIMED_OUT, "0.4 s"),
        (bad.stopped, Verdict.TIMED_OUT, "0.4 s"),
        (bad.undeclared, Verdict.PROBE_ERROR, "'maybe'"),
        (bad.unproven, Verdict.PROBE_ERROR, "without a citation"),
        (bad.usurps, Verdict.PROBE_ERROR, "timed_out"),
        (bad.none, Verdict.PROBE_ERROR, "NoneType"),
        (bad.odd_path, Verdict.PROBE_ERROR, "UnicodeEncodeError"),
        (bad.unpicklable, Verdict.PROBE_ERROR, ""),
    ],
    ids=lambda value: value.id if isinstance(value, Probe) else "",
)
def test_one_failure_is_one_row(rows: Rows, evidence: Evidence, probe: Probe, verdict: Verdict, words: str) -> None:
    """However a probe fails, there is exactly one row that says how, and the next probe answers."""
    rows.start(probe, evidence)
    finding = rows.next()
    assert (finding.verdict, finding.probe) == (verdict, probe.id)
    assert words in finding.summary.en
    assert finding.answer is None
    assert finding.settle_with is not None
    assert is_safe(finding.summary.en + finding.summary.zh)
    rows.start(bad.answers, evidence)
    assert rows.next().probe == "bad.answers"
    assert rows.arrived.empty()


def test_a_cancelled_probe_ends_at_once(rows: Rows, evidence: Evidence, tmp_path: Path) -> None:
    """A cancelled probe has its row when `cancel` returns, even if its process ignores SIGTERM; then that dies."""
    job = rows.start(bad.stubborn, evidence)
    pid = int(wait_for(tmp_path / "pid"))
    assert not is_dead(pid)
    job.cancel()
    finding = rows.arrived.get_nowait()
    assert (finding.verdict, finding.summary.en) == (Verdict.UNKNOWN, "It was cancelled.")
    rows.start(bad.answers, evidence)
    assert rows.next().probe == "bad.answers"
    wait_until_dead(pid)
    job.cancel()
    assert rows.arrived.empty()


def test_a_waiting_probe_is_cancelled_without_a_process(evidence: Evidence, tmp_path: Path) -> None:
    """A job that never started is taken out of the queue and answers once."""
    with Runner(("tests.runbook.misbehaving",), workers=1) as runner:
        rows = Rows(runner)
        rows.start(bad.waits, evidence)
        waiting = rows.start(bad.answers, evidence)
        wait_for(tmp_path / "pid")
        waiting.cancel()
        assert rows.arrived.get_nowait().summary.en == "It was cancelled."
        assert waiting.started == 0.0
        (tmp_path / "go").touch()
        assert rows.next().summary.en == "Went."
    assert rows.arrived.empty()


def test_missing_slots_answer_without_a_process(rows: Rows) -> None:
    """A probe whose evidence is not there is unknown at once; the row names the option and what was named in vain."""
    gone = Evidence((Item("log", "/gone/job.log", Text("x", "x"), "named", missing=True),))
    job = rows.start(bad.answers, gone)
    finding = rows.arrived.get_nowait()
    assert job.over
    assert (finding.verdict, finding.answer, finding.probe) == (Verdict.UNKNOWN, None, "bad.answers")
    assert "/gone/job.log" in finding.summary.en
    assert finding.slots == ("log",)
    assert finding.settle_with is not None
    assert finding.settle_with.en == "Give --log PATH."


def test_what_is_lacking_is_worded_as_it_is_needed(rows: Rows) -> None:
    """Every need has to be met and one slot of a need suffices, and the words say so in both languages."""
    wants = replace(bad.answers, needs=("launch", "log|hf_checkpoint", "ray"))
    rows.start(wants, Evidence((Item("ray", "10.0.0.1:6379", Text("x", "x")),)))
    finding = rows.arrived.get_nowait()
    assert finding.summary == Text(
        "No launch, and no log or hf_checkpoint in the evidence.", "证据中没有 launch，也没有 log 或 hf_checkpoint。"
    )
    assert finding.settle_with == Text(
        "Give --launch PATH, and --log PATH or --hf-checkpoint PATH.",
        "请提供 --launch PATH，以及 --log PATH 或 --hf-checkpoint PATH。",
    )
    assert finding.slots == ("launch", "log", "hf_checkpoint")


def test_a_job_that_hastens_starts_before_those_that_wait(tmp_path: Path, evidence: Evidence) -> None:
    """Of the jobs that wait, those that hasten go first, in the order in which they did; the rest keep theirs."""
    started: list[str] = []
    over = threading.Semaphore(0)

    def launch(runner: Runner, probe: Probe) -> Job:
        def done(finding: Finding) -> None:
            started.append(finding.probe)
            over.release()

        return runner.start(probe, evidence, done)

    with Runner(workers=1) as runner:
        launch(runner, bad.waits)
        jobs = {name: launch(runner, replace(bad.answers, id=name)) for name in ("a", "b", "c", "d")}
        runner.hasten(jobs["d"])
        runner.hasten(jobs["b"])
        (tmp_path / "go").touch()
        for _ in range(5):
            assert over.acquire(timeout=PATIENCE)
    assert started == ["bad.waits", "d", "b", "a", "c"]


def test_progress_arrives(rows: Rows, evidence: Evidence) -> None:
    """What a probe reports is heard in order, and the last report always comes through."""
    rows.start(bad.reports, evidence)
    assert rows.next().answer == "yes"
    assert rows.progress == sorted(rows.progress)
    assert rows.progress[-1] == (3, 3, "line")


def test_a_flood_of_progress_is_thinned(rows: Rows, evidence: Evidence) -> None:
    """A probe that reports without end neither blocks nor floods: at most one report per PROGRESS_INTERVAL leaves."""
    rows.start(bad.floods, evidence)
    finding = rows.next()
    assert finding.answer == "yes"
    assert len(rows.progress) <= finding.seconds / 0.05 + 2


def test_many_jobs_all_answer(rows: Rows, tmp_path: Path) -> None:
    """Twenty jobs with two workers give twenty rows, and never more than two run at once."""
    folder = tmp_path / "running"
    folder.mkdir()
    for _ in range(20):
        rows.start(bad.counts, evidence_of(("log", folder)))
    findings = [rows.next() for _ in range(20)]
    assert {finding.answer for finding in findings} == {"yes"}
    assert max(finding.measurements[0].value for finding in findings) == 2
    assert rows.arrived.empty()


def test_a_failing_listener_does_not_stop_the_queue(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """When whoever waits for a row raises, the jobs behind it still run."""
    raised: queue.Queue[Any] = queue.Queue()
    monkeypatch.setattr("threading.excepthook", raised.put)

    def break_down(finding: Finding) -> None:
        raise RuntimeError(finding.probe)

    with Runner(("tests.runbook.misbehaving",), workers=1) as runner:
        rows = Rows(runner)
        runner.start(bad.answers, evidence, break_down)
        rows.start(bad.cannot_tell, evidence)
        assert rows.next().probe == "bad.cannot-tell"
    assert str(raised.get(timeout=PATIENCE).exc_value) == "bad.answers"


def test_a_late_end_is_silent(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a process is given up and dies later, no thread of the runner fails: that would be printed on the screen."""
    raised: queue.Queue[Any] = queue.Queue()
    monkeypatch.setattr("threading.excepthook", raised.put)
    with Runner(("tests.runbook.misbehaving",)) as runner:
        rows = Rows(runner)
        before = set(threading.enumerate())
        rows.start(bad.stopped, evidence)
        assert rows.next().verdict is Verdict.TIMED_OUT
        for thread in set(threading.enumerate()) - before:
            if thread.name != "progress":
                thread.join(PATIENCE)
    assert raised.empty()


def test_a_closed_runner_has_answered_everything(evidence: Evidence, tmp_path: Path) -> None:
    """Closing gives each job that waits or runs its one row, ends the processes and takes no further job."""
    runner = Runner(("tests.runbook.misbehaving",), workers=1)
    rows = Rows(runner)
    rows.start(bad.stubborn, evidence)
    rows.start(bad.answers, evidence)
    pid = int(wait_for(tmp_path / "pid"))
    runner.close()
    assert sorted(rows.arrived.get_nowait().probe for _ in range(2)) == ["bad.answers", "bad.stubborn"]
    assert rows.arrived.empty()
    with pytest.raises(RuntimeError):
        rows.start(bad.answers, evidence)
    wait_until_dead(pid)


def test_a_closed_runner_leaves_no_thread_behind(evidence: Evidence) -> None:
    """The thread that hears of progress ends with its runner."""
    before = set(threading.enumerate())
    answered: queue.Queue[Finding] = queue.Queue()
    with Runner(("tests.runbook.misbehaving",)) as runner:
        runner.start(bad.answers, evidence, answered.put)
        answered.get(timeout=PATIENCE)
        heard = [thread for thread in set(threading.enumerate()) - before if thread.name == "progress"]
    assert heard
    for thread in heard:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_functions_run_in_a_worker(rows: Rows) -> None:
    """`call` hands back the result of a module-level function, or the exception that it raised."""
    answers: queue.Queue[Any] = queue.Queue()
    rows.runner.call(os.getpid, (), answers.put, 10.0)
    assert answers.get(timeout=PATIENCE) not in (os.getpid(), None)
    rows.runner.call(os.listdir, ("/no/such/folder",), answers.put, 10.0)
    assert isinstance(answers.get(timeout=PATIENCE), FileNotFoundError)


def driver(body: str, folder: Path) -> list[str]:
    """Return a command that runs `body` with a runner and the log of `folder` as evidence."""
    script = f"""
        import sys, threading, time
        sys.path.insert(0, {os.getcwd()!r})
        from runbook.runner import Runner
        from tests.helpers import evidence_of
        from tests.runbook import misbehaving as bad
        if __name__ == "__main__":
            evidence = evidence_of(("log", {str(folder / "job.log")!r}))
            over = threading.Event()
            runner = Runner(("tests.runbook.misbehaving",))
            {body}
    """
    path = folder / "driver.py"
    path.write_text(textwrap.dedent(script))
    return [sys.executable, str(path)]


def test_workers_die_with_their_parent(evidence: Evidence, tmp_path: Path) -> None:
    """When the tool is killed with SIGKILL, the processes of its probes do not stay behind."""
    command = driver("runner.start(bad.stubborn, evidence, print); time.sleep(600)", tmp_path)
    parent = subprocess.Popen(command)
    pid = int(wait_for(tmp_path / "pid"))
    assert not is_dead(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until_dead(pid)


def test_nothing_a_probe_prints_reaches_us(evidence: Evidence, tmp_path: Path) -> None:
    """Prints of a probe, of its C library and of its children reach neither our stdout nor our stderr."""
    command = driver("runner.start(bad.chatty, evidence, lambda f: over.set()); over.wait(30); print('row')", tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("row\n", "")
