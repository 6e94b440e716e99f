"""The runs of one incident that only experiments settle: an illegal memory access, and the runs made to narrow it down.

Real logs of a Ray job, one that ended well and one whose engine died; the trace of the scheduler is in the words of
SGLang and PyTorch. The engineer did the first step of the guide already: CUDA_LAUNCH_BLOCKING=1 is set.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.incidents.incidents import DATA, launch, lines_of

SPECULATION = (
    "--sglang-speculative-algorithm EAGLE",
    "--sglang-speculative-num-steps 3",
    "--sglang-speculative-eagle-topk 1",
    "--sglang-speculative-num-draft-tokens 4",
)
_ENGINE = "\x1b[36m(SGLangEngine pid=4363)\x1b[0m "
_TRACE = (
    "[2026-11-29 18:07:36 TP0] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 2733, in run_scheduler_process',
    "    scheduler.event_loop_overlap()",
    '  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 1024, in event_loop_overlap',
    "    self.process_batch_result(tmp_batch, tmp_result)",
    '  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 2210, in process_batch_result',
    "    copy_done.synchronize()",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
)


def failing_log(path: Path) -> None:
    """Write the log of a job whose engine hits an illegal memory access and dies of it."""
    lines = lines_of("ray-engine-dies")
    at = next(number for number, line in enumerate(lines) if "about to leave with os._exit" in line)
    trace = [f"{_ENGINE}{line}" for line in _TRACE]
    path.write_text("\n".join([*lines[:at], *trace, *lines[at + 1 :]]) + "\n")


def healthy_log(path: Path) -> None:
    """Write the log of a job that trained its steps and ended well."""
    shutil.copy(DATA / "logs" / "ray-ok.log", path)


def first_run(folder: Path) -> Path:
    """Build the run at hand: speculative decoding and CUDA graphs are on, and an engine dies."""
    folder.mkdir(parents=True)
    flags = "\n   ".join(SPECULATION)
    launch(
        folder,
        (
            "   --sglang-cuda-graph-bs 1 2 4 $(seq 8 8 24)\n",
            f"   --sglang-cuda-graph-bs 1 2 4 $(seq 8 8 24)\n   {flags}\n",
        ),
        ("   --rollout-batch-size 32\n", "   --num-rollout 3000\n   --save-interval 20\n   --rollout-batch-size 32\n"),
        ("${BASE}/toy_slime/\n   --save", "/models/toy_slime/\n   --save"),
        ('\\"CUDA_DEVICE_MAX_CONNECTIONS\\"', '\\"CUDA_LAUNCH_BLOCKING\\": \\"1\\", \\"CUDA_DEVICE_MAX_CONNECTIONS\\"'),
    )
    failing_log(folder / "job.log")
    return folder


def made_with(copy: str, models: Path, folder: Path, *, fails: bool) -> Path:
    """Build the run that someone made with a changed copy: the copy as its launch script, and a log."""
    folder.mkdir(parents=True)
    shutil.copy(copy, folder / "launch.sh")
    shutil.copytree(models, folder / "models")
    (failing_log if fails else healthy_log)(folder / "job.log")
    return folder
