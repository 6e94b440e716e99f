"""Files for the owner's eyes are whole, private and never replace what they must not."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runbook.private import PRIVATE, Access, access_of, make_folder, write_at, write_below, write_new, write_whole


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


@contextmanager
def umask(value: int) -> Iterator[None]:
    """Let new files have at most what this mask leaves, unless somebody takes care."""
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    """Return the permission bits of a file or folder, with the bit that hands on its group."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o077])
@pytest.mark.parametrize(
    ("given", "folder", "file"),
    [(0o700, 0o700, 0o600), (0o750, 0o750, 0o640), (0o770, 0o2770, 0o660), (0o2770, 0o2770, 0o660)],
)
def test_what_is_made_follows_the_folder_it_is_made_for(
    tmp_path: Path, mask: int, given: int, folder: int, file: int
) -> None:
    """A group's folder gives its group what it may do itself, whatever the umask; the files in it follow."""
    top = tmp_path / "top"
    top.mkdir()
    top.chmod(given)
    with umask(mask):
        make_folder(str(top / "session"), access_of(top))
        path = write_below(str(top / "session"), ("changed", "here", "x"), b"content")
        write_below(str(top / "session"), ("changed", "here", "x"), b"again")
    assert path == str(top / "session" / "changed" / "here" / "x")
    assert Path(path).read_bytes() == b"again"
    assert [mode(top / "session"), mode(top / "session" / "changed"), mode(Path(path).parent)] == [folder] * 3
    assert mode(Path(path)) == file


@pytest.mark.parametrize("given", [0o700, 0o705, 0o707, 0o710, 0o720, 0o740, 0o760])
def test_a_folder_that_no_group_can_read_and_enter_is_its_owners(tmp_path: Path, given: int) -> None:
    """Without both read and enter for the group, what is made is for the owner alone; the world never counts."""
    tmp_path.chmod(given)
    assert access_of(tmp_path) == PRIVATE
    tmp_path.chmod(0o700)


def test_the_world_gets_nothing(tmp_path: Path) -> None:
    """A folder open to everybody gives its group what it may do, and the world nothing."""
    top = tmp_path / "top"
    top.mkdir()
    top.chmod(0o777)
    make_folder(str(top / "session"), access_of(top))
    assert mode(top / "session") == 0o2770
    assert access_of(tmp_path / "nowhere") == PRIVATE


def test_what_cannot_be_given_to_the_group_stays_the_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the group is not one's own, the file is written, and readable by nobody else."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    write_whole(str(tmp_path / "x"), b"content", access=Access(os.getgid() + 1, writes=True))
    assert (mode(tmp_path / "x"), (tmp_path / "x").read_bytes()) == (0o600, b"content")
