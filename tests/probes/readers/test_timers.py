"""Events of timers, rollouts, saves and engines, from every version's wording."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import joblog, timers
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage
from probes.readers.timers import Event, Process
from runbook.finding import Finding, Verdict
from runbook.text import Text
from tests.helpers import check_citations, hostile_bytes

AT = "[2026-08-21 10:00:00] "
TRAINER = "\x1b[36m(MegatronTrainRayActor pid=7, ip=192.0.2.3)\x1b[0m "


def events(folder: Path, *lines: str | bytes, name: str = "job.log") -> list[Event]:
    """Return the events of a log of these lines."""
    path = folder / name
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n")
    return read(path)


def read(*paths: Path) -> list[Event]:
    """Return the events of logs, each as they stand."""
    files, _ = expand(map(str, paths))
    hits = joblog.scan_job(files, timers.SIGNATURES, Coverage())
    return [each for hit in hits if (each := timers.event(hit)) is not None]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{TRAINER}{AT}timer.py:24 - Timer wake_up start", ("timer", "wake_up", "start", None)),
        (f"{TRAINER}{AT}timer.py:32 - Timer wake_up end (elapsed: 2.2s)", ("timer", "wake_up", "end", 2.2)),
        ("(MegatronTrainRayActor pid=7) Timer train end (elapsed: 60.1s)", ("timer", "train", "end", 60.1)),
        (f'{AT}INFO: 1 - "POST /release_memory_occupation HTTP/1.1" 200', ("engine", "release", "mark", None)),
        (f'{AT}INFO: 1 - "POST /resume_memory_occupation HTTP/1.1" 200', ("engine", "resume", "mark", None)),
        (
            f"{AT}sglang_rollout.py:420 - First rollout sample: ['Timer x start']",
            ("rollout", "generate", "start", None),
        ),
        (f"{AT}sglang_rollout.py:446 - Finish rollout: ['x'], label: 2", ("rollout", "generate", "end", None)),
        ("(T pid=7) saving checkpoint at iteration      19 to /c", ("save", "checkpoint", "start", None)),
        (
            "(T pid=7)   [2026-08-21 10:00:41.123456] successfully saved checkpoint from iteration      19 to /c",
            ("save", "checkpoint", "end", None),
        ),
        (f"{AT}model.py:918 - step 3: {{'train/loss': 0.0}}", ("metric", "step", "mark", None)),
        (f"{AT}x.py:1 - perf 3: {{'perf/train_time': 6.1}}", ("metric", "perf", "mark", None)),
        (f"{AT}x.py:1 - perf 3: {{'rollout/response_len/mean': 6.1}}", ("metric", "manager", "mark", None)),
    ],
)
def test_each_wording_is_an_event(line: str, expected: tuple[str, str, str, float | None], tmp_path: Path) -> None:
    """Each line becomes one event with its kind, name, edge and printed seconds."""
    (found,) = events(tmp_path, line)
    assert (found.kind, found.name, found.edge, found.seconds) == expected


@pytest.mark.parametrize(
    "line",
    [
        "Timer already started.",
        "AssertionError: Timer wake_up already started.",
        '"GET /release_memory_occupation HTTP/1.1" 200 OK',
        "release_memory_occupation should be called only when server is idle.",
        f"{AT}x.py:1 - perf 3: {{'perf/other': 6.1}}",
        f"{AT}a.py:1 - multi_turn 0: {{'multi_turn/x': 1}}",
        f"{AT}sglang_rollout.py:446 - Finish rollouts are nice",
    ],
)
def test_other_lines_are_none(line: str, tmp_path: Path) -> None:
    """Words about timers, other requests and other metrics mark nothing."""
    assert events(tmp_path, line) == []


def test_a_refused_request_is_not_fine(tmp_path: Path) -> None:
    """An answer other than 2xx says that the memory was not taken back."""
    (found,) = events(tmp_path, '"POST /resume_memory_occupation HTTP/1.1" 500 Internal Server Error')
    assert not found.fine


def test_the_process_is_told_by_prefix_or_by_the_workers_own_log(tmp_path: Path) -> None:
    """Ray's prefix holds class, pid and node; a worker's log says its class at its head and its pid in its name."""
    (found,) = events(tmp_path, f"{TRAINER}{AT}timer.py:24 - Timer sleep start")
    assert found.process == Process("MegatronTrainRayActor", 7, "192.0.2.3")
    assert found.time == 1787306400.0
    head = (":job_id:02000000", ":actor_name:MegatronTrainRayActor")
    (found,) = events(tmp_path, *head, f"{AT}timer.py:24 - Timer sleep start", name="worker-ab12-02000000-77.err")
    assert found.process == Process("MegatronTrainRayActor", 77)


def test_logs_of_several_processes_are_put_in_order_and_counted_once(tmp_path: Path) -> None:
    """Times order the logs; a line that the driver's log repeats from the worker's own counts once."""
    prefix = "(MegatronTrainRayActor pid=77) "
    late = "[2026-08-21 10:00:09] timer.py:24 - Timer sleep start"
    early = "[2026-08-21 10:00:01] timer.py:24 - Timer train start"
    driver, worker = tmp_path / "driver.log", tmp_path / "worker-ab12-02000000-77.err"
    driver.write_text(f"{prefix}{late}\n")
    worker.write_text(f":actor_name:MegatronTrainRayActor\n{early}\n{late}\n")
    ordered = timers.in_order(read(driver, worker))
    assert [each.name for each in ordered] == ["train", "sleep"]


def test_one_log_keeps_its_order_whatever_its_times_say(tmp_path: Path) -> None:
    """Ray holds repeated lines back, so times in one log may fall; its order stands."""
    lines = ("[2026-08-21 10:00:09] Timer train start", "[2026-08-21 10:00:01] Timer train end (elapsed: 1.0s)")
    assert [each.edge for each in timers.in_order(events(tmp_path, *lines))] == ["start", "end"]


def test_citations_are_true(tmp_path: Path) -> None:
    """An event cites its very line, also a long one."""
    found = events(tmp_path, "x", f"{AT}s.py:1 - First rollout sample: ['{'y' * 9000}']", "(T pid=1) Timer a start")
    cited = tuple(timers.citation(each) for each in found)
    assert [each.line for each in cited] == [2, 3]
    check_citations(Finding(Verdict.OK, "x", Text("x", "x"), cited))


def test_the_last_time_is_that_of_the_end(tmp_path: Path) -> None:
    """The latest time at the end of any plain log is when the evidence ends; without times there is none."""
    path = tmp_path / "job.log"
    path.write_text(f"{AT}a\n[2026-08-21 10:00:07] b\nc\n")
    assert timers.last_time(expand([str(path)])[0]) == 1787306407.0
    path.write_text("a\n")
    assert timers.last_time(expand([str(path)])[0]) is None


@given(
    st.lists(
        st.one_of(hostile_bytes, st.just(b"Timer x start"), st.just(b"\r Timer y end (elapsed: 9..9s)")), max_size=8
    )
)
def test_hostile_lines_do_no_harm(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """Whatever a log holds, events have a line of the file and a finite or no duration."""
    for each in events(tmp_path_factory.mktemp("hostile"), *lines):
        assert each.line >= 1
        assert each.seconds is None or each.seconds >= 0
