"""The one-pass tests of bytes agree with torch on every number format, wherever a tensor lies in its file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import tensor_scan
from probes.readers.tensor_scan import LAYOUTS, Looked, Piece, scan_file

TORCH = {
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F32": torch.float32,
    "F64": torch.float64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "BOOL": torch.uint8,
    "U8": torch.uint8,
}
SPECIAL = {
    "BF16": (0x7F80, 0xFF80, 0x7FC0, 0xFFFF, 0x8000, 0x7F7F),
    "F16": (0x7C00, 0xFC00, 0x7E00, 0xFFFF, 0x8000, 0x7BFF),
    "F32": (0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x80000000, 0x7F7FFFFF),
    "F64": (0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, (1 << 64) - 1, 1 << 63, (0x7FF0 << 48) - 1),
    "F8_E4M3": (0x7F, 0xFF, 0x7E, 0x80),
    "F8_E5M2": (0x7C, 0xFC, 0x7D, 0xFF, 0x7B, 0x80),
    "F8_E4M3FNUZ": (0x80, 0x7F, 0xFF),
    "F8_E5M2FNUZ": (0x80, 0x7F, 0xFF),
}
"""Bit patterns at the borders: Inf, -Inf, NaN, -NaN, -0 and the largest finite number."""


def truth(dtype: str, data: bytes) -> Looked:
    """Return what torch says of the values, hollow aside."""
    width = TORCH[dtype].itemsize
    torch.set_num_threads(1)  # more would only wait for one another on a busy machine
    raw = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    values = raw.view(TORCH[dtype]).to(torch.float64) if dtype in SPECIAL else raw.view(TORCH[dtype])
    nan, inf = torch.isnan(values), torch.isinf(values)
    bad = (nan | inf).nonzero()
    return Looked(
        xxhash.xxh3_128_hexdigest(data),
        bool((values == 0).all()),
        bool((raw.view(-1, width) == raw[:width]).all()),
        int(nan.sum()),
        int(inf.sum()),
        int(bad[0]) if len(bad) else -1,
        0,
    )


def looked(path: Path, dtype: str, before: int, data: bytes) -> Looked:
    """Write `data` behind `before` bytes and look at it."""
    path.write_bytes(b"\xff" * before + data + b"\xff" * 9)
    piece = Piece("t", dtype, before, before + len(data))
    return Looked(*scan_file(str(path), before + len(data) + 9, [piece])[0])


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks of 64 bytes, so that short tensors have many."""
    monkeypatch.setattr(tensor_scan, "BLOCK", 64)


@st.composite
def contents(draw: st.DrawFn) -> tuple[str, bytes]:
    """Draw a dtype and values: mostly ordinary, zero or special ones, in runs."""
    dtype = draw(st.sampled_from(sorted(TORCH)))
    width = TORCH[dtype].itemsize
    patterns = st.one_of(st.just(0), st.sampled_from(SPECIAL.get(dtype, (0, 1))), st.integers(0, (1 << 8 * width) - 1))
    runs = draw(st.lists(st.tuples(patterns, st.integers(1, 40)), min_size=1, max_size=5))
    return dtype, b"".join(value.to_bytes(width, "little") * count for value, count in runs)


@given(contents(), st.integers(0, 200))
@pytest.mark.usefixtures("small_blocks")
def test_a_tensor_is_seen_as_torch_sees_it(
    tmp_path_factory: pytest.TempPathFactory, content: tuple[str, bytes], before: int
) -> None:
    """Zero, constant, NaN and Inf counts, the first of them, and the hash agree, whatever the tensor's alignment."""
    dtype, data = content
    path = tmp_path_factory.getbasetemp() / "tensor.bin"
    assert looked(path, dtype, before, data)._replace(hollow=0) == truth(dtype, data)


@pytest.mark.parametrize("dtype", sorted(SPECIAL))
@pytest.mark.parametrize("place", [0, 70_000, 131_071])
def test_one_value_among_many_is_found(tmp_path: Path, dtype: str, place: int) -> None:
    """Each special pattern alone, among ordinary values and in any block of the real size, is told exactly."""
    width = TORCH[dtype].itemsize
    ordinary = (0x3C << 8 * (width - 1)).to_bytes(width, "little") + (0xBC << 8 * (width - 1)).to_bytes(width, "little")
    for pattern in SPECIAL[dtype]:
        data = bytearray(ordinary * 90_000)
        data[place * width : place * width + width] = pattern.to_bytes(width, "little")
        seen = looked(tmp_path / "t", dtype, 136, bytes(data))
        assert seen == truth(dtype, bytes(data))
        assert seen.nonfinite in (0, 1)


def test_e8m0_scales_have_one_nan_and_no_sign(tmp_path: Path) -> None:
    """0xFF is NaN, 0xFE the largest power of two (OCP microscaling formats)."""
    assert looked(tmp_path / "t", "F8_E8M0", 0, b"\x7f\xfe\x01") == looked(
        tmp_path / "t", "F8_E8M0", 0, b"\x7f\xfe\x01"
    )
    assert looked(tmp_path / "t", "F8_E8M0", 0, b"\x7f\xfe\x80").nonfinite == 0
    assert looked(tmp_path / "t", "F8_E8M0", 0, b"\x7f\xff\x80").nan == 1


@pytest.mark.usefixtures("small_blocks")
def test_stretches_of_zeros_are_counted_in_whole_blocks(tmp_path: Path) -> None:
    """Of a tensor with a first half of numbers, the empty blocks of the second half count; a zero tensor has none."""
    data = b"\x80\x3f" * 96 + b"\0" * 192
    assert looked(tmp_path / "t", "BF16", 0, data).hollow == 192
    assert looked(tmp_path / "t", "BF16", 0, b"\0" * 384).hollow == 0


def test_an_empty_tensor_is_neither_zero_nor_constant(tmp_path: Path) -> None:
    """A tensor with a dimension of 0 has no values to judge."""
    assert looked(tmp_path / "t", "BF16", 8, b"") == Looked(xxhash.xxh3_128_hexdigest(b""), False, False, 0, 0, -1, 0)


def test_a_file_of_another_size_is_refused(tmp_path: Path) -> None:
    """A file that was replaced since its header was read is not judged by that header."""
    path = tmp_path / "t"
    path.write_bytes(b"\0" * 10)
    with pytest.raises(OSError, match="10 bytes here, not 12"):
        scan_file(str(path), 12, [Piece("t", "BF16", 0, 4)])


def test_a_tensor_beyond_the_end_is_an_error(tmp_path: Path) -> None:
    """A tensor that the file does not hold is never half judged."""
    path = tmp_path / "t"
    path.write_bytes(b"\0" * 10)
    with pytest.raises(OSError, match="ends before"):
        scan_file(str(path), 10, [Piece("t", "BF16", 0, 12)])


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A named pipe in place of a shard is refused at once."""
    os.mkfifo(tmp_path / "t")
    with pytest.raises(OSError, match="0 bytes here, not 10"):
        scan_file(str(tmp_path / "t"), 10, [Piece("t", "BF16", 0, 2)])


def test_progress_adds_up_to_the_bytes(tmp_path: Path) -> None:
    """What is told on the way is what was read."""
    path = tmp_path / "t"
    path.write_bytes(b"\1" * 700_001)
    told: list[int] = []
    scan_file(str(path), 700_001, [Piece("a", "U8", 1, 600_000), Piece("b", "BF16", 600_001, 700_001)], told.append)
    assert sum(told) == 599_999 + 100_000


def test_a_helper_process_says_the_same(tmp_path: Path) -> None:
    """Over the pipe come the bytes read and the same results, and a reason for what cannot be read."""
    path = tmp_path / "t"
    path.write_bytes(b"\x80\x3f" * 50)
    pieces = [Piece("a", "BF16", 0, 100)]
    requests = "".join(json.dumps([str(path), size, pieces]) + "\n" for size in (100, 99))
    code = "from probes.readers.tensor_scan import serve; serve()"
    done = subprocess.run([sys.executable, "-c", code], input=requests, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0] == [100]
    assert [tuple(row) for row in lines[1][0]] == scan_file(str(path), 100, pieces)
    assert lines[2] == [None, "the file has 100 bytes here, not 99"]


def test_every_dtype_of_torch_is_laid_out() -> None:
    """No float format that the header reader knows is looked at as plain bytes."""
    from probes.readers.safetensors_header import BITS

    floats = {name for name in BITS if name.startswith(("F", "BF", "C")) and BITS[name] >= 8}
    assert floats <= set(LAYOUTS)
    assert all(LAYOUTS[name].special for name in floats)
