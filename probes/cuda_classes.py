"""What kind of CUDA fault a line tells of, finer than the four that a flow branches on.

An illegal address, a misaligned one, an assertion, a failed launch, a library's status and memory that ran out ask for
different next steps, and the words differ by the program that prints them. Sources: CUDA's cudaError_t and
CUDBGException_t, cuBLAS' and cuDNN's status names, torch, Transformer Engine, Triton and NCCL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from probes import logs
from probes.readers import joblog
from probes.readers.logscan import Hit, signature
from runbook.finding import Table
from runbook.text import Text

XID = signature("xid", "NVRM: Xid (", r"NVRM: Xid \((PCI:[\w:.]{1,40})\): (\d{1,5}),([^\r\n]{0,200})")
"""A line of the kernel's log (dmesg); the numbers are those of NVIDIA's Xid catalogue."""
XID_OF_ACCESS = frozenset({13, 31})
"""13: a warp exception, 31: a fault of the GPU's memory unit; both name the process that did it."""
XID_OF_HARDWARE = frozenset({48, 62, 63, 64, 74, 79, 92, 94, 95, 110, 119, 120, 140, 143})
"""ECC, row remapping, NVLink, a GPU that fell off the bus, GSP: the GPU itself, before any kernel is suspected."""


@dataclass(frozen=True)
class FaultClass:
    """One kind. code: of cudaError_t, 0 where it has none."""

    en: str
    zh: str
    code: int
    pattern: re.Pattern[bytes]


def _kind(en: str, zh: str, code: int, pattern: str) -> FaultClass:
    return FaultClass(en, zh, code, re.compile(pattern.encode(), re.IGNORECASE))


CLASSES = (
    _kind(
        "an address that is misaligned", "地址未对齐", 716,
        r"misaligned.address|_MISALIGNED_ADDRESS|Misaligned Address|rror[^\d]{0,10}716",
    ),
    _kind("an address of another address space", "地址空间错误", 717, r"address space|_ADDRESS_SPACE"),
    _kind("an overflown stack on the GPU", "GPU 栈溢出", 714, r"hardware stack|stack overflow|_STACK_|stack canary"),
    _kind("a device-side assert", "设备端断言失败", 710, r"assert|rror[^\d]{0,10}710"),
    _kind(
        "a launch that needs more resources than there are", "kernel 所需资源超出上限", 701,
        r"too many resources|OUT_OF_RESOURCES|OutOfResources",
    ),
    _kind("a launch that timed out", "kernel 执行超时", 702, r"launch timed out|LAUNCH_TIMEOUT"),
    _kind("an invalid launch configuration", "kernel 启动配置无效", 9, r"invalid configuration argument"),
    _kind("an illegal instruction", "非法指令", 715, r"illegal.instruction"),
    _kind("an invalid program counter", "无效的 PC", 718, r"invalid program counter|_INVALID_PC|Invalid PC"),
    _kind("a trap in a kernel", "kernel 内的 trap", 719, r"breakpoint trap"),
    _kind(
        "memory that ran out", "显存不足", 2,
        r"out of memory|ALLOC_FAILED|resource allocation failed|OUT_OF_MEMORY|MemoryAllocation",
    ),
    _kind(
        "a cuBLAS call that failed", "cuBLAS 调用失败", 0, r"CUBLAS_STATUS_|cuBLAS Error",
    ),
    _kind("a cuDNN call that failed", "cuDNN 调用失败", 0, r"CUDNN_STATUS_"),
    _kind(
        "an illegal memory access", "非法显存访问", 700,
        r"illegal memory access|ILLEGAL_ADDRESS|Illegal Address|cudaErrorIllegalAddress|Out.of.range Address"
        r"|OUT_OF_RANGE|BLOCK_NOT_PRESENT|Invalid __|rror[^\d]{0,10}700",
    ),
    _kind("a failed kernel launch", "内核启动失败", 719, r"launch failure|LAUNCH_FAILED|LaunchFailure|719"),
)  # fmt: skip
_STATUS = re.compile(rb"CU(?:BLAS|DNN)_STATUS_[A-Z_]{1,60}")
OTHER = _kind("a CUDA fault", "CUDA 故障", 0, r"")
_SHOWN = 12


def of(hit: Hit) -> FaultClass:
    """Return the kind of fault that a hit tells of."""
    match = hit.text[:400]
    return next((each for each in CLASSES if each.pattern.search(match)), OTHER)


def words(hit: Hit) -> tuple[str, str]:
    """Return the kind in words, with the library's own status where it names one."""
    kind = of(hit)
    status = _STATUS.search(hit.text[:400])
    more = f" ({status[0].decode()})" if status else ""
    return kind.en + more, kind.zh + more


def table(hits: Sequence[Hit], runs_out: Sequence[Hit]) -> Table | None:
    """Return one row a kind in the order of their first lines, None where there is only one kind."""
    rows: dict[str, list[Hit]] = {}
    for hit in (*hits, *runs_out):
        rows.setdefault(of(hit).en, []).append(hit)
    if len(rows) < 2:
        return None
    shown = [
        (
            kind,
            str(of(group[0]).code or "-"),
            str(group[0].line),
            str(logs.processes(group)),
            joblog.parse(group[0].raw).message[:100],
        )
        for kind, group in list(rows.items())[:_SHOWN]
    ]
    columns = ("kind", "CUDA code", "first line", "processes", "words")
    return Table(Text("Kinds of CUDA faults", "CUDA 故障的种类"), columns, tuple(shown))


def xid_words(hits: Sequence[Hit]) -> tuple[Hit, str, str] | None:
    """Return the Xid line that supports or questions an access fault, and what it says; None where none does."""
    for wanted, en, zh in (
        (XID_OF_HARDWARE, "the GPU itself reports a fault", "GPU 本身报告了硬件故障"),
        (XID_OF_ACCESS, "the kernel log shows the access fault as well", "内核日志中也有该访存错误"),
    ):
        for hit in hits:
            number = int(hit.groups[1] or b"0")
            if number in wanted:
                return hit, f"{en} (Xid {number})", f"{zh}（Xid {number}）"
    return None


def of_access(hit: Hit) -> bool:
    """Whether an Xid line tells of a bad access."""
    return hit.label == XID.label and int(hit.groups[1] or b"0") in XID_OF_ACCESS
