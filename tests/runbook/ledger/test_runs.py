"""Tests of runbook.ledger.runs: one run has one identity, the next one another, and none tells where it lies."""

from __future__ import annotations

import os
from pathlib import Path

from runbook.finding import Citation, Finding, Verdict
from runbook.flow.model import Node
from runbook.ledger.runs import HEAD, identity_of
from runbook.text import Text
from runbook.triage import Standing, Verdicted


def cause(*paths: object) -> Verdicted:
    """Return a confirmed cause proven by these files."""
    cited = tuple(Citation(str(path), 1, 0, "boom") for path in paths)
    found = Finding(Verdict.PROBLEM, "x", Text("x", "x"), cited)
    return Verdicted("c", Standing.CONFIRMED, "f", "n", Node(cause="c"), (found,))


def test_a_run_is_the_same_while_its_log_grows_and_by_whatever_path(tmp_path: Path) -> None:
    """More lines, a link, the log instead of its folder: one run."""
    log = tmp_path / "run" / "job.log"
    log.parent.mkdir()
    log.write_bytes(b"a" * HEAD)
    first = identity_of(cause(log), str(log.parent))
    log.write_bytes(b"a" * HEAD + b"more")
    (tmp_path / "link").symlink_to(log.parent)
    assert identity_of(cause(log), str(log.parent)) == first
    assert identity_of(cause(tmp_path / "link" / "job.log"), str(tmp_path / "link")) == first
    assert identity_of(cause(log), str(log)) == first
    assert len(first) == 16


def test_another_run_is_another(tmp_path: Path) -> None:
    """A log that was written anew, a copy elsewhere, and one file that two runs share."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    logs = [tmp_path / name / "job.log" for name in "ab"]
    for log in logs:
        log.write_bytes(b"10:00 begin")
    known = [identity_of(cause(log), str(log.parent)) for log in logs]
    logs[0].write_bytes(b"11:00 begin")
    known.append(identity_of(cause(logs[0]), str(logs[0].parent)))
    (tmp_path / "launch.sh").write_bytes(b"shared")
    known += [identity_of(cause(tmp_path / "launch.sh"), str(log.parent)) for log in logs]
    assert len(set(known)) == 5


def test_what_cannot_be_read_counts_by_its_path(tmp_path: Path) -> None:
    """A pipe is not waited for; a folder, an address, a missing file and no file at all have an identity."""
    os.mkfifo(tmp_path / "pipe")
    known = {identity_of(cause(tmp_path / name), str(tmp_path)) for name in ("pipe", "gone", ".", "\udcff")}
    known |= {identity_of(cause("http://10.0.0.1:8265"), root) for root in ("", "/x")}
    assert identity_of(cause("/a\0b"), "/x") == identity_of(cause("http://10.0.0.1:8265"), "/x")
    assert len(known) == 6
