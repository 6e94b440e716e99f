"""What probes of logs share."""

from __future__ import annotations

import os
from pathlib import Path

from probes import logs
from probes.readers import joblog, logfiles, logindex_store
from probes.readers.logscan import Coverage, signature
from probes.signatures import every
from runbook.probe import silent
from tests.helpers import evidence_of
from tests.probes.asking import DATA

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


def test_of_many_hits_the_first_and_the_last_are_kept(tmp_path: Path) -> None:
    """What ended the job stands at the end, however often it was said before."""
    lines = [hit.line for hit in _collect(tmp_path, a="bad\n" * (logs.KEEP * 2)).of("error")]
    first, last = logs.KEEP - logs.KEEP_LAST, logs.KEEP * 2 - logs.KEEP_LAST
    assert lines == [*range(1, first + 1), *range(last + 1, logs.KEEP * 2 + 1)]


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


def test_hits_of_several_logs_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    """What was printed first stands first, whichever log it is in; within a log the order of lines is kept."""
    scanned = _collect(
        tmp_path,
        a="[2026-08-21 10:00:05] bad\nbad later\n[2026-08-21 10:00:04] bad\n",
        b="[2026-08-21 10:00:01] x\nworse without a time\n[2026-08-21 10:00:09] bad\n",
    )
    hits = scanned.of("error", "other")
    assert [(Path(hit.file.path).stem, hit.line) for hit in hits] == [("b", 2), ("a", 1), ("a", 2), ("a", 3), ("b", 3)]
    assert scanned.earlier(hits[0], hits[1])
    assert not scanned.earlier(hits[1], hits[0])
    assert scanned.earlier(hits[0], hits[4])


def test_the_parts_of_a_rotated_log_are_one_log(tmp_path: Path) -> None:
    """A line of an older part stands before one of a newer part, without any time."""
    (tmp_path / "job.log.1").write_text("x\nx\nbad\n")
    (tmp_path / "job.log").write_text("worse\n")
    evidence = evidence_of(("log", tmp_path / "job.log"), ("log", tmp_path / "job.log.1"))
    scanned = logs.collect(evidence, silent, (ERROR, OTHER))
    first, second = scanned.of("other", "error")
    assert (first.label, second.label) == ("error", "other")
    assert scanned.earlier(first, second)
    assert not scanned.earlier(second, first)


def test_early_hits_have_no_line_number_that_could_be_wrong(tmp_path: Path) -> None:
    """The first look at the end of a long log cites by offset alone."""
    path = tmp_path / "job.log"
    path.write_bytes(b"x" * 99 + b"\n" + (b"y" * 999 + b"\n") * 20_000 + b"bad\n")
    (hit,) = logs.early(evidence_of(("log", path)), (ERROR,))
    citation = joblog.citation(hit)
    assert (citation.line, citation.offset, citation.excerpt) == (None, 20_000_100, "bad")


def test_every_probe_of_a_large_log_reads_one_index(tmp_path: Path) -> None:
    """The findings over a log that is worth an index are those of the plain pass, and one index serves all probes."""
    path = tmp_path / "job.log"
    healthy = (DATA / "ima-plain.log").read_bytes()
    path.write_bytes(healthy + b"ordinary line of a program\n" * 20_000)
    evidence = evidence_of(("log", path))
    asked = every()
    found = logs.collect(evidence, silent, asked)
    plain = Coverage()
    expected = list(joblog.scan_job(logfiles.expand([str(path)])[0], asked, plain))
    assert sorted((hit.label, hit.line) for label in found.hits for hit in found.hits[label]) == sorted(
        (hit.label, hit.line) for hit in expected
    )
    assert expected
    assert len(os.listdir(logindex_store.cache_folder())) == 1
    logs.collect(evidence, silent, asked[:2])
    assert len(os.listdir(logindex_store.cache_folder())) == 1
