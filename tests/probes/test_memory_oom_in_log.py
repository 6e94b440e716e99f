"""Which memory ran out, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.memory_oom_in_log import oom_in_log
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, rollout, word

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.34 GiB. GPU 0 has a total capacity of 79.11 GiB"
SAVER = "[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/utils.h func=cu_mem_create line=194"
TRAIN, ENGINE = "(MegatronTrainRayActor pid=7) ", "(SGLangEngine pid=9) "


def _frame(file: str, function: str) -> str:
    return f'  File "{file}", line 7, in {function}'


def _timer(name: str, edge: str) -> str:
    return f"{TRAIN}{STAMP}timer.py:24 - Timer {name} {edge}"


def _monitor(name: str) -> str:
    return (
        f"Memory on the node (IP: 1) where the lease (lease ID: 16, name={name}, pid=15, memory used=2GB) was "
        "running was 9GB / 10GB (0.9), which exceeds the memory usage threshold of 0.95."
    )


SLIME = "/root/slime/slime/backends/megatron_utils/actor.py"
SRT = "/sgl-workspace/sglang/python/sglang/srt"


@pytest.mark.parametrize(
    ("name", "expected", "line"),
    [("ray-cuda-oom", "problem:train-step", 71), ("ray-host-oom", "problem:host", 22)],
)
def test_real_logs_are_placed(name: str, expected: str, line: int) -> None:
    """A train step out of GPU memory, and a node out of host memory, at the exception and not at quoted source."""
    finding = ask(oom_in_log, DATA / f"{name}.log")
    assert word(finding) == expected
    assert finding.citations[0].line == line


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=11.0. Some of the step tasks have been OOM Killed.",
        "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=191.batch cgroup. Some may be killed.",
    ],
)
def test_the_word_of_slurm_is_host_memory(line: str, tmp_path: Path) -> None:
    """What SLURM tells of its cgroup is told of this job's step, in the words of older and newer versions."""
    assert word(ask_text(oom_in_log, tmp_path, line)) == "problem:host"


def test_one_process_is_counted_as_one(tmp_path: Path) -> None:
    """The count agrees with its noun."""
    summary = ask_text(oom_in_log, tmp_path, ENGINE + OOM).summary.en
    assert summary.endswith("; 1 process).")


def test_a_timer_that_a_killed_attempt_left_open_is_forgotten(tmp_path: Path) -> None:
    """The first attempt was killed in its train step; where the second ran out while it loaded is not told by that."""
    killed = [_timer("actor_train", "start")]
    begun = f"{'-' * 20} arguments {'-' * 20}"
    assert word(ask_text(oom_in_log, tmp_path, *killed, TRAIN + OOM)) == "problem:train-step"
    assert word(ask_text(oom_in_log, tmp_path, *killed, begun, TRAIN + OOM)) == "unknown"


@pytest.mark.parametrize("name", [*HEALTHY, "ray-engine-dies", "ima-plain", "nan"])
def test_other_logs_say_none(name: str) -> None:
    """Healthy logs, and an actor's death with Ray's list of reasons, are no evidence of memory running out."""
    assert word(ask(oom_in_log, DATA / f"{name}.log")) == "ok:none"


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        pytest.param([TRAIN + _frame(SLIME, "train_actor"), TRAIN + OOM], "train-step", id="a frame of the train step"),
        pytest.param(
            [TRAIN + _frame(SLIME, "train"), TRAIN + _frame(SLIME, "wake_up"), TRAIN + OOM],
            "colocate-switch",
            id="waking up inside train",
        ),
        pytest.param(
            [ENGINE + _frame(f"{SRT}/x.py", "resume_memory_occupation"), ENGINE + OOM],
            "colocate-switch",
            id="the engine resuming",
        ),
        pytest.param(
            [ENGINE + _frame(f"{SRT}/models/x.py", "forward"), ENGINE + OOM], "rollout", id="the engine generating"
        ),
        pytest.param(
            ["ray::MegatronTrainRayActor.update_weights() (pid=7)", OOM], "colocate-switch", id="a remote method"
        ),
        pytest.param([_timer("actor_train", "start"), TRAIN + OOM], "train-step", id="an open timer"),
        pytest.param(
            [_timer("train", "start"), _timer("wake_up", "start"), TRAIN + OOM], "colocate-switch", id="the inner timer"
        ),
        pytest.param(
            [f"{ENGINE}RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current"],
            "rollout",
            id="KV pool",
        ),
        pytest.param([f"{ENGINE}{STAMP}Decode out of memory. Try to lower your batch size."], "rollout", id="decoding"),
        pytest.param(
            [f"{ENGINE}Exception: Capture cuda graph failed: CUDA out of memory. Tried"],
            "rollout",
            id="capturing graphs",
        ),
        pytest.param([ENGINE + SAVER], "colocate-switch", id="the memory saver of an engine"),
        pytest.param(
            ["x resume_memory_occupation kv_cache", "[torch_memory_saver.cpp] CUresult error  result=1 func=resume"],
            "colocate-switch",
            id="resuming",
        ),
        pytest.param(
            [_timer("actor_train", "start"), TRAIN + SAVER], "train-step", id="a trainer's allocation through the saver"
        ),
        pytest.param(
            ["[1.2] Out of memory: Killed process 19389 (ray::MegatronTr) total-vm:4kB"], "host", id="the kernel"
        ),
        pytest.param(
            ["[1.2] Memory cgroup out of memory: Killed process 19389 (ray::MegatronTr)"], "host", id="a cgroup"
        ),
        pytest.param(
            ["ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."],
            "host",
            id="Ray 2.49",
        ),
        pytest.param(
            [
                "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed",
                "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
            ],
            "host",
            id="the raylet, where the job lost an actor",
        ),
        pytest.param(
            [f"{TRAIN}x", "[1.2] Out of memory: Killed process 7 (python3) total-vm:4kB, anon-rss:2kB"],
            "host",
            id="a pid that the log shows",
        ),
        pytest.param(
            ["[1.2] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=sglang::schedul,pid=11,uid=0"],
            "host",
            id="an engine by its name",
        ),
        pytest.param(
            [_monitor("MegatronTrainRayActor.__init__")],
            "host",
            id="Ray's monitor names a trainer",
        ),
    ],
)
def test_every_layer_is_placed(tmp_path: Path, lines: list[str], answer: str) -> None:
    """Each layer's own words, frames, remote methods and timers tell where memory ran out."""
    assert word(ask_text(oom_in_log, tmp_path, *lines)) == f"problem:{answer}"


@pytest.mark.parametrize(
    "line",
    [
        "[torch_memory_saver.cpp] cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not be an issue e.g. torch allocator)",
        "(1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called.",
        "(raylet) 0 Workers (tasks / actors) killed due to memory pressure (OOM), 3 Workers crashed",
        '    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.34 GiB. "',
        "(SGLangEngine pid=9) KV cache pool is full. Retract requests. #retracted_reqs: 1",
        "Refer to the documentation on how to address the out of memory issue: https://docs.ray.io",
    ],
)
def test_what_is_no_evidence_is_none(tmp_path: Path, line: str) -> None:
    """Warnings, boilerplate, quoted source and retractions do not say that memory ran out."""
    assert word(ask_text(oom_in_log, tmp_path, line)) == "ok:none"


@pytest.mark.parametrize(
    "line",
    [
        "[1.2] Out of memory: Killed process 11 (mysqld) total-vm:4kB, anon-rss:2kB",
        "[1.2] Memory cgroup out of memory: Killed process 11 (chrome) total-vm:4kB",
        "[1.2] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=java,pid=11,uid=0",
    ],
)
def test_the_end_of_a_foreign_process_is_not_the_jobs(tmp_path: Path, line: str) -> None:
    """A name that no process of the job has, with a pid the logs never show: none, and the line is cited."""
    finding = ask_text(oom_in_log, tmp_path, line)
    assert word(finding) == "ok:none"
    assert [citation.line for citation in finding.citations] == [2]


@pytest.mark.parametrize(
    "line",
    [
        "[1.2] Out of memory: Killed process 11 (python3) total-vm:4kB, anon-rss:2kB",
        "[1.2] Out of memory: Killed process 11 (ray::TuneWorker) total-vm:4kB, anon-rss:2kB",
        "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed",
        _monitor("Other.run"),
    ],
)
def test_a_process_that_may_be_anybodys_is_unknown(tmp_path: Path, line: str) -> None:
    """Names that many programs have, and a node's summary without a death in the job, neither prove nor clear."""
    finding = ask_text(oom_in_log, tmp_path, line)
    assert word(finding) == "unknown"
    assert [citation.line for citation in finding.citations] == [2]


def test_a_pid_is_known_by_the_workers_own_log(tmp_path: Path) -> None:
    """The name of a worker's log file holds its pid."""
    (tmp_path / "dmesg.log").write_text("[1.2] Out of memory: Killed process 11 (python3) total-vm:4kB\n")
    (tmp_path / "worker-ab12-02000000-11.err").write_text(":actor_name:MegatronTrainRayActor\n")
    assert word(ask(oom_in_log, tmp_path)) == "problem:host"


def test_a_foreign_end_hides_no_fault_of_the_job(tmp_path: Path) -> None:
    """The first fault that is the job's own decides."""
    foreign = "[1.2] Out of memory: Killed process 11 (mysqld) total-vm:4kB"
    lines = [foreign, TRAIN + _frame(SLIME, "train_actor"), TRAIN + OOM]
    assert word(ask_text(oom_in_log, tmp_path, *lines)) == "problem:train-step"


def test_what_the_job_got_past_is_history(tmp_path: Path) -> None:
    """An engine that ran out of memory rollouts ago, in a job that went on, confirms nothing."""
    lines = [f"{ENGINE}{STAMP}Decode out of memory. Try to lower your batch size."]
    lines += [rollout(number, rewards=0.5) for number in range(5)]
    finding = ask_text(oom_in_log, tmp_path, *lines)
    assert word(finding) == "warning:none"
    assert finding.citations[0].line == 2


def test_an_unplaced_fault_is_unknown_and_cited(tmp_path: Path) -> None:
    """Memory that ran out nobody knows where is said so, with its line."""
    finding = ask_text(oom_in_log, tmp_path, OOM)
    assert word(finding) == "unknown"
    assert finding.citations[0].line == 2


def test_a_closed_timer_is_no_phase(tmp_path: Path) -> None:
    """Only timers that were open when memory ran out count."""
    lines = [_timer("actor_train", "start"), _timer("actor_train", "end (elapsed: 1.0s)"), TRAIN + OOM]
    assert word(ask_text(oom_in_log, tmp_path, *lines)) == "unknown"


def test_processes_are_counted(tmp_path: Path) -> None:
    """Ray's note of repetition counts the engines that failed alike."""
    finding = ask_text(
        oom_in_log, tmp_path, ENGINE + SAVER, f"(SGLangEngine pid=8) {SAVER} [repeated 7x across cluster]"
    )
    assert finding.citations[0].count == 8
