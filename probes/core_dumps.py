"""The CUDA core dumps of the evidence, read and sorted: what happened, in which kernel, and whose kernel it is.

Invariant: every dump of the evidence is either read or named with the reason why not; a job of 256 ranks leaves 256
dumps, so equal ones are counted rather than listed.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from probes.readers.cuda_coredump import CoreDump, CoreDumpError, Fault, demangled, read_coredump
from runbook.evidence import Evidence
from runbook.finding import Citation, Table, cite
from runbook.probe import Progress
from runbook.text import Text

MAX_DUMPS = 512
"""Dumps that are read: as many as a job of 512 GPUs leaves."""
MAX_FOLDER = 20_000
SECONDS = 100.0
"""One with torch's libraries in it takes half a second; what is left then is counted."""
_GPU = 190
_SHOWN = 24
ADDRESS = frozenset({1, 2, 3, 5, 6, 7, 9, 10, 11, 14, 17, 18, 19, 20})
"""Exceptions of memory: an address that is not mapped, misaligned or of another space, and overflown stacks."""
ASSERT = 12
_NAME = re.compile(r"(?:cuda_coredump_|core_)?(?P<host>[A-Za-z][\w-]*)\.(?P<pid>\d+)(?:\.(?P<time>\d{9,11}))?$")
OWNERS = (
    ("DeepEP", re.compile(r"\bdeep_ep::|\bnvshmem|internode|intranode|low_latency_(?:dispatch|combine)")),
    ("DeepGEMM", re.compile(r"\bdeep_gemm::|fp8_gemm_kernel|sm(?:90|100)_\w*gemm_impl")),
    ("FlashInfer", re.compile(r"\bflashinfer::|BatchPrefillWith|BatchDecodeWith")),
    ("FlashAttention", re.compile(r"\bflash::|flash_fwd|flash_bwd|FlashAttnFwd|FlashAttnBwd")),
    ("Transformer Engine", re.compile(r"\btransformer_engine::")),
    ("SGLang", re.compile(r"\bsgl(?:ang|_kernel)?::|\bmoe::|topk_gating|moe_align|fused_moe_kernel|eagle|spec_verify")),
    ("NCCL", re.compile(r"\bnccl(?:DevKernel|Kernel)|ncclKernel")),
    ("cuBLAS or CUTLASS", re.compile(r"\bcutlass::|\bcublas|ampere_\w+gemm|sm\d+_xmma_gemm|nvjet_")),
    ("PyTorch", re.compile(r"\bat::|\bc10::|vectorized_elementwise_kernel")),
)
"""Who ships a kernel, by its name: namespaces and kernel names in the sources of each project."""


@dataclass(frozen=True)
class Case:
    """One fault of one dump."""

    dump: CoreDump
    fault: Fault

    @property
    def kernel(self) -> str:
        """Return the kernel as source code names it, "" when neither grid nor function is known."""
        name = (self.fault.kernel.name if self.fault.kernel else None) or self.fault.function or ""
        return demangled(name)

    @property
    def function(self) -> str:
        """Return the function in which it happened, "" when that is the kernel itself or not known."""
        name = demangled(self.fault.function or "")
        return "" if name == self.kernel else name


@dataclass(frozen=True)
class Dumps:
    """All dumps of the evidence.

    cases: the first fault of each. plain: dumps without an exception. left: how many were not read. hosts: core files
    of CPU processes that lie in a folder of dumps.
    """

    cases: tuple[Case, ...]
    plain: tuple[CoreDump, ...]
    faults: tuple[CoreDumpError, ...]
    left: int
    hosts: tuple[str, ...] = ()


def read_all(evidence: Evidence, report: Progress) -> Dumps:
    """Read every dump in the slot, at most MAX_DUMPS and for at most SECONDS."""
    hosts: list[str] = []
    paths = list(_files(evidence, hosts))
    cases, plain, errors = [], [], []
    end, done = time.monotonic() + SECONDS, 0
    for number, path in enumerate(paths[:MAX_DUMPS]):
        if time.monotonic() > end:
            break
        done += 1
        report(number, min(len(paths), MAX_DUMPS), "dump")
        try:
            dump = read_coredump(path)
        except CoreDumpError as error:
            errors.append(error)
            continue
        if dump.faults:
            cases.append(Case(dump, dump.faults[0]))
        else:
            plain.append(dump)
    cases.sort(key=lambda case: (case.dump.time or 0, case.dump.path))
    return Dumps(tuple(cases), tuple(plain), tuple(errors), len(paths) - done, tuple(hosts))


def _files(evidence: Evidence, hosts: list[str]) -> Iterator[str]:
    """Yield the dumps; of a folder those files that begin as an ELF core of a GPU does. Those of a CPU join `hosts`."""
    for path in evidence.paths("cuda_coredump"):
        if not os.path.isdir(path):
            yield path
            continue
        with os.scandir(path) as entries:
            names = sorted(entry.path for _, entry in zip(range(MAX_FOLDER), entries, strict=False) if entry.is_file())
        for name in names:
            machine = _core_machine(name)
            if machine == _GPU:
                yield name
            elif machine is not None:
                hosts.append(name)


def _core_machine(path: str) -> int | None:
    """Return the machine of an ELF core file (e_machine), None for every other file."""
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return None
    if head[:4] != b"\x7fELF" or head[16:18] != b"\x04\x00" or len(head) < 20:
        return None
    return int.from_bytes(head[18:20], "little")


def owner(kernel: str) -> str:
    """Return who ships a kernel of this name, "" when its name does not say."""
    return next((name for name, pattern in OWNERS if pattern.search(kernel)), "")


def kind(fault: Fault) -> str:
    """Return "ima", "device-assert" or "launch-failure" for an exception."""
    return kind_of(fault.code)


def kind_of(code: int) -> str:
    """Return the same for a CUDBGException_t."""
    if code == ASSERT:
        return "device-assert"
    return "ima" if code in ADDRESS else "launch-failure"


def process(path: str) -> str:
    """Return "host NAME, pid N" as the name of a dump tells (`%h.%p.%t`), "" when it does not."""
    found = _NAME.search(os.path.basename(path))
    return f"host {found['host']}, pid {found['pid']}" if found else ""


def sentence(case: Case) -> tuple[str, str]:
    """Return what one fault says, in English and Chinese, without a full stop."""
    fault = case.fault
    en = f"{fault.name} in {case.kernel[:200] or 'a kernel that the dump does not name'}"
    zh = f"{case.kernel[:200] or '（dump 中没有名字的 kernel）'} 发生 {fault.name}"
    if case.function:
        en, zh = f"{en} (in its function {case.function[:120]})", f"{zh}（位于函数 {case.function[:120]}）"
    if fault.kernel is not None:
        en += f", grid {_triple(fault.kernel.grid)}, block size {_triple(fault.kernel.block)}"
        zh += f"，grid {_triple(fault.kernel.grid)}，block 大小 {_triple(fault.kernel.block)}"
    if fault.block is not None and fault.thread is not None:
        en += f": block {_triple(fault.block)}, thread {_triple(fault.thread)}"
        zh += f"：block {_triple(fault.block)}，thread {_triple(fault.thread)}"
    where = f"device {fault.device}, SM {fault.sm}"
    return f"{en}, {where}", f"{zh}，{where}"


def _triple(numbers: tuple[int, int, int]) -> str:
    return "({},{},{})".format(*numbers)


def citation(case: Case, count: int = 1) -> Citation:
    """Return the citation of a fault: a core dump has no lines, so the excerpt says what it holds."""
    pc = f" at PC {case.fault.pc:#x}" if case.fault.pc is not None else ""
    return cite(case.dump.path, f"{case.fault.name}{pc} in {case.kernel or '?'}", count=count)


def table(dumps: Dumps) -> Table:
    """Return one row a dump: process, exception, kernel, whose, grid, block, thread, SM."""
    rows: list[tuple[str, ...]] = []
    for case in dumps.cases[:_SHOWN]:
        fault, kernel = case.fault, case.fault.kernel
        rows.append(
            (
                os.path.basename(case.dump.path),
                process(case.dump.path),
                fault.name,
                case.kernel[:80] or "?",
                owner(case.kernel) or "?",
                f"{_triple(kernel.grid)} × {_triple(kernel.block)}" if kernel else "?",
                _triple(fault.block) if fault.block else "?",
                _triple(fault.thread) if fault.thread else "?",
                f"{fault.device}/{fault.sm}",
            )
        )
    rows += [(os.path.basename(one.path), process(one.path), "none", *_running(one)) for one in dumps.plain[:_SHOWN]]
    columns = ("dump", "process", "exception", "kernel", "of", "grid × block", "block", "thread", "device/SM")
    return Table(Text("CUDA core dumps", "CUDA core dump"), columns, tuple(rows))


def _running(dump: CoreDump) -> tuple[str, ...]:
    names = ", ".join(demangled(kernel.name or "?")[:60] for kernel in dump.kernels[:3])
    return (names or "none", "", "", "", "", ", ".join(str(one.index) for one in dump.devices))


def groups(dumps: Dumps) -> list[tuple[Case, int]]:
    """Return each kind of fault (exception and kernel) with its first case and how many dumps show it, most first."""
    counted = Counter((case.fault.code, case.kernel) for case in dumps.cases)
    firsts: dict[tuple[int, str], Case] = {}
    for case in dumps.cases:
        firsts.setdefault((case.fault.code, case.kernel), case)
    return [(firsts[key], count) for key, count in counted.most_common()]
