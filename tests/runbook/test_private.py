"""Files for the owner's eyes are whole, private and never replace what they must not."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runbook.private import write_at, write_new, write_whole


@contextmanager
def lax_umask() -> Iterator[None]:
    """Let new files be readable by all, unless somebody takes care."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("write", [write_new, write_whole])
def test_what_is_written_is_private(tmp_path: Path, write: object) -> None:
    """Mode 0600 also under a lax umask, the content as given, nothing else left in the folder."""
    assert callable(write)
    with lax_umask():
        write(str(tmp_path / "x"), b"content")
    assert (tmp_path / "x").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["x"]


def test_a_taken_name_is_replaced_only_when_allowed(tmp_path: Path) -> None:
    """Without `overwrite` a file that is there stays as it is and no draft is left; with it, it is replaced."""
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_new(str(path), b"new")
    with pytest.raises(FileExistsError):
        write_whole(str(path), b"new", overwrite=False)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]
    write_whole(str(path), b"new")
    assert path.read_bytes() == b"new"


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    """Where a link has the name, the link gives way; what it pointed to is not written."""
    (tmp_path / "theirs").write_bytes(b"theirs")
    (tmp_path / "x").symlink_to(tmp_path / "theirs")
    write_whole(str(tmp_path / "x"), b"mine")
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert not (tmp_path / "x").is_symlink()


def test_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without hard links the file is made anew, and a taken name is still refused."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    write_whole(str(tmp_path / "x"), b"one", overwrite=False)
    with pytest.raises(FileExistsError):
        write_whole(str(tmp_path / "x"), b"two", overwrite=False)
    assert (tmp_path / "x").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["x"]


def test_what_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk refuses, the error is the system's, the old file stays and no draft is left."""
    (tmp_path / "x").write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_whole(str(tmp_path / "x"), b"new")
    assert (tmp_path / "x").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that takes two bytes at a time still gets everything, at its place."""
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, content, offset: real(descriptor, content[:2], offset))
    (tmp_path / "x").write_bytes(b"ab---gh")
    descriptor = os.open(tmp_path / "x", os.O_RDWR)
    write_at(descriptor, b"cdefg", 2)
    os.close(descriptor)
    assert (tmp_path / "x").read_bytes() == b"abcdefg"
