"""Whether releasing or resuming memory failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.memory_saver_in_log import saver_in_log
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, rollout, word

ENGINE, TRAINER = "(SGLangEngine pid=9) ", "(MegatronTrainRayActor pid=7) "
SAVER = "[torch_memory_saver.cpp] "
PAUSE = f"{SAVER}Cannot pause allocation that is not active. tag=weights ptr=1 func=pause line=183"
SRT = "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py"


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ([PAUSE], "pause-failed"),
        ([f"{ENGINE}{SAVER}Cannot resume allocation that is not paused.  tag=kv_cache ptr=1 line=235"], "pause-failed"),
        ([f"{TRAINER}{SAVER}get_cpu_backup_pointer fail to find backup  query_gpu_ptr=0x7f00"], "pause-failed"),
        (["RuntimeError: TorchMemorySaver observes invalid LD_PRELOAD."], "pause-failed"),
        (
            [f"{ENGINE}AssertionError: release_memory_occupation should be called only when no ongoing request."],
            "engine-busy",
        ),
        (
            [f"{ENGINE}AssertionError: release_memory_occupation should be called only when server is idle."],
            "engine-busy",
        ),
        (
            [
                f"{ENGINE}{STAMP}Scheduler hit an exception: Traceback (most recent call last):",
                f'{ENGINE}  File "{SRT}", line 7, in resume_memory_occupation',
                f"{ENGINE}KeyError: 'kv_cache'",
            ],
            "resume-failed",
        ),
    ],
)
def test_each_failure_is_told(tmp_path: Path, lines: list[str], answer: str) -> None:
    """The fatal lines of torch_memory_saver and of SGLang's release and resume."""
    finding = ask_text(saver_in_log, tmp_path, *lines)
    assert word(finding) == f"problem:{answer}"
    assert finding.citations[0].line == len(lines) + 1


@pytest.mark.parametrize(
    "line",
    [
        f"{SAVER}cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not be an issue e.g. torch allocator)",
        f"{SAVER}CUresult error: 2 (out of memory)  file=csrc/core.cpp func=resume line=260",
        f"{ENGINE}KeyError: 'kv_cache'",
        f"{ENGINE}KeyError: 'labels'",
        '        assert idle, "release_memory_occupation should be called only when server is idle."',
        f'{ENGINE}INFO: "POST /resume_memory_occupation HTTP/1.1" 200 OK',
        'print("Cannot pause allocation that is not active")',
    ],
)
def test_other_lines_are_none(tmp_path: Path, line: str) -> None:
    """Retries, memory that ran out, the same KeyError from elsewhere, and quoted source are no such failure."""
    assert word(ask_text(saver_in_log, tmp_path, line)) == "ok:none"


def test_what_the_job_got_past_is_history(tmp_path: Path) -> None:
    """A failure rollouts ago confirms nothing."""
    assert word(ask_text(saver_in_log, tmp_path, PAUSE, *(rollout(n, rewards=0.5) for n in range(5)))) == "warning:none"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_say_none(name: str) -> None:
    """A finished job has no such line."""
    assert word(ask(saver_in_log, DATA / f"{name}.log")) == "ok:none"
