"""Reads what cuda-gdb prints when it opens a GPU core dump or when a program faults under it.

Its words differ by version, and versions of CUDA 13.0 abort after they have printed the answer, so each line is read
for itself and whatever follows is passed over. Invariant: nothing is said that the text does not hold; a dump that
holds no exception (a trap) is read as one without.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from probes.readers.cuda_coredump import EXCEPTIONS

MAX_TEXT = 1 << 20
"""Characters of an output that are read."""
MAX_NAME = 4000
CODES = {name: code for code, name in EXCEPTIONS.items()}

_OPENED = re.compile(r"^Opening GPU coredump: (\S.*)$")
_EXCEPTION = re.compile(r"(?:^CUDA Exception: |\bCUDA_EXCEPTION_\d+, )([A-Z][\w-]*(?: [\w-]+){1,4})\.?$")
_AT = re.compile(r"^The exception was triggered at PC (0x[0-9a-f]+)(?: +(\S.*?))?(?: {2,}\((\S{1,400}:\d+)\))?\s*$")
_SIGNAL = re.compile(r"^(?:Program|Thread \d+.{0,80}) (?:terminated with|received) signal (SIG[A-Z]{2,8})\b")
_FOCUS = re.compile(
    r"^\[(?:Current focus set to|Switching focus to) CUDA kernel \d+, grid (\d+), block \((\d+),(\d+),(\d+)\), "
    r"thread \((\d+),(\d+),(\d+)\), device (\d+), sm (\d+)"
)
_FRAME = re.compile(
    r"^(?:#0 +)?0x[0-9a-f]+ in (\S.*?) ?<<<(\([\d,]+\),\([\d,]+\))>>>(?: \(.*?\))?(?: at (\S{1,400}:\d+))?"
)


@dataclass(frozen=True)
class Told:
    """What was printed for one dump or one stop.

    dump: the file that was opened, "" for a running program. exception: as cuda-gdb names it, "" for none. code:
    CUDBGException_t, None for a name that is not known. kernel: as printed, "" when it was not. source: "k.cu:9" or
    "/a/k.cu:9", "" likewise. shape: grid and block dimensions as printed. block, thread, device, sm: of the focus.
    signal: such as SIGTRAP, "" for none. line: 0-based number of the line that names the kernel, else of the exception.
    """

    dump: str = ""
    exception: str = ""
    code: int | None = None
    kernel: str = ""
    source: str = ""
    shape: str = ""
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    device: int | None = None
    sm: int | None = None
    signal: str = ""
    line: int = 0


def read_gdb(text: str) -> tuple[Told, ...]:
    """Return what an output tells, one for each dump that was opened or each exception; any text will do."""
    told: list[Told] = []
    now = Told()
    for number, raw in enumerate(text[:MAX_TEXT].split("\n")):
        line = raw.rstrip("\r")[: 4 * MAX_NAME]
        if opened := _OPENED.match(line):
            told.append(now)
            now = Told(dump=opened[1])
        elif (found := _EXCEPTION.search(line)) and now.exception:
            told.append(now)
            now = Told(dump=now.dump, exception=found[1], code=CODES.get(found[1]), line=number)
        else:
            now = _with(now, line, number)
    told.append(now)
    return tuple(one for one in told if one.exception or one.kernel or one.dump)


def _with(now: Told, line: str, number: int) -> Told:
    """Return what is told with what one more line tells."""
    if found := _EXCEPTION.search(line):
        return replace(now, exception=found[1], code=CODES.get(found[1]), line=number)
    if line == "Assertion failed." and (now.dump or now.block) and not now.exception:
        return replace(now, exception="Warp Assert", code=CODES["Warp Assert"], line=number)
    if signal := _SIGNAL.match(line):
        return replace(now, signal=signal[1])
    if at := _AT.match(line):
        return _named(now, (at[2] or "")[:MAX_NAME], at[3] or "", number)
    return _place(now, line, number)


def _place(now: Told, line: str, number: int) -> Told:
    """Return what is told with the focus or the frame of a line."""
    if focus := _FOCUS.match(line):
        numbers = [int(part[:9]) for part in focus.groups()]
        return replace(now, block=_triple(numbers[1:4]), thread=_triple(numbers[4:7]), device=numbers[7], sm=numbers[8])
    if frame := _FRAME.match(line):
        now = replace(now, shape=now.shape or frame[2])
        if not now.kernel or (frame[3] and not now.source):
            return _named(now, now.kernel or frame[1][:MAX_NAME], frame[3] or now.source, number)
    return now


def _named(now: Told, kernel: str, source: str, number: int) -> Told:
    """Return what is told with the kernel that a line names; a line without a name changes only the source."""
    line = number if kernel and not now.kernel else now.line
    return replace(now, kernel=now.kernel or kernel, source=source or now.source, line=line)


def _triple(numbers: list[int]) -> tuple[int, int, int]:
    return numbers[0], numbers[1], numbers[2]
