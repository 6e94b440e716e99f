"""A fingerprint of a tensor that tells not only whether two tensors are equal but how they are related.

A tensor is looked at as rows along its last dimension. Every row gets a 64-bit hash of its bytes; from those come

    hash    of the whole tensor: changes with every bit and every move
    rows    the sum of the row hashes: the same when rows only changed places, and additive, so that the sum over
            q, k and v is that of the fused qkv parameter; rows of zero bytes count nothing
    blocks  hashes of blocks of rows, to see which part differs and to find a block elsewhere
    sample  values at fixed places, to tell a trained tensor from another one, and to test a suspected transpose

All of it is integer arithmetic modulo 2**64, the same in torch on any device and in numpy, with few passes over the
data (measured with numpy: 8 GB/s a core). The hash is no cryptographic one: it guards against faults, not attackers.
"""

from __future__ import annotations

import math
from typing import Any

MASK = (1 << 64) - 1
MULTIPLY_COLUMN = 0x9E3779B97F4A7C15
MULTIPLY_ROW = 0xBF58476D1CE4E5B9
MULTIPLY_BLOCK = 0x94D049BB133111EB
"""Odd constants (those of splitmix64)."""
BLOCKS = 32
"""Most blocks of one tensor."""
SAMPLES = 32
"""Values of a sample."""
CHUNK = {"cpu": 1 << 18}
"""Bytes that are looked at in one piece, by device: what fits the cache."""
CHUNK_ELSEWHERE = 16 << 20


def signed(value: int) -> int:
    """Return a 64-bit number as int64 holds it."""
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


def matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (rows, columns) of a shape: the last dimension are the columns; one dimension is a single row."""
    if not shape:
        return 1, 1
    rows = 1
    for size in shape[:-1]:
        rows *= size
    return rows, shape[-1]


def block_rows(rows: int) -> int:
    """Return the rows of one block: the smallest power of two that makes at most BLOCKS blocks."""
    size = 1
    while size * BLOCKS < rows:
        size *= 2
    return size


def places(rows: int, columns: int) -> tuple[tuple[int, int], ...]:
    """Return the SAMPLES places (row, column) of a sample, spread over the matrix; empty for an empty one."""
    if rows <= 0 or columns <= 0:
        return ()
    found = []
    for number in range(SAMPLES):
        row = (number * 2654435769 + 1013904223) % (1 << 32)
        column = (number * 1640531527 + 2531011) % (1 << 32)
        found.append(((row * rows) >> 32, (column * columns) >> 32))
    return tuple(found)


def finish(blocks: list[int], rows: int, columns: int) -> int:
    """Return the hash of a tensor from the hashes of its blocks and its size."""
    total = (rows * MULTIPLY_ROW + columns * MULTIPLY_COLUMN) & MASK
    for number, block in enumerate(blocks):
        value = (block ^ (number * MULTIPLY_BLOCK)) & MASK
        value = ((value ^ (value >> 29)) * MULTIPLY_ROW) & MASK
        total = (total + (value ^ (value >> 32))) & MASK
    return total


def fingerprint(tensor: Any) -> dict[str, Any]:
    """Return the fingerprint and statistics of a torch tensor, on its own device and without changing it.

    Keys: shape, dtype, hash, rows, blocks and sample as said above (blocks as hexadecimal, sample as numbers or
    None), and min, max, mean, absmax (of the finite values), zeros, nonfinite. Reads a piece at a time, so that
    little memory is needed.
    """
    import torch

    source = tensor.detach()
    rows, columns = matrix(tuple(source.shape))
    flat = source.reshape(rows, columns)
    facts: dict[str, Any] = {"shape": list(source.shape), "dtype": str(source.dtype).removeprefix("torch.")}
    step = max(CHUNK.get(source.device.type, CHUNK_ELSEWHERE) // max(columns * source.element_size(), 1), 1)
    hashes, stats = [], []
    for start in range(0, rows if columns else 0, step):
        piece = flat[start : start + step]
        hashes.append(_row_hashes(piece))
        stats.append(_statistics(piece))
    every = torch.cat(hashes) if hashes else torch.zeros(0, dtype=torch.int64)
    blocks, total = _blocks(every, block_rows(rows))
    facts |= {"hash": f"{finish(blocks, rows, columns):016x}", "rows": f"{total & MASK:016x}"}
    facts["blocks"] = "".join(f"{block:016x}" for block in blocks)
    spots = places(rows, columns)
    if spots:
        at = torch.tensor(spots, device=flat.device)
        facts["sample"] = [_short(value) for value in flat[at[:, 0], at[:, 1]].double().tolist()]
    return facts | _merge(stats, rows * columns)


def _short(value: float) -> float | None:
    """Return a number as JSON can hold it, with as many digits as 32 bits need; None for what is no number."""
    return float(f"{value:.9g}") if math.isfinite(value) else None


def _row_hashes(piece: Any) -> Any:
    """Return one int64 for each row of a two-dimensional piece."""
    import torch

    raw = piece.contiguous().view(torch.uint8)
    short = -raw.shape[1] % 8
    if short or raw.storage_offset() % 8:
        padded = torch.zeros((raw.shape[0], raw.shape[1] + short), dtype=torch.uint8, device=raw.device)
        padded[:, : raw.shape[1]] = raw
        raw = padded
    words = raw.view(torch.int64)
    weights = torch.arange(1, words.shape[1] + 1, dtype=torch.int64, device=words.device) * signed(MULTIPLY_COLUMN)
    weights = (_shifted(weights, 29) * signed(MULTIPLY_ROW)) | 1
    return _mix((_shifted(words, 32) * weights).sum(dim=1))


def _shifted(value: Any, bits: int) -> Any:
    return value ^ (value >> bits)


def _mix(value: Any) -> Any:
    return _shifted(_shifted(value, 29) * signed(MULTIPLY_BLOCK), 32)


def _blocks(hashes: Any, size: int) -> tuple[list[int], int]:
    """Return the hash of each block, which does not depend on where the block stands, and the sum of all rows."""
    import torch

    place = torch.arange(len(hashes), dtype=torch.int64, device=hashes.device) % size
    turned = _mix(hashes ^ (place * signed(MULTIPLY_COLUMN)))
    number = -(-len(hashes) // size)
    padded = torch.zeros(number * size, dtype=torch.int64, device=hashes.device)
    padded[: len(hashes)] = turned
    sums = padded.view(number, size).sum(dim=1) if number else padded
    every = torch.cat([sums, hashes.sum().reshape(1)]).tolist()
    return [value & MASK for value in every[:-1]], every[-1]


def _statistics(piece: Any) -> tuple[float, float, float, int, int]:
    """Return (min, max, sum, zeros, nonfinite) of a piece; the first three of its finite values."""
    import torch

    value = piece.float() if piece.element_size() <= 2 else piece.double()
    least, most = torch.aminmax(value)
    row = torch.stack([least, most, value.sum(), torch.count_nonzero(value).to(value.dtype)]).tolist()
    count = value.numel()
    if all(map(math.isfinite, row)):
        return row[0], row[1], row[2], count - int(row[3]), 0
    finite = torch.isfinite(value)
    good = value[finite]
    zeros = good.numel() - int(torch.count_nonzero(good))
    if not good.numel():
        return 0.0, 0.0, 0.0, 0, count
    return float(good.min()), float(good.max()), float(good.double().sum()), zeros, count - good.numel()


def _merge(stats: list[tuple[float, float, float, int, int]], count: int) -> dict[str, Any]:
    least, most = min((each[0] for each in stats), default=0.0), max((each[1] for each in stats), default=0.0)
    total, zeros, bad = (sum(each[part] for each in stats) for part in (2, 3, 4))
    return {
        "min": least,
        "max": most,
        "mean": total / max(count - bad, 1),
        "absmax": max(abs(least), abs(most)),
        "zeros": int(zeros),
        "nonfinite": int(bad),
    }
