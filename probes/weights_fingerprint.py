"""The recorder's fingerprint computed with numpy from bytes in a file, and what can be read off two of them.

It must give the very numbers that the recorder computes with torch inside the engine (a test holds that), so that a
checkpoint can be compared with a recording that has no tensors in it. A tensor is read in pieces; what is kept of it
is a few hundred bytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from probes.recorder.slime_runbook_recorder.fingerprint import (
    MASK,
    MULTIPLY_BLOCK,
    MULTIPLY_COLUMN,
    MULTIPLY_ROW,
    block_rows,
    finish,
    matrix,
    places,
    signed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 1 << 18
"""Bytes that are read and hashed in one piece: near the size of an L2 cache."""


@dataclass(frozen=True)
class Stored:
    """Where a tensor's bytes lie. shape and dtype as safetensors has them; offset counts from the file's start."""

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Stats:
    """Minimum, maximum and mean of the finite values, and how many are zero or not finite."""

    least: float = 0.0
    most: float = 0.0
    mean: float = 0.0
    zeros: int = 0
    nonfinite: int = 0


@dataclass(frozen=True)
class Print:
    """A tensor's fingerprint; see the recorder for what its parts mean.

    dtype: as safetensors names it. blocks: big-endian uint64. sample: float64 of this machine; nan where the value is
    no number. Both are kept as bytes because a model may have 100,000 tensors. recorded: the statistics, where they
    came with the fingerprint. stored: where the values can be read, None when only this fingerprint was recorded.
    """

    dtype: str
    shape: tuple[int, ...]
    hash: int
    rows: int
    blocks: bytes
    sample: bytes
    recorded: Stats | None = None
    stored: Stored | None = field(default=None, compare=False)

    @property
    def numel(self) -> int:
        """Return how many elements the tensor has."""
        rows, columns = matrix(self.shape)
        return rows * columns

    @property
    def matrix(self) -> tuple[int, int]:
        """Return (rows, columns) as the fingerprint looks at the tensor."""
        return matrix(self.shape)

    @property
    def values(self) -> NDArray[Any]:
        """Return the sample as float64; its places are `places(*self.matrix)`."""
        import numpy as np

        return np.frombuffer(self.sample)

    @property
    def stats(self) -> Stats:
        """Return the statistics; those of stored values are computed when first asked for. Raises OSError, EOFError."""
        if self.recorded is not None:
            return self.recorded
        return statistics(self.stored) if self.stored is not None else Stats()

    @property
    def all_zero(self) -> bool:
        """Return whether every byte is zero: only zero rows have the hash 0."""
        return self.numel > 0 and self.rows == 0


def decode(raw: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return the values of raw bytes (uint8, any leading shape) as floats; integers keep their numbers.

    Raises KeyError for a dtype that is not known.
    """
    import numpy as np

    if dtype == "BF16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if dtype.startswith("F8_E"):
        found: NDArray[Any] = _float8(dtype)[raw]
        return found
    plain = {
        "BOOL": "u1",
        "U8": "u1",
        "I8": "i1",
        "I16": "<i2",
        "U16": "<u2",
        "I32": "<i4",
        "U32": "<u4",
        "I64": "<i8",
        "U64": "<u8",
        "F16": "<f2",
        "F32": "<f4",
        "F64": "<f8",
    }
    values: NDArray[Any] = raw.view(plain[dtype])
    return values


ITEM = {"BF16": 2, "F16": 2, "I16": 2, "U16": 2, "F32": 4, "I32": 4, "U32": 4, "F64": 8, "I64": 8, "U64": 8}
"""Bytes of one element; a dtype that is not here has one."""
SHORT = {
    "bfloat16": "BF16",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
}
"""torch's name of a dtype, and that of safetensors."""


def _float8(dtype: str) -> NDArray[Any]:
    """Return the value of each byte in one of the 8-bit formats (OCP 8-bit floating point specification)."""
    import numpy as np

    if dtype == "F8_E8M0":
        table = np.ldexp(np.float32(1), np.arange(256) - 127)
        table[255] = np.nan
        whole: NDArray[Any] = table.astype(np.float32)
        return whole
    exponent, mantissa, bias = (4, 3, 7) if "E4M3" in dtype else (5, 2, 15)
    table = np.zeros(256, np.float32)
    for code in range(256):
        power, part = code >> mantissa & (1 << exponent) - 1, code & (1 << mantissa) - 1
        value = (part / 2**mantissa + (power > 0)) * 2.0 ** (max(power, 1) - bias)
        if exponent == 4 and code & 0x7F == 0x7F:
            value = np.nan
        if exponent == 5 and power == 31:
            value = np.nan if part else np.inf
        table[code] = -value if code & 0x80 else value
    return table


def pieces(stored: Stored, chunk: int = CHUNK) -> Any:
    """Yield (first row, bytes as a uint8 matrix of whole rows) through a tensor. Raises OSError, EOFError."""
    import numpy as np

    rows, columns = matrix(stored.shape)
    width = columns * ITEM.get(stored.dtype, 1)
    if not rows or not width:
        return
    step = max(chunk // width, 1)
    with open(stored.path, "rb", buffering=0) as file:
        file.seek(stored.offset)
        for row in range(0, rows, step):
            block = np.empty((min(step, rows - row), width), np.uint8)
            view, got = memoryview(block.data).cast("B"), 0
            while got < len(view):
                read = file.readinto(view[got:])
                if not read:
                    raise EOFError(f"{stored.path} ends inside a tensor")
                got += read
            yield row, block


def fingerprint(stored: Stored) -> Print:
    """Read a tensor once and return its fingerprint. Raises OSError, EOFError; KeyError for an unknown dtype."""
    import numpy as np

    rows, columns = matrix(stored.shape)
    with np.errstate(over="ignore"):
        blocks, sums = _blocks(row_hashes(stored), block_rows(rows))
    return Print(
        stored.dtype,
        stored.shape,
        finish(list(blocks), rows, columns),
        sums,
        b"".join(block.to_bytes(8, "big") for block in blocks),
        np.array(values_at(stored, places(rows, columns)), np.float64).tobytes(),
        None,
        stored,
    )


@lru_cache(maxsize=256)
def statistics(stored: Stored) -> Stats:
    """Read a tensor once and return its statistics. Raises what `fingerprint` raises."""
    import numpy as np

    least, most, total, zeros, bad = np.inf, -np.inf, 0.0, 0, 0
    with np.errstate(invalid="ignore", over="ignore"):
        for _, block in pieces(stored):
            values = decode(block, stored.dtype)
            if not np.isfinite(float(values.sum(dtype=np.float64))):
                finite = np.isfinite(values)
                bad += int(values.size - np.count_nonzero(finite))
                values = values[finite]
            if values.size:
                least, most = min(least, float(values.min())), max(most, float(values.max()))
                total += float(values.sum(dtype=np.float64))
                zeros += int(values.size - np.count_nonzero(values))
    count = prod(stored.shape) - bad
    return Stats(least, most, total / count, zeros, bad) if count > 0 else Stats(0.0, 0.0, 0.0, 0, bad)


def row_hashes(stored: Stored) -> NDArray[Any]:
    """Return one int64 for each row; none for a tensor without columns. Raises what `fingerprint` raises."""
    import numpy as np

    rows, columns = matrix(stored.shape)
    hashes = np.zeros(rows if columns else 0, np.int64)
    weights: NDArray[Any] | None = None
    with np.errstate(over="ignore"):
        for row, block in pieces(stored):
            words = _words(block)
            weights = _weights(words.shape[1]) if weights is None else weights
            mixed = words >> 32
            mixed ^= words
            mixed *= weights
            hashes[row : row + len(block)] = _mix(mixed.sum(axis=1))
    return hashes


def values_at(stored: Stored, spots: tuple[tuple[int, int], ...]) -> list[float]:
    """Return the values at places (row, column); nan for a place outside. Raises OSError."""
    import numpy as np

    rows, columns = matrix(stored.shape)
    item = ITEM.get(stored.dtype, 1)
    found = []
    with open(stored.path, "rb", buffering=0) as file:
        for row, column in spots:
            if not (0 <= row < rows and 0 <= column < columns):
                found.append(float("nan"))
                continue
            raw = os.pread(file.fileno(), item, stored.offset + (row * columns + column) * item)
            with np.errstate(invalid="ignore"):
                found.append(
                    float(decode(np.frombuffer(raw, np.uint8), stored.dtype)[0]) if len(raw) == item else np.nan
                )
    return found


def _words(block: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    short = -block.shape[1] % 8
    if short:
        block = np.pad(block, ((0, 0), (0, short)))
    words: NDArray[Any] = block.view(np.int64)
    return words


def _weights(count: int) -> NDArray[Any]:
    import numpy as np

    value: NDArray[Any] = np.arange(1, count + 1, dtype=np.int64) * np.int64(signed(MULTIPLY_COLUMN))
    value = (value ^ (value >> 29)) * np.int64(signed(MULTIPLY_ROW))
    value |= 1
    return value


def _mix(value: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    value = (value ^ (value >> 29)) * np.int64(signed(MULTIPLY_BLOCK))
    value ^= value >> 32
    return value


def _blocks(hashes: NDArray[Any], size: int) -> tuple[tuple[int, ...], int]:
    import numpy as np

    place = np.arange(len(hashes), dtype=np.int64) % size
    turned = _mix(hashes ^ (place * np.int64(signed(MULTIPLY_COLUMN))))
    sums = np.add.reduceat(turned, np.arange(0, len(turned), size)) if len(turned) else turned
    return tuple(int(value) & MASK for value in sums), int(hashes.sum()) & MASK
