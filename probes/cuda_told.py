"""Where a log or a text file holds what a tool for the GPU says: cuda-gdb, compute-sanitizer or the driver's core dump.

Each of them names the exception, mostly the kernel, and is believed before any Python traceback. Invariant: a kernel
is only ever told together with the exception that the same tool names for it, so that the kernel of an assertion is
never taken for that of a bad address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from probes import core_dumps
from probes.readers import joblog
from probes.readers.cuda_coredump import demangled
from probes.readers.cuda_gdb import Told as GdbTold
from probes.readers.cuda_gdb import read_gdb
from probes.readers.cuda_progress import read_progress
from probes.readers.cuda_sanitizer import Kind, Report, kernel_at, read_report
from probes.readers.joblog import Placed
from probes.readers.logfiles import LogFile, window
from probes.readers.logscan import Hit, signature
from runbook.finding import Citation

GDB = signature(
    "cuda-gdb",
    ("Opening GPU coredump: ", "The exception was triggered at PC ", "CUDA_EXCEPTION_", "<<<("),
    r"^Opening GPU coredump: |The exception was triggered at PC 0x|\bCUDA_EXCEPTION_\d+, |^#0 +0x[0-9a-f]+ in .*<<<\(",
)
SANITIZER = signature(
    "cuda-sanitizer",
    ("========= ",),
    r"========= (?:Invalid __|Warp assert|Trace/breakpoint trap|(?:Error|Warning|Info): (?:Race reported|Potential )"
    r"|Uninitialized |Barrier error detected|    at \S)",
)
PROGRESS = signature(
    "core-progress", "coredump: Detected an exception of type ", r"coredump: Detected an exception of type CUDBG_"
)
WRITING = signature("core-written", "coredump: Writing ELF file to ", r"coredump: Writing ELF file to (\S.*?)\s*$")
SIGNATURES = (GDB, SANITIZER, PROGRESS)

REACH = 64 * 1024
"""Bytes behind a hit in which the rest of what a tool says is looked for."""
LOOKED_AT = 64
"""Hits that are read; a job leaves many that tell the same."""
_BEFORE = 8
_OF_KIND = {Kind.ACCESS: "ima", Kind.ASSERT: "device-assert", Kind.TRAP: "launch-failure"}
_HAZARD = {
    Kind.RACE: ("a race between threads", "线程间竞争"),
    Kind.UNINITIALISED: ("a read of memory that nothing wrote", "读取未初始化的显存"),
    Kind.BARRIER: ("a barrier that not all threads reach", "并非所有线程都到达的 barrier"),
}


@dataclass(frozen=True)
class Told:
    """What one tool says of one fault.

    kind: "ima", "device-assert", "launch-failure", "hazard" (a race, a read before any write, a barrier: no access
    error) or "" for none. kernel: as source code names it, "" when it is not named. detail_en, detail_zh: block,
    thread, address, as far as they are told, beginning with a comma.
    """

    tool: str
    kind: str
    exception: str
    kernel: str
    detail_en: str
    detail_zh: str
    file: LogFile
    place: Placed
    hazard_zh: str = ""

    @property
    def citation(self) -> Citation:
        """Return the line that says so."""
        return joblog.cite_placed(self.file, self.place)


def told(hits: Sequence[Hit]) -> list[Told]:
    """Return what the tools say at the hits of SIGNATURES, each once, in their order; excerpts come last.

    An excerpt is a line that names a kernel and was kept without the exception.
    """
    found: list[Told] = []
    seen: set[tuple[str, int]] = set()
    covered: tuple[str, int] = ("", -1)
    for hit in hits[:LOOKED_AT]:
        if hit.label == GDB.label:
            opens = b"Opening GPU coredump" in hit.raw
            if not opens and hit.file.path == covered[0] and hit.offset <= covered[1]:
                continue
            lines = _lines(hit, 0 if opens else _BEFORE)
            several = read_gdb("\n".join(text for _, text in lines))[:1]
            covered = (hit.file.path, lines[-1][0].offset if opens else hit.offset + len(hit.raw) + 2048)
            one = next((_of_gdb(hit.file, each, lines) for each in several), None)
        elif hit.label == SANITIZER.label:
            if b"=     at " in hit.raw:
                inside = hit.file.path == covered[0] and hit.offset <= covered[1]
                one = None if inside else _excerpt(hit)
            else:
                covered = (hit.file.path, hit.offset + 4096)
                one = _of_sanitizer(hit, _lines(hit))
        else:
            one = _of_progress(hit, _lines(hit))
        if one is not None and (one.file.path, one.place.offset) not in seen:
            seen.add((one.file.path, one.place.offset))
            found.append(one)
    return sorted(found, key=lambda one: not one.exception)


def _lines(hit: Hit, before: int = 0) -> list[tuple[Placed, str]]:
    """Return the lines of a hit's process from `before` lines ahead of it on, with what each says.

    They end where cuda-gdb opens the next dump.
    """
    start, number = hit.offset, hit.line
    if before:
        back = window(hit.file, max(hit.offset - 4096, 0), min(hit.offset, 4096))
        ahead = back.split(b"\n")[-1 - before : -1]
        start, number = hit.offset - sum(len(raw) + 1 for raw in ahead), hit.line - len(ahead)
    process = joblog.parse(hit.raw).process
    found: list[tuple[Placed, str]] = []
    for raw in window(hit.file, start, REACH).split(b"\n"):
        line = joblog.parse(raw.rstrip(b"\r"))
        if line.process == process:
            if b"Opening GPU coredump: " in raw and found and start > hit.offset:
                break
            found.append((Placed(number, start, raw.rstrip(b"\r")), line.message))
        start += len(raw) + 1
        number += 1
    return found or [(Placed(hit.line, hit.offset, hit.raw), joblog.parse(hit.raw).message)]


def _of_gdb(file: LogFile, said: GdbTold, lines: Sequence[tuple[Placed, str]]) -> Told:
    kind = core_dumps.kind_of(said.code) if said.code is not None else ""
    if not kind and said.kernel and not said.dump and not said.signal:
        kind = "ima"  # an excerpt: only the line that names the kernel of an exception was kept
    parts = _where(said.block, said.thread, said.source)
    if said.device is not None and said.sm is not None:
        parts = (*parts, (f"device {said.device}, SM {said.sm}", f"device {said.device}, SM {said.sm}"))
    return Told(
        "cuda-gdb", kind, said.exception, said.kernel, *_joined(parts), file, lines[min(said.line, len(lines) - 1)][0]
    )


def _of_sanitizer(hit: Hit, lines: Sequence[tuple[Placed, str]]) -> Told | None:
    report = read_report([text for _, text in lines])
    if report is None:
        return None
    parts = (*_where(report.block, report.thread, report.source), *_address(report))
    hazard = _HAZARD.get(report.kind)
    return Told(
        "compute-sanitizer",
        _OF_KIND.get(report.kind, "hazard"),
        hazard[0] if hazard else report.headline,
        report.kernel,
        *_joined(parts),
        hit.file,
        lines[min(report.line, len(lines) - 1)][0],
        hazard[1] if hazard else "",
    )


def _excerpt(hit: Hit) -> Told | None:
    """Return what the line alone says that names a kernel, where nobody kept the headline."""
    at = kernel_at(joblog.parse(hit.raw).message)
    if at is None or at[0].startswith("__assert"):
        return None
    place = Placed(hit.line, hit.offset, hit.raw)
    return Told("compute-sanitizer", "ima", "", at[0], *_joined(_where(None, None, at[1])), hit.file, place)


def _of_progress(hit: Hit, lines: Sequence[tuple[Placed, str]]) -> Told | None:
    writing = read_progress(text for _, text in lines)
    if not writing.faults:
        return None
    fault = writing.faults[0]
    kernel = demangled(fault.functions[-1]) if fault.functions else ""
    parts = tuple(
        (f"{name} {value}", f"{name} {value}")
        for name, value in (("device", fault.device), ("SM", fault.sm))
        if value is not None
    )
    place = lines[min(fault.named, len(lines) - 1)][0]
    return Told("the driver", core_dumps.kind_of(fault.code), fault.words, kernel, *_joined(parts), hit.file, place)


def _where(
    block: tuple[int, int, int] | None, thread: tuple[int, int, int] | None, source: str
) -> tuple[tuple[str, str], ...]:
    parts: list[tuple[str, str]] = []
    if block is not None and thread is not None:
        both = f"block ({block[0]},{block[1]},{block[2]}), thread ({thread[0]},{thread[1]},{thread[2]})"
        parts.append((both, both))
    if source:
        parts.append((f"at {source[-120:]}", f"位于 {source[-120:]}"))
    return tuple(parts)


def _address(report: Report) -> Iterator[tuple[str, str]]:
    if report.address:
        fault = f" is {report.fault}" if report.fault else ""
        yield f"address {report.address}{fault}", f"地址 {report.address}{fault}"
    if report.distance:
        yield report.distance, report.distance


def _joined(parts: Sequence[tuple[str, str]]) -> tuple[str, str]:
    return "".join(f", {en}" for en, _ in parts), "".join(f"，{zh}" for _, zh in parts)
