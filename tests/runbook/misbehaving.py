"""Probes that do everything a probe must not, for the tests of the runner."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text

WORDS = ("yes", "no")


@probe("bad.answers", needs="log", answers=WORDS, en="Is there a first line?", zh="有第一行吗？")
def answers(evidence: Evidence, report: Progress) -> Finding:
    """Answer, with the first line as the citation."""
    path = evidence.paths("log")[0]
    with open(path, "rb") as file:
        line = file.readline().rstrip(b"\n")
    return found(Verdict.PROBLEM, "yes", "It has.", "有。", citations=(cite(path, line, line=1, offset=0),))


@probe("bad.cannot-tell", needs="log", answers=WORDS, en="?", zh="？")
def cannot_tell(evidence: Evidence, report: Progress) -> Finding:
    """Say unknown, as a probe may."""
    return unknown("Cut off.", "被截断。", settle_en="Give the whole log.", settle_zh="请提供完整日志。")


@probe("bad.raises", needs="log", answers=WORDS, en="?", zh="？")
def raises(evidence: Evidence, report: Progress) -> NoReturn:
    """Raise an exception whose message would clear the screen."""
    raise ValueError("\x1b[2Jbroken")


@probe("bad.segfaults", needs="log", answers=WORDS, en="?", zh="？")
def segfaults(evidence: Evidence, report: Progress) -> NoReturn:
    """Read address 0."""
    ctypes.string_at(0)
    raise AssertionError


@probe("bad.exits", needs="log", answers=WORDS, en="?", zh="？")
def exits(evidence: Evidence, report: Progress) -> NoReturn:
    """Leave the process behind Python's back."""
    os._exit(7)


@probe("bad.sys-exit", needs="log", answers=WORDS, en="?", zh="？")
def sys_exit(evidence: Evidence, report: Progress) -> NoReturn:
    """Raise SystemExit."""
    sys.exit(0)


@probe("bad.hangs", needs="log", answers=WORDS, en="?", zh="？", deadline=0.4)
def hangs(evidence: Evidence, report: Progress) -> NoReturn:
    """Never answer."""
    while True:
        time.sleep(60)


@probe("bad.stopped", needs="log", answers=WORDS, en="?", zh="？", deadline=0.4)
def stopped(evidence: Evidence, report: Progress) -> NoReturn:
    """Stop, so that SIGTERM is not delivered, as in a process that waits for a dead disk."""
    os.kill(os.getpid(), signal.SIGSTOP)
    raise AssertionError


@probe("bad.stubborn", needs="log", answers=WORDS, en="?", zh="？")
def stubborn(evidence: Evidence, report: Progress) -> NoReturn:
    """Ignore SIGTERM, say where it runs, and never answer."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    write_pid(evidence)
    while True:
        time.sleep(60)


@probe("bad.chatty", needs="log", answers=WORDS, en="?", zh="？")
def chatty(evidence: Evidence, report: Progress) -> Finding:
    """Print on every way there is."""
    print("\x1b[2Jfrom print")
    print("from stderr", file=sys.stderr)
    os.write(1, b"from descriptor 1")
    os.write(2, b"from descriptor 2")
    os.system("echo from a child; echo from a child >&2")
    return found(Verdict.OK, "yes", "Said much.", "说了很多。")


@probe("bad.undeclared", needs="log", answers=WORDS, en="?", zh="？")
def undeclared(evidence: Evidence, report: Progress) -> Finding:
    """Answer a word it does not declare."""
    return found(Verdict.OK, "maybe", "Perhaps.", "也许。")


@probe("bad.unproven", needs="log", answers=WORDS, en="?", zh="？")
def unproven(evidence: Evidence, report: Progress) -> Finding:
    """Report a problem without a citation."""
    return found(Verdict.PROBLEM, "yes", "Trust me.", "相信我。")


@probe("bad.usurps", needs="log", answers=WORDS, en="?", zh="？")
def usurps(evidence: Evidence, report: Progress) -> Finding:
    """Give a verdict that is the runner's."""
    return Finding(Verdict.TIMED_OUT, None, Text("x", "x"))


@probe("bad.none", needs="log", answers=WORDS, en="?", zh="？")
def none(evidence: Evidence, report: Progress) -> Finding:
    """Return nothing."""
    return None  # type: ignore[return-value]


@probe("bad.unpicklable", needs="log", answers=WORDS, en="?", zh="？")
def unpicklable(evidence: Evidence, report: Progress) -> Finding:
    """Return what cannot leave the process."""
    citation = Citation("x", excerpt=lambda: "x")  # type: ignore[arg-type]
    return found(Verdict.PROBLEM, "yes", "x", "x", citations=(citation,))


@probe("bad.odd-path", needs="log", answers=WORDS, en="?", zh="？")
def odd_path(evidence: Evidence, report: Progress) -> Finding:
    """Cite a path that no journal can hold."""
    return found(Verdict.PROBLEM, "yes", "x", "x", citations=(cite(os.fsdecode(b"\xff"), "x"),))


@probe("bad.reports", needs="log", answers=WORDS, en="?", zh="？")
def reports(evidence: Evidence, report: Progress) -> Finding:
    """Report progress three times, then give it time to arrive."""
    for done in (1, 2, 3):
        report(done, 3, "line")
        time.sleep(0.1)
    return found(Verdict.OK, "yes", "Done.", "完成。")


@probe("bad.floods", needs="log", answers=WORDS, en="?", zh="？")
def floods(evidence: Evidence, report: Progress) -> Finding:
    """Report progress 200,000 times."""
    for done in range(200_000):
        report(done, None, "line")
    return found(Verdict.OK, "yes", "Done.", "完成。")


@probe("bad.counts", needs="log", answers=WORDS, en="?", zh="？")
def counts(evidence: Evidence, report: Progress) -> Finding:
    """Measure how many of its kind run at this moment, by files in the folder of the evidence."""
    folder = Path(evidence.paths("log")[0])
    mark = folder / str(os.getpid())
    mark.touch()
    time.sleep(0.05)
    beside = len(list(folder.iterdir()))
    mark.unlink()
    return found(Verdict.OK, "yes", "x", "x", measurements=(Measurement("running", beside, "probes"),))


@probe("bad.waits", needs="log", answers=WORDS, en="?", zh="？")
def waits(evidence: Evidence, report: Progress) -> Finding:
    """Say where it runs, then wait until the file `go` stands beside the evidence."""
    write_pid(evidence)
    go = Path(evidence.paths("log")[0]).parent / "go"
    while not go.exists():
        time.sleep(0.02)
    return found(Verdict.OK, "yes", "Went.", "走了。")


def write_pid(evidence: Evidence) -> None:
    """Write the process id beside the evidence, under its final name only when it is whole."""
    folder = Path(evidence.paths("log")[0]).parent
    (folder / "pid.part").write_text(str(os.getpid()))
    (folder / "pid.part").rename(folder / "pid")
