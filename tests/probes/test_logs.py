"""What probes of logs share."""

from __future__ import annotations

from pathlib import Path

from probes import logs
from probes.readers.logscan import Coverage, signature
from runbook.probe import silent
from tests.helpers import evidence_of

ERROR = signature("error", "bad")
OTHER = signature("other", "worse")


def _collect(folder: Path, **files: str) -> logs.Scanned:
    paths = []
    for name, content in files.items():
        path = folder / f"{name}.log"
        path.write_text(content)
        paths.append(("log", path))
    return logs.collect(evidence_of(*paths), silent, (ERROR, OTHER))


def test_hits_come_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    """Hits of several labels are merged as they stand in the logs."""
    scanned = _collect(tmp_path, b="x\nworse\nbad\n", a="bad\n")
    assert [(Path(hit.file.path).stem, hit.line) for hit in scanned.of("error", "other")] == [
        ("b", 2),
        ("b", 3),
        ("a", 1),
    ]


def test_many_hits_are_counted_and_few_are_kept(tmp_path: Path) -> None:
    """Memory is bounded; the count is not."""
    scanned = _collect(tmp_path, a="bad\n" * (logs.KEEP + 7))
    assert (len(scanned.of("error")), scanned.counts["error"]) == (logs.KEEP, logs.KEEP + 7)


def test_processes_are_pids_ranks_and_repetitions(tmp_path: Path) -> None:
    """The same process twice is one; Ray's note of repetition counts the hidden ones."""
    content = "(A pid=1) bad\n(A pid=1) bad\n(A pid=2) bad [repeated 3x across cluster]\n[rank5]: bad\n"
    hits = _collect(tmp_path, a=content).of("error")
    assert logs.processes(hits) == 3 + 2
    assert logs.processes([]) == 0


def test_progress_is_told_in_bytes(tmp_path: Path) -> None:
    """The total is the size of all logs."""
    path = tmp_path / "job.log"
    path.write_text("x\n" * 500)
    told: list[tuple[float, float | None, str]] = []
    evidence = evidence_of(("log", path))
    list(logs.stream(evidence, lambda *progress: told.append(progress), (ERROR,), Coverage()))
    assert told[-1] == (1000.0, 1000.0, "byte")


def test_the_reason_of_an_unread_log_is_said_in_both_languages(tmp_path: Path) -> None:
    """A missing log is unknown with its path, never absence."""
    gone = tmp_path / "gone.log"
    finding = logs.unread(logs.collect(evidence_of(("log", gone)), silent, (ERROR,)).coverage)
    assert finding is not None
    assert str(gone) in finding.summary.en
    assert str(gone) in finding.summary.zh
    assert finding.settle_with is not None
