"""Whose illegal memory access it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.cuda_ima_process import ima_process
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, word

IMA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"


TASK_ERROR = "ray::MegatronTrainRayActor.train() (pid=7, ip=10.0.0.1, actor_id=3, repr=<x>)"
OPENING = "Traceback (most recent call last):"
SCHEDULER = f"[2026-08-21 10:00:00 TP0] Scheduler hit an exception: {OPENING}"
ENGINE_FRAME = '  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 1, in run_batch'
TRAIN_FRAME = '  File "/root/Megatron-LM/megatron/core/x.py", line 1, in f'
OWN_FRAME = '  File "/a/my.py", line 1, in f'


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([f"(SGLangEngine pid=9) {IMA}"], "problem:rollout", id="the engine's prefix"),
        pytest.param([f"(MegatronTrainRayActor pid=9, ip=10.0.0.2) {IMA}"], "problem:train", id="the trainer's prefix"),
        pytest.param([f"(FSDPTrainRayActor pid=9) {IMA}"], "problem:train", id="the FSDP trainer"),
        pytest.param([IMA, TASK_ERROR, OWN_FRAME], "problem:train", id="the actor a task error names"),
        pytest.param([SCHEDULER, ENGINE_FRAME, IMA], "problem:rollout", id="SGLang's frames"),
        pytest.param(
            [f"[rank0]: {line}" for line in (OPENING, TRAIN_FRAME, IMA)], "problem:train", id="Megatron's frames"
        ),
        pytest.param([OPENING, OWN_FRAME, IMA], "unknown", id="nobody's"),
        pytest.param(
            [f"(RolloutManager pid=3) {IMA}", f"(SGLangEngine pid=9) {IMA}"], "problem:rollout", id="an echo first"
        ),
    ],
)
def test_the_process_is_told_by_the_strongest_sign(tmp_path: Path, lines: list[str], expected: str) -> None:
    """Prefix, named actor and frames tell whose fault it is; nothing is guessed."""
    assert word(ask_text(ima_process, tmp_path, *lines)) == expected


def test_a_workers_own_file_names_its_actor(tmp_path: Path) -> None:
    """The head of a Ray worker's log says which actor wrote it."""
    path = tmp_path / "worker-1.err"
    path.write_text(f":job_id:02000000\n:actor_name:MegatronTrainRayActor\n{IMA}\n")
    assert word(ask(ima_process, path)) == "problem:train"


def test_a_scripts_own_fault_is_unclear() -> None:
    """The real log of a lone script names neither half."""
    assert word(ask(ima_process, DATA / "ima-plain.log")) == "unknown"


@pytest.mark.parametrize("name", [*HEALTHY, "device-assert", "ray-cuda-oom"])
def test_without_an_illegal_access_the_question_does_not_arise(name: str) -> None:
    """Other faults and healthy logs are not applicable."""
    assert word(ask(ima_process, DATA / f"{name}.log")) == "not_applicable"


def test_the_first_process_and_its_followers_are_told(tmp_path: Path) -> None:
    """Rank, pid and time of the first process stand in the sentence, the others are counted and listed by delay."""
    lines = []
    for pid, rank, second in ((31, 3, 5), (30, 0, 8), (32, 1, 9)):
        prefix = f"(SGLangEngine pid={pid}) "
        opening = f"[2026-08-21 10:00:{second:02d} TP{rank}] Scheduler hit an exception: {OPENING}"
        lines += [prefix + opening, prefix + ENGINE_FRAME, prefix + IMA]
    finding = ask_text(ima_process, tmp_path, *lines)
    assert word(finding) == "problem:rollout"
    assert "SGLang scheduler, TP3, pid 31." in finding.summary.en
    assert "2 other processes print it as well" in finding.summary.en
    (shown,) = finding.tables
    assert [row[1:3] for row in shown.rows] == [
        ("TP3, pid 31", "10:00:05"), ("TP0, pid 30", "+3 s"), ("TP1, pid 32", "+4 s"),
    ]  # fmt: skip


def test_the_trainer_is_named_with_the_method_that_failed(tmp_path: Path) -> None:
    """A remote error of a trainer tells actor, method, pid and address."""
    finding = ask_text(ima_process, tmp_path, IMA, TASK_ERROR)
    assert word(finding) == "problem:train"
    assert "Megatron actor MegatronTrainRayActor in train(), pid 7, ip 10.0.0.1." in finding.summary.en
