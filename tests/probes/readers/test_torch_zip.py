"""Torch files of both formats and plain pickles open without torch, and each fault is told apart."""

from __future__ import annotations

import contextlib
import os
import pickle
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.bounded_read import read_torch_file
from probes.readers.dump_errors import DumpError, Fault
from tests.probes.readers.pickles import DUMPS, calling, torch_zip


def fault(path: Path) -> DumpError:
    """Return the error that reading a file ends in."""
    with pytest.raises(DumpError) as caught:
        read_torch_file(str(path))
    return caught.value


def test_the_three_containers_are_recognised_by_content(tmp_path: Path) -> None:
    """A zip, a plain pickle and the protocol they use do not depend on the name."""
    data = {"rollout_id": 3, "samples": [{"response": "ok"}]}
    (tmp_path / "a.bin").write_bytes(pickle.dumps(data, 4))
    torch_zip(tmp_path / "b.bin", pickle.dumps(data, 2))
    for name, container in (("a.bin", "pickle"), ("b.bin", "zip")):
        loaded = read_torch_file(str(tmp_path / name))
        assert (loaded.container, loaded.root) == (container, data)


def test_an_unsafe_file_names_what_it_would_have_run() -> None:
    """The shell command of the malicious dump is refused by the name of its callable."""
    error = fault(DUMPS / "malicious.pt")
    assert (error.fault, error.refused) == (Fault.UNSAFE, "posix.system")
    assert str(DUMPS) in str(error)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_a_zip_cut_anywhere_is_truncated(share: float, tmp_path: Path) -> None:
    """A file that a killed job left behind is called truncated, wherever it ends."""
    whole = (DUMPS / "coherent" / "0.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: int(len(whole) * share)])
    assert fault(tmp_path / "cut.pt").fault is Fault.TRUNCATED


def test_a_cut_pickle_is_truncated(tmp_path: Path) -> None:
    """A plain pickle that ends early is truncated, not foreign."""
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"samples": ["x" * 1000]}, 4)[:500])
    assert fault(tmp_path / "a.pkl").fault is Fault.TRUNCATED


def test_other_files_are_foreign_empty_or_unreadable(tmp_path: Path) -> None:
    """Text and other zips are foreign, no bytes are empty, a folder and a pipe are never opened."""
    (tmp_path / "empty.pt").write_bytes(b"")
    (tmp_path / "text.pt").write_text("hello")
    with zipfile.ZipFile(tmp_path / "other.pt", "w") as archive:
        archive.writestr("a.txt", "hello")
    os.mkfifo(tmp_path / "pipe.pt")
    os.symlink(tmp_path / "loop.pt", tmp_path / "loop.pt")
    assert fault(tmp_path / "empty.pt").fault is Fault.EMPTY
    assert fault(tmp_path / "text.pt").fault is Fault.FOREIGN
    assert fault(tmp_path / "other.pt").fault is Fault.FOREIGN
    for name in ("pipe.pt", "loop.pt", "absent.pt", "."):
        assert fault(tmp_path / name).fault is Fault.UNREADABLE


def test_a_compressed_zip_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """torch.save never compresses, so 200 MB in 200 kB are not unpacked."""
    bomb = pickle.dumps({"samples": "0" * 200_000_000}, 2)
    path = torch_zip(tmp_path / "bomb.pt", bomb, method=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1_000_000
    assert fault(path).fault is Fault.UNSAFE


def test_a_zip_that_claims_more_than_it_has_is_refused(tmp_path: Path) -> None:
    """Entries that overlap or lie about their size do not make the reader read more than the file."""
    path = torch_zip(tmp_path / "lie.pt", pickle.dumps({"samples": []}, 2))
    raw = bytearray(path.read_bytes())
    at = raw.rfind(b"PK\x01\x02")
    raw[at + 24 : at + 28] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(bytes(raw))
    assert fault(path).fault is Fault.UNSAFE


def test_a_call_of_a_foreign_function_is_unsafe(tmp_path: Path) -> None:
    """Also a callable of an unknown package is refused by name."""
    path = torch_zip(tmp_path / "x.pt", calling("evil.module run", "now"))
    assert (fault(path).fault, fault(path).refused) == (Fault.UNSAFE, "evil.module.run")


@given(cut=st.integers(0, 1400), byte=st.integers(0, 255))
def test_a_damaged_file_only_raises_dump_errors(cut: int, byte: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever byte is changed, the reader returns or says which fault it met."""
    raw = bytearray((DUMPS / "malicious.pt").read_bytes())
    raw[cut % len(raw)] = byte
    path = tmp_path_factory.mktemp("damaged") / "x.pt"
    path.write_bytes(bytes(raw))
    with contextlib.suppress(DumpError):
        assert read_torch_file(str(path)).container in ("zip", "pickle", "legacy")
