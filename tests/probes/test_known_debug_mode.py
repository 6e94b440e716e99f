"""A debug-only mode that breaks on what it does not set up, told from the same lines without the mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.known_debug_mode import debug_mode_in_log
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, table, word

GROUP = "(MegatronTrainRayActor pid=7) AssertionError: data parallel group is not initialized"
COMBINED = "AssertionError: data parallel group with context parallel combined is not initialized"
ARGUMENT = "(RolloutManager pid=3) AttributeError: 'Namespace' object has no attribute 'sglang_speculative_algorithm'"


def script(folder: Path, *flags: str) -> Path:
    """Write a launch script with these flags besides those that every run has."""
    path = folder / "launch.sh"
    given = " ".join(("--hf-checkpoint /m", "--rollout-batch-size 8", *flags))
    path.write_text(f"#!/bin/bash\nray job submit -- python3 train.py {given}\n")
    return path


@pytest.mark.parametrize(
    ("line", "flags", "expected"),
    [
        (GROUP, ("--debug-rollout-only",), "problem:broken"),
        (COMBINED, ("--debug-rollout-only",), "problem:broken"),
        (ARGUMENT, ("--debug-train-only",), "problem:broken"),
        (ARGUMENT, ("--load-debug-rollout-data /d/{rollout_id}.pt",), "problem:broken"),
        (GROUP, ("--debug-train-only",), "ok:none"),
        (ARGUMENT, ("--debug-rollout-only",), "ok:none"),
        (GROUP, (), "ok:none"),
        ("AssertionError: the world is not initialized", ("--debug-rollout-only",), "ok:none"),
        ("AttributeError: 'Namespace' object has no attribute 'megatron_x'", ("--debug-train-only",), "ok:none"),
    ],
)
def test_the_mode_decides(line: str, flags: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    """The same line is proof under the mode that skips what it asks for, and nothing under another or none."""
    log = tmp_path / "job.log"
    log.write_text(f"[2026-08-21 10:00:00] x.py:1 - begin\n{line}\n")
    finding = ask(debug_mode_in_log, log, launch=script(tmp_path, *flags))
    assert word(finding) == expected
    if expected.startswith("problem"):
        assert [(Path(each.path).name, each.line) for each in finding.citations] == [("job.log", 2), ("launch.sh", 2)]


def test_an_arguments_table_tells_the_mode_as_well(tmp_path: Path) -> None:
    """Without a launch script the row of the table is cited."""
    finding = ask_text(debug_mode_in_log, tmp_path, *table(debug_rollout_only=True), GROUP)
    assert word(finding) == "problem:broken"
    assert [citation.line for citation in finding.citations] == [5, 3]


def test_without_a_known_mode_it_stays_open(tmp_path: Path) -> None:
    """The line alone is unknown, not absent."""
    finding = ask_text(debug_mode_in_log, tmp_path, GROUP)
    assert word(finding) == "unknown"
    assert finding.citations[0].line == 2


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_have_nothing_to_report(name: str) -> None:
    """A healthy log answers none."""
    assert word(ask(debug_mode_in_log, DATA / f"{name}.log")) == "ok:none"
