"""Tensors of a torch file as descriptions, read from the file as numpy arrays only when asked for.

A train dump holds thousands of small tensors of which a probe needs two or three kinds; a description costs no I/O.
Invariants: what pickles can reach here is immutable (see `safe_pickle`): tuples, because BUILD writes into any
`__dict__`, a frozen dataclass's too. A tensor never reads outside its storage, and a stride trick never unfolds into
more than MAX_NUMBERS elements.
"""

from __future__ import annotations

import array as arrays
from math import prod
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from probes.readers.dump_errors import DumpError, Fault
from probes.readers.safe_pickle import Record, sealed

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_NUMBERS = 1 << 22
"""Elements that a tensor may unfold to beyond those of its storage: an expanded view (stride 0) could name any size."""
MAX_DIMENSIONS = 32
"""Dimensions of an array that every numpy can make."""

_STORAGES = {
    "FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "BFloat16Storage": "bf16",
    "LongStorage": "<i8", "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "i1", "ByteStorage": "u1",
    "BoolStorage": "?", "UntypedStorage": "u1",
}  # fmt: skip
_DTYPES = {
    "float32": "<f4", "float64": "<f8", "float16": "<f2", "bfloat16": "bf16", "int64": "<i8", "int32": "<i4",
    "int16": "<i2", "int8": "i1", "uint8": "u1", "bool": "?", "float": "<f4", "double": "<f8", "half": "<f2",
    "long": "<i8", "int": "<i4", "float8_e4m3fn": "u1", "float8_e5m2": "u1", "uint16": "<u2", "uint32": "<u4",
    "uint64": "<u8",
}  # fmt: skip


class DType(NamedTuple):
    """A torch dtype by its numpy spelling; "bf16" has none. A tuple, so that no pickle can change the shared ones."""

    code: str

    @property
    def size(self) -> int:
        """Return the bytes of one element."""
        return {"bf16": 2, "?": 1}.get(self.code) or int(self.code[-1])


class Storage(NamedTuple):
    """Where a tensor's bytes lie: file, first byte, length in bytes.

    place: filled once the pickle was read, for the legacy format, which keeps storages behind it; wins over `start`.
    """

    path: str
    dtype: DType
    start: int
    nbytes: int
    place: list[int] | None = None

    @property
    def first(self) -> int:
        """Return the offset of the first byte in the file."""
        return self.place[0] if self.place else self.start


class Tensor(NamedTuple):
    """A strided view of a storage; offset and stride are in elements. Nothing was read yet."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: DType

    def _span(self) -> int:
        """Return how many elements lie between the first and the last one; raise DumpError when that is impossible."""
        sane = len(self.shape) == len(self.stride) and self.offset >= 0
        sane = sane and len(self.shape) <= MAX_DIMENSIONS and prod(filter(None, self.shape)) < 1 << 48
        most = max(MAX_NUMBERS, self.storage.nbytes)
        if not sane or min((*self.shape, *self.stride), default=0) < 0 or prod(self.shape) > most:
            raise DumpError(Fault.FOREIGN, self.storage.path, "a tensor of an impossible shape")
        span = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        if prod(self.shape) and (self.offset + span) * self.dtype.size > self.storage.nbytes:
            raise DumpError(Fault.FOREIGN, self.storage.path, "a tensor reaches beyond its storage")
        return span if prod(self.shape) else 0

    def read(self) -> NDArray[Any]:
        """Return the elements as a read-only numpy array of `shape`; bfloat16 as float32.

        Raises DumpError when they lie outside the storage or the file.
        """
        import numpy as np

        span, size = self._span(), self.dtype.size
        code = "<u2" if self.dtype.code == "bf16" else self.dtype.code
        if not span:
            return np.zeros(self.shape, dtype=code)
        try:
            with open(self.storage.path, "rb") as file:
                file.seek(self.storage.first + self.offset * size)
                raw = file.read(span * size)
        except (OSError, ValueError) as error:
            raise DumpError(Fault.UNREADABLE, self.storage.path, f"cannot be read ({error})") from error
        if len(raw) < span * size:
            raise DumpError(Fault.TRUNCATED, self.storage.path, "the file ends inside a tensor")
        flat = np.frombuffer(raw, dtype=code)
        if self.dtype.code == "bf16":
            flat = (flat.astype("<u4") << 16).view("<f4")
        strides = tuple(s * flat.itemsize if n > 1 else 0 for n, s in zip(self.shape, self.stride, strict=True))
        return np.lib.stride_tricks.as_strided(flat, self.shape, strides, writeable=False)


def _rebuild(storage: Any, offset: int, size: Any, stride: Any, *_: object) -> Tensor:
    """Stand in for `torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)`."""
    if not isinstance(storage, Storage) or not isinstance(offset, int):
        raise UnpicklingError("a tensor without a storage")
    return Tensor(storage, offset, tuple(map(int, size)), tuple(map(int, stride)), storage.dtype)


def _rebuild_v3(*args: Any) -> Tensor:
    """Stand in for `_rebuild_tensor_v3`, whose seventh argument is the dtype of an untyped storage."""
    plain, dtype = _rebuild(*args), args[6]
    if not isinstance(dtype, DType):
        raise UnpicklingError("a tensor without a dtype")
    return Tensor(plain.storage, plain.offset, plain.shape, plain.stride, dtype)


def _unwrapped(data: Any, *_: object) -> Any:
    """Return a parameter as its plain tensor."""
    return data


def _bare_array(*_: object) -> Any:
    """Return the record that BUILD fills with a numpy array's state."""
    return Record()


def _globals() -> dict[tuple[str, str], Any]:
    """Return the stand-ins that tensors and numpy arrays need beyond `safe_pickle.HARMLESS`."""
    table: dict[tuple[str, str], Any] = {
        ("torch._utils", "_rebuild_tensor"): sealed(_rebuild),
        ("torch._utils", "_rebuild_tensor_v2"): sealed(_rebuild),
        ("torch._utils", "_rebuild_tensor_v3"): sealed(_rebuild_v3),
        ("torch._utils", "_rebuild_parameter"): sealed(_unwrapped),
        ("torch._utils", "_rebuild_parameter_with_state"): sealed(_unwrapped),
        ("numpy", "ndarray"): "numpy.ndarray",
        ("numpy", "dtype"): sealed(Record),
    }
    for module in ("numpy._core", "numpy.core"):  # numpy 2 and numpy 1
        table[f"{module}.multiarray", "_reconstruct"] = sealed(_bare_array)
        table[f"{module}.multiarray", "scalar"] = sealed(Record)
        table[f"{module}.numeric", "_frombuffer"] = sealed(Record)
    for name, code in _STORAGES.items():
        for module in ("torch", "torch.storage", "torch.cuda"):
            table[module, name] = DType(code)
    for name, code in _DTYPES.items():
        table["torch", name] = DType(code)
    return table


TORCH_GLOBALS = _globals()


def array(value: Any) -> NDArray[Any]:
    """Return numbers held as a list, a Tensor or a pickled numpy array as one flat numpy array of float64.

    Raises DumpError for a tensor outside its file and TypeError for anything that is not numbers.
    """
    import numpy as np

    if isinstance(value, (Tensor, Record, arrays.array, np.ndarray)):
        return shaped(value).astype(np.float64).ravel()
    if not isinstance(value, (list, tuple, int, float)):
        raise TypeError("not numbers")
    try:
        return np.asarray(value, dtype=np.float64).ravel()
    except (ValueError, OverflowError) as error:
        raise TypeError("not numbers") from error


def shaped(value: Any) -> NDArray[Any]:
    """Return numbers held as a (nested) list, a Tensor or a pickled numpy array in their own shape and type.

    Raises DumpError for a tensor outside its file and TypeError for anything that is not numbers.
    """
    import numpy as np

    if isinstance(value, Tensor):
        return np.asarray(value.read())
    if isinstance(value, Record):
        return _from_record(value)
    if isinstance(value, np.ndarray):
        return value
    if not isinstance(value, (list, tuple, arrays.array)):
        raise TypeError("not numbers")
    try:
        numbers = np.asarray(value)
    except (ValueError, OverflowError, RecursionError) as error:  # rows of unequal length, among others
        raise TypeError("not numbers") from error
    if numbers.dtype.kind not in "biuf":
        raise TypeError("not numbers")
    return numbers


def _from_record(record: Record) -> NDArray[Any]:
    """Return a pickled ndarray of plain numbers; raise TypeError for any other record."""
    import numpy as np

    if isinstance(record.state, tuple) and len(record.state) == 5:  # protocol 2: _reconstruct, then BUILD
        _, shape, dtype, columns_first, raw = record.state
        order: Literal["C", "F"] = "F" if columns_first is True else "C"
    elif len(record.args) == 4:  # protocol 5: _frombuffer(bytes, dtype, shape, order)
        raw, dtype, shape, named = record.args
        order = "F" if named == "F" else "C"
    else:
        raise TypeError("not an array of numbers")
    code = _code(dtype)
    sizes = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
    if code is None or not sizes or not isinstance(raw, (bytes, bytearray)) or len(shape) > MAX_DIMENSIONS:
        raise TypeError("not an array of numbers")
    if prod(shape) * int(code[-1]) != len(raw):
        raise TypeError("an array whose bytes do not fit its shape")
    return np.asarray(np.frombuffer(raw, dtype=code).reshape(shape, order=order))


def _code(dtype: object) -> str | None:
    """Return numpy's spelling of a pickled dtype; None for anything but plain numbers."""
    if not isinstance(dtype, Record) or not dtype.args or not isinstance(dtype.args[0], str):
        return None
    code, order = dtype.args[0], "<"
    if isinstance(dtype.state, tuple) and len(dtype.state) > 1 and dtype.state[1] == ">":
        order = ">"
    plain = len(code) == 2 and code[0] in "fiub" and code[1] in "1248" and code != "f1"
    return order + code if plain else None
