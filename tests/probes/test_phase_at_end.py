"""In which phase a job died or its log ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.phase_at_end import phases_at_end
from runbook.finding import Finding
from tests.probes.asking import DATA, HEALTHY, ask, word
from tests.probes.colocate import ENGINE, MANAGER, TRAINER, job

SLIME = "/root/slime/slime/backends/megatron_utils/actor.py"
DIED = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
HEALTH = 'INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK'


def log(folder: Path, lines: list[str]) -> Finding:
    """Return what the probe says of these lines."""
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n")
    return ask(phases_at_end, path)


@pytest.mark.parametrize(
    ("stop", "phase"),
    [
        ("generate", "generate"), ("wake", "wake"), ("data", "train-forward"), ("train-forward", "train-forward"),
        ("train", "train"), ("sleep", "sleep"), ("resume", "resume"), ("update", "update"), ("onload", "onload"),
        ("generating", "generate"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("died", "verdict"), [(True, "warning"), (False, "ok")])
def test_every_phase_is_told(stop: str, phase: str, died: bool, verdict: str, tmp_path: Path) -> None:
    """A process that was killed leaves its timer open, or its place in the loop; without a death it is no warning."""
    made = job(4, stop)
    if died:
        made.say("", "x", 30)
        made.lines.append(DIED)
    assert word(log(tmp_path, made.lines)) == f"{verdict}:{phase}"


def test_a_start_in_one_log_takes_nothing_from_another(tmp_path: Path) -> None:
    """Megatron prints its arguments into a worker's own file: the death in the driver's log stands all the same."""
    made = job(4, "update")
    made.say("", "x", 30)
    driver, worker = tmp_path / "driver.log", tmp_path / "worker.log"
    driver.write_text("\n".join([*made.lines, DIED]) + "\n")
    worker.write_text(f"{'-' * 20} end of arguments {'-' * 21}\n{made.lines[0]}\n")
    assert word(ask(phases_at_end, driver)) == "warning:update"
    assert word(ask(phases_at_end, driver, worker)) == "warning:update"


def test_a_phase_that_ended_once_is_told_without_a_spread(tmp_path: Path) -> None:
    """One earlier update has no spread."""
    made = job(2, "update")
    made.say(ENGINE, HEALTH, 41 * 60)
    summary = log(tmp_path, made.lines).summary.en
    assert ", once." in summary
    assert "±" not in summary


def test_the_open_phase_is_set_beside_its_past(tmp_path: Path) -> None:
    """Open for 41 min, before that 13 s ± 1 s: numbers, the line that opened it, and the last cycle."""
    made = job(4, "update")
    opened = len(made.lines)
    made.say(ENGINE, HEALTH, 41 * 60)
    finding = log(tmp_path, made.lines)
    assert word(finding) == "warning:update"
    assert "open for 41 min, before: 13 s ± 1.0 s, 3 times" in finding.summary.en
    assert [citation.line for citation in finding.citations] == [opened]
    assert [(one.name, one.value) for one in finding.measurements] == [("open", 2460.0), ("usual", 13.0)]
    (table,) = finding.tables
    assert [row[1] for row in table.rows] == [
        "generate", "wake", "train-forward", "train", "train-forward", "train", "sleep", "update",
    ]  # fmt: skip
    assert table.rows[-1][4] == "open 41 min"


@pytest.mark.parametrize(
    ("function", "phase"),
    [
        ("wake_up", "wake"), ("train_actor", "train"), ("update_weights", "update"), ("save_model", "save"),
        ("compute_log_prob", "train-forward"), ("resume_memory_occupation", "resume"),
    ],
)  # fmt: skip
def test_a_traceback_tells_though_its_timers_were_closed(function: str, phase: str, tmp_path: Path) -> None:
    """A timer is ended on the way out of an exception, so the frames decide."""
    made = job(3)
    made.say(TRAINER, "timer.py:24 - Timer wake_up start", 1)
    made.say(TRAINER, "timer.py:32 - Timer wake_up end (elapsed: 1.0s)", 1)
    frames = ("Traceback (most recent call last):", f'  File "{SLIME}", line 7, in {function}', "RuntimeError: x")
    finding = log(tmp_path, [*made.lines, *(TRAINER + line for line in frames)])
    assert word(finding) == f"warning:{phase}"
    assert len(made.lines) + 2 in [citation.line for citation in finding.citations]


def test_a_timer_that_the_fault_itself_may_have_closed_tells_nothing(tmp_path: Path) -> None:
    """Without frames, an end right before the fault is no end of a phase: unknown, with the fault and the end cited."""
    made = job(3)
    made.say(TRAINER, "timer.py:24 - Timer wake_up start", 1)
    made.say(TRAINER, "timer.py:32 - Timer wake_up end (elapsed: 1.0s)", 1)
    finding = log(tmp_path, [*made.lines, "Traceback (most recent call last):", "RuntimeError: x"])
    assert word(finding) == "unknown"
    assert [citation.line for citation in finding.citations] == [len(made.lines) + 1, len(made.lines)]


def test_a_fault_that_the_job_outlived_ended_nothing(tmp_path: Path) -> None:
    """A traceback in an early cycle is not what the job ended in."""
    made = job(4, "train")
    lines = [*made.lines[:5], f"{MANAGER}Traceback (most recent call last):", *made.lines[5:]]
    assert word(log(tmp_path, lines)) == "ok:train"


def test_a_new_job_in_the_same_log_begins_anew(tmp_path: Path) -> None:
    """What an earlier job left open is not what this one ends in."""
    ruler = "-" * 20 + " end of arguments " + "-" * 21
    lines = [*job(2, "update").lines, ruler, *job(3, "train").lines]
    assert word(log(tmp_path, lines)) == "ok:train"


def test_a_timer_of_an_unknown_name_is_unknown(tmp_path: Path) -> None:
    """A phase that this project has no word for is not called "between"."""
    made = job(2)
    made.say(TRAINER, "timer.py:24 - Timer brand_new_thing start", 1)
    assert word(log(tmp_path, made.lines)) == "unknown"


def test_without_timers_it_is_unknown(tmp_path: Path) -> None:
    """A log that prints none of these lines does not tell."""
    assert word(log(tmp_path, [f"{MANAGER}[2026-08-21 10:00:00] rollout.py:1 - Router launched", DIED])) == "unknown"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_are_left_alone(name: str) -> None:
    """A finished job gives no warning."""
    assert word(ask(phases_at_end, DATA / f"{name}.log")).partition(":")[0] in ("ok", "unknown")


def test_a_real_train_step_that_ran_out_of_memory() -> None:
    """The remote method that a RayTaskError names tells the phase where slime's own frames are not there."""
    assert word(ask(phases_at_end, DATA / "ray-cuda-oom.log")) == "warning:train"
