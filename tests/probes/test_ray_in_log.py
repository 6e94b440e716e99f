"""What Ray says of placement groups and dead actors."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from probes.known.lint import _wide
from probes.ray_in_log import _DEATH, ray_in_log
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, word


def _death(
    actor: str, pid: int, reason: str = "its worker process has died. Worker exit type: SYSTEM_ERROR"
) -> list[str]:
    return [
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        f"\tclass_name: {actor}",
        "\tactor_id: c0d2",
        f"\tpid: {pid}",
        f"The actor is dead because {reason} (1) The process is killed by SIGKILL by OOM killer",
    ]


def _wait(elapsed: int, registered: int, free: int) -> str:
    return (
        f"{STAMP}placement_group.py:64 - Waiting for placement group of 16 GPUs (elapsed {elapsed}s): {registered} GPUs"
        f" registered with Ray, {free} available."
    )


@pytest.mark.parametrize(
    ("name", "expected", "lines"),
    [
        ("ray-pending", "problem:pending", [9]),
        ("ray-engine-dies", "problem:engine-died", [74, 80]),
        ("ray-cuda-oom", "ok:none", []),
        ("ray-host-oom", "ok:none", []),
    ],
)
def test_real_logs_are_judged(name: str, expected: str, lines: list[int]) -> None:
    """A pending group, a dead engine, and jobs that died of memory, which is not Ray's to report."""
    finding = ask(ray_in_log, DATA / f"{name}.log")
    assert word(finding) == expected
    assert [citation.line for citation in finding.citations] == lines


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_have_nothing_to_report(name: str) -> None:
    """A log whose actors live on answers none."""
    assert word(ask(ray_in_log, DATA / f"{name}.log")) == "ok:none"


def test_a_trainer_that_vanished_is_a_dead_actor(tmp_path: Path) -> None:
    """A Megatron process without a word of its own is named with class and pid."""
    finding = ask_text(ray_in_log, tmp_path, *_death("MegatronTrainRayActor", 5858))
    assert word(finding) == "problem:actor-died"
    assert "MegatronTrainRayActor (pid 5858)" in finding.summary.en


@pytest.mark.parametrize(
    "before",
    [
        "(MegatronTrainRayActor pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",
        "(SGLangEngine pid=9) RuntimeError: CUDA error: an illegal memory access was encountered",
        "[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/core.cpp func=resume line=260",
        "(SGLangEngine pid=9) [2026-08-21 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        "(MegatronTrainRayActor pid=7) Traceback (most recent call last):",
    ],
)
def test_a_death_after_a_fault_is_its_consequence(tmp_path: Path, before: str) -> None:
    """An earlier fault, or the process's own traceback, explains a death."""
    assert word(ask_text(ray_in_log, tmp_path, before, *_death("MegatronTrainRayActor", 7))) == "ok:none"


def test_an_exit_that_was_asked_for_is_no_death(tmp_path: Path) -> None:
    """exit_actor() ends an actor in the same words, but Ray gives the exit type."""
    lines = _death("MegatronTrainRayActor", 7, "its worker process has died. Worker exit type: INTENDED_USER_EXIT")
    assert word(ask_text(ray_in_log, tmp_path, *lines)) != "problem:actor-died"


def test_a_traceback_of_another_process_explains_nothing(tmp_path: Path) -> None:
    """Only the dead process's own traceback counts; the driver's is how the death is reported."""
    lines = ["Traceback (most recent call last):", "(RolloutManager pid=3) Traceback (most recent call last):"]
    assert word(ask_text(ray_in_log, tmp_path, *lines, *_death("SGLangEngine", 9))) == "problem:engine-died"


@pytest.mark.parametrize("reason", ["it was killed by `ray.kill`.", "its owner has died. Owner Id: 01000000"])
def test_an_actor_that_was_ended_did_not_die(tmp_path: Path, reason: str) -> None:
    """Killed by the health monitor, or ended with its owner, is no death of its own."""
    assert word(ask_text(ray_in_log, tmp_path, *_death("SGLangEngine", 9, reason))) == "ok:none"


def test_another_actors_death_is_unknown_with_its_line(tmp_path: Path) -> None:
    """The manager is neither trainer nor engine, so no answer fits, but the line is shown."""
    finding = ask_text(ray_in_log, tmp_path, *_death("RolloutManager", 3))
    assert word(finding) == "unknown"
    assert finding.citations


def test_a_group_that_was_met_is_not_pending(tmp_path: Path) -> None:
    """Waiting lines before the bundles were placed are history."""
    met = f"{STAMP}placement_group.py:92 -   bundle    0, actual_bundle_index:    0, node: 10.0.0.1, gpu: 0"
    assert word(ask_text(ray_in_log, tmp_path, _wait(30, 8, 8), met)) == "ok:none"


def test_gpus_that_others_hold_may_come_free(tmp_path: Path) -> None:
    """Enough registered GPUs of which too few are free is a warning, too few registered a problem."""
    path = tmp_path / "job.log"
    path.write_text(_wait(30, 16, 4) + "\n")
    assert word(ask(ray_in_log, path)) == "warning:pending"
    path.write_text(_wait(30, 8, 8) + "\n" + _wait(60, 8, 8) + "\n")
    finding = ask(ray_in_log, path)
    assert word(finding) == "problem:pending"
    assert (finding.citations[0].line, finding.citations[0].count) == (2, 2)


def test_a_lost_node_is_unknown_with_its_line(tmp_path: Path) -> None:
    """Heartbeats that stopped are shown; which half of the job is lost is not known."""
    line = (
        "(raylet) The node with node id: 0a and address: 10.0.0.2 and node name: 10.0.0.2 has been marked dead because"
        " the detector has missed too many heartbeats from it."
    )
    assert word(ask_text(ray_in_log, tmp_path, line)) == "unknown"


def test_a_long_line_of_deaths_takes_no_time() -> None:
    """Behind each death only so much of a line is read, so that many in one line do not read it again and again."""
    parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    assert _wide(parser.parse(_DEATH.pattern), inside=False) == (0, False)
