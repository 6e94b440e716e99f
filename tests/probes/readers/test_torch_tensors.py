"""Tensors and arrays inside dumps have the values that torch and numpy wrote."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.bounded_read import read_torch_file
from probes.readers.dump_errors import DumpError, Fault
from probes.readers.torch_tensors import DType, Storage, Tensor, array

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
]


@given(
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.integers(0, 5), max_size=3),
    turned=st.booleans(),
    start=st.integers(0, 3),
    modern=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_dtype_shape_and_view_reads_as_torch_wrote_it(
    dtype: Any, shape: list[int], turned: bool, start: int, modern: bool, seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    """Transposed, sliced and empty tensors of both file formats equal torch's own values."""
    torch.manual_seed(seed)
    tensor = (torch.rand(shape) * 100).to(dtype)
    tensor = tensor.T if turned and len(shape) == 2 else tensor
    tensor = tensor[start:] if shape else tensor
    path = tmp_path_factory.mktemp("t") / "x.pt"
    torch.save({"x": tensor}, path, _use_new_zipfile_serialization=modern)
    read = read_torch_file(str(path)).root["x"]
    assert read.shape == tuple(tensor.shape)
    assert np.array_equal(array(read), tensor.to(torch.float64).numpy().ravel())


def test_numpy_arrays_of_both_pickle_styles_are_read(tmp_path: Path) -> None:
    """torch.save's protocol 2 and pickle's protocol 5 spell an array differently; the numbers are the same."""
    values = np.array([1.5, -2.0, 3.25], dtype="f4")
    torch.save({"x": values}, tmp_path / "a.pt")
    (tmp_path / "b.pkl").write_bytes(pickle.dumps({"x": values}, 5))
    for name in ("a.pt", "b.pkl"):
        assert array(read_torch_file(str(tmp_path / name)).root["x"]).tolist() == [1.5, -2.0, 3.25]


@pytest.mark.parametrize("value", ["text", ["a"], {"x": 1}, [[1], [1, 2]], None, object()])
def test_what_is_not_numbers_is_a_type_error(value: object) -> None:
    """A field of another kind is never taken for numbers."""
    with pytest.raises(TypeError):
        array(value)


@pytest.mark.parametrize(
    ("offset", "shape", "stride"),
    [(0, (5,), (1,)), (2, (3,), (1,)), (-1, (1,), (1,)), (0, (2,), (4,)), (0, (1 << 40,), (0,)), (0, (2, 2), (1,)),
     (0, (2,), (-1,))],
)  # fmt: skip
def test_a_tensor_cannot_reach_beyond_its_storage(
    offset: int, shape: tuple[int, ...], stride: tuple[int, ...], tmp_path: Path
) -> None:
    """Offsets, shapes and strides outside the four stored numbers are an error, not memory of something else."""
    path = tmp_path / "x"
    path.write_bytes(np.arange(8, dtype="<f4").tobytes())
    storage = Storage(str(path), DType("<f4"), 0, 16)
    with pytest.raises(DumpError) as caught:
        Tensor(storage, offset, shape, stride, DType("<f4")).read()
    assert caught.value.fault is Fault.FOREIGN


def test_a_file_that_shrank_since_is_truncated(tmp_path: Path) -> None:
    """A tensor is read on demand, so the file may have changed: then it says so."""
    path = tmp_path / "x"
    path.write_bytes(b"\x00" * 8)
    storage = Storage(str(path), DType("<f4"), 0, 16)
    with pytest.raises(DumpError) as caught:
        Tensor(storage, 0, (4,), (1,), DType("<f4")).read()
    assert caught.value.fault is Fault.TRUNCATED
