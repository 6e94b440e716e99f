"""Which memory ran out, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.memory_oom_in_log import oom_in_log
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, word

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.34 GiB. GPU 0 has a total capacity of 79.11 GiB"
SAVER = "[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/utils.h func=cu_mem_create line=194"
TRAIN, ENGINE = "(MegatronTrainRayActor pid=7) ", "(SGLangEngine pid=9) "


def _frame(file: str, function: str) -> str:
    return f'  File "{file}", line 7, in {function}'


def _timer(name: str, edge: str) -> str:
    return f"{TRAIN}{STAMP}timer.py:24 - Timer {name} {edge}"


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
            ["(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed"],
            "host",
            id="the raylet",
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
