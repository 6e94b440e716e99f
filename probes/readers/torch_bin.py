"""What can be told of a `.bin` weight file (torch.save of a state dict) without unpickling it.

Such a file is a zip of `<name>/data.pkl` and one stored entry for each storage (torch/serialization.py); before torch
1.6 it was a bare pickle stream, of which only the beginning can be told. Invariants: the zip directory is all that is
read, names and shapes of tensors are in the pickle and stay unknown.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass

from probes.readers.safetensors_header import Fault, HeaderFault
from runbook.text import Text, sanitise

_HEAD = 64


@dataclass(frozen=True)
class BinFile:
    """A `.bin` file. container: "zip", "legacy" or "". storages, nbytes: of its tensors, 0 when not a zip."""

    path: str
    size: int
    container: str = ""
    storages: int = 0
    nbytes: int = 0
    faults: tuple[HeaderFault, ...] = ()


def read_bin(path: str) -> BinFile:
    """Read a file's zip directory. Never raises: what goes wrong is a fault of the file."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            if head.startswith(b"PK\x03\x04"):
                return _zip(path, size, zipfile.ZipFile(file))
    except zipfile.BadZipFile:
        en = f"is cut off: a zip of {size} bytes without its directory at the end"
        return _faulty(path, size, Fault.TRUNCATED, en, f"被截断：{size} 字节的 zip，末尾没有目录")
    except (OSError, ValueError, NotImplementedError) as error:
        what = sanitise(str(error), 120)
        return _faulty(path, 0, Fault.UNREADABLE, f"cannot be read ({what})", f"无法读取（{what}）")
    if head[:1] == b"\x80":
        return BinFile(path, size, "legacy")
    return _faulty(path, size, *_other(head))


def _other(head: bytes) -> tuple[Fault, str, str]:
    """Return what a file is that begins neither as a zip nor as a pickle."""
    if not head:
        return Fault.EMPTY, "is empty (0 bytes)", "是空文件（0 字节）"
    if head.startswith(b"version https://git-lfs"):
        return Fault.LFS_POINTER, "is a git-LFS pointer, not the file itself", "是 git-LFS 指针，而不是文件本身"
    return Fault.FOREIGN, "is not a file of torch.save", "不是 torch.save 写出的文件"


def _faulty(path: str, size: int, fault: Fault, en: str, zh: str) -> BinFile:
    return BinFile(path, size, faults=(HeaderFault(fault, Text(en, zh)),))


def _zip(path: str, size: int, archive: zipfile.ZipFile) -> BinFile:
    entries = archive.infolist()
    if not any(entry.filename.count("/") == 1 and entry.filename.endswith("/data.pkl") for entry in entries):
        return _faulty(
            path, size, Fault.FOREIGN, "is a zip that torch.save did not write", "是 zip，但不是 torch.save 写出的"
        )
    storages = [entry for entry in entries if "/data/" in entry.filename]
    return BinFile(path, size, "zip", len(storages), sum(entry.file_size for entry in storages))
