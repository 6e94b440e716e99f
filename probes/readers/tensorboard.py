"""Read the scalars of TensorBoard event files (`events.out.tfevents.*`), in which slime logs what it prints.

A file is a row of TFRecords (length, its checksum, payload, its checksum: masked CRC-32C; TensorFlow
core/lib/io/record_writer.cc), each payload an `Event` protobuf (tensorboard/compat/proto/event.proto, summary.proto,
tensor.proto). Only scalars are taken: `simple_value`, and tensors of one number. Invariants: nothing is unpickled or
imported from TensorFlow or TensorBoard; no length of the file is believed beyond its size and RECORD_LIMIT; a payload
whose checksum fails gives no number; a torn last record, which a running job leaves, is no fault. Checksums of many
records are computed at once, by columns, since Python takes them byte by byte.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from probes.readers.logfiles import LogFile, ReadProblem
from probes.readers.logscan import Coverage
from probes.readers.metrics import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECORD_LIMIT = 64 * 1024
"""Bytes of a payload that is looked at; an event of scalars has some hundred, pictures and histograms are longer."""
BATCH = 4096
"""Records whose checksums are computed together."""
VALUES = 8_000_000
"""Scalars of one file that are read."""
FILES = 500
"""Event files of one folder that are read."""
_FRAME = struct.Struct("<QI")
_PREFIXES = {"train": "step", "rollout": "rollout", "perf": "perf", "eval": "eval", "multi_turn": "multi_turn",
             "passrate": "passrate"}  # fmt: skip
_FLOAT, _DOUBLE, _INT32, _INT64 = 1, 2, 3, 9
"""Types of a TensorProto (tensorflow/core/framework/types.proto)."""


class _Bad(Exception):  # noqa: N818  # it says what a payload is, and never leaves this module
    """A payload is no protobuf."""


def named(path: str) -> bool:
    """Return whether a file has the name of an event file."""
    return ".tfevents." in os.path.basename(path)


def looks(head: bytes) -> bool:
    """Return whether a file begins as event files do: with a record of their version."""
    if len(head) < _FRAME.size:
        return False
    length, check = _FRAME.unpack_from(head)
    return 0 < length < 128 and _masked(crc32c(head[:8])) == check and b"brain.Event:" in head[12 : 12 + length]


def inside(folder: str) -> list[str]:
    """Return the event files below a folder, in order of path; none for a file."""
    found: list[str] = []
    if not os.path.isdir(folder):
        return found
    for here, folders, names in os.walk(folder):
        folders.sort()
        found += [os.path.join(here, name) for name in sorted(names) if named(name)]
        if len(found) >= FILES:
            break
    return found[:FILES]


def records(path: str, coverage: Coverage, keys: frozenset[str] | None = None) -> Iterator[Record]:
    """Yield what an event file says of each step as the records that the log's lines would give.

    Tags are slime's keys ("train/kl_loss"); others are passed over. A record's place is the byte of its first event,
    its line 0. What cannot be read is told in `coverage.problems`.
    """
    open_records: dict[str, Record] = {}
    try:
        size = os.path.getsize(path)
    except OSError as error:
        coverage.problems.append(ReadProblem(path, "unreadable", str(error)))
        return
    file, count = LogFile(path, size), 0
    for offset, step, values in _events(path, coverage.problems):
        for tag, value in values:
            kind = _PREFIXES.get(tag.partition("/")[0])
            if kind is None or step < 0 or count >= VALUES:
                continue
            count += 1
            kind = "critic-step" if tag.startswith("train/critic-") else kind
            each = open_records.get(kind)
            if each is None or each.number != step or tag in each.values:
                if each is not None:
                    yield each
                each = open_records[kind] = Record(kind, step, {}, "tensorboard", None, file, 0, offset)
            if keys is None or tag in keys:
                each.values[tag] = value
    yield from sorted(open_records.values(), key=lambda each: each.offset)


def _events(path: str, problems: list[ReadProblem]) -> Iterator[tuple[int, int, list[tuple[str, float]]]]:
    """Yield the place, the step and the scalars of each event."""
    try:
        for batch in _batches(path, problems):
            for (offset, payload, _), good in zip(batch, _checked(batch), strict=True):
                if not good:
                    problems.append(ReadProblem(path, "damaged", f"the record at byte {offset} fails its checksum"))
                    return
                try:
                    step, values = _event(payload)
                except (_Bad, UnicodeDecodeError, struct.error):
                    continue
                yield offset, step, values
    except OSError as error:
        problems.append(ReadProblem(path, "unreadable", str(error)))


def _batches(path: str, problems: list[ReadProblem]) -> Iterator[list[tuple[int, bytes, int]]]:
    """Yield records (place, payload, checksum) some at a time; long ones are passed over unread."""
    batch: list[tuple[int, bytes, int]] = []
    with open(path, "rb") as stream:
        size, at = os.fstat(stream.fileno()).st_size, 0
        while at + 12 <= size:
            frame = stream.read(12)
            if len(frame) < 12:
                break
            length, check = _FRAME.unpack(frame)
            if _masked(crc32c(frame[:8])) != check:
                problems.append(ReadProblem(path, "damaged", f"no record begins at byte {at}"))
                break
            if length > size - at - 16:
                problems.append(ReadProblem(path, "grew", "its last record is not whole"))
                break
            if length > RECORD_LIMIT:
                stream.seek(length + 4, os.SEEK_CUR)
            else:
                payload, tail = stream.read(length), stream.read(4)
                if len(tail) < 4:
                    break
                batch.append((at, payload, int.from_bytes(tail, "little")))
                if len(batch) >= BATCH:
                    yield batch
                    batch = []
            at += length + 16
    yield batch


@cache
def _table() -> tuple[int, ...]:
    """Return the table of CRC-32C (Castagnoli, reflected 0x82F63B78)."""
    entries = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        entries.append(value)
    return tuple(entries)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes."""
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 255] ^ value >> 8
    return value ^ 0xFFFFFFFF


def _masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _checked(batch: list[tuple[int, bytes, int]]) -> list[bool]:
    """Return for each record whether its payload has its checksum; those of one length are computed at once."""
    import numpy as np

    lengths: dict[int, list[int]] = {}
    for number, (_, payload, _) in enumerate(batch):
        lengths.setdefault(len(payload), []).append(number)
    good = [False] * len(batch)
    table: NDArray[np.uint32] = np.array(_table(), np.uint32)
    for length, numbers in lengths.items():
        if len(numbers) < 4:
            for number in numbers:
                good[number] = _masked(crc32c(batch[number][1])) == batch[number][2]
            continue
        rows = np.frombuffer(b"".join(batch[number][1] for number in numbers), np.uint8).reshape(len(numbers), length)
        values = np.full(len(numbers), 0xFFFFFFFF, np.uint32)
        for column in range(length):
            values = table[(values ^ rows[:, column]) & 255] ^ (values >> np.uint32(8))
        for number, crc in zip(numbers, (values ^ np.uint32(0xFFFFFFFF)).tolist(), strict=True):
            good[number] = _masked(crc) == batch[number][2]
    return good


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where the next field begins."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _Bad
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield the fields of a message: number, wire type, value of a varint, bytes of the others."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, wire, value, b""
            continue
        if wire == 2:
            length, at = _varint(data, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise _Bad
        if length > len(data) - at:
            raise _Bad
        yield number, wire, 0, data[at : at + length]
        at += length


def _event(payload: bytes) -> tuple[int, list[tuple[str, float]]]:
    """Return the step and the scalars of an Event."""
    step, values = 0, []
    for number, wire, value, data in _fields(payload):
        if number == 2 and wire == 0:
            step = value if value < 1 << 63 else value - (1 << 64)
        elif number == 5 and wire == 2:
            values += [
                one for tag, kind, _, inner in _fields(data) if tag == 1 and kind == 2 and (one := _scalar(inner))
            ]
    return step, values


def _scalar(data: bytes) -> tuple[str, float] | None:
    """Return the tag and number of a Summary.Value, None for anything but a scalar."""
    tag, number = "", None
    for field, wire, _, inner in _fields(data):
        if field == 1 and wire == 2:
            tag = inner.decode("utf-8")
        elif field == 2 and wire == 5:
            number = struct.unpack("<f", inner)[0]
        elif field == 8 and wire == 2:
            number = _tensor(inner)
    return (tag, float(number)) if tag and len(tag) <= 200 and number is not None else None


def _tensor(data: bytes) -> float | None:
    """Return the one number of a TensorProto, None where it has another number of them or another type."""
    dtype, content, numbers = 0, b"", list[float]()
    for field, wire, value, inner in _fields(data):
        if field == 1 and wire == 0:
            dtype = value
        elif field == 4 and wire == 2:
            content = inner
        elif field == 2 and wire == 2:
            if math.prod(_sizes(inner)) != 1:
                return None
        elif field in (5, 6) and wire in (1, 2, 5):
            code = "f" if field == 5 else "d"
            numbers += [float(each) for (each,) in struct.iter_unpack(f"<{code}", inner)]
        elif field in (7, 10):
            numbers += [float(each) for each in _integers(wire, value, inner)]
    form = {_FLOAT: "<f", _DOUBLE: "<d", _INT32: "<i", _INT64: "<q"}.get(dtype)
    if content and form and len(content) == struct.calcsize(form):
        numbers.append(float(struct.unpack(form, content)[0]))
    return numbers[0] if len(numbers) == 1 and form else None


def _sizes(data: bytes) -> Iterable[int]:
    """Yield the sizes of a TensorShapeProto's dimensions."""
    for field, wire, _, inner in _fields(data):
        if field == 2 and wire == 2:
            yield next((value for number, kind, value, _ in _fields(inner) if number == 1 and kind == 0), 0)


def _integers(wire: int, value: int, data: bytes) -> Iterator[int]:
    """Yield the numbers of a repeated integer, packed or not."""
    found, at = [value] if wire == 0 else [], 0
    while wire == 2 and at < len(data):
        number, at = _varint(data, at)
        found.append(number)
    yield from (each if each < 1 << 63 else each - (1 << 64) for each in found)
