"""Understand what torch.save wrote (zip, or the stream of torch before 1.6) or a plain pickle, without torch.

slime's dumps and Megatron's `common.pt` are such files. Invariants: nothing is executed (see `safe_pickle`), nothing is
unpacked, tensors stay in the file until they are read, and a file that cannot be read is told apart by `Fault`. Only
regular files are opened, so a pipe or device cannot hang the reader. `bounded_read.read_torch_file` calls this in a
child; nothing here limits memory by itself.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any, BinaryIO

from probes.readers.dump_errors import DumpError, Fault
from probes.readers.foreign_files import recognise
from probes.readers.safe_pickle import RefusedGlobalError, load, memory_budget
from probes.readers.torch_tensors import TORCH_GLOBALS, DType, Storage

ZIP_MAGIC = b"PK\x03\x04"
HEAD = 4096
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
"""First pickled object of torch.save's format before 1.6 (torch/serialization.py, MAGIC_NUMBER)."""
ENCRYPTED = 1
"""Bit of a zip entry's flags (APPNOTE 4.4.4)."""
_ATTACKS = frozenset({
    "os", "posix", "nt", "subprocess", "sys", "pty", "socket", "shutil", "runpy", "importlib", "imp", "pickle",
    "_pickle", "cPickle", "marshal", "ctypes", "_ctypes", "code", "codeop", "webbrowser", "multiprocessing",
    "asyncio", "_thread", "commands", "tempfile", "urllib", "http", "ftplib", "smtplib", "pip", "ensurepip",
    "timeit", "bdb", "pdb", "doctest", "operator", "_operator", "functools", "_functools", "types", "inspect",
    "copyreg", "atexit", "io", "_io",
})  # fmt: skip
"""Packages whose functions run, open, import or change something."""
_ATTACKING_BUILTINS = frozenset({
    "eval", "exec", "execfile", "compile", "open", "__import__", "getattr", "setattr", "delattr", "globals",
    "locals", "vars", "input", "breakpoint", "map", "filter", "apply", "type", "super", "classmethod", "memoryview",
})  # fmt: skip


@dataclass(frozen=True)
class Loaded:
    """A read file. container: "zip", "legacy" or "pickle". opaque: foreign classes whose objects are Records."""

    path: str
    root: Any
    container: str
    opaque: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Source:
    """An open file and how its pickles may be read."""

    path: str
    file: BinaryIO
    size: int
    opaque: set[str]
    callable_packages: frozenset[str]

    def load(self, data: BinaryIO | bytes, persistent: Callable[[Any], Any] | None = None) -> Any:
        return load(
            data,
            allowed=TORCH_GLOBALS,
            persistent=persistent,
            opaque=self.opaque,
            callable_packages=self.callable_packages,
        )


class _Member(io.RawIOBase):
    """The bytes of one stored member of a zip, with their checksum; spares a copy of the whole pickle."""

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        self._file, self._at, self._end, self.checksum = file.fileno(), start, start + length, 0

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def readinto(self, target: Any) -> int:
        """Fill `target` as far as the member goes."""
        got = os.pread(self._file, min(len(target), self._end - self._at), self._at)
        target[: len(got)] = got
        self._at += len(got)
        self.checksum = zlib.crc32(got, self.checksum)
        return len(got)


def regular_file_size(path: str) -> int:
    """Return the size of a regular file that is not empty; raise DumpError for anything else."""
    try:
        info = os.stat(path)
    except (OSError, ValueError) as error:
        raise DumpError(Fault.UNREADABLE, path, f"cannot be opened ({error})") from error
    if not stat.S_ISREG(info.st_mode):
        raise DumpError(Fault.UNREADABLE, path, "is not a regular file")
    if info.st_size == 0:
        raise DumpError(Fault.EMPTY, path, "the file has 0 bytes")
    return info.st_size


def read_open(file: BinaryIO, path: str, callable_packages: frozenset[str] = frozenset()) -> Loaded:
    """Read an open torch zip, legacy torch file or plain pickle, in this very process.

    callable_packages: packages whose names may be called (enums in Megatron's `common.pt`); they give inert Records.
    Raises DumpError naming the fault.
    """
    size, opaque = os.fstat(file.fileno()).st_size, set[str]()
    try:
        root, container = _read(_Source(path, file, size, opaque, callable_packages))
    except Exception as error:
        raise describe_fault(error, path, size) from error
    return Loaded(path, root, container, tuple(sorted(opaque)))


def describe_fault(error: Exception, path: str, size: int) -> DumpError:
    """Return the DumpError that says what an exception raised by an unpickler means for the file."""
    if isinstance(error, DumpError):
        return error
    if isinstance(error, RefusedGlobalError):
        return _refused(error.name, path)
    if isinstance(error, MemoryError):
        what = f"reading needs more than {memory_budget(size) >> 20} MiB for a file of {size} bytes; refused"
        return DumpError(Fault.UNSAFE, path, what, kind="memory")
    if isinstance(error, RecursionError):
        return DumpError(Fault.UNSAFE, path, "its data are nested too deep; refused", kind="bomb")
    if isinstance(error, OSError):
        return DumpError(Fault.UNREADABLE, path, f"cannot be read ({error})")
    cut = isinstance(error, EOFError) or "truncated" in str(error)
    what = "the pickle inside ends early" if cut else f"damaged pickle ({type(error).__name__})"
    return DumpError(Fault.TRUNCATED if cut else Fault.FOREIGN, path, what, kind="" if cut else "damaged")


def _refused(name: str, path: str) -> DumpError:
    if is_attack(name):
        what = f"the pickle wants to call {name}, as an attack does; refused, nothing was run"
        return DumpError(Fault.UNSAFE, path, what, name, "attack")
    what = f"the pickle wants to use {name}, which is not plain data; refused, nothing was run"
    return DumpError(Fault.UNSAFE, path, what, name, "class")


def is_attack(name: str) -> bool:
    """Return whether a dotted global is one that runs, opens or imports something: no data object needs it."""
    module, _, rest = name.partition(".")
    if module in ("builtins", "__builtin__"):
        return rest.split(".")[0] in _ATTACKING_BUILTINS
    if module in ("numpy", "torch"):
        return any(part in _ATTACKS or part in _ATTACKING_BUILTINS | {"load", "hub"} for part in rest.split("."))
    return module in _ATTACKS


def _read(source: _Source) -> tuple[Any, str]:
    head = source.file.read(HEAD)
    source.file.seek(0)
    if head[:4] == ZIP_MAGIC:
        return _read_zip(source), "zip"
    known = recognise(head, source.size)
    if known is not None and not (head[:1] == b"\x80" or known[0] == "pickle-0"):
        kind, words = known
        fault = Fault.TRUNCATED if kind == "zeros" else Fault.FOREIGN
        raise DumpError(fault, source.path, f"is {words}", kind=kind)
    if head[:1] == b"\x80" or known is not None:
        root = source.load(source.file)
        return (_read_legacy(source), "legacy") if root == LEGACY_MAGIC else (root, "pickle")
    what = f"neither a torch file nor a pickle (begins with {head[:4].hex(' ')})"
    raise DumpError(Fault.FOREIGN, source.path, what, kind="unknown")


def _read_zip(source: _Source) -> Any:
    path, file, size = source.path, source.file, source.size
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        what = f"the zip has no end record after {size} bytes: it was cut off while being written or copied"
        raise DumpError(Fault.TRUNCATED, path, what) from error
    entries = {entry.filename: entry for entry in archive.infolist()}
    prefix = _checked(archive, entries, path, size)
    order = entries.get(prefix + "byteorder")
    if order is not None and order.file_size < HEAD and archive.read(order) == b"big":
        raise DumpError(Fault.FOREIGN, path, "written on a big-endian machine", kind="unknown")
    known: dict[str, Storage] = {}

    def storage(pid: Any) -> Storage:
        dtype, key, _ = _storage_id(pid)
        if key not in known:
            entry = entries[f"{prefix}data/{key}"]
            known[key] = Storage(path, dtype, _start(source, archive, entry), entry.file_size)
        return known[key]

    entry = entries[prefix + "data.pkl"]
    member = _Member(file, _start(source, archive, entry), entry.file_size)
    with io.BufferedReader(member, 1 << 20) as data:
        root = source.load(data, storage)
        while data.read(1 << 20):
            pass
    if member.checksum != entry.CRC:
        raise DumpError(Fault.FOREIGN, path, "its checksum does not match: bytes changed after writing", kind="damaged")
    return root


def _checked(archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], path: str, size: int) -> str:
    """Return the folder inside a zip that torch.save wrote; raise DumpError for what it never writes."""
    if any(entry.flag_bits & ENCRYPTED for entry in entries.values()):
        raise DumpError(Fault.FOREIGN, path, "an encrypted zip, which torch.save never writes", kind="encrypted")
    pickles = [name for name in entries if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(pickles) != 1:
        kind, words = _other_zip(entries)
        raise DumpError(Fault.FOREIGN, path, f"a zip, but not one that torch.save wrote ({words})", kind=kind)
    if len(entries) != len(archive.infolist()):
        raise DumpError(Fault.UNSAFE, path, "two members of one name, which torch.save never writes", kind="forged")
    if any(name.startswith("/") or ".." in name.split("/") or "\\" in name for name in entries):
        raise DumpError(Fault.UNSAFE, path, "member names that lead out of the archive; refused", kind="forged")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries.values()):
        raise DumpError(Fault.UNSAFE, path, "compressed entries, which torch.save never writes; refused", kind="forged")
    if sum(entry.file_size for entry in entries.values()) > size:
        raise DumpError(Fault.UNSAFE, path, "the entries claim more bytes than the file has; refused", kind="forged")
    return pickles[0].removesuffix("data.pkl")


def _other_zip(entries: dict[str, zipfile.ZipInfo]) -> tuple[str, str]:
    """Return kind and words for a zip without one `data.pkl`."""
    names = [name.rsplit("/", 1)[-1] for name in entries]
    if any(name.endswith(".npy") for name in names):
        return "numpy", "a numpy .npz file"
    if "xl" in {name.split("/")[0] for name in entries}:
        return "table", "a spreadsheet"
    return "zip", "several data.pkl" if names.count("data.pkl") > 1 else "no data.pkl"


def _start(source: _Source, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """Return where a member's bytes begin; its own header must say what the directory says."""
    source.file.seek(entry.header_offset)
    header = source.file.read(30)
    if len(header) == 30:
        name_length, extra = struct.unpack("<HH", header[26:])
        name = source.file.read(name_length)
        method, start = int.from_bytes(header[8:10], "little"), entry.header_offset + 30 + name_length + extra
        same = header[:4] == ZIP_MAGIC and name == _spelled(entry) and not method
        if same and start + entry.file_size <= archive.start_dir and entry.compress_size == entry.file_size:
            return int(start)
    raise DumpError(Fault.UNSAFE, source.path, "a member's header contradicts the zip's directory", kind="forged")


def _spelled(entry: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member's name as the directory holds them (APPNOTE 4.4.4, bit 11)."""
    return entry.orig_filename.encode("utf-8" if entry.flag_bits & 0x800 else "cp437")


def _storage_id(pid: Any) -> tuple[DType, str, int]:
    """Return dtype, key and element count of torch's persistent id ("storage", type, key, location, count, …)."""
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], DType):
        raise UnpicklingError("an unknown kind of persistent id")
    if type(pid[2]) not in (str, int) or type(pid[4]) is not int or pid[4] < 0:
        raise UnpicklingError("a storage without a key or length")
    return pid[1], str(pid[2]), pid[4]


def _read_legacy(source: _Source) -> Any:
    """Read the rest of a legacy file: protocol, system, data, keys, then for each key 8 bytes and its elements."""
    known: dict[str, Storage] = {}

    def storage(pid: Any) -> Storage:
        dtype, key, count = _storage_id(pid)
        return known.setdefault(key, Storage(source.path, dtype, 0, count * dtype.size, []))

    source.load(source.file)
    source.load(source.file)
    root = source.load(source.file, storage)
    keys = source.load(source.file)
    place = source.file.tell()
    for key in keys if isinstance(keys, list) else ():
        place += 8
        home = known[str(key)]
        if home.place is not None and not home.place:
            home.place.append(place)
        place += home.nbytes
    if place > source.size:
        raise DumpError(Fault.TRUNCATED, source.path, f"needs {place} bytes, has {source.size}")
    return root
