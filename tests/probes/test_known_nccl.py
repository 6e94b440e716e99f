"""What NCCL says, and when something else is to blame for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.known_nccl import nccl_in_log
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, word

TRAINER = "(MegatronTrainRayActor pid=7) "
TRACEBACK = f"{TRAINER}Traceback (most recent call last):"
FRAME = f'{TRAINER}  File "/root/slime/slime/backends/megatron_utils/actor.py", line 295, in train'
RAISED = (
    f"{TRAINER}torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp"
    ":77, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3"
)
WATCHDOG = (
    f"{TRAINER}[rank0]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600081"
    " milliseconds before timing out."
)
STUCK = (
    "[rank3]:[F1218 20:27:21.4 x.cpp:1] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress"
    " in monitoring enqueued collectives."
)
TASK = "ray.exceptions.RayTaskError(DistBackendError): ray::MegatronTrainRayActor.train() (pid=7, ip=10.0.0.1)"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((TRACEBACK, FRAME, RAISED), "problem:error"),
        ((TASK,), "problem:error"),
        (
            ("(SGLangEngine pid=9) RuntimeError: NCCL error: unhandled system error (x)",),
            "problem:error",
        ),
        ((STUCK,), "problem:timeout"),
        ((WATCHDOG,), "problem:timeout"),
        ((WATCHDOG.replace("BROADCAST", "ALLREDUCE"), TRACEBACK, FRAME, RAISED), "problem:timeout"),
    ],
)
def test_a_first_complaint_is_reported(lines: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    """An exception, the task that failed with it, and the watchdog's timeout are the fault when nothing else is."""
    assert word(ask_text(nccl_in_log, tmp_path, *lines)) == expected


@pytest.mark.parametrize(
    "before",
    [
        ("(MegatronTrainRayActor pid=9) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",),
        ("(SGLangEngine pid=9) RuntimeError: CUDA error: an illegal memory access was encountered",),
        ("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",),
        (
            "(MegatronTrainRayActor pid=9) Traceback (most recent call last):",
            "(MegatronTrainRayActor pid=9) KeyError: 1",
        ),
    ],
)
@pytest.mark.parametrize("complaint", [(WATCHDOG,), (TRACEBACK, FRAME, RAISED)])
def test_what_follows_from_another_fault_is_none(
    before: tuple[str, ...], complaint: tuple[str, ...], tmp_path: Path
) -> None:
    """A fault, a death or another traceback before it explains what NCCL says; both lines are shown."""
    finding = ask_text(nccl_in_log, tmp_path, *before, *complaint)
    assert word(finding) == "ok:none"
    assert finding.citations[0].line == 2


def test_a_fault_in_its_own_traceback_explains_it(tmp_path: Path) -> None:
    """NCCL passes on what CUDA says: memory that ran out is memory, wherever in the traceback it stands."""
    last = (f"{TRAINER}Last error:", f"{TRAINER}Cuda failure 2 'out of memory'")
    assert word(ask_text(nccl_in_log, tmp_path, TRACEBACK, FRAME, RAISED, *last)) == "ok:none"


def test_a_refused_allocation_stays_open(tmp_path: Path) -> None:
    """What NCCL could not allocate is a question of memory that this log does not answer."""
    last = f"{TRAINER}Failed to CUDA calloc async 608 bytes"
    finding = ask_text(nccl_in_log, tmp_path, TRACEBACK, FRAME, RAISED, last)
    assert word(finding) == "unknown"
    assert finding.citations[0].line == 5


def test_a_fault_that_stands_behind_it_does_not_explain_it(tmp_path: Path) -> None:
    """A death after the timeout is its consequence."""
    after = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
    assert word(ask_text(nccl_in_log, tmp_path, WATCHDOG, after)) == "problem:timeout"


@pytest.mark.parametrize(
    "line",
    [
        f"{TRAINER}node:1:1 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>",
        f"{TRAINER}[W1218 ProcessGroupNCCL.cpp:1250] Warning: NCCL_ASYNC_ERROR_HANDLING is deprecated",
        f"{STAMP}x.py:1 - First rollout sample: ['DistBackendError: NCCL error in: a.cpp:1, x']",
        f"{TRAINER}    raise DistBackendError(message)",
    ],
)
def test_what_only_looks_like_it_is_none(line: str, tmp_path: Path) -> None:
    """Ordinary words of NCCL, the text of the model and quoted source are no complaint."""
    assert word(ask_text(nccl_in_log, tmp_path, line)) == "ok:none"


@pytest.mark.parametrize("name", [*HEALTHY, "ray-cuda-oom", "ray-host-oom", "ima-plain", "device-assert"])
def test_real_logs_have_no_fault_of_nccl(name: str) -> None:
    """Healthy jobs, and jobs that ended in something else, blame NCCL for nothing."""
    assert word(ask(nccl_in_log, DATA / f"{name}.log")) == "ok:none"
