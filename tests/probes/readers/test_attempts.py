"""Attempts of a job: where they begin, and which faults a job got past."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import attempts, joblog
from probes.readers.attempts import Attempt, Attempts, Past
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage, Hit, signature
from tests.probes import asking
from tests.probes.asking import manager, table

FAULT = signature("fault", "CUDA error: ")
ENTRY = "Running entrypoint for job slime_1: python train.py"
SUBMITTED = "2026-11-29 18:16:47,334\tSUCC cli.py:66 -- \x1b[32mJob 'raysubmit_1' submitted successfully\x1b[39m"
PLACED = "[2026-08-21 10:00:00] placement_group.py:125 - Creating placement group with 8 GPUs..."
DIED = "RuntimeError: CUDA error: x"
TABLE = table(load="/x", rank=0)


def rollout(number: int) -> str:
    """Return a trainer's line of a rollout."""
    return asking.rollout(number, rewards=0.5)


def step(number: int) -> str:
    """Return a trainer's line of a step."""
    return asking.step(number, loss=0.5)


def _read(*paths: Path) -> tuple[Attempts, list[Hit]]:
    """Return the attempts in logs and the hits of FAULT."""
    files = expand([str(path) for path in paths])[0]
    found = attempts.read(joblog.scan_job(files, attempts.SIGNATURES, Coverage()))
    return found, list(joblog.scan_job(files, (FAULT,), Coverage()))


def _of(folder: Path, *lines: str) -> tuple[Attempts, list[Hit]]:
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n")
    return _read(path)


def _starts(found: Attempts) -> list[int | None]:
    return [each.start.line if each.start else None for attempts in found.streams.values() for each in attempts]


def test_the_signs_of_one_start_are_one_attempt(tmp_path: Path) -> None:
    """Submission, entrypoint, arguments table and placement group of one start follow each other."""
    found, _ = _of(tmp_path, SUBMITTED, ENTRY, *TABLE, PLACED, rollout(0), step(0))
    assert _starts(found) == [None, 1]


@pytest.mark.parametrize("sign", [SUBMITTED, ENTRY, TABLE[0], PLACED])
def test_a_sign_that_comes_again_is_another_attempt(tmp_path: Path, sign: str) -> None:
    """Whatever sign a log has, its second coming is a second start, also when nothing was done between."""
    found, _ = _of(tmp_path, sign, DIED, sign, rollout(0))
    assert _starts(found) == [None, 1, 3]


def test_a_sign_behind_progress_is_another_attempt(tmp_path: Path) -> None:
    """A log that begins in the midst of an attempt shows the next one by any sign."""
    found, (hit,) = _of(tmp_path, step(7), DIED, ENTRY, rollout(0))
    assert _starts(found) == [None, 3]
    past = found.past(hit)
    assert past is not None
    assert past.start is not None
    assert (past.start.line, past.proof.line) == (3, 4)


@pytest.mark.parametrize("line", [f"(RolloutManager pid=3) {PLACED}", f"(A pid=3) {TABLE[0]}", "quoted " + ENTRY])
def test_what_an_actor_prints_is_no_start(tmp_path: Path, line: str) -> None:
    """Only the driver's own lines tell of a start."""
    found, _ = _of(tmp_path, ENTRY, rollout(0), line, rollout(1))
    assert _starts(found) == [None, 1]


def test_a_rollout_number_that_falls_is_another_attempt(tmp_path: Path) -> None:
    """Without any sign of a start, the counter tells; what stood before it is got past."""
    found, (hit,) = _of(tmp_path, rollout(7), rollout(8), DIED, rollout(5), step(5))
    assert _starts(found) == [None, 4]
    past = found.past(hit)
    assert past is not None
    assert past.start is not None
    assert past.start.said == "rollout 5"


def test_steps_of_rollouts_that_overlap_are_one_attempt(tmp_path: Path) -> None:
    """With fewer steps in a rollout than in the one before, slime's step numbers fall though nothing began anew."""
    found, _ = _of(tmp_path, rollout(0), step(0), step(1), step(2), rollout(1), step(1), step(2), rollout(2))
    assert _starts(found) == [None]
    found, _ = _of(tmp_path, step(4), step(5), step(2))
    assert _starts(found) == [None, 3]


def test_an_attempt_that_has_only_begun_takes_nothing_back(tmp_path: Path) -> None:
    """What ended the last attempt that did anything is the news until the next one has done something."""
    begun = [ENTRY, *TABLE, PLACED]
    found, (hit,) = _of(tmp_path, *begun, rollout(0), step(0), DIED, *begun, manager(0))
    assert found.past(hit) is None
    found, (hit,) = _of(tmp_path, *begun, rollout(0), step(0), DIED, *begun, rollout(0))
    assert found.past(hit) is not None


def test_two_rollouts_behind_a_fault_prove_that_the_job_went_on(tmp_path: Path) -> None:
    """One may be the rollout that was being trained on when the engines died."""
    found, (hit,) = _of(tmp_path, ENTRY, rollout(0), step(0), DIED, rollout(1), step(1), step(2), manager(2))
    assert found.past(hit) is None
    found, (hit,) = _of(tmp_path, ENTRY, rollout(0), step(0), DIED, rollout(1), step(1), rollout(2))
    past = found.past(hit)
    assert past is not None
    assert past.start is None
    assert (past.proof.said, past.proof.line) == ("rollout 2", 7)


def test_a_rollout_that_is_printed_again_is_no_progress(tmp_path: Path) -> None:
    """The same number twice is one rollout."""
    found, (hit,) = _of(tmp_path, ENTRY, rollout(0), DIED, rollout(1), rollout(1))
    assert found.past(hit) is None


def test_a_fault_that_comes_back_at_the_end_stands(tmp_path: Path) -> None:
    """Each line of a fault is judged by what stands behind it."""
    found, hits = _of(tmp_path, ENTRY, DIED, rollout(0), rollout(1), rollout(2), DIED)
    assert [found.past(hit) is None for hit in hits] == [False, True]


def test_rollouts_count_for_a_job_without_a_trainer(tmp_path: Path) -> None:
    """A rollout-only job prints only the manager's lines."""
    found, (hit,) = _of(tmp_path, ENTRY, manager(0), DIED, manager(1), manager(2))
    assert found.past(hit) is not None


def _at(minute: int, line: str) -> str:
    return line.replace("10:00:00", f"10:{minute:02}:00")


def test_a_worker_s_own_log_is_judged_by_the_driver_s(tmp_path: Path) -> None:
    """A log that tells neither starts nor progress is placed by its times."""
    worker, driver = tmp_path / "worker.err", tmp_path / "driver.log"
    worker.write_text(f"[2026-08-21 10:05:00] x.py:1 - busy\n{DIED}\n")
    lines = [ENTRY, *(_at(minute, rollout(minute)) for minute in (1, 4, 6))]
    driver.write_text("\n".join(lines) + "\n")
    found, (hit,) = _read(worker, driver)
    assert found.past(hit) is None
    driver.write_text("\n".join([*lines, _at(7, rollout(7))]) + "\n")
    found, (hit,) = _read(worker, driver)
    past = found.past(hit)
    assert past is not None
    assert past.proof.said == "rollout 7"
    worker.write_text(f"{DIED}\n")
    found, (hit,) = _read(worker, driver)
    assert found.past(hit) is None


def test_a_later_log_of_the_same_job_is_a_later_attempt(tmp_path: Path) -> None:
    """A job that was submitted again into a new file got past what ended the old one, once it trains."""
    old, new = tmp_path / "old.log", tmp_path / "new.log"
    old.write_text("\n".join([ENTRY, _at(1, rollout(0)), _at(2, rollout(1)), DIED]) + "\n")
    new.write_text("\n".join([ENTRY, _at(20, PLACED)]) + "\n")
    found, (hit,) = _read(old, new)
    assert found.past(hit) is None
    new.write_text("\n".join([ENTRY, _at(20, PLACED), _at(30, rollout(0))]) + "\n")
    found, (hit,) = _read(old, new)
    past = found.past(hit)
    assert past is not None
    assert past.start is not None
    assert Path(past.start.file.path).name == "new.log"


def test_the_parts_of_a_rotated_log_are_one(tmp_path: Path) -> None:
    """A start in the next part of a rotated log counts for the part before."""
    (tmp_path / "job.log.1").write_text("\n".join([ENTRY, rollout(3), DIED]) + "\n")
    (tmp_path / "job.log").write_text("\n".join([ENTRY, rollout(3)]) + "\n")
    found, (hit,) = _read(tmp_path)
    assert found.past(hit) is not None


@given(st.lists(st.sampled_from([ENTRY, *TABLE, PLACED, DIED, *(rollout(n) for n in range(4)), step(1), manager(2)])))
def test_of_the_last_lines_nothing_is_past(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """Whatever stood before, a fault with no metric line behind it stands, and every attempt begins behind the last."""
    found, hits = _of(tmp_path_factory.mktemp("log"), *lines, DIED)
    assert found.past(hits[-1]) is None
    starts = [start for start in _starts(found) if start is not None]
    assert starts == sorted(set(starts))
    for hit in hits:
        past = found.past(hit)
        assert past is None or past.proof.line > hit.line


def _searched(attempts_: list[Attempt], place: tuple[int, int]) -> Past | None:
    """Find how a job got past a place by trying one attempt after the other."""
    own = [each for each in attempts_ if each.start is None or each.start.place <= place][-1]
    for each in attempts_[attempts_.index(own) + 1 :]:
        if each.advanced is not None:
            return Past(each.start, each.advanced)
    further = own.further()
    return Past(None, further[1]) if further and further[0].place > place else None


def _searched_in_time(attempts_: list[Attempt], time: float, *, silent: bool) -> Past | None:
    """Find how another log got past a time by trying one attempt after the other."""
    for each in attempts_:
        if each.start and each.advanced and each.start.time is not None and each.start.time > time:
            return Past(each.start, each.advanced)
        further = each.further()
        if silent and further and further[0].time is not None and further[0].time > time:
            return Past(None, further[1])
    return None


said = st.sampled_from([ENTRY, PLACED, DIED, *(rollout(n) for n in range(3)), manager(1), manager(2)])


@given(st.lists(said, max_size=40))
def test_what_is_looked_up_is_what_a_search_finds(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """However many attempts a log holds, each fault is behind the job by the first that advanced after it."""
    found, hits = _of(tmp_path_factory.mktemp("log"), *lines)
    for own in found.streams.values():
        for hit in hits:
            assert found.past(hit) == _searched(own, (0, hit.offset))


@given(st.lists(st.tuples(st.integers(0, 9), said), max_size=40), st.integers(0, 9), st.booleans())
def test_what_is_looked_up_by_time_is_what_a_search_finds(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[int, str]], minute: int, silent: bool
) -> None:
    """Also in another log whose times go back and forth."""
    folder = tmp_path_factory.mktemp("logs")
    fault, other = folder / "fault.log", folder / "other.log"
    fault.write_text("" if silent else ENTRY + "\n")
    with fault.open("a") as file:
        file.write(f"[2026-08-21 10:0{minute}:00] {DIED}\n")
    other.write_text("\n".join(_at(at, line) for at, line in lines) + "\n")
    found, hits = _read(fault, other)
    (hit,) = [each for each in hits if each.file.path == str(fault)]
    time = joblog.parse(hit.raw).time
    assert time is not None
    searched = _searched_in_time(found.streams.get(str(other), []), time, silent=silent)
    assert found.past(hit) == searched
