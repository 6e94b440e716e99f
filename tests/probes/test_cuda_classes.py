"""The kinds of CUDA faults, in the words of every program that prints them, beside words that only resemble them."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.cuda_ima_in_log import ima_in_log
from probes.memory_oom_in_log import oom_in_log
from tests.probes.asking import ask_text, word

GEMM = "when calling `cublasGemmEx( handle, opa, opb, m, n, k)`"

IMA = (
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered",
    "RuntimeError: /te/cuda_runtime.cpp:73 in function sync: CUDA Error: an illegal memory access was encountered",
    "RuntimeError: Failed: CUDA error /deepep/csrc/kernels/intranode.cu:502 'an illegal memory access was encountered'",
    "DistBackendError: NCCL error in: x.cpp:77, Cuda failure 700 'an illegal memory access was encountered'",
    "RuntimeError: CUDA driver error (csrc/jit/handle.hpp:99): 700 (CUDA_ERROR_ILLEGAL_ADDRESS)",
    "RuntimeError: CUDA error code=700(b'CUDA_ERROR_ILLEGAL_ADDRESS')",
    "cupy.cuda.runtime.CUDARuntimeError: cudaErrorIllegalAddress: an illegal memory access was encountered",
    "Program received signal CUDA_EXCEPTION_14, Warp Illegal Address.",
    "CUDA Exception: Warp Out-of-range Address",
    "[00:40:46.6] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_OUT_OF_RANGE_ADDRESS (5)",
    "[00:40:46.6] coredump: Detected an exception of type CUDBG_EXCEPTION_LANE_USER_STACK_OVERFLOW (2)",
)
MISALIGNED = (
    "torch.AcceleratorError: CUDA error: misaligned address",
    "RuntimeError: Triton Error [CUDA]: misaligned address",
    "RuntimeError: CUDA driver error: CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA Exception: Warp Misaligned Address",
)
ASSERT = (
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: Triton Error [CUDA]: device-side assert triggered",
    "/pytorch/x/Indexing.cu:1515: indexSelectSmallIndex: block: [0,0,0], thread: [0,0,0] Assertion `a < b` failed.",
    "RuntimeError: CUDA driver error (x.hpp:9): 710 (CUDA_ERROR_ASSERT)",
    "[00:40:46.6] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ASSERT (12)",
    "Assertion failed: deep_gemm/include/deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh:77, condition: SHAPE_K % 128 == 0",
)
LAUNCH = {
    "torch.AcceleratorError: CUDA error: unspecified launch failure": "a failed kernel launch",
    "RuntimeError: CUDA driver error (x.hpp:72): 719 (CUDA_ERROR_LAUNCH_FAILED)": "a failed kernel launch",
    "RuntimeError: CUDA error: too many resources requested for launch": "needs more resources",
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 262144, Hardware limit: 232448. "
    "Reducing block sizes or `num_stages` may help.": "needs more resources",
    "RuntimeError: CUDA error: an illegal instruction was encountered": "an illegal instruction",
    "RuntimeError: CUDA error: invalid program counter": "an invalid program counter",
    f"RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED {GEMM}": "CUBLAS_STATUS_EXECUTION_FAILED",
    f"RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE {GEMM}": "CUBLAS_STATUS_INVALID_VALUE",
    "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`": "NOT_INITIALIZED",
    "RuntimeError: /te/gemm/cublaslt_gemm.cu:750 in function cublas_gemm: cuBLAS Error: the function failed to launch "
    "on the GPU": "a cuBLAS call that failed",
    "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED": "CUDNN_STATUS_EXECUTION_FAILED",
}
MEMORY = (
    "RuntimeError: CUDA error: out of memory",
    "RuntimeError: Triton Error [CUDA]: out of memory",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "RuntimeError: /te/x.cu:7 in function f: cuBLAS Error: the resource allocation failed",
    "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    "ncclUnhandledCudaError: Call to CUDA function failed. Last error: Cuda failure 2 'out of memory'",
    "ncclUnhandledCudaError: Call to CUDA function failed. Last error: Cuda failure 'out of memory'",
)
NOTHING = (
    "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/x for more information.",
    "Search for `cudaErrorMisalignedAddress' in https://docs.nvidia.com/cuda/x for more information.",
    "Search for `cudaErrorLaunchFailure' in https://docs.nvidia.com/cuda/x for more information.",
    "Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/x for more information.",
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    "RuntimeError: CUDA error: invalid argument",
    "RuntimeError: CUDA error: CUBLAS_STATUS_SUCCESS",
    "W0821 kernel.py:7] the tensor has a misaligned address, falling back to a copy",
    "NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
    "INFO autotuner: 3 of 12 configs left out (shared memory)",
    "AssertionError: device mesh",
    "========= ERROR SUMMARY: 0 errors",
)


def said(folder: Path, line: str) -> tuple[str, str]:
    """Return answer and summary for a log with one line of an engine."""
    finding = ask_text(ima_in_log, folder, f"(SGLangEngine pid=9) {line}")
    return word(finding), finding.summary.en


@pytest.mark.parametrize("line", IMA)
def test_illegal_access(tmp_path: Path, line: str) -> None:
    """A bad address in the words of torch, Triton, TE, DeepEP, NCCL, the driver API and the debugger."""
    answer, summary = said(tmp_path, line)
    assert answer == "problem:ima"
    assert "misaligned" not in summary


@pytest.mark.parametrize("line", MISALIGNED)
def test_misaligned_address(tmp_path: Path, line: str) -> None:
    """A misaligned address leads the same way as a bad one, and is called what it is."""
    answer, summary = said(tmp_path, line)
    assert answer == "problem:ima"
    assert "an address that is misaligned" in summary


@pytest.mark.parametrize("line", ASSERT)
def test_assertions(tmp_path: Path, line: str) -> None:
    """An assertion of torch, Triton or DeepGEMM is no bad address."""
    answer, summary = said(tmp_path, line)
    assert answer == "problem:device-assert"
    assert "a device-side assert" in summary


@pytest.mark.parametrize("line", LAUNCH)
def test_launches_and_libraries(tmp_path: Path, line: str) -> None:
    """Failed launches, too many resources and a library's status are called what they are."""
    answer, summary = said(tmp_path, line)
    assert answer == "problem:launch-failure"
    assert LAUNCH[line] in summary


@pytest.mark.parametrize("line", MEMORY)
def test_memory_in_disguise(tmp_path: Path, line: str) -> None:
    """Memory that ran out is no access fault, is mentioned, and is what the memory probe takes it for."""
    answer, summary = said(tmp_path, line)
    assert answer == "ok:none"
    assert "another matter" in summary
    assert word(ask_text(oom_in_log, tmp_path, f"(SGLangEngine pid=9) {line}")) != "ok:none"


@pytest.mark.parametrize("line", NOTHING)
def test_what_only_resembles_a_fault(tmp_path: Path, line: str) -> None:
    """Hints, notes and other errors are no fault of a kernel."""
    assert said(tmp_path, line)[0] == "ok:none"


def test_kinds_are_listed_in_the_order_of_their_lines(tmp_path: Path) -> None:
    """Several kinds make a table, memory included; the first of them answers."""
    lines = (f"(SGLangEngine pid=1) {IMA[0]}", f"(SGLangEngine pid=2) {ASSERT[0]}", f"(SGLangEngine pid=3) {MEMORY[0]}")
    finding = ask_text(ima_in_log, tmp_path, *lines)
    assert word(finding) == "problem:ima"
    (table,) = finding.tables
    assert [row[:2] for row in table.rows] == [
        ("an illegal memory access", "700"),
        ("a device-side assert", "710"),
        ("memory that ran out", "2"),
    ]


XID_31 = (
    "[Fri Aug 21 10:00:00 2026] NVRM: Xid (PCI:0000:5d:00): 31, pid=4711, name=python3, Ch 00000008, intr 00000000."
)
XID_79 = "[Fri Aug 21 10:00:00 2026] NVRM: Xid (PCI:0000:5d:00): 79, GPU has fallen off the bus."
XID_OLD = "[Fri Aug 21 10:00:00 2026] NVRM: Xid (PCI:0000:5d:00): 109, pid=1, name=x"


def test_an_xid_supports_and_does_not_decide(tmp_path: Path) -> None:
    """Beside a program's error it is cited; alone it hints; one of another kind says nothing of an access."""
    beside = ask_text(ima_in_log, tmp_path, f"(SGLangEngine pid=1) {IMA[0]}", XID_31)
    assert word(beside) == "problem:ima"
    assert "(Xid 31)" in beside.summary.en
    assert [citation.line for citation in beside.citations] == [2, 3]
    assert word(ask_text(ima_in_log, tmp_path, XID_31)) == "warning:ima"
    assert word(ask_text(ima_in_log, tmp_path, XID_OLD)) == "ok:none"


def test_an_xid_of_the_gpu_itself_is_mentioned(tmp_path: Path) -> None:
    """A GPU that reports its own fault is told before any kernel is suspected."""
    finding = ask_text(ima_in_log, tmp_path, f"(SGLangEngine pid=1) {IMA[0]}", XID_31, XID_79)
    assert "the GPU itself reports a fault (Xid 79)" in finding.summary.en
