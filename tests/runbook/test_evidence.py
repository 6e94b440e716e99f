"""Tests of runbook.evidence and runbook.probe."""

from __future__ import annotations

import os
from pathlib import Path

from runbook.evidence import HEAD_BYTES, Candidate, Evidence, Item
from runbook.finding import Finding, Verdict, found
from runbook.probe import DEADLINE, Progress, probe, silent
from runbook.text import Text

WHY = Text("x", "x")
EVIDENCE = Evidence(
    (
        Item("log", "/a.log", WHY),
        Item("launch", "/run.sh", WHY, missing=True),
        Item("log", "/b.log", WHY),
        Item("log", "/c.log", WHY, run="second"),
    ),
    "/run",
)


def test_paths_are_those_that_exist_in_order() -> None:
    """A slot gives its items in the order they were taken; what is named but not there is asked for separately."""
    assert EVIDENCE.paths("log") == ("/a.log", "/b.log", "/c.log")
    assert EVIDENCE.first("log") == "/a.log"
    assert EVIDENCE.paths("launch") == ()
    assert EVIDENCE.first("launch") is None
    assert [item.path for item in EVIDENCE.missing("launch")] == ["/run.sh"]


def test_a_need_is_met_by_one_of_its_slots() -> None:
    """`a|b` is met by either, a missing item meets nothing."""
    assert EVIDENCE.has("log")
    assert EVIDENCE.has("launch|log")
    assert not EVIDENCE.has("launch")
    assert not EVIDENCE.has("driver|launch")


def test_runs_of_a_session_are_apart() -> None:
    """The evidence of one run holds nothing of another."""
    assert EVIDENCE.of_run("second").paths("log") == ("/c.log",)
    assert EVIDENCE.of_run("").paths("log") == ("/a.log", "/b.log")


def test_candidates_read_little_and_never_fail(tmp_path: Path) -> None:
    """A candidate shows the first bytes of a file or the names in a folder, and nothing of what cannot be read."""
    big = tmp_path / "big.log"
    big.write_bytes(b"x" * (HEAD_BYTES * 2))
    assert Candidate(str(big), is_dir=False, size=HEAD_BYTES * 2).head == b"x" * HEAD_BYTES
    assert Candidate(str(tmp_path), is_dir=True).names == {"big.log"}
    assert Candidate(str(tmp_path) + os.sep, is_dir=True).name == tmp_path.name
    assert Candidate(str(tmp_path), is_dir=True).head == b""
    assert Candidate(str(big), is_dir=False).names == frozenset()
    gone = str(tmp_path / "gone")
    assert Candidate(gone, is_dir=False).head == b""
    assert Candidate(gone, is_dir=True).names == frozenset()


def test_the_decorator_declares_a_probe() -> None:
    """The function becomes a Probe that still runs, with its needs as a tuple and the usual deadline."""

    @probe("x.y", needs="log", answers=("yes",), en="Is it?", zh="是吗？")
    def ask(evidence: Evidence, report: Progress) -> Finding:
        report(1, None, "line")
        return found(Verdict.OK, "yes", evidence.root, "")

    assert (ask.id, ask.needs, ask.answers, ask.deadline) == ("x.y", ("log",), ("yes",), DEADLINE)
    assert ask.title == Text("Is it?", "是吗？")
    assert ask.run(EVIDENCE, silent).summary.en == "/run"
