"""Tests that numpy and torch give one fingerprint, and that it tells what it promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from probes.readers.safetensors_header import read_header
from probes.recorder.slime_runbook_recorder.fingerprint import MASK, block_rows, places
from probes.recorder.slime_runbook_recorder.fingerprint import fingerprint as by_torch
from probes.weights_fingerprint import Print, Stored, decode, fingerprint, row_hashes
from tests.probes.weights_models import save

DTYPES = (
    torch.bfloat16,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
)
SHAPES = ((), (1,), (7,), (5, 7), (64, 33), (300, 130), (3, 4, 9), (0, 4), (2, 0))


def stored(path: Path, tensor: torch.Tensor) -> Stored:
    """Write a tensor and return its place."""
    save_file({"t": tensor}, path)
    header = read_header(str(path))
    entry = header.tensors["t"]
    return Stored(header.path, header.data + entry.data_offsets[0], entry.dtype, entry.shape)


def same(mine: Print, theirs: dict[str, Any]) -> bool:
    """Return whether both fingerprints say the same."""
    sample = [np.nan if value is None else value for value in theirs.get("sample", [])]
    return (
        f"{mine.hash:016x}" == theirs["hash"]
        and f"{mine.rows:016x}" == theirs["rows"]
        and mine.blocks.hex() == theirs["blocks"]
        and np.allclose(mine.values, sample, rtol=1e-8, equal_nan=True)
        and (mine.stats.least, mine.stats.most, mine.stats.zeros, mine.stats.nonfinite)
        == (theirs["min"], theirs["max"], theirs["zeros"], theirs["nonfinite"])
        and mine.stats.mean == pytest.approx(theirs["mean"], rel=1e-4, abs=1e-6)
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numpy_and_torch_agree(tmp_path: Path, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """The checkpoint's fingerprint from a file is the one the recorder computes in the engine."""
    values = torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 40
    tensor = values > 0 if dtype is torch.bool else values.to(dtype)
    assert same(fingerprint(stored(tmp_path / "t.safetensors", tensor)), by_torch(tensor))


def test_values_that_are_no_numbers_are_counted_alike(tmp_path: Path) -> None:
    """NaN and Inf are counted, left out of minimum, maximum and mean, and kept out of JSON."""
    tensor = torch.arange(4096, dtype=torch.float32).reshape(64, 64).bfloat16()
    tensor[places(64, 64)[0]] = float("nan")
    tensor[3, 3], tensor[5] = float("-inf"), 0
    theirs = by_torch(tensor)
    assert theirs["nonfinite"] == 2
    assert None in theirs["sample"]
    assert same(fingerprint(stored(tmp_path / "t.safetensors", tensor)), theirs)


def test_a_slice_of_a_flat_buffer_is_read_where_it_lies() -> None:
    """Tensors cut out of a flattened bucket begin anywhere; their fingerprint is that of a copy."""
    flat = torch.randn(1000).bfloat16()
    view = flat[3:131].view(16, 8)
    assert by_torch(view) == by_torch(view.clone())
    turned = torch.randn(8, 16).bfloat16().t()
    assert by_torch(turned) == by_torch(turned.contiguous())


def test_the_sum_of_rows_knows_no_order_and_adds_up(tmp_path: Path) -> None:
    """Permuted rows change the hash, not the sum; the sum of a fused tensor is that of its parts; zeros add nothing."""
    one, two = torch.randn(12, 16).bfloat16(), torch.randn(6, 16).bfloat16()
    whole = by_torch(torch.cat([one, two]))
    turned = by_torch(torch.cat([two, one]))
    assert whole["rows"] == turned["rows"]
    assert whole["hash"] != turned["hash"]
    parts = sum(int(by_torch(part)["rows"], 16) for part in (one, two)) & MASK
    assert whole["rows"] == f"{parts:016x}"
    assert by_torch(torch.cat([one, torch.zeros_like(one)]))["rows"] == by_torch(one)["rows"]
    hashes = row_hashes(stored(tmp_path / "t.safetensors", one))
    assert int(hashes.sum()) & MASK == int(by_torch(one)["rows"], 16)


@given(st.integers(1, 64), st.integers(1, 64), st.data())
def test_one_bit_changes_the_hash(rows: int, columns: int, data: st.DataObject) -> None:
    """Flipping any single bit changes the hash, the sum of rows, and exactly one block."""
    tensor = torch.arange(rows * columns, dtype=torch.int16).reshape(rows, columns)
    other = tensor.clone()
    row, column = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    other[row, column] ^= 1 << data.draw(st.integers(0, 14))
    before, after = by_torch(tensor), by_torch(other)
    assert before["hash"] != after["hash"]
    assert before["rows"] != after["rows"]
    width = 16
    pairs = zip(
        *([each["blocks"][at : at + width] for at in range(0, len(each["blocks"]), width)] for each in (before, after)),
        strict=True,
    )
    assert [number for number, (a, b) in enumerate(pairs) if a != b] == [row // block_rows(rows)]


@given(st.integers(1, 10**7), st.integers(1, 10**6))
def test_places_and_blocks_fit_any_matrix(rows: int, columns: int) -> None:
    """Sampled places lie inside, and no tensor has more than 32 blocks."""
    assert all(0 <= row < rows and 0 <= column < columns for row, column in places(rows, columns))
    assert -(-rows // block_rows(rows)) <= 32


def test_a_sign_change_of_two_neighbours_is_seen() -> None:
    """Two values in the top bits of neighbouring words that change sign together do not cancel out."""
    tensor = torch.ones(1, 64).bfloat16()
    other = tensor.clone()
    other[0, 3], other[0, 7] = -1, -1
    assert by_torch(tensor)["hash"] != by_torch(other)["hash"]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16], ids=str)
def test_every_code_of_a_small_float_is_decoded_as_torch_does(dtype: torch.dtype) -> None:
    """All codes of the 8-bit formats and all of bfloat16 have torch's values."""
    kind = {torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.bfloat16: "BF16"}[dtype]
    codes = np.arange(1 << 16, dtype=np.uint16).view(np.uint8) if kind == "BF16" else np.arange(256, dtype=np.uint8)
    wanted = torch.from_numpy(codes.copy()).view(dtype).float().numpy()
    with np.errstate(invalid="ignore"):
        assert np.array_equal(decode(codes, kind), wanted, equal_nan=True)


def test_a_file_that_ends_too_early_is_said_so(tmp_path: Path) -> None:
    """A tensor whose bytes are cut off is an error, never a fingerprint of something else."""
    path = tmp_path / "t.safetensors"
    save(path, {"t": np.zeros((64, 64), np.uint16)})
    place = Stored(str(path), path.stat().st_size - 100, "BF16", (64, 64))
    with pytest.raises(EOFError):
        fingerprint(place)
