"""The lines in which CUDA, torch, torch_memory_saver, SGLang, Ray and the kernel report a fault, and whose fault it is.

Several probes ask about the same lines, so they stand here once. Invariants: a signature names the fault itself,
never a hint that follows it (torch's "Search for `cudaErrorIllegalAddress'", Ray's list of possible reasons, the
memory saver's "may not be an issue") and never source code that a traceback quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from probes.readers import joblog, logplace
from probes.readers.joblog import Frame, Placed
from probes.readers.logscan import Hit, signature

IMA = signature(
    "ima",
    (
        "illegal memory access was encountered", "CUDA_ERROR_ILLEGAL_ADDRESS", "_ILLEGAL_ADDRESS (",
        "Illegal Address", "Invalid __global__ ",
    ),
    r"an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS"
    r"|CUDBG_EXCEPTION_(?:WARP|LANE)_ILLEGAL_ADDRESS|CUDA Exception: (?:Warp|Lane) Illegal Address"
    r"|Invalid __global__ (?:read|write|atomic) of size \d",
)  # fmt: skip
ASSERT = signature(
    "device-assert",
    ("device-side assert triggered", "Assertion `", "CUDA_ERROR_ASSERT", "CUDBG_EXCEPTION_WARP_ASSERT"),
    r"CUDA error: device-side assert triggered|device-side assert triggered|CUDA_ERROR_ASSERT"
    r"|block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion `|CUDBG_EXCEPTION_WARP_ASSERT",
)
LAUNCH = signature(
    "launch-failure",
    (
        "unspecified launch failure", "CUDA_ERROR_LAUNCH_", "the function failed to launch on the GPU",
        "CUBLAS_STATUS_EXECUTION_FAILED", "CUBLAS_STATUS_INTERNAL_ERROR", "too many resources requested for launch",
        "CUDA error: invalid configuration argument", "the launch timed out",
    ),
    r"unspecified launch failure|CUDA_ERROR_LAUNCH_(?:FAILED|OUT_OF_RESOURCES|TIMEOUT)"
    r"|cuBLAS Error: the function failed to launch on the GPU"
    r"|(?:CUDA error|cuBLAS Error|CUBLAS error): .{0,80}CUBLAS_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR)"
    r"|CUDA error: (?:too many resources requested for launch|invalid configuration argument|the launch timed out)",
)  # fmt: skip
FP8_SCALE = signature(
    "fp8-scale",
    "Assertion failed: ",
    r"Assertion failed: .{0,200}deep_gemm/.{1,200}condition: .{0,80}0x807fffff",
)
"""DeepGEMM's own check that every FP8 block scale is a power of two, which UE8M0 needs (sglang#29993)."""
CUDA_OOM = signature(
    "cuda-oom",
    (
        "CUDA out of memory", "HIP out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
        "Cuda failure 2 'out of memory'", "CUDA_ERROR_OUT_OF_MEMORY",
    ),
    r"(?:Error|failed|exception): (?:CUDA|HIP) out of memory|CUDA error: out of memory"
    r"|CUDA error: CUBLAS_STATUS_ALLOC_FAILED|Cuda failure 2 'out of memory'"
    r"|(?:Error|failed)\b.{0,80}CUDA_ERROR_OUT_OF_MEMORY(?! \(may not be an issue)",
)  # fmt: skip
SAVER = signature("saver", "[torch_memory_saver.cpp] CUresult error", r"\[torch_memory_saver\.cpp\] CUresult error")
ENGINE_OOM = signature(
    "engine-oom",
    (
        "Not enough memory. Please try to increase --mem-fraction-static", "Prefill out of memory. Try to lower",
        "Decode out of memory. Try to lower",
    ),
    r"(?:Error: Not enough memory\. Please try to increase --mem-fraction-static)"
    r"|(?:Prefill|Decode) out of memory\. Try to lower",
)  # fmt: skip
HOST_OOM = signature(
    "host-oom",
    (
        "due to the node running low on memory", "killed due to memory pressure (OOM)", "ut of memory: Killed process",
        "oom-kill:constraint=", "exceeds the memory usage threshold of", "DefaultCPUAllocator: can't allocate memory",
        "[Errno 12] Cannot allocate memory",
    ),
    r"killed due to the node running low on memory|[1-9]\d* Workers \(tasks / actors\) killed due to memory pressure"
    r"|(?:Out of memory|Memory cgroup out of memory): Killed process \d+|oom-kill:constraint="
    r"|Memory on the node .{1,2000}exceeds the memory usage threshold of"
    r"|DefaultCPUAllocator: can't allocate memory: |OSError: \[Errno 12\] Cannot allocate memory",
)  # fmt: skip
ENGINE_EXCEPTION = signature(
    "engine-exception",
    "hit an exception: ",
    r"(?:Scheduler|DataParallelController|DetokenizerManager|TokenizerManager|MultiTokenizerRouter"
    r"|TpModelWorkerClient) hit an exception: ",
)

CUDA = (IMA, ASSERT, LAUNCH, FP8_SCALE)
OOM = (CUDA_OOM, SAVER, ENGINE_OOM, HOST_OOM)

_ROLLOUT_ACTOR = re.compile(r"^SGLang|^RolloutRayActor$|Engine$")
_TRAIN_ACTOR = re.compile(r"Train")
_REMOTE = re.compile(r"\bray::(?P<actor>\w+)(?:\.(?P<method>\w+))?")
_ROLLOUT_FILE = re.compile(r"(?:^|/)sglang/|sgl_kernel")
_TRAIN_FILE = re.compile(r"(?:^|/)megatron/|megatron_utils/|transformer_engine/|fsdp_utils/")
_SGLANG_RANK = re.compile(r"^(?:DP|TP|EP|PP)\d+")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt)\b(?::|$)")


def side(hit: Hit, breath: Sequence[Placed]) -> tuple[str | None, Placed]:
    """Return which half of the job a hit belongs to ("rollout", "train" or None) and the line that says so.

    Told, in this order, by Ray's prefix, by the actor a RayTaskError names, by the innermost frame that is SGLang's or
    Megatron's, by SGLang's own stamp, and by the head of a worker's own log file.
    """
    own = Placed(hit.line, hit.offset, hit.raw)
    return next(_told(hit, own, breath), (None, own))


def _told(hit: Hit, own: Placed, breath: Sequence[Placed]) -> Iterator[tuple[str, Placed]]:
    """Yield every sign of whose fault a hit is, the strongest first."""
    if kind := actor_side(joblog.parse(hit.raw).actor):
        yield kind, own
    for place in breath:
        if (remote := _REMOTE.search(joblog.parse(place.raw).message)) and (kind := actor_side(remote["actor"])):
            yield kind, place
    for frame in innermost_first(breath):
        if _ROLLOUT_FILE.search(frame.file):
            yield "rollout", frame.place
        if _TRAIN_FILE.search(frame.file):
            yield "train", frame.place
    for place in (own, *breath):
        if _SGLANG_RANK.match(joblog.parse(place.raw).rank or ""):
            yield "rollout", place
    if kind := actor_side(logplace.file_actor(hit.file)):
        yield kind, own


def actor_side(actor: str | None) -> str | None:
    """Return which half of the job a Ray actor class belongs to, None for the manager and all others."""
    if actor and _ROLLOUT_ACTOR.search(actor):
        return "rollout"
    return "train" if actor and _TRAIN_ACTOR.search(actor) else None


def remote_methods(breath: Iterable[Placed]) -> tuple[str, ...]:
    """Return the methods of remote actors that a traceback names, as in `ray::MegatronTrainRayActor.train()`."""
    found = (_REMOTE.search(joblog.parse(place.raw).message) for place in breath)
    return tuple(match["method"] for match in found if match and match["method"])


def exception(breath: Iterable[Placed], after: int = 0) -> Placed | None:
    """Return the last line of a traceback, the exception itself, that stands behind line `after`."""
    for place in breath:
        if place.number > after and _EXCEPTION.match(joblog.parse(place.raw).message):
            return place
    return None


def innermost_first(breath: Sequence[Placed]) -> tuple[Frame, ...]:
    """Return the frames of a traceback from the one that raised outwards."""
    return tuple(reversed(joblog.frames(breath)))
