"""Whole incidents through the real command: a run folder in, the expected leaf and the lines that prove it out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runbook.catalog import load_catalog
from runbook.exits import ExitCode
from runbook.session.journal import read
from runbook.session.state import SessionState, replay
from runbook.walk import By, position
from tests.helpers import check_citations
from tests.incidents.incidents import INCIDENTS, Incident, tracker_missing

CATALOG = load_catalog()


def command(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command with nothing to read on stdin."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "runbook.cli.main", *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=folder,
        env=environment,
        timeout=240,
    )


def kept(sessions: Path) -> SessionState:
    """Return the one session that was kept."""
    (folder,) = [path for path in sessions.iterdir() if path.is_dir()]
    records, warnings = read(str(folder))
    assert not warnings
    return replay(records, CATALOG.flows)


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: f"{incident.flow}-{incident.leaf}")
def test_evidence_alone_walks_to_the_leaf(incident: Incident, tmp_path: Path) -> None:
    """The walk asks nobody, ends at the leaf with its exit code, and cites the very lines, which are true."""
    run = tmp_path / "run"
    run.mkdir()
    incident.build(run)
    done = command(
        tmp_path, "run", incident.flow, run, "--yes-to-probes", "--sessions", tmp_path / "sessions", "--lang", "en"
    )
    assert done.returncode == (ExitCode.CLEAR if incident.cause is None else ExitCode.CONFIRMED), done.stderr
    state = kept(tmp_path / "sessions")
    walk = state.walk(incident.flow)
    assert tuple((step.node, step.answer) for step in walk.steps) == incident.way
    assert {step.by for step in walk.steps} == {By.PROBE}
    flow = CATALOG.flows[incident.flow]
    assert position(flow, walk) == incident.leaf
    assert flow.nodes[incident.leaf].cause == incident.cause
    findings = [state.findings_of()[probe] for step in walk.steps for probe in step.probes]
    for finding in findings:
        check_citations(finding)
    cited = [(citation.path, citation.excerpt) for finding in findings for citation in finding.citations]
    for file, words in incident.cites:
        assert [path for path, excerpt in cited if path == str(run / file) and words in excerpt], (file, words, cited)
        assert words in done.stdout
    if incident.cause is not None:
        assert f"cause: {incident.cause}" in done.stdout


def test_every_flow_has_an_incident() -> None:
    """Each shipped flow is walked by the real command here."""
    assert {incident.flow for incident in INCIDENTS} == set(CATALOG.flows)


def test_the_ticket_of_a_garbled_run_holds_the_proof(tmp_path: Path) -> None:
    """Exported as Markdown, the incident names its cause, the dump and the log line, and what to do."""
    run = tmp_path / "run"
    run.mkdir()
    tracker_missing(run)
    sessions = tmp_path / "sessions"
    assert command(tmp_path, "run", "precision", run, "--yes-to-probes", "--sessions", sessions).returncode == 1
    (session,) = [path.name for path in sessions.iterdir() if path.is_dir()]
    done = command(tmp_path, "export", session, "--format", "markdown", "--sessions", sessions)
    assert done.returncode == 0, done.stderr
    ticket = Path(done.stdout.strip()).read_text()
    for words in ("checkpoint-not-loaded", "job.log:21", "Unrecognized model in", "dump/0.pt", "--exit-on-missing"):
        assert words in ticket, words
