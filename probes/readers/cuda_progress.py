"""Reads the lines that the driver prints while it writes a CUDA core dump (CUDA_COREDUMP_SHOW_PROGRESS=1).

They name the exception, where on the GPU it was, since driver 580 the functions on the stack, and the file that is
written, so they tell much of a dump even where the file itself is lost. Without the variable the driver prints one
line that names nothing. Invariant: what was not printed is None or empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from probes.readers.cuda_coredump import EXCEPTIONS

MAX_NAME = 4000

_LINE = re.compile(r"\[\d\d:\d\d:\d\d(?:\.\d+)?\] coredump: (?P<text>.*)$")
_EXCEPTION = re.compile(r"^Detected an exception of type (CUDBG_EXCEPTION_\w+) \((\d{1,9})\)")
_PLACE = re.compile(r"^ {2}- (Device|SM|Warp): (\d{1,9})\s*$|^ {2}- PC (0x[0-9a-f]+)")
_FRAME = re.compile(r"^  #(\d+)\s+0x[0-9a-f]+\s+(\S+)")
_WRITING = re.compile(r"^Writing ELF file to (\S.*?)\s*$")
_FOLDER = re.compile(r"^Current working directory is (\S.*?)\s*$")


@dataclass(frozen=True)
class Fault:
    """One exception as it was detected. functions: of the stack, innermost first, mangled."""

    name: str
    code: int
    device: int | None = None
    sm: int | None = None
    warp: int | None = None
    pc: int | None = None
    functions: tuple[str, ...] = ()
    line: int = 0
    named: int = 0

    @property
    def words(self) -> str:
        """Return the exception as cuda-gdb prints it."""
        return EXCEPTIONS.get(self.code, self.name)


@dataclass(frozen=True)
class Writing:
    """One core dump while it is written.

    faults: in the order of detection. path: as the driver was told; folder: the process's own, against which a
    relative path counts. done: whether the driver said that it finished.
    """

    faults: tuple[Fault, ...] = ()
    path: str = ""
    folder: str = ""
    done: bool = False


def message(text: str) -> str | None:
    """Return what a line of progress says, None for every other line."""
    found = _LINE.search(text)
    return found["text"] if found else None


def read_progress(lines: Iterable[str]) -> Writing:
    """Return what the progress lines among the lines of one process tell, as far as the first dump goes."""
    writing = Writing()
    faults: list[Fault] = []
    for number, line in enumerate(lines):
        text = message(line)
        if text is None:
            continue
        if text.startswith("Starting GPU coredump generation") and (faults or writing.path):
            break
        if found := _EXCEPTION.match(text):
            faults.append(Fault(found[1][:80], int(found[2]), line=number, named=number))
        elif faults and (place := _PLACE.match(text)):
            faults[-1] = _placed(faults[-1], place)
        elif faults and (frame := _FRAME.match(text)):
            named = number if not faults[-1].functions else faults[-1].named
            functions = (*faults[-1].functions, frame[2][:MAX_NAME])[:64]
            faults[-1] = replace(faults[-1], functions=functions, named=named)
        elif found := _WRITING.match(text):
            writing = replace(writing, path=found[1])
        elif found := _FOLDER.match(text):
            writing = replace(writing, folder=found[1])
        elif text.startswith(("Writing done", "All done")):
            writing = replace(writing, done=True)
    return replace(writing, faults=tuple(faults))


def _placed(fault: Fault, place: re.Match[str]) -> Fault:
    if place[3]:
        return replace(fault, pc=int(place[3], 16))
    number = int(place[2])
    if place[1] == "Device":
        return replace(fault, device=number)
    return replace(fault, sm=number) if place[1] == "SM" else replace(fault, warp=number)
