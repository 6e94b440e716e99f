"""What a child read of a dump, made small and plain enough to hand over.

A dump of 80 MB is twelve million Python numbers. Here long lists of numbers become `array.array`s, and what is handed
over is a pickle of plain data that the other side reads with its own list of five names. Invariants: the result is a
finite tree in reasonable proportion to the file (a pickle may refer to one list a thousand times, and so on inside it,
and unfold to any size in whoever walks it); list, tuple, dict, text, bytes and numbers stay what they were.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import struct
from array import array
from typing import Any

from probes.readers.dump_errors import DumpError, Fault
from probes.readers.safe_pickle import Record, opaque_class, sealed
from probes.readers.torch_tensors import DType, Storage, Tensor

PACK_FROM = 32
"""Numbers from which a list becomes an array."""
UNFOLD_FACTOR = 64
"""Nodes and characters that data may unfold to for each byte of file; a dump without shared parts needs under one."""
UNFOLD_FLOOR = 1 << 20
MAX_DEPTH = 200
CODES = ("B", "i", "q", "d")
"""Types of packed numbers, smallest first."""


def compact(root: Any, path: str, size: int) -> Any:
    """Return `root` with long lists of numbers packed.

    Raises DumpError for data that contain themselves, are nested deeper than MAX_DEPTH or unfold to more than
    UNFOLD_FACTOR times the file's `size`.
    """
    return _Compactor(path, UNFOLD_FLOOR + UNFOLD_FACTOR * size).visit(root, 0)[0]


class _Compactor:
    """One walk. done: by identity of a container, what became of it and how far it unfolds; None while inside it."""

    def __init__(self, path: str, most: int) -> None:
        self._path, self._most = path, most
        self._done: dict[int, tuple[Any, int] | None] = {}
        self._kept: list[Any] = []  # what was replaced must live on, or its identity is another object's

    def visit(self, value: Any, depth: int) -> tuple[Any, int]:
        """Return the compact value and the nodes and characters that it unfolds to."""
        kind = type(value)
        if kind in (int, float, bool, type(None)):
            return value, 1
        if kind in (str, bytes, bytearray):
            return value, 1 + len(value)
        if isinstance(value, (DType, Storage, Tensor)):
            return value, 1
        key = id(value)
        if key in self._done:
            found = self._done[key]
            if found is None:
                raise self._refused("its data contain themselves")
            return found
        if depth > MAX_DEPTH:
            raise self._refused("its data are nested too deep")
        self._done[key] = None
        self._kept.append(value)
        done = self._inside(value, depth + 1)
        self._done[key] = done
        if done[1] > self._most:
            raise self._refused("its data unfold without measure")
        return done

    def _inside(self, value: Any, depth: int) -> tuple[Any, int]:
        if isinstance(value, list):
            packed = packed_numbers(value)
            if packed is not None:
                return packed, len(packed)
            return self._sequence(value, depth)
        if isinstance(value, tuple):
            items, weight = self._sequence(value, depth)
            return tuple(items), weight
        if isinstance(value, dict):
            keys, weight = self._sequence(list(value), depth)
            values, more = self._sequence(list(value.values()), depth)
            return dict(zip(keys, values, strict=True)), weight + more
        if isinstance(value, Record):
            weight = 1
            for name in ("args", "state", "entries"):
                inner, more = self.visit(getattr(value, name), depth)
                setattr(value, name, inner)
                weight += more
            return value, weight
        return getattr(value, "source", type(value).__name__), 1  # a bare name: a class, or a stand-in for one

    def _sequence(self, values: Any, depth: int) -> tuple[list[Any], int]:
        items, weight = [], 1
        for value in values:
            item, more = self.visit(value, depth)
            items.append(item)
            weight += more
        return items, weight

    def _refused(self, what: str) -> DumpError:
        return DumpError(Fault.UNSAFE, self._path, f"{what}; refused", kind="bomb")


def packed_numbers(values: list[Any]) -> array[Any] | None:
    """Return a long list of numbers as an array of the smallest fitting type; None for any other list.

    A list that holds whole numbers and fractions becomes one of fractions.
    """
    if len(values) < PACK_FROM or type(values[0]) not in (int, float):
        return None
    for code in CODES if type(values[0]) is int else ("d",):
        with contextlib.suppress(struct.error, ValueError, TypeError, OverflowError):
            if code == "d" and type(values[0]) is int and float not in set(map(type, values)):
                return None  # whole numbers beyond 64 bits
            # struct is twice as fast as array's own constructor, bytes four times
            return array(code, bytes(values) if code == "B" else struct.pack(f"{len(values)}{code}", *values))
    return None


class _Pickler(pickle.Pickler):
    """Writes arrays beside the pickle and everything that is no plain data as a call of one of NAMES."""

    def __init__(self, file: io.BytesIO, blobs: list[Any]) -> None:
        super().__init__(file, protocol=5)
        self._blobs, self._at = blobs, 0

    def reducer_override(self, value: Any) -> Any:
        """Say how an object is made again: only by functions of this module."""
        if isinstance(value, array):
            self._blobs.append(value)
            start, self._at = self._at, self._at + len(value) * value.itemsize
            return _array, (value.typecode, start, len(value))
        if isinstance(value, Tensor):
            return _tensor, (value.storage, value.offset, value.shape, value.stride, value.dtype)
        if isinstance(value, Storage):
            return _storage, (value.dtype, value.first, value.nbytes)
        if isinstance(value, DType):
            return _dtype, (value.code,)
        if isinstance(value, Record):
            return _record, (type(value).source, value.args, value.state, value.entries)
        if value in (_array, _tensor, _storage, _dtype, _record):
            return NotImplemented  # pickled by its name
        raise pickle.PicklingError(type(value).__name__)


def _array(*_: Any) -> Any:
    """Name an array: type code, first byte, count."""


def _tensor(*_: Any) -> Any:
    """Name a Tensor by its fields."""


def _storage(*_: Any) -> Any:
    """Name a Storage of the file that is read: dtype, first byte, bytes."""


def _dtype(*_: Any) -> Any:
    """Name a DType."""


def _record(*_: Any) -> Any:
    """Name a Record: dotted name of its class, arguments, state, entries."""


def pack(root: Any) -> tuple[bytes, list[array[Any]]]:
    """Return a pickle of `root`, made by `compact`, and the arrays that belong to it in order."""
    file, blobs = io.BytesIO(), list[Any]()
    _Pickler(file, blobs).dump(root)
    return file.getvalue(), blobs


def unpack(skeleton: bytes | memoryview, blobs: memoryview, path: str) -> Any:
    """Return what was packed. Its storages lie in the file `path`, whatever the pickle says.

    Raises pickle.UnpicklingError for anything that `pack` does not write: the writer read a hostile file.
    """
    return _Unpickler(io.BytesIO(skeleton), blobs, path).load()


class _Unpickler(pickle.Unpickler):
    """Knows the five names of this module and no other."""

    def __init__(self, file: io.BytesIO, blobs: memoryview, path: str) -> None:
        super().__init__(file)
        classes: dict[str, Any] = {}

        def numbers(code: str, start: int, count: int) -> array[Any]:
            if code not in CODES:
                raise pickle.UnpicklingError("an array of another type")
            values = array(code)
            raw = blobs[start : start + count * values.itemsize]
            if start < 0 or len(raw) != count * values.itemsize:
                raise pickle.UnpicklingError("an array outside its bytes")
            values.frombytes(raw)
            return values

        def record(source: str, args: Any, state: Any, entries: Any) -> Record:
            if source not in classes:
                classes[source] = opaque_class(source, may_call=True)
            made: Record = classes[source](*args)
            made.state, made.entries = state, entries
            return made

        makers: dict[str, Any] = {
            "_array": numbers,
            "_tensor": Tensor,
            "_storage": lambda dtype, start, nbytes: Storage(path, dtype, start, nbytes),
            "_dtype": DType,
            "_record": record,
        }
        self._names = {(__name__, name): sealed(make) for name, make in makers.items()}

    def find_class(self, module: str, name: str) -> Any:
        """Return the maker of one of the five names."""
        try:
            return self._names[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name}") from None
