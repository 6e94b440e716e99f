"""Where a job stands still: silence behind an open timer, and stack dumps; above all, when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.known_hang import hang_phase
from probes.known_hang_timer import QUIET, QUIET_UNCOMPARED, TIMES
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import evidence_of, hostile_bytes
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, word

TRAINER = "(MegatronTrainRayActor pid=7) "
ENGINE = "(SGLangEngine pid=9) "


def at(seconds: float, who: str, words: str) -> str:
    """Return a line that is printed so many seconds after ten o'clock."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{who}[2026-08-21 {10 + hours:02d}:{minute:02d}:{second:02d}] x.py:1 - {words}"


def health(until: float, since: float = 0) -> list[str]:
    """Return the health checks of an engine, one every five minutes and one at the end."""
    return [
        at(second, ENGINE, '"GET /health HTTP/1.1" 200 OK') for second in (*range(int(since), int(until), 300), until)
    ]


def log(tmp_path: Path, *lines: str) -> Finding:
    """Return what the probe says of these lines."""
    path = tmp_path / "job.log"
    path.write_text("\n".join(lines) + "\n")
    return ask(hang_phase, path)


@pytest.mark.parametrize(
    ("timer", "answer"),
    [
        ("actor_train", "train-step"),
        ("ref_log_probs", "train-step"),
        ("train", "train-step"),
        ("update_weights", "weight-update"),
        ("save_model", "checkpoint-save"),
    ],
)
def test_an_open_timer_in_long_silence_is_a_hang(timer: str, answer: str, tmp_path: Path) -> None:
    """A phase that began and never ended while the engines went on for hours is proof, with both ends cited."""
    lines = [at(0, TRAINER, f"Timer {timer} start"), *health(QUIET_UNCOMPARED)]
    finding = log(tmp_path, *lines)
    assert word(finding) == f"problem:{answer}"
    assert [citation.line for citation in finding.citations] == [1, len(lines)]
    (measured,) = finding.measurements
    assert (measured.value, measured.threshold) == (QUIET_UNCOMPARED, QUIET_UNCOMPARED)


@pytest.mark.parametrize(
    ("longest", "silence", "expected"),
    [
        (60.0, QUIET, "problem:train-step"),
        (60.0, QUIET - 1, "unknown"),
        (900.0, TIMES * 900, "problem:train-step"),
        (900.0, TIMES * 900 - 1, "unknown"),
    ],
)
def test_silence_is_measured_by_what_such_a_phase_takes(
    longest: float, silence: float, expected: str, tmp_path: Path
) -> None:
    """Half an hour, and five times the longest phase that ended; less leaves it open."""
    before = [at(0, TRAINER, "Timer actor_train start"), at(1, TRAINER, f"Timer actor_train end (elapsed: {longest}s)")]
    lines = [*before, at(2, TRAINER, "Timer actor_train start"), *health(2 + silence, since=2)]
    assert word(log(tmp_path, *lines)) == expected


def test_a_process_that_speaks_is_not_silent(tmp_path: Path) -> None:
    """The trainer's own later line, stamped or not, begins the silence anew."""
    lines = [
        at(0, TRAINER, "Timer actor_train start"),
        *health(QUIET_UNCOMPARED - 60),
        f"{TRAINER}actor train:  50%|#####     | 1/2 [00:10<00:10]",
        *health(QUIET_UNCOMPARED + 60, since=QUIET_UNCOMPARED),
    ]
    assert word(log(tmp_path, *lines)) == "unknown"


def test_a_log_that_ends_in_a_phase_is_unknown(tmp_path: Path) -> None:
    """A copy of a running job looks like this."""
    finding = log(tmp_path, at(0, TRAINER, "Timer actor_train start"), *health(20))
    assert word(finding) == "unknown"
    assert finding.citations[0].line == 1


@pytest.mark.parametrize(
    "between",
    [
        "Traceback (most recent call last):",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "(MegatronTrainRayActor pid=8) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",
        f"{TRAINER}[rank0]:[E1 x.cpp:1] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1) ran",
    ],
)
def test_a_phase_that_ended_in_a_fault_did_not_hang(between: str, tmp_path: Path) -> None:
    """What a fault broke off is not a hang, however long the rest of the log goes on."""
    finding = log(tmp_path, at(0, TRAINER, "Timer actor_train start"), between, *health(QUIET_UNCOMPARED * 2))
    assert word(finding) == "ok:none"
    assert finding.citations[0].line == 2


def test_a_fault_in_another_log_ends_no_phase_of_this_one(tmp_path: Path) -> None:
    """Where another log's traceback stands in time is not known, so the silence in the trainer's log stays proof."""
    lines = [at(0, TRAINER, "Timer update_weights start"), *health(QUIET_UNCOMPARED)]
    (tmp_path / "a-driver.log").write_text("\n".join(lines) + "\n")
    fault = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."
    (tmp_path / "b-reward.log").write_text(f"Traceback (most recent call last):\n{fault}\n")
    finding = ask(hang_phase, tmp_path)
    assert word(finding) == "problem:weight-update"
    assert {Path(citation.path).name for citation in finding.citations} == {"a-driver.log"}


def test_a_job_that_begins_in_another_log_forgets_no_fault_of_this_one(tmp_path: Path) -> None:
    """The fault that broke off a phase of one log stays its reason when another log shows a start."""
    (tmp_path / "a.log").write_text(
        f"{at(0, TRAINER, 'Timer actor_train start')}\nTraceback (most recent call last):\n"
    )
    (tmp_path / "b.log").write_text("-" * 20 + " end of arguments " + "-" * 21 + "\n")
    finding = ask(hang_phase, tmp_path)
    assert word(finding) == "ok:none"
    assert "ended in the fault at line 2" in finding.summary.en


def test_a_new_job_in_the_same_log_begins_anew(tmp_path: Path) -> None:
    """A job that was stopped in a phase and started again later does not hang."""
    ruler = "-" * 20 + " end of arguments " + "-" * 21
    lines = [at(0, TRAINER, "Timer actor_train start"), ruler, at(QUIET_UNCOMPARED * 2, ENGINE, "ready")]
    assert word(log(tmp_path, *lines, at(QUIET_UNCOMPARED * 2, "(T pid=1) ", "Timer train_wait start"))) == "ok:none"


def test_waiting_long_for_a_rollout_is_a_warning(tmp_path: Path) -> None:
    """A rollout has no usual length, so a long wait proves nothing."""
    before = [at(0, TRAINER, "Timer train_wait start"), at(9, TRAINER, "Timer train_wait end (elapsed: 9.0s)")]
    lines = [*before, at(10, TRAINER, "Timer train_wait start"), *health(10 + QUIET, since=10)]
    assert word(log(tmp_path, *lines)) == "warning:rollout"
    assert word(log(tmp_path, *lines[:-3])) == "ok:none"


def test_a_phase_of_another_kind_stays_open(tmp_path: Path) -> None:
    """Waking up and going to sleep belong to none of the answers."""
    assert word(log(tmp_path, at(0, TRAINER, "Timer wake_up start"), *health(QUIET_UNCOMPARED))) == "unknown"


SAVING = (
    "    gather (torch/distributed/distributed_c10d.py:4264)",
    "    gather_object (torch/distributed/distributed_c10d.py:3312)",
    "    save_state_dict_async_plan (core/dist_checkpointing/strategies/state_dict_saver.py:141)",
    "    save_checkpoint (training/checkpointing.py:573)",
    "    save_model (slime/backends/megatron_utils/actor.py:530)",
)
UPDATING = (
    "    barrier (torch/distributed/distributed_c10d.py:4811)",
    "    update_weights (slime/backends/megatron_utils/update_weight/update_weight_from_distributed.py:104)",
)
TRAINING = (
    '  File "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", line 2937 in all_reduce',
    '  File "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py", line 81 in wrapper',
    '  File "/root/slime/slime/backends/megatron_utils/model.py", line 417 in train_one_step',
)


@pytest.mark.parametrize(
    ("frames", "answer", "names"),
    [(SAVING, "checkpoint-save", 5), (UPDATING, "weight-update", 4), (TRAINING, "train-step", 5)],
)
def test_a_stack_dump_tells_where_it_waits(frames: tuple[str, ...], answer: str, names: int, tmp_path: Path) -> None:
    """Frames of py-spy or faulthandler that wait for other ranks tell the phase; one moment is a warning."""
    finding = ask_text(hang_phase, tmp_path, 'Thread 0x7f (idle): "MainThread"', *frames)
    assert word(finding) == f"warning:{answer}-dumped"
    assert [citation.line for citation in finding.citations] == [3, names]


@pytest.mark.parametrize(
    "frames",
    [
        SAVING[2:],
        SAVING[:2],
        ("    wait (threading.py:327)", *SAVING),
        tuple(
            f'  File "/usr/lib/torch/distributed/distributed_c10d.py", line {number}, in gather' for number in (1, 2)
        ),
    ],
)
def test_other_frames_tell_nothing(frames: tuple[str, ...], tmp_path: Path) -> None:
    """A dump that does not wait in a collective, or of no phase, and an ordinary traceback are no hang."""
    assert word(ask_text(hang_phase, tmp_path, *frames)) == "unknown"


def test_a_save_that_ended_after_the_dump_did_not_hang(tmp_path: Path) -> None:
    """Megatron's own success line takes the dump back."""
    saved = f"{TRAINER}  successfully saved checkpoint from iteration      19 to /ckpt/out [ t 1/2, p 1/1 ]"
    assert word(ask_text(hang_phase, tmp_path, *SAVING, saved)) == "unknown"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_do_not_hang(name: str) -> None:
    """Logs of finished jobs have no phase left open, or no timer at all."""
    assert word(ask(hang_phase, DATA / f"{name}.log")) in ("ok:none", "unknown")


@given(st.lists(st.one_of(hostile_bytes, st.just(b"[2026-08-21 10:00:00] Timer train start")), max_size=6))
def test_hostile_lines_are_no_hang(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """Whatever a log holds, the probe answers and blames nothing without hours that passed."""
    path = tmp_path_factory.mktemp("hostile") / "job.log"
    path.write_bytes(b"\n".join(lines))
    assert word(hang_phase.run(evidence_of(("log", path)), silent)) in ("ok:none", "unknown")
