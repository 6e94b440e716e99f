"""Reads CUDA core dumps without a GPU and without cuda-gdb: ELF files whose sections hold tables of the GPU's state.

The layout is that of NVIDIA's `cudacoredump.h` (CUDA 13.0): tables grew at their ends from driver to driver, so the
beginning of an entry is read and the file's own entry size is the stride. A dump of a busy GPU has a million sections
and may hold all of the GPU's memory; only the section table and the few small tables that name the fault are read.
Invariant: what a dump does not hold is None or absent, never a default that looks like a value.
"""

from __future__ import annotations

import io
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXCEPTIONS = {
    1: "Lane Illegal Address",
    2: "Lane User Stack Overflow",
    3: "Device Hardware Stack Overflow",
    4: "Warp Illegal Instruction",
    5: "Warp Out-of-range Address",
    6: "Warp Misaligned Address",
    7: "Warp Invalid Address Space",
    8: "Warp Invalid PC",
    9: "Warp Hardware Stack Overflow",
    10: "Device Illegal Address",
    11: "Lane Misaligned Address",
    12: "Warp Assert",
    13: "Lane Syscall Error",
    14: "Warp Illegal Address",
    15: "Lane Non-migratable Atomic",
    16: "Lane Invalid Atomic",
    17: "Cluster Out-of-range Address",
    18: "Cluster Block Not Present",
    19: "Warp Stack Canary",
    20: "Warp Tensor Memory Access Check",
    21: "Warp Tensor Memory Leak",
    22: "Warp Call Requires Newer Driver",
}
"""Names of CUDBGException_t (cudadebugger.h, CUDA 13.0), as cuda-gdb prints them."""

_USER = 0x80000000
_RELOCATED, _DEVICES, _CONTEXTS, _SMS, _GRIDS, _BLOCKS, _WARPS, _LANES, _META = (
    _USER + number for number in (7, 9, 10, 11, 12, 13, 14, 15, 22)
)
_CUDA_MACHINE = 190
_FUNCTION = 2  # STT_FUNC
_HEADER = struct.Struct("<IIQQQQIIQQ")  # one section header of a 64-bit ELF
MAX_SECTIONS = 8_000_000
MAX_TABLE = 64 << 20
MAX_ENTRIES = 1_000_000
"""Entries of all tables together: the busiest GPU has 132 SMs of 64 warps of 32 lanes, some 280,000."""
MAX_IMAGE = 512 << 20
"""Bytes of one loaded module that are read for its names; torch's largest is about a tenth."""
MAX_NAME = 4000


class CoreDumpError(Exception):
    """A file that is no readable CUDA core dump.

    kind: "missing", "unreadable", "not-elf", "host-core", "cut" or "other".
    """

    def __init__(self, path: str, kind: str, detail: str) -> None:
        """Say which file and why."""
        super().__init__(f"{path}: {detail}")
        self.path, self.kind, self.detail = path, kind, detail


@dataclass(frozen=True)
class Device:
    """One GPU. name: as NVIDIA sells it. sm: architecture such as "sm_90". sms: streaming multiprocessors."""

    index: int
    name: str
    sm: str
    sms: int


@dataclass(frozen=True)
class Kernel:
    """A grid that was on a device. name: mangled, None when no module names it. grid, block: dimensions."""

    device: int
    grid_id: int
    name: str | None
    entry: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocking: bool


@dataclass(frozen=True)
class Fault:
    """One exception.

    code: CUDBGException_t. pc: of the instruction, None when the GPU did not say. function: that holds the pc, mangled;
    it may be a device function that a kernel calls. kernel: whose grid it was, None when the SM kept no block of it.
    block, thread: index; None likewise. sm, warp: numbers. lanes: threads of the warp that hit it.
    """

    device: int
    code: int
    pc: int | None
    function: str | None
    kernel: Kernel | None
    sm: int
    warp: int | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    lanes: int = 0

    @property
    def name(self) -> str:
        """Return the exception as cuda-gdb prints it."""
        return EXCEPTIONS.get(self.code, f"exception {self.code}")


@dataclass(frozen=True)
class CoreDump:
    """What one dump holds. driver: "580.159", "" when not recorded. time: seconds since the epoch, None likewise."""

    path: str
    devices: tuple[Device, ...]
    kernels: tuple[Kernel, ...]
    faults: tuple[Fault, ...]
    driver: str = ""
    time: int | None = None


def read_coredump(path: str) -> CoreDump:
    """Read the fault of a CUDA core dump. Raises CoreDumpError."""
    try:
        with open(path, "rb") as file:
            return _Dump(path, file).read()
    except FileNotFoundError as error:
        raise CoreDumpError(path, "missing", "is not there") from error
    except OSError as error:
        raise CoreDumpError(path, "unreadable", error.strerror or "cannot be read") from error


@dataclass(frozen=True)
class _Functions:
    """The functions of the loaded modules by address: (start, end, mangled name), sorted."""

    spans: tuple[tuple[int, int, str], ...]

    def at(self, pc: int) -> str | None:
        """Return the function that holds a program counter."""
        index = bisect_right(self.spans, (pc, 1 << 64, "")) - 1
        return self.spans[index][2] if index >= 0 and pc < self.spans[index][1] else None


@dataclass
class _Dump:
    """One file while it is read."""

    path: str
    file: BinaryIO
    sections: NDArray[Any] = field(init=False)
    strings: bytes = b""
    size: int = 0
    entries: int = 0

    def read(self) -> CoreDump:
        self.sections = self._sections()
        self.strings = self._string_table()
        devices = tuple(self._devices())
        functions = self._functions()
        kernels = tuple(self._kernels(functions))
        faults = sorted(self._faults(functions, kernels), key=_order)
        driver, time = self._meta()
        return CoreDump(self.path, devices, kernels, tuple(faults), driver, time)

    def _sections(self) -> NDArray[Any]:
        """Return the section headers, one row each."""
        import numpy as np
        from elftools.common.exceptions import ELFError
        from elftools.construct.core import ConstructError

        if self.file.read(4) != b"\x7fELF":
            raise CoreDumpError(self.path, "not-elf", "is no ELF file, so no CUDA core dump")
        self.file.seek(0)
        head = self.file.read(64)
        if len(head) < 64:
            raise CoreDumpError(self.path, "cut", "ends inside its ELF header")
        try:
            from elftools.elf.elffile import ELFFile

            elf = ELFFile(io.BytesIO(head + bytes(64)))
            header = elf.header
        except (ELFError, ConstructError, ValueError) as error:
            raise CoreDumpError(self.path, "cut", f"has a damaged ELF header: {error}") from error
        if header["e_machine"] not in ("EM_CUDA", _CUDA_MACHINE):
            kind = "host-core" if header["e_type"] == "ET_CORE" else "other"
            what = "a core dump of a CPU process" if kind == "host-core" else "an ELF file"
            raise CoreDumpError(self.path, kind, f"is {what}, not a CUDA core dump")
        at, count = header["e_shoff"], header["e_shnum"]
        self.size = size = self.file.seek(0, io.SEEK_END)
        if count == 0 and at:  # more sections than the header can count: the first section's size tells
            self.file.seek(at)
            first = self.file.read(_HEADER.size)
            count = _HEADER.unpack(first)[5] if len(first) == _HEADER.size else 0
        if not at or at + count * _HEADER.size > size or not 0 < count <= MAX_SECTIONS:
            raise CoreDumpError(self.path, "cut", f"is cut off: its section table should stand at byte {at} of {size}")
        self.file.seek(at)
        names = ("name", "type", "flags", "addr", "offset", "size", "link", "info", "align", "entsize")
        formats = ("<u4", "<u4", "<u8", "<u8", "<u8", "<u8", "<u4", "<u4", "<u8", "<u8")
        layout = np.dtype({"names": names, "formats": formats})
        return np.frombuffer(self.file.read(count * _HEADER.size), layout)

    def _of(self, kind: int) -> Iterator[tuple[int, Any]]:
        """Yield (number, header) of the sections of a kind."""
        import numpy as np

        for number in np.flatnonzero(self.sections["type"] == kind):
            yield int(number), self.sections[number]

    def _content(self, header: Any, limit: int = MAX_TABLE) -> bytes:
        if int(header["size"]) > limit or int(header["offset"]) > self.size:
            return b""
        self.file.seek(int(header["offset"]))
        return self.file.read(int(header["size"]))

    def _entries(self, header: Any, layout: struct.Struct) -> list[tuple[Any, ...]]:
        """Return the beginnings of a table's entries, as `layout` reads them."""
        data, stride = self._content(header), int(header["entsize"]) or layout.size
        if stride < layout.size:
            return []
        self.entries += len(data) // stride
        if self.entries > MAX_ENTRIES:
            raise CoreDumpError(self.path, "other", f"claims more than {MAX_ENTRIES:,} table entries: it is damaged")
        return [layout.unpack_from(data, at) for at in range(0, len(data) - stride + 1, stride)]

    def _string_table(self) -> bytes:
        tables = [header for _, header in self._of(3)]
        return self._content(tables[0], 1 << 20) if tables else b""

    def _string(self, offset: int) -> str:
        end = self.strings.find(b"\0", offset)
        return self.strings[offset : end if end >= 0 else None][:MAX_NAME].decode("utf-8", "replace")

    def _meta(self) -> tuple[str, int | None]:
        for _, header in self._of(_META):
            for _, major, minor, _, _, _, time in self._entries(header, struct.Struct("<Q6I")):
                return (f"{major}.{minor}" if major else ""), time or None
        return "", None

    def _devices(self) -> Iterator[Device]:
        for _, header in self._of(_DEVICES):
            for name, _, sm, index, _, _, sms in self._entries(header, struct.Struct("<3Q4I")):
                yield Device(index, self._string(name), self._string(sm), sms)

    def _functions(self) -> _Functions:
        """Return the functions of every module that was loaded, by the address at which the GPU had them."""
        spans = [span for _, header in self._of(_RELOCATED) for span in _symbols(self._content(header, MAX_IMAGE))]
        return _Functions(tuple(sorted(spans)))

    def _kernels(self, functions: _Functions) -> Iterator[Kernel]:
        layout = struct.Struct("<7Q12I")
        for _, header in self._of(_GRIDS):
            for entry in self._entries(header, layout):
                grid_id, _, _, start = entry[:4]
                numbers = entry[7:]
                yield Kernel(
                    int(header["info"]),
                    grid_id,
                    functions.at(start),
                    start,
                    (numbers[4], numbers[5], numbers[6]),
                    (numbers[7], numbers[8], numbers[9]),
                    bool(numbers[10]),
                )

    def _faults(self, functions: _Functions, kernels: tuple[Kernel, ...]) -> Iterator[Fault]:
        """Yield the exceptions of lanes and warps, and of SMs whose warps were gone when they were reported."""
        blocks = self._places(_BLOCKS, struct.Struct("<Q3I"))
        warps = self._places(_WARPS, struct.Struct("<Q6I"))
        by_grid = {(one.device, one.grid_id): one for one in kernels}
        told: set[tuple[int, int]] = set()
        sms = self._places(_SMS, struct.Struct("<I"))
        for _, header in self._of(_LANES):
            lanes = [lane for lane in self._entries(header, struct.Struct("<2Q8I")) if lane[6]]
            warp = warps.get((int(header["link"]), int(header["info"])))
            if not warp:
                continue
            (pc, number, _, _, _, valid, _), above = warp[0], warp[1]
            block = blocks.get(above)
            sm = sms.get(block[1]) if block else None
            if not lanes or block is None or sm is None:
                continue
            device = sm[1][1]
            kernel = by_grid.get((device, block[0][0]))
            at = pc if valid else lanes[0][0]
            told.add((device, sm[0][0]))
            yield Fault(
                device, lanes[0][6], at, functions.at(at), kernel, sm[0][0], number, block[0][1:4], lanes[0][3:6],
                len(lanes),
            )  # fmt: skip
        yield from self._silent(functions, kernels, told)

    def _silent(
        self, functions: _Functions, kernels: tuple[Kernel, ...], told: set[tuple[int, int]]
    ) -> Iterator[Fault]:
        """Yield the exceptions that only an SM remembers (drivers of 555 and later write them)."""
        layout = struct.Struct("<4IQ")
        for _, header in self._of(_SMS):
            device = int(header["info"])
            for sm, _, code, valid, pc in self._entries(header, layout):
                if not code or (device, sm) in told:
                    continue
                function = functions.at(pc) if valid else None
                own = [one for one in kernels if one.device == device]
                named = [one for one in own if function is not None and one.name == function]
                kernel = (named or own)[0] if len(named or own) == 1 else None
                yield Fault(device, code, pc if valid else None, function, kernel, sm)

    def _places(self, kind: int, layout: struct.Struct) -> dict[tuple[int, int], tuple[Any, tuple[int, int]]]:
        """Return the entries of all tables of a kind by (section, index), each with the entry it belongs to."""
        return {
            (number, index): (entry, (int(header["link"]), int(header["info"])))
            for number, header in self._of(kind)
            for index, entry in enumerate(self._entries(header, layout))
        }


def _symbols(image: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, name) of the functions of a module that were loaded; nothing for a damaged image.

    The symbol tables are read as arrays: a library of torch has tens of thousands of symbols.
    """
    import numpy as np
    from elftools.common.exceptions import ELFError
    from elftools.construct.core import ConstructError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    layout = np.dtype(
        [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("at", "<u2"), ("value", "<u8"), ("size", "<u8")]
    )
    try:
        for section in ELFFile(io.BytesIO(image)).iter_sections():
            if not isinstance(section, SymbolTableSection):
                continue
            data, names = section.data(), section.stringtable.data()
            symbols = np.frombuffer(data[: len(data) // layout.itemsize * layout.itemsize], layout)
            loaded = symbols[(symbols["info"] & 15 == _FUNCTION) & (symbols["value"] > 0) & (symbols["size"] > 0)]
            for offset, start, size in zip(*(loaded[part].tolist() for part in ("name", "value", "size")), strict=True):
                end = names.find(b"\0", offset)
                name = names[offset : end if end >= 0 else None][:MAX_NAME].decode("utf-8", "replace")
                yield start, start + size, name
    except (ELFError, ConstructError, ArithmeticError, LookupError, MemoryError, OSError, TypeError, ValueError):
        return
    except (AttributeError, AssertionError, struct.error):  # pyelftools checks little, and fails wherever it is misled
        return


def _order(fault: Fault) -> tuple[bool, int, int, int]:
    """Order faults by how much they tell: those with a block first, then by device, SM and warp."""
    return fault.block is None, fault.device, fault.sm, fault.warp or 0


def demangled(name: str) -> str:
    """Return a C++ name as it is written in source; the name itself where it is none or nothing can demangle it."""
    if not name.startswith("_Z"):
        return name
    try:
        import cxxfilt
    except (ImportError, OSError):  # the library looks for the C++ runtime when it is imported
        return name
    try:
        return str(cxxfilt.demangle(name))
    except (cxxfilt.Error, ValueError, UnicodeError):
        return name
