"""Tests of the helpers themselves: a check that accepts everything would make every probe test worthless."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from runbook.finding import Citation, Finding, Verdict, cite, found
from tests.helpers import check_citations

LINES = b"first\n\x1b[31msecond\x1b[0m\nthird \xff\n" + b"x" * 5000 + b"needle" + b"x" * 5000 + b"\n"


def problem(*citations: Citation) -> Finding:
    """Return a problem that cites these places."""
    return found(Verdict.PROBLEM, "yes", "x", "x", citations=citations)


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Return a log with a coloured line, a broken one and a long one."""
    path = tmp_path / "job.log"
    path.write_bytes(LINES)
    return str(path)


def test_true_citations_pass(log: str) -> None:
    """Sanitised text of the line at its line and offset is true, and so is a cut from the middle of a long line."""
    check_citations(problem(cite(log, b"\x1b[31msecond\x1b[0m", line=2, offset=6)))
    check_citations(problem(cite(log, b"third \xff", line=3, offset=22)))
    check_citations(problem(cite(log, b"xxneedlexx", line=4)))
    check_citations(problem(cite(log, LINES.split(b"\n")[3], line=4)))


def test_packed_logs_are_cited_by_their_unpacked_text(tmp_path: Path) -> None:
    """Line and offset of a packed log count the unpacked text."""
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(LINES))
    check_citations(problem(cite(str(path), b"second", line=2, offset=6)))


@pytest.mark.parametrize(
    ("line", "offset", "excerpt"),
    [
        (1, 0, "second"),
        (2, 5, "second"),
        (9, 0, "first"),
        (0, 0, "first"),
        (1, 0, ""),
        (1, 0, "firs"),
        (2, 6, "\x1b[31msecond\x1b[0m"),
        (None, 10**9, "first"),
        (4, None, "needles"),
    ],
)
def test_false_citations_fail(log: str, line: int | None, offset: int, excerpt: str) -> None:
    """Another line, another offset, a line that is not there, a part of a line, raw text and nothing are refused."""
    with pytest.raises(AssertionError):
        check_citations(problem(Citation(log, line, offset, excerpt)))


def test_a_problem_needs_a_citation_and_a_file(tmp_path: Path) -> None:
    """A problem that cites nothing, or a file that is not there, is refused; an ok finding may cite nothing."""
    with pytest.raises(AssertionError):
        check_citations(problem())
    with pytest.raises(AssertionError):
        check_citations(problem(cite(str(tmp_path / "gone"), "x", line=1)))
    check_citations(found(Verdict.OK, "yes", "x", "x"))
