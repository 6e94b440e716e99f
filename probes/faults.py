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

_PRINTED = (
    r"(?:CUDA(?: driver)? [Ee]rror|CUDA (?:driver|runtime|Runtime) error|Triton Error \[CUDA\]|[Cc]uda failure"
    r"|NVSHMEM|nvshmem|Failed: )"
)
"""How torch, Transformer Engine, DeepGEMM, Triton, NCCL and DeepEP begin the line in which they quote CUDA's words."""
_NUMBER = r"(?:CUDA|cuda)(?: driver| runtime)? [Ee]rror(?: code)?[:=]? ?"

IMA = signature(
    "ima",
    (
        "illegal memory access was encountered", "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress",
        "misaligned address", "CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress",
        "global/shared address space", "CUDA_ERROR_INVALID_ADDRESS_SPACE", "hardware stack error",
        "CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDBG_EXCEPTION_", "CUDA Exception: ", "CUDA_EXCEPTION_",
        "Invalid __", "rror 700", "rror: 700", "rror code 700", "rror code: 700", "rror 716", "rror: 716",
    ),
    r"an illegal memory access was encountered|CUDA_ERROR_(?:ILLEGAL|MISALIGNED)_ADDRESS"
    r"|CUDA_ERROR_(?:INVALID_ADDRESS_SPACE|HARDWARE_STACK_ERROR)"
    r"|(?:rror|failed|failure).{0,80}[^`]cudaError(?:Illegal|Misaligned)Address|" + _NUMBER + r"(?:700|716)\b"
    r"|" + _PRINTED + r".{0,160}"
    r"(?:misaligned address|operation not supported on global/shared address space|hardware stack error)"
    r"|CUDBG_EXCEPTION_(?:WARP|LANE|DEVICE|CLUSTER)_\w*(?:ADDRESS|STACK|BLOCK_NOT_PRESENT)"
    r"|CUDA(?: Exception:|_EXCEPTION_\d+,) (?:Warp|Lane|Device|Cluster) "
    r"(?:(?:Illegal|Out-of-range|Misaligned|Invalid) Address|.{0,20}Stack )"
    r"|Invalid __(?:global|shared|local)__ (?:read|write|atomic) of size \d",
)  # fmt: skip
"""A kernel touched memory that it must not: an address that is not mapped, misaligned or of another space, a stack."""
ASSERT = signature(
    "device-assert",
    (
        "device-side assert triggered", "Assertion `", "CUDA_ERROR_ASSERT", "CUDBG_EXCEPTION_WARP_ASSERT",
        "cudaErrorAssert", "Warp Assert", "========= Warp assert", "Assertion failed: ", "rror 710", "rror: 710",
    ),
    r"device-side assert triggered|CUDA_ERROR_ASSERT|(?:rror|failed|failure).{0,80}[^`]cudaErrorAssert"
    r"|block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion `|CUDBG_EXCEPTION_WARP_ASSERT"
    r"|CUDA(?: Exception:|_EXCEPTION_\d+,) Warp Assert|========= Warp assert|" + _NUMBER + r"710\b"
    r"|Assertion failed: (?!.{0,200}deep_?ep|csrc/kernels/)\S{1,300}\.cuh?:\d+, condition: (?!.{0,120}0x807fffff)",
)  # fmt: skip
LAUNCH = signature(
    "launch-failure",
    (
        "unspecified launch failure", "CUDA_ERROR_LAUNCH_", "cuBLAS Error: ", "CUBLAS_STATUS_", "CUDNN_STATUS_",
        "too many resources requested for launch", "CUDA error: invalid configuration argument",
        "the launch timed out", "illegal instruction was encountered", "invalid program counter",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_INVALID_PC", "OutOfResources: out of resource",
        "CUDBG_EXCEPTION_", "CUDA Exception: Warp ", "CUDA_EXCEPTION_", "cudaErrorLaunch",
        "========= Trace/breakpoint trap", "rror 719", "rror: 719",
    ),
    r"unspecified launch failure|CUDA_ERROR_LAUNCH_(?:FAILED|OUT_OF_RESOURCES|TIMEOUT)"
    r"|CUDA_ERROR_(?:ILLEGAL_INSTRUCTION|INVALID_PC)|(?:rror|failed|failure).{0,80}[^`]cudaErrorLaunchFailure"
    r"|cuBLAS Error: (?:the function failed to launch|an internal operation failed|an access to GPU memory space failed"
    r"|the library was not initialized|the requested functionality is not supported|an unsupported value)"
    r"|(?:CUDA error|cuBLAS Error|cuBLAS error|CUBLAS error|CUBLAS Error): .{0,80}CUBLAS_STATUS_"
    r"(?:EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR|NOT_INITIALIZED|NOT_SUPPORTED|INVALID_VALUE|ARCH_MISMATCH)"
    r"|cuDNN [Ee]rror: .{0,160}CUDNN_STATUS_"
    r"(?:EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR|NOT_INITIALIZED|BAD_PARAM|NOT_SUPPORTED)"
    r"|" + _PRINTED + r".{0,160}(?:too many resources requested for launch|the launch timed out"
    r"|an illegal instruction was encountered|invalid program counter)|CUDA error: invalid configuration argument"
    r"|OutOfResources: out of resource|========= Trace/breakpoint trap|" + _NUMBER + r"719\b"
    r"|CUDBG_EXCEPTION_(?:WARP|LANE)_(?:ILLEGAL_INSTRUCTION|INVALID_PC|SYSCALL_ERROR)"
    r"|CUDA(?: Exception:|_EXCEPTION_\d+,) Warp (?:Illegal Instruction|Invalid PC)",
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
        "CUDA out of memory", "HIP out of memory", "CUDA error: out of memory", "CUDA Error: out of memory",
        "Triton Error [CUDA]: out of memory", "_STATUS_ALLOC_FAILED", "cuBLAS Error: the resource allocation failed",
        "uda failure 2 'out of memory'", "uda failure 'out of memory'", "CUDA_ERROR_OUT_OF_MEMORY",
    ),
    r"(?:Error|failed|exception): (?:CUDA|HIP) out of memory|CUDA [Ee]rror: out of memory"
    r"|Triton Error \[CUDA\]: out of memory|cuBLAS Error: the resource allocation failed"
    r"|(?:CUDA error|cu(?:BLAS|DNN) [Ee]rror|CUBLAS [Ee]rror): .{0,80}CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED"
    r"|[Cc]uda failure (?:2 )?'out of memory'"
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
_MANAGER = re.compile(r"^Rollout(?:Manager|Controller)|^Buffer$|Reward|^(?:Tool|Sandbox|Code)")
_OF_THE_JOB = re.compile(r"(?:^|/)(?:slime|sglang|sgl_kernel|megatron|ray|torch|transformer_engine)/")
_OF_ANY_PROGRAM = frozenset(
    {each.label for each in (*CUDA, *OOM, ENGINE_EXCEPTION)}
    | {"traceback", "address-taken", "cuda-gdb", "cuda-sanitizer", "core-progress", "core-written", "xid"}
)
"""Labels of what any program may print, so that a model's words may well hold it."""
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


def only_told(hit: Hit) -> bool:
    """Whether a fault is only words: quoted as in a mail (`> …`), or printed by the rollout manager for somebody else.

    A sample, a tool's output or a reward may begin like any program's error, and hold tracebacks of the code that a
    model wrote. The manager has no GPU: a fault that it does report comes with a logger's stamp, with the actor that it
    asked (`ray::`), or with frames of the programs of the job.
    """
    if hit.raw.lstrip().startswith(b"> "):  # Megatron begins lines so too, and none of them is a fault
        return True
    line = joblog.parse(hit.raw)
    if line.time is not None or hit.label not in _OF_ANY_PROGRAM:
        return False
    actor = line.actor or logplace.file_actor(hit.file)
    if actor is None or not _MANAGER.search(actor):
        return False
    breath = joblog.context(hit)
    remote = any(_REMOTE.search(joblog.parse(place.raw).message) for place in breath)
    return not (remote or any(_OF_THE_JOB.search(frame.file) for frame in joblog.frames(breath)))


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
