"""Open what torch.save wrote (zip, or the stream of torch before 1.6) or a plain pickle, without torch.

slime's dumps and Megatron's `common.pt` are such files. Invariants: nothing is executed (see `safe_pickle`), address
space is limited by the file's own size, tensors stay in the file until they are read, and a file that cannot be
read is told apart by `Fault`. Only regular files are opened, so a pipe or device cannot hang the reader.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any, BinaryIO

from probes.readers.dump_errors import DumpError, Fault
from probes.readers.safe_pickle import RefusedGlobalError, limited_memory, load, memory_budget
from probes.readers.torch_tensors import TORCH_GLOBALS, DType, Storage

ZIP_MAGIC = b"PK\x03\x04"
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
"""First pickled object of torch.save's format before 1.6 (torch/serialization.py, MAGIC_NUMBER)."""


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


def read_torch_file(path: str, callable_packages: frozenset[str] = frozenset()) -> Loaded:
    """Read a torch zip, a legacy torch file or a plain pickle.

    callable_packages: packages whose names may be called (enums in Megatron's `common.pt`); they give inert Records.
    Raises DumpError naming the fault; the process may grow by `memory_budget(size)` bytes meanwhile.
    """
    size, opaque = regular_file_size(path), set[str]()
    try:
        with limited_memory(memory_budget(size)), open(path, "rb") as file:
            root, container = _read(_Source(path, file, size, opaque, callable_packages))
    except Exception as error:
        raise describe_fault(error, path, size) from error
    return Loaded(path, root, container, tuple(sorted(opaque)))


def describe_fault(error: Exception, path: str, size: int) -> DumpError:
    """Return the DumpError that says what an exception raised by an unpickler means for the file."""
    if isinstance(error, DumpError):
        return error
    if isinstance(error, RefusedGlobalError):
        what = f"the pickle wants to use {error.name}, which is not plain data; refused, nothing was run"
        return DumpError(Fault.UNSAFE, path, what, error.name)
    if isinstance(error, MemoryError):
        what = f"reading needs more than {memory_budget(size) >> 20} MiB for a file of {size} bytes; refused"
        return DumpError(Fault.UNSAFE, path, what)
    if isinstance(error, OSError):
        return DumpError(Fault.UNREADABLE, path, f"cannot be read ({error})")
    if isinstance(error, EOFError) or "truncated" in str(error):
        return DumpError(Fault.TRUNCATED, path, "the pickle inside ends early")
    return DumpError(Fault.FOREIGN, path, f"damaged pickle ({type(error).__name__})")


def _read(source: _Source) -> tuple[Any, str]:
    head = source.file.read(4)
    source.file.seek(0)
    if head == ZIP_MAGIC:
        return _read_zip(source), "zip"
    if head[:1] == b"\x80":
        root = source.load(source.file)
        return (_read_legacy(source), "legacy") if root == LEGACY_MAGIC else (root, "pickle")
    raise DumpError(Fault.FOREIGN, source.path, f"neither a torch file nor a pickle (begins with {head.hex(' ')})")


def _read_zip(source: _Source) -> Any:
    path, file, size = source.path, source.file, source.size
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        what = f"the zip has no end record after {size} bytes: it was cut off while being written or copied"
        raise DumpError(Fault.TRUNCATED, path, what) from error
    entries = {entry.filename: entry for entry in archive.infolist()}
    pickles = [name for name in entries if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise DumpError(Fault.FOREIGN, path, "a zip, but not one that torch.save wrote (no data.pkl)")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries.values()):
        raise DumpError(Fault.UNSAFE, path, "compressed entries, which torch.save never writes; refused")
    if sum(entry.file_size for entry in entries.values()) > size:
        raise DumpError(Fault.UNSAFE, path, "the entries claim more bytes than the file has; refused")
    prefix = pickles[0].removesuffix("data.pkl")
    order = entries.get(prefix + "byteorder")
    if order is not None and archive.read(order) == b"big":
        raise DumpError(Fault.FOREIGN, path, "written on a big-endian machine")
    known: dict[str, Storage] = {}

    def storage(pid: Any) -> Storage:
        dtype, key, _ = _storage_id(pid)
        if key not in known:
            entry = entries[f"{prefix}data/{key}"]
            file.seek(entry.header_offset + 26)
            name, extra = struct.unpack("<HH", file.read(4))
            known[key] = Storage(path, dtype, entry.header_offset + 30 + name + extra, entry.file_size)
        return known[key]

    return source.load(archive.read(pickles[0]), storage)


def _storage_id(pid: Any) -> tuple[DType, str, int]:
    """Return dtype, key and element count of torch's persistent id ("storage", type, key, location, count, …)."""
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], DType):
        raise UnpicklingError("an unknown kind of persistent id")
    return pid[1], str(pid[2]), int(pid[4])


def _read_legacy(source: _Source) -> Any:
    """Read the rest of a legacy file: protocol, system, data, keys, then for each key 8 bytes and its elements."""
    known: dict[str, Storage] = {}

    def storage(pid: Any) -> Storage:
        dtype, key, count = _storage_id(pid)
        return known.setdefault(key, Storage(source.path, dtype, 0, count * dtype.size))

    source.load(source.file)
    source.load(source.file)
    root = source.load(source.file, storage)
    keys = source.load(source.file)
    place = source.file.tell()
    for key in keys:
        place += 8
        known[str(key)].place.append(place)
        place += known[str(key)].nbytes
    if place > source.size:
        raise DumpError(Fault.TRUNCATED, source.path, f"needs {place} bytes, has {source.size}")
    return root
