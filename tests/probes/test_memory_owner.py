"""Whose process a line about host memory speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes import faults
from probes.memory_owner import Owners
from probes.readers import joblog
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage
from tests.helpers import evidence_of, hostile_bytes

KILLED = "[1.2] Out of memory: Killed process {} ({}) total-vm:4kB"


def owners(path: Path, *lines: bytes) -> list[bool | None]:
    """Return whose each line about host memory in a log is."""
    path.write_bytes(b"\n".join(lines) + b"\n")
    hits = list(joblog.scan_job(expand([str(path)])[0], (faults.HOST_OOM,), Coverage()))
    asked = Owners(hits, evidence_of(("log", path)))
    return [asked.is_ours(hit) for hit in hits]


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        (KILLED.format(5, "ray::MegatronTr"), True),
        (KILLED.format(5, "sglang::schedul"), True),
        (KILLED.format(7, "python3"), True),
        (KILLED.format(77, "python3"), None),
        (KILLED.format(7, "mysqld"), True),
        (KILLED.format(77, "mysqld"), False),
        ("OSError: [Errno 12] Cannot allocate memory", True),
        ("(raylet) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed", None),
    ],
)
def test_a_name_or_a_pid_tells(tmp_path: Path, line: str, ours: bool | None) -> None:
    """Names of actors and engines, and pids that a prefix shows, are the job's; the kernel's own line shows no pid."""
    assert owners(tmp_path / "job.log", b"(MegatronTrainRayActor pid=7) x", line.encode()) == [ours]


def test_many_kills_are_told_apart(tmp_path: Path) -> None:
    """Each line has its own answer, however many there are."""
    lines = [KILLED.format(pid, "python3").encode() for pid in range(1, 60)]
    told = owners(tmp_path / "job.log", b"(RolloutManager pid=33) x", *lines)
    assert [pid for pid, ours in enumerate(told, 1) if ours] == [33]
    assert set(told) == {True, None}


@given(st.lists(st.one_of(hostile_bytes, st.just(b"Out of memory: Killed process 9 (")), max_size=6))
def test_hostile_lines_do_no_harm(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """Whatever a log holds, each line is the job's, another's or nobody's."""
    assert set(owners(tmp_path_factory.mktemp("hostile") / "job.log", *lines)) <= {True, False, None}
