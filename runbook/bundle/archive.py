"""Packs members into one file, and takes them out of one that anybody may have made.

Everything stays in memory; nothing is ever unpacked to a disk. Invariants: equal members give equal bytes; what is read
is bounded before it is read: the file, the list of its members, each member, and all of them; a name is one of a
bundle's own, so that none leads anywhere.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO

from runbook.bundle.form import (
    BUNDLE_BYTES,
    DENSE_BYTES,
    DENSEST,
    MANIFEST,
    MEMBERS,
    NAME,
    WHOLE_BYTES,
    limit_of,
)  # fmt: skip
from runbook.errors import EvidenceError, UsageError
from runbook.text import sanitise

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The one time that every member carries: the first that the format can say."""
_MODE = stat.S_IFREG | 0o600
_BEGIN, _END = b"PK\x03\x04", b"PK\x05\x06"
_FOR_64 = b"PK\x06\x07"
_END_BYTES = 22
_LIST_BYTES = MEMBERS * 200
"""Bytes that the list of all members takes at most: each takes 46 and its name."""
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,  # a place before the begin, a name in a wrong encoding
    OverflowError,
)
"""What `zipfile` raises for an archive that somebody changed."""
_FRESH = "ask for it again; a bundle is made with slime-runbook export SESSION --format bundle"


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of members, in their order."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # else the mode below means nothing
            info.external_attr = _MODE << 16
            archive.writestr(info, content)
    return made.getvalue()


def is_bundle(path: str) -> bool:
    """Return whether a file begins as a bundle does; cheap, never raises."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            head = file.read(64)
    except (OSError, ValueError):
        return False
    return head.startswith(_BEGIN) and head[30:].startswith(MANIFEST.encode())


def unpack(path: str) -> dict[str, bytes]:
    """Return the members of a bundle by name, in order.

    Raises UsageError when there is no such file, EvidenceError naming file, member and remedy when it is no bundle,
    is damaged, or is larger than a bundle can be.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{path}: this is no file", "give the .zip that an export wrote")
            if status.st_size > BUNDLE_BYTES:
                raise _too_large(path, "", status.st_size, BUNDLE_BYTES)
            content = file.read(BUNDLE_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is no OSError
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{sanitise(path)}: {why}", "give the path of a bundle, a .zip") from error
    count = _check_end(path, content)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            if len(infos) != count:
                raise damaged(path, f"its list has {len(infos):,} members, and its end says {count:,}")
            _check(path, infos)
            return {info.filename: _read(path, archive, info) for info in infos}
    except _DAMAGED as error:
        raise damaged(path, str(error)) from error


def damaged(path: str, why: str) -> EvidenceError:
    """Return the error for a file that is no bundle, or no longer one."""
    return EvidenceError(f"{path}: this bundle is damaged: {sanitise(why)}", _FRESH)


def refused(path: str, name: str, why: str) -> EvidenceError:
    """Return the error for a member that no bundle has."""
    return EvidenceError(f"{path}: {sanitise(name, 80)}: {why}", f"do not trust this file; {_FRESH}")


def _too_large(path: str, name: str, size: int, limit: int) -> EvidenceError:
    member = f"{sanitise(name, 80)}: " if name else ""
    return EvidenceError(f"{path}: {member}{size:,} bytes, and a bundle has at most {limit:,} there", _FRESH)


def _too_many(path: str, count: int) -> EvidenceError:
    return EvidenceError(f"{path}: {count:,} members, and a bundle has at most {MEMBERS:,}", _FRESH)


def _check_end(path: str, content: bytes) -> int:
    """Refuse what is no archive as `pack` makes them: its list of members stands at the end, and is short.

    Returns how many members there are, by the archive's own end.
    """
    if not content.startswith((_BEGIN, _END)):
        raise EvidenceError(f"{path}: this is no bundle", _FRESH)
    end = content[-_END_BYTES:]
    if len(end) < _END_BYTES or not end.startswith(_END):
        raise damaged(path, "its end is missing or something follows it")
    if content[-_END_BYTES - 20 :].startswith(_FOR_64):
        raise damaged(path, "it is written as only very large archives are")
    count, size = struct.unpack("<10xHL6x", end)
    if count > MEMBERS:
        raise _too_many(path, count)
    if size > _LIST_BYTES:
        raise _too_large(path, "list of members", size, _LIST_BYTES)
    return int(count)


def _check(path: str, infos: list[zipfile.ZipInfo]) -> None:
    """Refuse members that no bundle has, before any of them is read."""
    if len(infos) > MEMBERS:
        raise _too_many(path, len(infos))
    names: set[str] = set()
    for info in infos:
        _check_name(path, info, names)
        name, mode, limit = info.filename, info.external_attr >> 16, limit_of(info.filename)
        if info.flag_bits & 0x1:
            raise refused(path, name, "this member is encrypted")
        if info.is_dir() or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
            raise refused(path, name, "this member is no regular file")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise refused(path, name, "this member is packed in an unusual way")
        if info.file_size > limit:
            raise _too_large(path, name, info.file_size, limit)
        if info.file_size > DENSE_BYTES and info.file_size > DENSEST * info.compress_size:
            raise refused(path, name, f"{info.file_size:,} bytes are packed into {info.compress_size:,}")
    whole = sum(info.file_size for info in infos)
    if whole > WHOLE_BYTES:
        raise _too_large(path, "all members together", whole, WHOLE_BYTES)


def _check_name(path: str, info: zipfile.ZipInfo, names: set[str]) -> None:
    """Refuse a name that is none of a bundle's, or is among `names`; add it to these."""
    name = info.filename
    if NAME.fullmatch(name) is None or info.orig_filename != name or not limit_of(name):
        raise refused(path, info.orig_filename, "a bundle has no member of this name")
    if name in names:
        raise refused(path, name, "this member is there twice")
    names.add(name)


def _read(path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return a member, which is what it was said to be or an error."""
    with archive.open(info) as file:
        content = _up_to(file, info.file_size + 1)
    if len(content) != info.file_size:
        raise damaged(path, f"{info.filename} has {len(content):,} bytes instead of {info.file_size:,}")
    return content


def _up_to(file: IO[bytes], count: int) -> bytes:
    parts: list[bytes] = []
    while count > 0 and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
