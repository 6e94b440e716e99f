"""Hostile pickles are read in a real child: nothing runs, nothing is written, memory and time stay bounded."""

from __future__ import annotations

import os
import pickle
import struct
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.readers import bounded_read
from probes.readers.bounded_read import is_growing, memory_left, read_torch_file
from probes.readers.dump_errors import DumpError, Fault
from probes.readers.safe_pickle import Record
from probes.readers.torch_tensors import Tensor, array, shaped
from tests.probes.readers.pickles import text, torch_zip

SECONDS = 30.0
"""Far above what any of these takes; a reader that loops or unfolds would run into it."""


def fault(path: Path) -> DumpError:
    """Return the error that reading a file ends in."""
    with pytest.raises(DumpError) as caught:
        read_torch_file(str(path))
    return caught.value


def short(value: str) -> bytes:
    """Return the opcode SHORT_BINUNICODE."""
    return b"\x8c" + bytes([len(value)]) + value.encode()


def call(module: str, name: str, argument: bytes) -> dict[str, bytes]:
    """Return every way in which opcodes call a global with one argument, by name."""
    old = f"{module}\n{name}\n".encode()
    stacked = short(module) + short(name) + b"\x93"
    return {
        "GLOBAL REDUCE": b"\x80\x02c" + old + argument + b"\x85R.",
        "STACK_GLOBAL REDUCE": b"\x80\x04" + stacked + argument + b"\x85R.",
        "INST": b"(" + argument + b"i" + old + b".",
        "OBJ": b"\x80\x02(c" + old + argument + b"o.",
        "NEWOBJ": b"\x80\x02c" + old + argument + b"\x85\x81.",
        "NEWOBJ_EX": b"\x80\x04" + stacked + argument + b"\x85}\x92.",
        "FRAME": b"\x80\x04\x95" + struct.pack("<Q", len(stacked + argument) + 3) + stacked + argument + b"\x85R.",
        "memo": b"\x80\x02c" + old + b"q\x000" + argument + b"q\x010h\x00h\x01\x85R.",
    }


ATTACKS = [
    ("os", "system"), ("posix", "system"), ("subprocess", "check_output"), ("builtins", "eval"), ("builtins", "exec"),
    ("builtins", "__import__"), ("__builtin__", "eval"), ("builtins", "getattr"), ("numpy", "os.system"),
    ("numpy.testing._private.utils", "runstring"), ("torch", "os.system"), ("torch.hub", "load"),
    ("pickle", "loads"), ("runpy", "run_path"), ("importlib", "import_module"), ("copyreg", "add_extension"),
    ("types", "FunctionType"), ("functools", "partial"), ("operator", "methodcaller"), ("codecs", "decode"),
    ("torch._utils", "_rebuild_device_tensor_from_numpy"), ("numpy.core.multiarray", "fromfile"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), ATTACKS, ids=[f"{m}.{n}" for m, n in ATTACKS])
def test_no_way_of_calling_a_callable_runs_it(module: str, name: str, tmp_path: Path) -> None:
    """Each opcode that can call is refused by the callable's name, and the shell command leaves no file."""
    canary = tmp_path / "ran"
    command = text(f"touch {canary}" if "eval" not in name else f"open({str(canary)!r}, 'w')")
    for way, data in call(module, name, command).items():
        path = tmp_path / "x.pkl"
        path.write_bytes(data)
        if way == "INST":  # protocol 0 begins with no magic: only a zip or a binary pickle is ever a dump
            torch_zip(path, data)
        error = fault(path)
        assert error.fault in (Fault.UNSAFE, Fault.FOREIGN), way
        if way != "FRAME":
            assert error.refused == f"{module}.{name}", way
        assert not canary.exists(), way


def test_an_attack_is_called_one_and_a_user_s_class_is_not(tmp_path: Path) -> None:
    """The words tell a malicious file from one that needs a class."""
    torch_zip(tmp_path / "a.pt", b"\x80\x02cos\nsystem\n" + text("id") + b"\x85R.")
    torch_zip(tmp_path / "b.pt", b"\x80\x02cmy_rewards\nmake\n" + text("id") + b"\x85R.")
    assert (fault(tmp_path / "a.pt").kind, fault(tmp_path / "b.pt").kind) == ("attack", "class")


@pytest.mark.parametrize(
    "opcode", [b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00"], ids=["EXT1", "EXT2", "EXT4"]
)
def test_extension_codes_reach_nothing(opcode: bytes, tmp_path: Path) -> None:
    """The child has an empty registry, so an extension code is no global at all."""
    torch_zip(tmp_path / "x.pt", b"\x80\x02" + opcode + text("id") + b"\x85R.")
    assert fault(tmp_path / "x.pt").fault is Fault.FOREIGN


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02P1\n.",
        b"\x80\x02" + text("file:///etc/passwd") + b"Q.",
        b"\x80\x02(" + text("storage") + text("x") * 4 + b"tQ.",
        b"\x80\x05\x97.",
        b"\x80\x05\x98.",
        b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"N.",
        b"\x80\x02h\x07.",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
        b"\x80\x02\x8b\xff\xff\xff\xff.",
        b"\x80\x05\x96" + struct.pack("<Q", 1 << 50) + b"x.",
        b"\x80\x02N}" + text("__class__") + b"K\x01sb.",
    ],
    ids=["PERSID", "BINPERSID", "storage of no dtype", "NEXT_BUFFER", "READONLY_BUFFER", "FRAME", "memo", "LONG4",
         "LONG4 negative", "BYTEARRAY8", "BUILD of None"],
)  # fmt: skip
def test_opcodes_that_name_what_is_not_there_end_in_a_fault(data: bytes, tmp_path: Path) -> None:
    """Persistent ids, buffers, frames, memo places and sizes that do not exist are faults of the file."""
    torch_zip(tmp_path / "x.pt", data)
    assert fault(tmp_path / "x.pt").fault in (Fault.UNSAFE, Fault.FOREIGN, Fault.TRUNCATED)


def test_build_changes_no_stand_in_and_no_storage(tmp_path: Path) -> None:
    """A pickle that sets the path of a tensor's storage to another file is refused, by dict and by slots."""
    (tmp_path / "secret").write_bytes(b"12345678")
    pid = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\x02tQ"
    for state in (b"}" + text("path") + text(str(tmp_path / "secret")) + b"s", b"N}" + text("start") + b"K\x00s\x86"):
        torch_zip(tmp_path / "x.pt", b"\x80\x02" + pid + state + b"b.", {"data/0": b"\x00" * 8})
        assert fault(tmp_path / "x.pt").fault is Fault.FOREIGN


@pytest.mark.parametrize("codec", ["zlib", "bz2", "unicode_escape", "rot13", "idna", "hex"])
def test_codecs_encode_makes_latin_bytes_only(codec: str, tmp_path: Path) -> None:
    """Protocol 2 spells bytes as _codecs.encode(text, "latin1"); no other codec is looked up."""
    torch_zip(tmp_path / "x.pt", b"\x80\x02c_codecs\nencode\n" + text("x") + text(codec) + b"\x86R.")
    assert fault(tmp_path / "x.pt").fault is Fault.FOREIGN


BOMBS = {
    "deep list": b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
    "deep tuple as key": b"\x80\x02}" + b"K\x01" + b"\x85" * 2_000_000 + b"K\x01s.",
    "laughs": b"\x80\x02]q\x00" + b"".join(b"]q%c(" % n + b"h%c" % (n - 1) * 10 + b"e" for n in range(1, 31)) + b".",
    "itself": b"\x80\x02]q\x00h\x00a.",
    "itself in a dict": b"\x80\x02}q\x00" + text("x") + b"h\x00s.",
    "memo": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 44) + b"x.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_in_a_fault_within_bounds(name: str, tmp_path: Path) -> None:
    """Depth, unfolding, self-reference and declared sizes cost neither the parent's life nor its memory."""
    torch_zip(tmp_path / "x.pt", BOMBS[name])
    began = time.monotonic()
    assert fault(tmp_path / "x.pt").fault in (Fault.UNSAFE, Fault.TRUNCATED)
    assert time.monotonic() - began < SECONDS


def test_a_file_that_needs_more_memory_than_its_size_allows_is_refused(tmp_path: Path) -> None:
    """Forty million lists from a file of forty MB are fifteen times its size; the child ends, not the machine."""
    with open(tmp_path / "x.pkl", "wb") as file:
        file.write(b"\x80\x02](")
        file.write(b"](" * 20_000_000 + b"e" * 20_000_000)
        file.write(b"e.")
    error = fault(tmp_path / "x.pkl")
    assert error.fault in (Fault.UNSAFE, Fault.RESOURCES)
    assert error.kind in ("bomb", "memory")


def test_where_the_machine_is_short_the_file_is_not_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little memory left a sound dump is not called unsafe: nothing is known of it."""
    (tmp_path / "x.pkl").write_bytes(pickle.dumps({"samples": [list(range(n, n + 50)) for n in range(60_000)]}, 2))
    monkeypatch.setattr(bounded_read, "memory_left", lambda: 40 << 20)
    error = fault(tmp_path / "x.pkl")
    assert (error.fault, error.kind) == (Fault.RESOURCES, "memory")
    assert "this machine can spare" in error.what


def test_the_parent_s_own_limit_is_never_touched(tmp_path: Path) -> None:
    """Two threads read a bomb at once; the limits of this process stay as they were."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    torch_zip(tmp_path / "x.pt", BOMBS["bytes"])
    faults: list[Fault] = []
    threads = [threading.Thread(target=lambda: faults.append(fault(tmp_path / "x.pt").fault)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(faults) == 2
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def rebuilt(offset: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> bytes:
    """Return a pickle of {"x": a tensor} over a storage of four floats."""
    pid = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\x04tQ"
    rest = b"".join(pickle.dumps(value, 2)[2:-1] for value in (offset, shape, stride, False))
    return b"\x80\x02}" + text("x") + b"ctorch._utils\n_rebuild_tensor_v2\n(" + pid + rest + b"NtRs."


@pytest.mark.parametrize(
    ("offset", "shape", "stride"),
    [(0, (5,), (1,)), (1 << 62, (1,), (1,)), (-4, (1,), (1,)), (0, (1 << 40,), (0,)), (0, (2, 2), (1 << 61, 1)),
     (0, (1,) * 100, (1,) * 100), (0, (0, 1 << 60), (1, 1)), (0, (2,), (-1,)), (0, (2,), (1, 1))],
)  # fmt: skip
def test_absurd_views_never_reach_outside_their_storage(
    offset: int, shape: tuple[int, ...], stride: tuple[int, ...], tmp_path: Path
) -> None:
    """Offsets, strides and sizes that lie are a DumpError when the tensor is read, and nothing is allocated."""
    torch_zip(tmp_path / "x.pt", rebuilt(offset, shape, stride), {"data/0": b"\x00" * 16})
    tensor = read_torch_file(str(tmp_path / "x.pt")).root["x"]
    with pytest.raises(DumpError):
        tensor.read()


def test_numpy_arrays_of_objects_or_hostile_dtypes_are_no_numbers(tmp_path: Path) -> None:
    """An array of objects, of a subclass, or whose bytes do not fit its shape is not taken for numbers."""

    class Strange(np.ndarray[Any, Any]):
        """A subclass."""

    objects = np.array([1, "a", None], dtype=object)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"x": objects}, 2))
    with pytest.raises(TypeError):
        array(read_torch_file(str(tmp_path / "a.pkl")).root["x"])
    for state in ((1, (1 << 40,), Record("f8"), False, b"12345678"), (1, (-1,), Record("f8"), False, b"12345678"),
                  (1, (1,), Record("V8"), False, b"12345678"), (1, (1,), Record("f8"), False, "text")):  # fmt: skip
        record = Record()
        record.state = state
        with pytest.raises(TypeError):
            array(record)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_zips_that_torch_never_writes_are_refused(tmp_path: Path) -> None:
    """Two members of one name, names that lead out, encryption and headers that contradict the directory."""
    good = pickle.dumps({"samples": []}, 2)
    with zipfile.ZipFile(tmp_path / "twice.pt", "w") as archive:
        archive.writestr("a/data.pkl", good)
        archive.writestr("a/data.pkl", b"\x80\x02cos\nsystem\n.")
    with zipfile.ZipFile(tmp_path / "out.pt", "w") as archive:
        archive.writestr("a/data.pkl", good)
        archive.writestr("../../evil", b"x")
    raw = bytearray(torch_zip(tmp_path / "header.pt", good).read_bytes())
    raw[30:37] = b"another"
    (tmp_path / "header.pt").write_bytes(bytes(raw))
    raw = bytearray(torch_zip(tmp_path / "locked.pt", good).read_bytes())
    at = raw.find(b"PK\x01\x02")
    raw[at + 8] |= 1
    (tmp_path / "locked.pt").write_bytes(bytes(raw))
    kinds = {name: fault(tmp_path / f"{name}.pt").kind for name in ("twice", "out", "header", "locked")}
    assert kinds == {"twice": "forged", "out": "forged", "header": "forged", "locked": "encrypted"}
    assert not (tmp_path.parent.parent / "evil").exists()


def test_a_flipped_bit_is_found_by_the_checksum(tmp_path: Path) -> None:
    """A dump whose text changed after writing still unpickles, so only the zip's checksum tells."""
    path = torch_zip(tmp_path / "x.pt", pickle.dumps({"samples": [{"response": "an answer"}]}, 2))
    raw = path.read_bytes().replace(b"an answer", b"an anzwer")
    path.write_bytes(raw)
    assert fault(path).kind == "damaged"


def test_a_file_in_the_making_is_not_called_cut_off(tmp_path: Path) -> None:
    """While a job still writes it, the file grows; afterwards the same bytes are truncated."""
    path = tmp_path / "x.pt"
    whole = pickle.dumps({"samples": ["x" * 50_000]}, 2)
    torch_zip(path, whole)
    cut = path.read_bytes()[:20_000]
    path.write_bytes(cut)
    done = threading.Event()

    def grow() -> None:
        while not done.wait(0.02):
            with open(path, "ab") as file:
                file.write(b"x")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        assert fault(path).fault is Fault.WRITING
    finally:
        done.set()
        writer.join()
    path.write_bytes(cut)
    assert not is_growing(str(path))
    assert fault(path).fault is Fault.TRUNCATED


NUMBERS = st.lists(st.floats(-50, 0), max_size=80) | st.lists(st.integers(-(1 << 62), 1 << 62), max_size=80)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | NUMBERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=20,
)


def plain(value: Any) -> Any:
    """Return a value with arrays as lists, for comparison with what torch.load gives."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if hasattr(value, "tolist") or isinstance(value, list) else value


@settings(max_examples=25, deadline=None)
@given(value=VALUES)
def test_what_torch_load_returns_comes_back_through_the_child(
    value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any nesting of plain data equals what torch.load reads from the same file."""
    path = tmp_path_factory.mktemp("v") / "x.pt"
    torch.save({"x": value}, path)
    assert plain(read_torch_file(str(path)).root["x"]) == torch.load(path, weights_only=False)["x"]


def test_shared_storages_views_and_numpy_names_of_both_versions(tmp_path: Path) -> None:
    """Two views of one storage, bf16, bool, 0-d, Fortran order, and files that numpy 1 wrote."""
    base = torch.arange(12, dtype=torch.bfloat16)
    grid = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    torch.save({"a": base[2:8:2], "b": base.view(3, 4).T, "zero": torch.tensor(3.5), "flag": torch.tensor([True]),
                "grid": grid, "scalar": np.float32(1.5)}, tmp_path / "x.pt")  # fmt: skip
    root = read_torch_file(str(tmp_path / "x.pt")).root
    assert array(root["a"]).tolist() == [2, 4, 6]
    assert shaped(root["b"]).tolist() == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    assert array(root["zero"]).tolist() == [3.5]
    assert array(root["flag"]).tolist() == [1]
    assert shaped(root["grid"]).tolist() == [[0, 1, 2], [3, 4, 5]]
    old = pickle.dumps({"x": grid}, 2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    (tmp_path / "old.pkl").write_bytes(old)
    assert shaped(read_torch_file(str(tmp_path / "old.pkl")).root["x"]).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert isinstance(root["a"], Tensor)


def test_what_the_machine_has_left_is_told_where_proc_is() -> None:
    """On Linux the figure is some memory, and less than a petabyte."""
    left = memory_left()
    assert left is None or 0 <= left < 1 << 50


def test_the_reader_leaves_no_process_and_no_open_file_behind(tmp_path: Path) -> None:
    """After good and bad files the process has the descriptors that it had."""
    if not sys.platform.startswith("linux"):
        pytest.skip("descriptors are counted in /proc")
    torch_zip(tmp_path / "good.pt", pickle.dumps({"samples": []}, 2))
    torch_zip(tmp_path / "bad.pt", b"\x80\x02cos\nsystem\n.")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        read_torch_file(str(tmp_path / "good.pt"))
        fault(tmp_path / "bad.pt")
    assert len(os.listdir("/proc/self/fd")) == before
