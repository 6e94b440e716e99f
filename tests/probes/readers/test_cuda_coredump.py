"""Reading CUDA core dumps: real ones of an H200, each beside what cuda-gdb 13.0 printed for it."""

from __future__ import annotations

import lzma
import os
import re
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.readers.cuda_coredump import EXCEPTIONS, CoreDump, CoreDumpError, demangled, read_coredump

DATA = Path(__file__).parents[2] / "data" / "coredumps"
FOCUS = re.compile(
    r"grid (\d+), block \((\d+),(\d+),(\d+)\), thread \((\d+),(\d+),(\d+)\), device (\d+), sm (\d+), warp (\d+), lane"
)
SHAPE = re.compile(r"<<<\((\d+),(\d+),(\d+)\),\((\d+),(\d+),(\d+)\)>>>")
TRIGGERED = re.compile(r"CUDA Exception: (.+)\nThe exception was triggered at PC (0x[0-9a-f]+)  (\S.*?)(?:  \(|\n)")


def dump(tmp_path: Path, name: str) -> Path:
    """Unpack one of the real dumps."""
    path = tmp_path / f"{name}.core"
    path.write_bytes(lzma.decompress((DATA / f"{name}.xz").read_bytes()))
    return path


def read(tmp_path: Path, name: str) -> CoreDump:
    """Read one of the real dumps."""
    return read_coredump(str(dump(tmp_path, name)))


def said(name: str) -> str:
    """Return what cuda-gdb printed for a dump."""
    return (DATA / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", ["store", "template", "assert", "misaligned", "graph"])
def test_place_is_the_one_that_cuda_gdb_names(tmp_path: Path, name: str) -> None:
    """The first fault stands at the grid, block, thread, SM and warp that cuda-gdb focuses on."""
    focus, shape = FOCUS.search(said(name)), SHAPE.search(said(name))
    assert focus is not None
    assert shape is not None
    grid, *numbers = (int(part) for part in focus.groups())
    sizes = tuple(int(part) for part in shape.groups())
    fault = read(tmp_path, name).faults[0]
    assert fault.kernel is not None
    assert fault.kernel.grid_id == grid
    assert (*(fault.block or ()), *(fault.thread or ()), fault.device, fault.sm, fault.warp) == tuple(numbers)
    assert (*fault.kernel.grid, *fault.kernel.block) == sizes


@pytest.mark.parametrize("name", ["store", "template", "misaligned", "graph", "triton-graph"])
def test_exception_is_the_one_that_cuda_gdb_names(tmp_path: Path, name: str) -> None:
    """Kind, program counter and function agree with cuda-gdb, also where it crashed after it had printed them."""
    found = TRIGGERED.search(said(name))
    assert found is not None
    fault = read(tmp_path, name).faults[0]
    assert fault.name == found[1]
    assert fault.pc == int(found[2], 16)
    assert demangled(fault.function or "") == found[3]


def test_assert_is_told_from_a_bad_address(tmp_path: Path) -> None:
    """A device-side assertion is its own kind; cuda-gdb says "Assertion failed"."""
    assert "Assertion failed." in said("assert")
    (fault,) = read(tmp_path, "assert").faults
    assert fault.name == "Warp Assert"
    assert demangled(fault.function or "") == "checks_index(int const*, int)"


def test_every_warp_that_hit_it_is_counted(tmp_path: Path) -> None:
    """Of a 5 × 2 grid in which one thread of each block (3, y) stores out of bounds, both blocks are found."""
    faults = read(tmp_path, "graph").faults
    assert {fault.block for fault in faults} == {(3, 0, 0), (3, 1, 0)}
    assert {fault.thread for fault in faults} == {(37, 0, 0)}
    assert [fault.lanes for fault in faults] == [1, 1]


def test_whole_warp(tmp_path: Path) -> None:
    """Where all 32 threads of a warp hit the exception, all are counted."""
    assert read(tmp_path, "template").faults[0].lanes == 32


def test_block_that_was_gone_is_not_made_up(tmp_path: Path) -> None:
    """Where only the SM remembers the exception there is a function and no block, thread, warp or grid."""
    whole = read(tmp_path, "triton-graph")
    (fault,) = whole.faults
    assert fault.function == "draft_extend_kernel"
    assert (fault.block, fault.thread, fault.warp, fault.kernel) == (None, None, None, None)


def test_trap_is_no_exception(tmp_path: Path) -> None:
    """A kernel that traps leaves a dump with its grid and without an exception; cuda-gdb speaks of SIGTRAP."""
    assert "SIGTRAP" in said("trap")
    whole = read(tmp_path, "trap")
    assert whole.faults == ()
    assert [kernel.name for kernel in whole.kernels] == ["_Z5trapsv"]


def test_device_driver_and_time(tmp_path: Path) -> None:
    """The GPU, the driver and the time of the dump are read."""
    whole = read(tmp_path, "store")
    (device,) = whole.devices
    assert (device.name, device.sm, device.sms) == ("NVIDIA H200", "sm_90", 132)
    assert whole.driver == "580.159"
    assert whole.time == 1796033128


def test_what_is_no_core_dump(tmp_path: Path) -> None:
    """Each kind of wrong file is told as itself."""
    kinds = {}
    elf = lzma.decompress((DATA / "store.xz").read_bytes())
    files = {
        "text": b"hello",
        "empty": b"",
        "cut": elf[:100_000],
        "header": elf[:30],
        "cpu": elf[:16] + (4).to_bytes(2, "little") + (62).to_bytes(2, "little") + elf[20:],
        "program": elf[:16] + (2).to_bytes(2, "little") + (62).to_bytes(2, "little") + elf[20:],
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CoreDumpError) as caught:
            read_coredump(str(tmp_path / name))
        kinds[name] = caught.value.kind
    with pytest.raises(CoreDumpError) as caught:
        read_coredump(str(tmp_path / "nothing"))
    assert kinds == {
        "text": "not-elf",
        "empty": "not-elf",
        "cut": "cut",
        "header": "cut",
        "cpu": "host-core",
        "program": "other",
    }
    assert caught.value.kind == "missing"


STORE = lzma.decompress((DATA / "store.xz").read_bytes())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, len(STORE) - 9), st.binary(min_size=1, max_size=8)), max_size=12))
def test_damaged_dumps_are_read_or_refused(tmp_path: Path, edits: list[tuple[int, bytes]]) -> None:
    """Whatever bytes are overwritten, reading ends with a dump or a CoreDumpError."""
    data = bytearray(STORE)
    for at, piece in edits:
        data[at : at + len(piece)] = piece
    path = tmp_path / "damaged.core"
    path.write_bytes(data)
    try:
        whole = read_coredump(str(path))
    except CoreDumpError:
        return
    assert all(fault.name for fault in whole.faults)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 160), piece=st.binary(min_size=64, max_size=64))
def test_damaged_section_table(tmp_path: Path, at: int, piece: bytes) -> None:
    """A section header of any content is survived."""
    start = int.from_bytes(STORE[40:48], "little") + 64 * at
    path = tmp_path / "damaged.core"
    path.write_bytes(STORE[:start] + piece + STORE[start + 64 :])
    try:
        read_coredump(str(path))
    except CoreDumpError:
        return


def test_names_of_exceptions() -> None:
    """The numbers are those of CUDBGException_t, of which 14 is the illegal address and 12 the assertion."""
    assert sorted(EXCEPTIONS) == list(range(1, 23))
    assert (EXCEPTIONS[14], EXCEPTIONS[12], EXCEPTIONS[6]) == (
        "Warp Illegal Address",
        "Warp Assert",
        "Warp Misaligned Address",
    )


@pytest.mark.parametrize("name", ["", "plain_kernel", "_Z", "_Znonsense\x00", "_ZN" + "1a" * 2000, "[rank0]"])
def test_names_that_are_not_mangled_stay(name: str) -> None:
    """A name that is no mangled C++ name is given back as it is."""
    assert demangled(name) == name


def test_tables_without_end_are_refused(tmp_path: Path) -> None:
    """A small file with holes that claims tables of millions of entries costs no memory: it is said to be damaged."""
    header = struct.pack("<4s3B9x2HI3QI6H", b"\x7fELF", 2, 1, 1, 4, 190, 1, 0, 0, 64, 0, 64, 0, 0, 64, 1, 0)
    sms, size = 0x80000000 + 11, 60 << 20
    path = tmp_path / "cuda_coredump_node-0.1.1"
    path.write_bytes(header + struct.pack("<2I4Q2I2Q", 0, sms, 0, 0, 128, size, 0, 0, 1, 4))
    os.truncate(path, 128 + size)
    with pytest.raises(CoreDumpError, match="claims more than 1,000,000 table entries") as refused:
        read_coredump(str(path))
    assert refused.value.kind == "other"
