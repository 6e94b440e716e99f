"""The first CUDA fault of a log, told from memory faults and from hints."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from probes.cuda_ima_in_log import ima_in_log
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, word

IMA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
ASSERT = "RuntimeError: CUDA error: device-side assert triggered"


@pytest.mark.parametrize(
    ("name", "expected", "line"),
    [
        ("ima-plain", "problem:ima", 7),
        ("ima-blocking", "problem:ima", 9),
        ("coredump-progress", "problem:ima", 11),
        ("cuda-gdb", "problem:ima", 3),
        ("device-assert", "problem:device-assert", 1),
        ("ray-cuda-oom", "ok:none", None),
        ("ray-host-oom", "ok:none", None),
    ],
)
def test_real_faults_are_cited_at_their_first_line(name: str, expected: str, line: int | None) -> None:
    """Real logs of an illegal access, an assert and of memory running out."""
    finding = ask(ima_in_log, DATA / f"{name}.log")
    assert word(finding) == expected
    assert (finding.citations[0].line if finding.citations else None) == line


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_show_no_fault(name: str) -> None:
    """A log that was read to its end and has no such line answers none."""
    assert word(ask(ima_in_log, DATA / f"{name}.log")) == "ok:none"


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: /a/b.cu:750 in function cublas_gemm: cuBLAS Error: the function failed to launch on the GPU",
        "torch.AcceleratorError: CUDA error: unspecified launch failure",
        "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(...)`",
        "tvm.error.InternalError: CUDA driver error (x.hpp:72): 719 (CUDA_ERROR_LAUNCH_FAILED)",
    ],
)
def test_launch_failures_are_told_apart(tmp_path: Path, line: str) -> None:
    """A kernel that could not run is no illegal access."""
    assert word(ask_text(ima_in_log, tmp_path, line)) == "problem:launch-failure"


def test_the_first_fault_decides_and_ranks_are_counted(tmp_path: Path) -> None:
    """What other ranks and the watchdog print later is a consequence; the number of processes is told."""
    lines = [
        f"(SGLangEngine pid=1) {IMA}",
        f"(SGLangEngine pid=2) {IMA} [repeated 6x across cluster]",
        f"[rank2]:[E323 ProcessGroupNCCL.cpp:1896] terminated with exception: {IMA}",
        f"(SGLangEngine pid=1) {ASSERT}",
    ]
    finding = ask_text(ima_in_log, tmp_path, *lines)
    assert word(finding) == "problem:ima"
    assert (finding.citations[0].line, finding.citations[0].count) == (2, 1 + 6 + 1)


@pytest.mark.parametrize(
    "line",
    [
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda for more information.",
        "[2026-08-21 10:00:00] x.py:4 - First rollout sample: ['an illegal memory access was encountered'], label: 1",
        "RuntimeError: CUDA error: out of memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB.",
        "[torch_memory_saver.cpp] cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not be an issue e.g. torch allocator)",
        "RuntimeError: CUDA error: invalid argument",
    ],
)
def test_hints_samples_and_memory_are_no_fault(tmp_path: Path, line: str) -> None:
    """Lines that resemble a fault, or speak of memory, are not taken for one."""
    assert word(ask_text(ima_in_log, tmp_path, line)) == "ok:none"


def test_deep_gemms_own_assertion_is_left_to_another_probe(tmp_path: Path) -> None:
    """A launch failure behind the check of FP8 scales is that check's consequence."""
    lines = [
        "Assertion failed: deep_gemm/include/deep_gemm/impls/x.cuh:131, condition: (values[j] & 0x807fffffu) == 0",
        "tvm.error.InternalError: CUDA driver error (x.hpp:72): 719 (CUDA_ERROR_LAUNCH_FAILED)",
    ]
    assert word(ask_text(ima_in_log, tmp_path, *lines)) == "not_applicable"


def test_an_earlier_out_of_memory_is_mentioned(tmp_path: Path) -> None:
    """Memory that ran out before the fault is cited beside it."""
    finding = ask_text(ima_in_log, tmp_path, "torch.OutOfMemoryError: CUDA out of memory. Tried", IMA)
    assert [citation.line for citation in finding.citations] == [3, 2]


def test_a_damaged_log_proves_no_absence(tmp_path: Path) -> None:
    """Of a log that could not be read to its end nothing is said to be absent."""
    content = (DATA / "two-jobs.log").read_bytes()
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(content)[:-100])
    finding = ask(ima_in_log, path)
    assert word(finding) == "unknown"
    assert "damaged" in finding.summary.en


def test_a_fault_in_a_packed_log_is_cited_in_its_unpacked_text(tmp_path: Path) -> None:
    """Line and offset of a .gz are those of its text."""
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(f"one\n(SGLangEngine pid=1) {IMA}\n".encode()))
    finding = ask(ima_in_log, path)
    assert (finding.citations[0].line, finding.citations[0].offset) == (2, 4)


WRITING = "[10:05:30.3] coredump: Writing ELF file to /shared/cores/cuda_coredump_node-3.9.1"


def test_a_core_dump_that_was_written_is_asked_for(tmp_path: Path) -> None:
    """The driver's own line says which file to give; one that was given is not asked for again."""
    finding = ask_text(ima_in_log, tmp_path, f"(SGLangEngine pid=9) {IMA}", f"(SGLangEngine pid=9) {WRITING}")
    assert "--cuda-coredump /shared/cores/cuda_coredump_node-3.9.1" in finding.summary.en
    assert finding.citations[-1].line == 3
    dump = tmp_path / "cuda_coredump_node-3.9.1"
    dump.write_bytes(b"\x7fELF")
    again = ask(ima_in_log, tmp_path / "job.log", cuda_coredump=dump)
    assert "--cuda-coredump" not in again.summary.en
