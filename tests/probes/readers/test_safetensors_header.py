"""Tests of the safetensors header reader: every fault by its name, the library as judge, hostile files bounded."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open

from probes.readers.safetensors_header import BITS, MAX_HEADER, Entry, Fault, read_header
from tests.helpers import hostile_bytes, is_safe

TENSORS: dict[str, Any] = {
    "a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]},
    "b": {"dtype": "F32", "shape": [2], "data_offsets": [12, 20]},
}


def write(path: Path, header: object, data: int = 20, *, length: int | None = None) -> Path:
    """Write a file with this header (JSON unless bytes) and `data` bytes behind it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + bytes(data))
    return path


def faults(path: Path) -> list[Fault]:
    """Return the kinds of the faults of a file, whose words must be safe to draw."""
    header = read_header(str(path))
    assert all(is_safe(fault.words.en) and is_safe(fault.words.zh) for fault in header.faults)
    return [fault.fault for fault in header.faults]


def test_a_whole_file_tells_its_tensors(tmp_path: Path) -> None:
    """Names, dtypes, shapes and offsets are those written; metadata is no tensor."""
    header = read_header(str(write(tmp_path / "m", {"__metadata__": {"format": "pt"}, **TENSORS})))
    assert header.faults == ()
    assert header.tensors == {"a": Entry("BF16", (2, 3), (0, 12)), "b": Entry("F32", (2,), (12, 20))}
    assert header.size == header.data + 20


BROKEN: dict[str, tuple[object, int, Fault]] = {
    "cut": (TENSORS, 19, Fault.TRUNCATED),
    "longer": (TENSORS, 24, Fault.TRAILING),
    "hole": ({**TENSORS, "b": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]}}, 24, Fault.OFFSETS),
    "overlap": ({**TENSORS, "b": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}, 16, Fault.OFFSETS),
    "size": ({"a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 10]}}, 10, Fault.OFFSETS),
    "backwards": ({"a": {"dtype": "U8", "shape": [0], "data_offsets": [4, 0]}}, 4, Fault.OFFSETS),
    "negative": ({"a": {"dtype": "U8", "shape": [4], "data_offsets": [-4, 0]}}, 0, Fault.HEADER),
    "no-offsets": ({"a": {"dtype": "U8", "shape": [4]}}, 4, Fault.HEADER),
    "list": (b"{[1]}", 0, Fault.HEADER),
    "twice": (
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        1,
        Fault.HEADER,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_and_the_library_refuses_it_too(tmp_path: Path, name: str) -> None:
    """Each fault is told as itself; what is called broken does not load (a doubled key is only odd there)."""
    header, data, fault = BROKEN[name]
    path = write(tmp_path / "m.safetensors", header, data)
    assert fault in faults(path)
    if name != "twice":
        with pytest.raises(SafetensorError), safe_open(str(path), framework="pt"):
            pass


FOREIGN = {
    "empty": (b"", Fault.EMPTY),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n", Fault.LFS_POINTER),
    "html": (b"<!DOCTYPE html><html>not found</html>", Fault.FOREIGN),
    "zip": (b"PK\x03\x04" + bytes(40), Fault.FOREIGN),
    "text": (b"Access denied: this model is gated", Fault.FOREIGN),
    "random": (bytes(range(200, 250)), Fault.FOREIGN),
    "zeros": (bytes(4096), Fault.TRUNCATED),
    "short": (b"\x10\x00\x00", Fault.TRUNCATED),
    "cut-header": ((500).to_bytes(8, "little") + b'{"a": {', Fault.TRUNCATED),
    "huge-length": ((MAX_HEADER + 1).to_bytes(8, "little") + b"{}", Fault.FOREIGN),
    "deep": ((200_002).to_bytes(8, "little") + b"{" + b"[" * 200_000 + b"}", Fault.HEADER),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_safetensors_file_is_told_as_what_it_is(tmp_path: Path, name: str) -> None:
    """The kind of the foreign file is the only fault and there are no tensors."""
    content, fault = FOREIGN[name]
    (tmp_path / "m").write_bytes(content)
    assert faults(tmp_path / "m") == [fault]
    assert read_header(str(tmp_path / "m")).tensors == {}


def test_what_cannot_be_opened_is_a_fault_and_no_exception(tmp_path: Path) -> None:
    """An absent file and a folder are faults; a pipe does not hang the reader."""
    assert faults(tmp_path / "absent") == [Fault.UNREADABLE]
    assert faults(tmp_path) == [Fault.FOREIGN]
    os.mkfifo(tmp_path / "pipe")
    assert faults(tmp_path / "pipe") == [Fault.FOREIGN]


def test_a_length_that_looks_like_another_magic_is_still_a_header(tmp_path: Path) -> None:
    """A header of 640 bytes begins with the bytes of a pickle and is read all the same."""
    text = json.dumps(TENSORS).encode().ljust(0x0280)
    path = write(tmp_path / "m", text)
    assert path.read_bytes()[:2] == b"\x80\x02"
    assert faults(path) == []


def test_an_unknown_dtype_is_not_judged(tmp_path: Path) -> None:
    """The bytes of a dtype that a newer library may know are not called wrong."""
    assert faults(write(tmp_path / "m", {"a": {"dtype": "F2", "shape": [8], "data_offsets": [0, 2]}}, 2)) == []


def test_a_shape_of_a_million_numbers_costs_nothing(tmp_path: Path) -> None:
    """The product of a hostile shape is not computed."""
    shape = [2] * 100_000
    assert faults(write(tmp_path / "m", {"a": {"dtype": "U8", "shape": shape, "data_offsets": [0, 2]}}, 2)) == [
        Fault.OFFSETS
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from(["BF16", "F32", "U8", "I64", "F8_E4M3"]), st.lists(st.integers(0, 4), max_size=3)),
        max_size=5,
    ),
    st.integers(-3, 3),
    st.integers(-2, 2),
)
def test_the_library_agrees_with_what_is_whole(
    tmp_path_factory: pytest.TempPathFactory, tensors: list[tuple[str, list[int]]], more: int, shift: int
) -> None:
    """A generated file has no fault exactly when safetensors opens it."""
    place, header = 0, {}
    for number, (dtype, shape) in enumerate(tensors):
        size = BITS[dtype] // 8
        for one in shape:
            size *= one
        moved = shift if number == 1 else 0
        header[f"t{number}"] = {"dtype": dtype, "shape": shape, "data_offsets": [max(place + moved, 0), place + size]}
        place += size
    path = write(tmp_path_factory.mktemp("s") / "m.safetensors", header, max(place + more, 0))
    try:
        with safe_open(str(path), framework="pt"):
            opens = True
    except SafetensorError:
        opens = False
    assert (faults(path) == []) == opens


@given(hostile_bytes, st.booleans())
def test_hostile_bytes_are_a_fault_and_nothing_worse(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, framed: bool
) -> None:
    """Whatever a file holds, the reader returns; it finds a fault unless the header is an object without tensors."""
    path = tmp_path_factory.mktemp("h") / "m"
    path.write_bytes(len(data).to_bytes(8, "little") + data if framed else data)
    assert faults(path) or (framed and data.strip() == b"{}")
