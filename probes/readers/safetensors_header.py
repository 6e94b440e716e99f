"""Reads the header of a safetensors file and checks it against itself and against the file's size.

Format (safetensors README): 8 bytes little-endian header length, a JSON object {name: {dtype, shape, data_offsets}}
with an optional `__metadata__`, then the data. The library refuses holes, overlaps and a data part that is longer or
shorter than the offsets say (safetensors/src/tensor.rs, `Metadata::validate`), so each of these is a fault here.
Invariants: no tensor is read, at most MAX_HEADER bytes are, a hostile header costs no more than its own parse, and
what is not a safetensors file is named as what it is.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any

import msgspec

from runbook.text import Text, sanitise

MAX_HEADER = 100_000_000
"""Bytes of a header that the library accepts (safetensors/src/tensor.rs, MAX_HEADER_SIZE)."""

FAULTS_KEPT = 20
"""Faults of one file that are described; a file with more is broken as a whole."""

BITS = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
}
"""Bits of one element by dtype (safetensors/src/tensor.rs, `Dtype`)."""

MAX_DIMENSIONS = 64
"""Dimensions of a tensor that are believed; torch stops at 64."""

_LFS = b"version https://git-lfs"

_HEAD = 512
_SHOWN = 80
"""Characters of a tensor's name in a fault."""

_FOREIGN = (
    (_LFS, Text("a git-LFS pointer, not the file itself", "git-LFS 指针，而不是文件本身")),
    (
        b"PK\x03\x04",
        Text("a zip (torch.save writes such files), not safetensors", "zip（torch.save 的格式），不是 safetensors"),
    ),
    (b"\x1f\x8b", Text("a gzip file, not safetensors", "gzip 文件，不是 safetensors")),
    (b"\x28\xb5\x2f\xfd", Text("a zstd file, not safetensors", "zstd 文件，不是 safetensors")),
    (b"\x80\x02", Text("a pickle, not safetensors", "pickle，不是 safetensors")),
    (b"GGUF", Text("a GGUF file, not safetensors", "GGUF 文件，不是 safetensors")),
)


class Fault(str, Enum):
    """What is wrong with one file."""

    UNREADABLE = "unreadable"
    EMPTY = "empty"
    LFS_POINTER = "lfs-pointer"
    FOREIGN = "not-safetensors"
    TRUNCATED = "truncated"
    TRAILING = "trailing-bytes"
    HEADER = "bad-header"
    OFFSETS = "bad-offsets"


class Entry(msgspec.Struct, gc=False):
    """One tensor: dtype as the file names it, shape, and its bytes [start, end) behind the header."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    data_offsets: tuple[int, int] = (-1, -1)


@dataclass(frozen=True)
class HeaderFault:
    """One fault, in words that end a sentence beginning with the file's name."""

    fault: Fault
    words: Text


@dataclass(frozen=True)
class Header:
    """A file's header.

    size: bytes of the file. data: where the data part begins, 0 when there is no header. tensors: in file order;
    empty when the header cannot be read.
    """

    path: str
    size: int
    data: int
    tensors: dict[str, Entry]
    faults: tuple[HeaderFault, ...] = ()

    @property
    def readable(self) -> bool:
        """Return whether the names and shapes are known, whatever is wrong with the data behind them."""
        return self.data > 0


_decode = msgspec.json.Decoder(dict[str, Entry]).decode


def read_header(path: str) -> Header:
    """Read and check one file's header. Never raises: what goes wrong is a fault of the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        return _failed(
            path, 0, Fault.UNREADABLE, f"cannot be opened ({error.strerror})", f"无法打开（{error.strerror}）"
        )
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return _failed(path, 0, Fault.FOREIGN, "is not a regular file", "不是普通文件")
        return _read(path, descriptor, status.st_size)
    except OSError as error:
        return _failed(path, 0, Fault.UNREADABLE, f"cannot be read ({error.strerror})", f"无法读取（{error.strerror}）")
    finally:
        os.close(descriptor)


def _failed(path: str, size: int, fault: Fault, en: str, zh: str) -> Header:
    return Header(path, size, 0, {}, (HeaderFault(fault, Text(sanitise(en, 300), sanitise(zh, 300))),))


def _read(path: str, descriptor: int, size: int) -> Header:
    head = os.pread(descriptor, _HEAD, 0)
    length = int.from_bytes(head[:8], "little")
    fault = _not_a_header(head, size, length)
    if fault is not None:
        return Header(path, size, 0, {}, (fault,))
    raw = head[8 : 8 + length] if 8 + length <= len(head) else os.pread(descriptor, length, 8)
    if len(raw) < length:
        return _failed(path, size, Fault.TRUNCATED, "shrank while it was read", "读取过程中变短了")
    tensors, faults = _parse(raw)
    if tensors is None:
        return Header(path, size, 0, {}, tuple(faults))
    faults += _check(tensors, size - 8 - length)
    return Header(path, size, 8 + length, tensors, tuple(faults[:FAULTS_KEPT]))


def _not_a_header(head: bytes, size: int, length: int) -> HeaderFault | None:
    """Return why the first bytes do not begin a whole header; `length` is what they say a header has."""
    foreign = _foreign(head)
    if not head:
        fault, words = Fault.EMPTY, Text("is empty (0 bytes)", "是空文件（0 字节）")
    elif foreign is not None:
        fault = Fault.LFS_POINTER if head.startswith(_LFS) else Fault.FOREIGN
        words = Text(f"is {foreign.en} ({size} bytes)", f"是 {foreign.zh}（{size} 字节）")
    elif len(head) < 8:
        fault, words = Fault.TRUNCATED, Text(f"has only {size} bytes", f"只有 {size} 字节")
    elif not head.strip(b"\0"):
        en = f"begins with zeros: its space ({size} bytes) was reserved and never written"
        fault, words = Fault.TRUNCATED, Text(en, f"开头全是零：空间（{size} 字节）已预留但没有写入")
    elif length > MAX_HEADER or length < 2 or head[8:9] not in (b"{", b""):
        en = f"is not a safetensors file: its first 8 bytes would mean a header of {length} bytes"
        fault, words = Fault.FOREIGN, Text(en, f"不是 safetensors 文件：前 8 字节表示 header 有 {length} 字节")
    elif 8 + length > size:
        en = f"is cut off inside its header: {size} bytes, and the header alone needs {8 + length}"
        fault = Fault.TRUNCATED
        words = Text(en, f"在 header 内被截断：共 {size} 字节，仅 header 就要 {8 + length} 字节")
    else:
        return None
    return HeaderFault(fault, words)


def _foreign(head: bytes) -> Text | None:
    """Return what a file is when its first bytes are those of something else; a header always begins with a brace."""
    if head[8:9] == b"{":
        return None
    for magic, words in _FOREIGN:
        if head.startswith(magic):
            return words
    if head.lstrip()[:1] == b"<":
        return Text("a page of HTML or XML, such as a failed download leaves", "HTML/XML 页面，多为下载失败留下的")
    if len(head) >= 16 and all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head):
        begin = sanitise(head, 60)
        return Text(f"text that begins with {begin!r}", f"以 {begin!r} 开头的文本")
    return None


def _parse(raw: bytes) -> tuple[dict[str, Entry] | None, list[HeaderFault]]:
    """Return the tensors; None with the reason when the header as a whole cannot be used."""
    try:
        entries = _decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError):
        return _parse_slowly(raw)
    entries.pop("__metadata__", None)
    if raw.count(b'"data_offsets"') != len(entries) or any(entry.data_offsets[0] < 0 for entry in entries.values()):
        return _parse_slowly(raw)
    return entries, []


def _parse_slowly(raw: bytes) -> tuple[dict[str, Entry] | None, list[HeaderFault]]:
    """Parse a header that is not as the library writes it, to say what is wrong with it."""
    faults: list[HeaderFault] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            twice = Counter(name for name, _ in items).most_common(1)[0][0]
            faults.append(_bad(Fault.HEADER, twice, "stands twice in the header", "在 header 中出现两次"))
        return found

    try:
        value = json.loads(raw, object_pairs_hook=pairs)
    except RecursionError:
        return None, [_header("has a header nested too deeply to be one", "header 嵌套过深，不是正常的 header")]
    except ValueError as error:
        what = sanitise(str(error), 120)
        return None, [_header(f"has a header that is not JSON ({what})", f"header 不是合法 JSON（{what}）")]
    if not isinstance(value, dict):
        return None, [_header("has a header that is not an object", "header 不是 JSON 对象")]
    value.pop("__metadata__", None)
    entries = {}
    for name, item in value.items():
        try:
            entry = msgspec.convert(item, Entry)
        except (msgspec.ValidationError, RecursionError):
            entry = Entry()
        if entry.data_offsets[0] < 0 or not entry.dtype:
            if len(faults) < FAULTS_KEPT:
                faults.append(
                    _bad(Fault.HEADER, name, "has no valid dtype, shape and offsets", "缺少合法的 dtype、shape 或偏移")
                )
            continue
        entries[name] = entry
    return entries, faults


def _header(en: str, zh: str) -> HeaderFault:
    return HeaderFault(Fault.HEADER, Text(en, zh))


def _bad(fault: Fault, name: str, en: str, zh: str) -> HeaderFault:
    shown = sanitise(name, _SHOWN)
    return HeaderFault(fault, Text(f"{shown} {en}", f"{shown} {zh}"))


def _check(tensors: dict[str, Entry], room: int) -> list[HeaderFault]:
    """Check dtype, shape and offsets of every tensor, that they tile the data part, and that it has `room` bytes."""
    faults = list(_misfits(tensors))
    ordered = sorted((entry.data_offsets, name) for name, entry in tensors.items())
    place, before = 0, ""
    for (start, end), name in ordered:
        if start != place and len(faults) < FAULTS_KEPT:
            if start < place:
                other = sanitise(before, _SHOWN)
                faults.append(_bad(Fault.OFFSETS, name, f"overlaps {other}", f"与 {other} 重叠"))
            else:
                gap = start - place
                faults.append(
                    _bad(Fault.OFFSETS, name, f"leaves a hole of {gap} bytes before it", f"前面有 {gap} 字节的空洞")
                )
        if end >= place:
            place, before = end, name
    if room < place:
        lost = sum(1 for entry in tensors.values() if entry.data_offsets[1] > room)
        en = f"is cut off: {place - room} of the {place} bytes its header describes are missing ({lost} tensors)"
        zh = f"被截断：header 描述 {place} 字节数据，缺少 {place - room} 字节（影响 {lost} 个 tensor）"
        faults.insert(0, HeaderFault(Fault.TRUNCATED, Text(en, zh)))
    elif room > place:
        en = f"has {room - place} bytes more than its header describes"
        faults.insert(0, HeaderFault(Fault.TRAILING, Text(en, f"比 header 描述的多 {room - place} 字节")))
    return faults


def _misfits(tensors: dict[str, Entry]) -> Iterator[HeaderFault]:
    """Yield the tensors whose bytes are not what dtype and shape need; a dtype that is not known is not judged."""
    count = 0
    bits_of = BITS.get
    for name, entry in tensors.items():
        start, end = entry.data_offsets
        if end < start or len(entry.shape) > MAX_DIMENSIONS or min(entry.shape, default=0) < 0:
            yield _bad(Fault.OFFSETS, name, "has impossible sizes", "尺寸不可能成立")
        else:
            bits = bits_of(entry.dtype)
            if bits is None or (end - start) * 8 == prod(entry.shape) * bits:
                continue
            shape = "×".join(map(str, entry.shape[:8])) or "scalar"
            en = f"({entry.dtype} {shape}) has {end - start} bytes, not {prod(entry.shape) * bits // 8}"
            yield _bad(Fault.OFFSETS, name, en, en.replace("has", "占").replace("bytes, not", "字节，应为"))
        count += 1
        if count >= FAULTS_KEPT:
            return
