"""What engines and the router report."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.engine_in_log import engine_in_log
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, word

ENGINE, MANAGER = "(SGLangEngine pid=9) ", "(RolloutManager pid=3) "
SRT = "/sgl-workspace/sglang/python/sglang/srt"
CRASH = f"{ENGINE}[2026-08-21 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):"
DEEPEP = f"{ENGINE}[2026-08-21 10:00:00 TP0 EP0] Only use 20 SMs for DeepEP communication. This may result in x."


def _frame(file: str, function: str) -> str:
    return f'{ENGINE}  File "{SRT}/{file}", line 7, in {function}'


def _retry(code: int, attempt: int) -> str:
    return f"{MANAGER}For more information check: https://x/Status/{code}, retrying... (attempt {attempt}/60, url=http://a)"


@pytest.mark.parametrize("name", [*HEALTHY, "ima-plain", "ray-cuda-oom", "ray-engine-dies"])
def test_logs_without_an_engines_own_fault_say_none(name: str) -> None:
    """Healthy logs, and faults that other probes name, have nothing of the engines."""
    assert word(ask(engine_in_log, DATA / f"{name}.log")) == "ok:none"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            [_frame("managers/x_mixin.py", "update_weights_from_tensor") + " [repeated 6x across cluster]"],
            "problem:update-failed",
            id="a traceback in the update",
        ),
        pytest.param(
            [f"{ENGINE}Failed to update parameter online: The size of tensor a (1) must match."],
            "problem:update-failed",
            id="the engine's own words",
        ),
        pytest.param(
            [CRASH, _frame("managers/scheduler.py", "run_batch"), f"{ENGINE}ValueError: x"],
            "problem:crashed",
            id="an exception",
        ),
        pytest.param(
            [DEEPEP, CRASH, _frame("managers/scheduler.py", "__init__")],
            "warning:deepep-crash",
            id="DeepEP on, exception not shown",
        ),
        pytest.param(
            [DEEPEP, CRASH, _frame("managers/scheduler.py", "__init__"), f"{ENGINE}ValueError: bad flag"],
            "problem:crashed",
            id="DeepEP on, another exception",
        ),
        pytest.param([_retry(503, 60)], "problem:no-workers", id="all tries answered 503"),
        pytest.param(
            ["httpx.HTTPStatusError: Server error '503 Service Unavailable' for url 'http://h:1/generate'"],
            "problem:no-workers",
            id="the exception left the loop",
        ),
        pytest.param([_retry(403, 58)], "problem:forbidden", id="refused on the way"),
        pytest.param([_retry(503, 2)], "ok:none", id="one 503 that passed"),
        pytest.param(
            [f"{MANAGER}{STAMP}http_utils.py:189 - Max retries (60) reached, failing... (url=x)"],
            "problem:unreachable",
            id="gave up",
        ),
        pytest.param(
            [f"{ENGINE}Exception: Server process terminated unexpectedly."], "problem:unreachable", id="did not start"
        ),
        pytest.param(
            [f"{ENGINE}Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"],
            "warning:unresponsive",
            id="watchdog",
        ),
        pytest.param(
            [f"{ENGINE}Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=True)"],
            "ok:none",
            id="soft watchdog",
        ),
        pytest.param(
            ["Assertion failed: deep_gemm/impls/x.cuh:131, condition: (values[j] & 0x807fffffu) == 0"],
            "problem:fp8-scale",
            id="FP8 scales",
        ),
    ],
)
def test_events_are_told_apart(tmp_path: Path, lines: list[str], expected: str) -> None:
    """Each kind of event has its answer; a request that was tried again proves nothing."""
    assert word(ask_text(engine_in_log, tmp_path, *lines)) == expected


@pytest.mark.parametrize(
    "fault",
    [
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",
    ],
)
def test_a_crash_that_a_cuda_fault_explains_is_not_reported(tmp_path: Path, fault: str) -> None:
    """The traceback's own exception, and whatever follows it, belong to the CUDA and memory probes."""
    lines = [CRASH, _frame("managers/scheduler.py", "run_batch"), ENGINE + fault, _retry(503, 60)]
    assert word(ask_text(engine_in_log, tmp_path, *lines)) == "ok:none"


def test_the_first_event_decides(tmp_path: Path) -> None:
    """A router without workers after a crash is the crash's consequence."""
    finding = ask_text(engine_in_log, tmp_path, CRASH, f"{ENGINE}ValueError: x", _retry(503, 60))
    assert word(finding) == "problem:crashed"
    assert finding.citations[0].line == 2
