"""What compute-sanitizer's reports answer, in files of their own and in a log of many processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.cuda_ima_frames import ima_frames
from probes.cuda_ima_in_log import ima_in_log
from probes.cuda_sanitizer import sanitizer
from tests.probes.asking import DATA as LOGS
from tests.probes.asking import HEALTHY, ask, ask_text, word

DATA = Path(__file__).parents[1] / "data" / "coredumps"


@pytest.mark.parametrize(
    ("name", "expected", "kernel"),
    [
        ("template", "problem:ima", "moe::topk_gating_softmax<float, (int)8>"),
        ("null", "problem:ima", "pad_replay"),
        ("misaligned", "problem:ima", "misaligned(char *)"),
        ("assert", "problem:device-assert", "checks_index(int const*, int)"),
        ("xtrap", "problem:launch-failure", "traps()"),
    ],
)
def test_real_reports(name: str, expected: str, kernel: str) -> None:
    """Accesses, assertions and traps are told apart, each with its kernel; the log probe says the same."""
    finding = ask(sanitizer, DATA / f"sanitizer-{name}.log")
    assert word(finding) == expected
    assert kernel in finding.summary.en
    assert kernel in finding.summary.zh
    assert word(ask(ima_in_log, DATA / f"sanitizer-{name}.log")) == expected


def test_it_names_the_kernel_of_an_access_and_of_nothing_else() -> None:
    """A bad access is localised by the report; an assertion or a trap is no illegal access."""
    assert word(ask(ima_frames, DATA / "sanitizer-template.log")) == "problem:kernel-named"
    for name in ("assert", "xtrap"):
        assert word(ask(ima_frames, DATA / f"sanitizer-{name}.log")) != "problem:kernel-named"


def test_lines_of_other_processes_between(tmp_path: Path) -> None:
    """In a job's log the report is read from the lines of its own process."""
    lines = []
    for line in (DATA / "sanitizer-null.log").read_text().splitlines():
        lines += [f"(SGLangEngine pid=9) {line}", "(SGLangEngine pid=8) =========     at other()+0x1 in o.cu:1"]
    finding = ask_text(sanitizer, tmp_path, *lines)
    assert word(finding) == "problem:ima"
    assert "in pad_replay, block (3,0,0), thread (37,0,0)" in finding.summary.en


@pytest.mark.parametrize(
    "headline",
    [
        "Error: Race reported between Write access at k()+0x10 and Read access at k()+0x20 [4 hazards]",
        "Uninitialized __global__ memory read of size 4 bytes",
        "Barrier error detected. Divergent thread(s) in block.",
    ],
)
def test_other_tools_report_no_access(tmp_path: Path, headline: str) -> None:
    """racecheck, initcheck and synccheck are told as what they are, and answer nothing about an access."""
    lines = [f"========= {headline}", "=========     at swaps(int *)+0x40 in s.cu:3"]
    finding = ask_text(sanitizer, tmp_path, *lines)
    assert word(finding) == "unknown"
    assert "swaps(int *)" in finding.summary.en
    assert word(ask_text(ima_in_log, tmp_path, *lines)) == "ok:none"


def test_no_errors_prove_nothing(tmp_path: Path) -> None:
    """A clean summary is no report."""
    lines = ("========= COMPUTE-SANITIZER", "========= ERROR SUMMARY: 0 errors")
    assert word(ask_text(sanitizer, tmp_path, *lines)) == "not_applicable"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_hold_none(name: str) -> None:
    """Ordinary logs raise nothing."""
    assert word(ask(sanitizer, LOGS / f"{name}.log")) == "not_applicable"
