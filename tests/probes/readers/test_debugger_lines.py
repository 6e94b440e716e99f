"""The lines of Ray's debuggers, paired by process."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import logfiles
from probes.readers.debugger_lines import SIGNATURES, Stop, stops
from probes.readers.joblog import scan_job
from probes.readers.logscan import Coverage

SEE = "(see https://docs.ray.io/en/latest/ray-observability/ray-distributed-debugger.html)..."
LISTENS = "Ray debugger is listening on "
WAITS = f"Waiting for debugger to attach {SEE}"
ATTACHED = "Debugger client is connected"


def of(name: str, pid: int, text: str, ip: str = "") -> str:
    """Return a line as Ray shows it in the driver's output."""
    return f"\x1b[36m({name} pid={pid}{f', ip={ip}' if ip else ''})\x1b[0m {text}"


def read(path: Path, *lines: str | bytes) -> list[Stop]:
    """Return the stops of a log of these lines."""
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines))
    return stops(scan_job(logfiles.expand([str(path)])[0], SIGNATURES, Coverage()))


def test_two_processes_are_kept_apart(tmp_path: Path) -> None:
    """Each has its own address, and only the one that was attached to is free."""
    first, second = read(
        tmp_path / "job.log",
        of("Trainer", 7, LISTENS + "10.0.0.1:4001"),
        of("Trainer", 8, LISTENS + "10.0.0.2:4002", "10.0.0.2"),
        of("Trainer", 7, WAITS),
        of("Trainer", 8, WAITS, "10.0.0.2"),
        of("Trainer", 7, ATTACHED),
    )
    assert (first.pid, first.host, first.port, first.attached is not None) == (7, "10.0.0.1", 4001, True)
    assert (second.pid, second.ip, second.host, second.port) == (8, "10.0.0.2", "10.0.0.2", 4002)
    assert second.attached is None
    assert (second.listens is not None and second.listens.line, second.since.line) == (2, 4)


def test_a_second_stop_keeps_the_port_of_the_first(tmp_path: Path) -> None:
    """A process opens its port once; a later breakpoint waits at the same one."""
    one, two = read(
        tmp_path / "job.log",
        of("step", 7, LISTENS + "10.0.0.1:4001"), of("step", 7, WAITS), of("step", 7, ATTACHED),
        of("step", 7, "Ray debugger is already open on 4001"), of("step", 7, WAITS),
    )  # fmt: skip
    assert (one.attached is not None, two.attached, two.host, two.port) == (True, None, "10.0.0.1", 4001)


@pytest.mark.parametrize(
    ("line", "host", "port", "legacy"),
    [
        ("2026-11-30 11:06:20,159\tINFO debugpy.py:67 -- Ray debugger is listening on 10.1.2.3:8", "10.1.2.3", 8, 0),
        ("Ray debugger is listening on [fd00::7]:46825", "fd00::7", 46825, False),
        ("Ray debugger is listening on node-7.rack:80", "node-7.rack", 80, False),
        ("RemotePdb session open at 10.1.2.3:39217, use 'ray debug' to connect...", "10.1.2.3", 39217, True),
        ("RemotePdb session open at localhost:39217, use 'ray debug' to connect...", "localhost", 39217, True),
    ],
)  # fmt: skip
def test_every_wording_gives_its_address(tmp_path: Path, line: str, host: str, port: int, legacy: bool) -> None:
    """The first line alone, as older versions of Ray print it, is a stop with an address."""
    (stop,) = read(tmp_path / "job.log", line)
    assert (stop.host, stop.port, stop.legacy, stop.actor) == (host, port, legacy, None)


@pytest.mark.parametrize(
    "line",
    [
        "Ray debugger is listening on nothing",
        "RemotePdb session open at 127.0.0.1:41653, waiting for connection ...",
        "Waiting for debugger to attach",
        "the debugger client was connected",
    ],
)
def test_other_debuggers_are_not_rays(tmp_path: Path, line: str) -> None:
    """Lines of python-remote-pdb, or of somebody who writes about it, are no stop."""
    assert read(tmp_path / "job.log", line) == []


def test_repeated_lines_tell_how_many_wait(tmp_path: Path) -> None:
    """Ray shows equal lines once; the number behind the line counts the others."""
    repeated = " [repeated 7x across cluster]"
    (stop,) = read(tmp_path / "job.log", of("T", 7, LISTENS + f"10.0.0.1:4001{repeated}"), of("T", 7, WAITS + repeated))
    assert (stop.port, stop.count) == (4001, 7)


def test_a_workers_own_file_tells_its_process(tmp_path: Path) -> None:
    """In worker-*.err no line has a prefix; name and pid come from the file."""
    path = tmp_path / f"worker-{'a' * 56}-02000000-4711.err"
    (stop,) = read(path, ":job_id:02000000", ":actor_name:Trainer", LISTENS + "10.0.0.1:4001", WAITS)
    assert (stop.actor, stop.pid, stop.port) == ("Trainer", 4711, 4001)


@given(
    st.lists(
        st.one_of(
            st.sampled_from([LISTENS + "10.0.0.1:1", WAITS, ATTACHED]).map(str.encode),
            st.integers(0, 99999).map(lambda number: b"Ray debugger is already open on %d" % number),
            st.binary(max_size=60).map(lambda raw: LISTENS.encode() + raw.replace(b"\n", b"")),
            st.sampled_from([b"(A pid=1) " + WAITS.encode(), b"\x1b[2J" + WAITS.encode(), b"\0" * 9]),
        ),
        max_size=12,
    )
)  # fmt: skip
def test_no_lines_raise(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """Whatever is printed gives stops with a port that can be one, or with none."""
    for stop in read(tmp_path_factory.mktemp("lines") / "job.log", *lines):
        assert 0 <= stop.port < 1 << 16
