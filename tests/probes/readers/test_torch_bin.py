"""Tests of the .bin reader: what the zip directory tells, without unpickling."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given

from probes.readers.safetensors_header import Fault
from probes.readers.torch_bin import read_bin
from tests.helpers import hostile_bytes, is_safe


def test_a_state_dict_tells_its_storages(tmp_path: Path) -> None:
    """The number and bytes of storages are those of the tensors saved."""
    torch.save({"a": torch.zeros(4, 4), "b": torch.zeros(2, dtype=torch.bfloat16)}, tmp_path / "m.bin")
    found = read_bin(str(tmp_path / "m.bin"))
    assert (found.container, found.storages, found.nbytes, found.faults) == ("zip", 2, 68, ())


def test_a_legacy_file_is_recognised(tmp_path: Path) -> None:
    """The stream of torch before 1.6 has no directory, so nothing more is told."""
    torch.save({"a": torch.zeros(4)}, tmp_path / "m.bin", _use_new_zipfile_serialization=False)
    assert read_bin(str(tmp_path / "m.bin")).container == "legacy"


def test_a_cut_file_is_truncated(tmp_path: Path) -> None:
    """A zip without its directory was cut off."""
    torch.save({"a": torch.zeros(400)}, tmp_path / "m.bin")
    os.truncate(tmp_path / "m.bin", 900)
    assert [fault.fault for fault in read_bin(str(tmp_path / "m.bin")).faults] == [Fault.TRUNCATED]


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"", Fault.EMPTY), (b"version https://git-lfs.github.com", Fault.LFS_POINTER), (b"hello", Fault.FOREIGN)],
)
def test_what_is_no_torch_file_is_told_as_what_it_is(tmp_path: Path, content: bytes, fault: Fault) -> None:
    """Empty, pointer and foreign files are told apart."""
    (tmp_path / "m").write_bytes(content)
    assert [one.fault for one in read_bin(str(tmp_path / "m")).faults] == [fault]


def test_another_zip_and_an_absent_file_are_faults(tmp_path: Path) -> None:
    """A zip without data.pkl is foreign; an absent file is unreadable."""
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        archive.writestr("a.txt", "x")
    assert read_bin(str(tmp_path / "m")).faults[0].fault is Fault.FOREIGN
    assert read_bin(str(tmp_path / "absent")).faults[0].fault is Fault.UNREADABLE


@given(hostile_bytes)
def test_hostile_bytes_do_not_escape(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever the file holds, the reader returns safe words."""
    path = tmp_path_factory.mktemp("b") / "m"
    path.write_bytes(b"PK\x03\x04" + data)
    assert all(is_safe(fault.words.en) for fault in read_bin(str(path)).faults)
