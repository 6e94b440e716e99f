"""Memory-Usage lines of every version."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import joblog, memory_lines
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage
from probes.readers.memory_lines import Usage
from tests.helpers import hostile_bytes

HEAD = (
    "\x1b[36m(MegatronTrainRayActor pid=19389)\x1b[0m [2026-08-21 10:00:00] memory_utils.py:49 - [Rank 3] Memory-Usage "
    "after wake_up model: {'gpu': '3', 'total_GB': 139.8, 'free_GB': 50.2, 'used_GB': 89.6, 'allocated_GB': 80.1, "
    "'reserved_GB': 82.0, 'host_total_GB': 2015.5, 'host_available_GB': 1500.1, 'host_used_GB': 490.2}"
)


def usages(folder: Path, *lines: str | bytes) -> list[Usage]:
    """Return the lines of memory of a log."""
    path = folder / "job.log"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n")
    files, _ = expand([str(path)])
    return [memory_lines.usage(hit) for hit in joblog.scan_job(files, (memory_lines.USAGE,), Coverage())]


def test_every_field_is_read(tmp_path: Path) -> None:
    """Rank, GPU, process, place and all sizes come from the line; used minus reserved is what others hold."""
    (one,) = usages(tmp_path, HEAD)
    assert (one.what, one.rank, one.gpu, one.process.pid) == ("after wake_up model", 3, 3, 19389)
    assert (one.total, one.free, one.used, one.allocated, one.reserved) == (139.8, 50.2, 89.6, 80.1, 82.0)
    assert (one.host_total, one.host_available, one.count) == (2015.5, 1500.1, 1)
    assert one.others == pytest.approx(7.6)


def test_older_wordings(tmp_path: Path) -> None:
    """v0.1.0 has neither rank nor torch's numbers, which stay unknown; a cleared cache is said and left out."""
    old = "(T pid=4) Memory-Usage before offload model: {'gpu': '0', 'total_GB': 79.1, 'used_GB': 67.7}"
    cleared = "[Rank 0] Memory-Usage after offload model (cleared before print): {'gpu': '0', 'used_GB': 9.8}"
    first, second = usages(tmp_path, old, cleared)
    assert (first.rank, first.used, first.reserved, first.others, first.host_available) == (
        None,
        67.7,
        None,
        None,
        None,
    )
    assert second.what == "after offload model"


def test_repeated_lines_say_how_many_there_were(tmp_path: Path) -> None:
    """Ray's note counts the ranks whose lines it hides."""
    (one,) = usages(tmp_path, HEAD + "\x1b[32m [repeated 7x across cluster]\x1b[0m")
    assert one.count == 7


@pytest.mark.parametrize(
    "line", ["Memory-Usage is high", "no Memory-Usage before: nothing", "[Rank 0] Memory-Usage x {'gpu'"]
)
def test_other_lines_are_none(line: str, tmp_path: Path) -> None:
    """Only the line with its dictionary counts."""
    assert usages(tmp_path, line) == []


def test_values_that_are_no_size_are_unknown(tmp_path: Path) -> None:
    """nan, negative and absurd numbers are no memory."""
    (one,) = usages(tmp_path, "[Rank 0] Memory-Usage x: {'used_GB': nan, 'free_GB': -1.0, 'reserved_GB': 1e300}")
    assert (one.used, one.free, one.reserved, one.others) == (None, None, None, None)


@given(st.lists(st.one_of(hostile_bytes, st.just(HEAD.encode()[:150]), st.just(b"Memory-Usage : {'")), max_size=6))
def test_hostile_lines_do_no_harm(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """Whatever a log holds, sizes are finite or unknown."""
    for one in usages(tmp_path_factory.mktemp("hostile"), *lines):
        assert one.used is None or 0 <= one.used < 1e9
