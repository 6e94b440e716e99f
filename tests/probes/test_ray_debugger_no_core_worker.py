"""The AttributeError of a breakpoint() without ray.init()."""

from __future__ import annotations

from pathlib import Path

from probes.ray_debugger_no_core_worker import no_core_worker
from tests.probes.asking import DATA, ask, ask_text, word


def test_the_line_is_the_proof(tmp_path: Path) -> None:
    """The AttributeError is cited; text that only mentions core_worker is not taken for it."""
    line = "AttributeError: 'Worker' object has no attribute 'core_worker'"
    finding = ask_text(no_core_worker, tmp_path, "Traceback (most recent call last):", line)
    assert word(finding) == "problem:no-core-worker"
    assert finding.citations[0].excerpt == line
    assert word(ask_text(no_core_worker, tmp_path, "core_worker.cc:100: 'Worker' object created")) == "ok:none"


def test_an_unreadable_log_is_unknown(tmp_path: Path) -> None:
    """Absence is not concluded from a file that is no log of a job."""
    path = tmp_path / "job.log"
    path.write_text("nothing here\n")
    assert word(ask(no_core_worker, path)) == "unknown"


def test_healthy_logs_have_none() -> None:
    """An ordinary log has no such line."""
    assert word(ask(no_core_worker, DATA / "healthy.log")) == "ok:none"
