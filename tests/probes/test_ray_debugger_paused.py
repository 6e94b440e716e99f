"""A job that waits for a debugger: what is said of it, and when nothing is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from probes.ray_debugger_paused import paused
from runbook.finding import Finding
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, rollout, word
from tests.probes.readers.test_debugger_lines import ATTACHED, LISTENS, WAITS, of

PAUSED = (of("Trainer", 7, LISTENS + "10.0.0.5:4001"), of("Trainer", 7, WAITS))


def cells(finding: Finding) -> list[str]:
    """Return every cell of a finding's tables."""
    return [cell for table in finding.tables for row in table.rows for cell in row]


def test_the_real_address_is_given(tmp_path: Path) -> None:
    """Summary, tables and citations name process, host and port, and the snippet for VS Code is JSON."""
    finding = ask_text(paused, tmp_path, *PAUSED)
    assert word(finding) == "warning:paused"
    assert "Trainer (pid 7)" in finding.summary.en
    assert "10.0.0.5:4001" in finding.summary.en
    assert "10.0.0.5:4001" in finding.summary.zh
    assert [citation.line for citation in finding.citations] == [2, 3]
    text = cells(finding)
    assert "ssh -L 4001:10.0.0.5:4001 LOGIN_NODE" in text
    assert "nc -vz 10.0.0.5 4001" in text
    start = next(number for number, cell in enumerate(text) if cell.startswith('{"name"'))
    snippet = json.loads("".join(text[start : start + 8 : 2]))
    assert snippet["connect"] == {"host": "10.0.0.5", "port": 4001}
    assert max(map(len, text)) <= 68, "a row does not fit into 80 columns"


def test_a_loopback_address_is_that_of_the_node(tmp_path: Path) -> None:
    """127.x is reached only from the process's own node, so the tunnel ends there."""
    finding = ask_text(paused, tmp_path, of("T", 7, LISTENS + "127.0.0.1:4001"), of("T", 7, WAITS))
    assert "ssh -L 4001:127.0.0.1:4001 THAT_NODE" in cells(finding)


def test_since_when_and_for_how_long(tmp_path: Path) -> None:
    """The time before the stop, and how long the log goes on behind it."""
    finding = ask_text(paused, tmp_path, *PAUSED, f"{STAMP}x.py:1 - a".replace("10:00:00", "10:45:00"))
    assert "after 10:00:00" in finding.summary.en
    later = ask(paused, _with_end(tmp_path, "[2026-08-21 10:45:00] x.py:1 - still here"))
    assert "45 min before this log ends" in later.summary.en
    assert re.search(r"距日志结束 45 分钟", later.summary.zh)


def _with_end(folder: Path, end: str) -> Path:
    path = folder / "job.log"
    path.write_text(f"(RolloutManager pid=3) {STAMP}rollout.py:1 - up\n" + "\n".join(PAUSED) + f"\n{end}\n")
    return path


def test_of_many_processes_the_number_is_told(tmp_path: Path) -> None:
    """Ray shows one address of eight; the others are in the workers' own files, which the answer says."""
    more = " [repeated 7x across cluster]"
    finding = ask_text(
        paused, tmp_path, *PAUSED, of("Trainer", 9, LISTENS + f"10.0.0.6:5001{more}"), of("Trainer", 9, WAITS + more)
    )
    assert "8 processes wait in all" in finding.summary.en
    assert any("worker-*.err" in cell for cell in cells(finding))
    assert not any("worker-*.err" in cell for cell in cells(ask_text(paused, tmp_path, *PAUSED)))


def test_the_old_console_is_another_answer(tmp_path: Path) -> None:
    """RAY_DEBUG=legacy waits for `ray debug`, not for VS Code."""
    line = "RemotePdb session open at 10.0.0.5:39217, use 'ray debug' to connect..."
    finding = ask_text(paused, tmp_path, of("Trainer", 7, line))
    assert word(finding) == "warning:paused-legacy"
    assert "RAY_DEBUG=legacy ray debug" in cells(finding)
    accepted = of("Trainer", 7, "RemotePdb accepted connection from ('10.0.0.1', 5)")
    assert word(ask_text(paused, tmp_path, of("Trainer", 7, line), accepted)) == "ok:attached"


def test_a_stop_without_address_is_still_a_stop(tmp_path: Path) -> None:
    """Where the line with the address is missing, none is made up."""
    finding = ask_text(paused, tmp_path, of("Trainer", 7, WAITS))
    assert word(finding) == "warning:paused"
    assert "does not tell" in finding.summary.en
    assert not any("ssh" in cell for cell in cells(finding))


def test_what_the_job_got_past_is_history(tmp_path: Path) -> None:
    """Somebody attached, or two further rollouts were done: the job does not wait."""
    assert word(ask_text(paused, tmp_path, *PAUSED, of("Trainer", 7, ATTACHED))) == "ok:attached"
    went_on = [rollout(number, raw_reward=0.5) for number in (1, 2, 3)]
    assert word(ask_text(paused, tmp_path, *PAUSED, *went_on)) == "warning:none"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_do_not_wait(name: str) -> None:
    """An ordinary log has no such line."""
    assert word(ask(paused, DATA / f"{name}.log")) == "ok:none"


def test_hostile_lines_do_no_harm(tmp_path: Path) -> None:
    """Escape sequences and bidi marks around an address reach neither summary nor tables."""
    lines = (of("Trainer", 7, "\x1b[2J" + LISTENS + "10.0.0.5:4001\u202e"), of("Trainer", 7, WAITS))
    finding = ask_text(paused, tmp_path, *lines)
    assert word(finding) == "warning:paused"
    assert all(cell.isprintable() for cell in (*cells(finding), finding.summary.en, finding.summary.zh))


def test_a_file_that_is_no_log_is_unknown(tmp_path: Path) -> None:
    """Absence is not concluded from a file that is no log of a job."""
    path = tmp_path / "job.log"
    path.write_text("nothing here\n")
    assert word(ask(paused, path)) == "unknown"
