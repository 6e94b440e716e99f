"""Members go in and come out as they were; what nobody's export wrote is refused before it is read."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.bundle import archive, form
from runbook.bundle.archive import is_bundle, pack, unpack
from runbook.errors import EvidenceError, RunbookError, UsageError

MEMBERS = {"manifest.json": b"{}", "journal.jsonl": b"x\n" * 50, "excerpts/001-job-log.jsonl": b"\xff\x00"}


def write(folder: Path, content: bytes) -> str:
    """Write a file and return its path."""
    (folder / "b.zip").write_bytes(content)
    return str(folder / "b.zip")


def zipped(*members: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    """Return an archive made with nothing but the standard library."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info, content in members:
            file.writestr(info, content)
    return made.getvalue()


def info(name: str, mode: int = stat.S_IFREG | 0o600) -> zipfile.ZipInfo:
    """Return a member with a mode."""
    made = zipfile.ZipInfo(name)
    made.create_system, made.external_attr = 3, mode << 16
    return made


def refusal(folder: Path, content: bytes) -> EvidenceError:
    """Return why a file is refused; it names the file and a remedy."""
    path = write(folder, content)
    with pytest.raises(EvidenceError) as raised:
        unpack(path)
    assert raised.value.message.startswith(f"{path}: ")
    assert "ask for it again" in raised.value.hint
    return raised.value


def test_members_come_out_as_they_went_in(tmp_path: Path) -> None:
    """Names, order and bytes are the same, and equal members give equal archives whatever the clock says."""
    content = pack(MEMBERS)
    found = unpack(write(tmp_path, content))
    assert list(found.items()) == list(MEMBERS.items())
    assert pack(dict(MEMBERS)) == content
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert {one.date_time for one in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {stat.S_IMODE(one.external_attr >> 16) for one in file.infolist()} == {0o600}


def test_a_bundle_is_known_by_its_begin(tmp_path: Path) -> None:
    """A file is told from a log, another zip, a folder, a pipe and nothing at all."""
    os.mkfifo(tmp_path / "pipe")
    assert is_bundle(write(tmp_path, pack(MEMBERS)))
    assert not is_bundle(write(tmp_path, b"start\nlog\n"))
    assert not is_bundle(write(tmp_path, zipped(("other.txt", b"x"))))
    assert not any(map(is_bundle, (str(tmp_path), str(tmp_path / "pipe"), str(tmp_path / "none"), "a\0b")))


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("../journal.jsonl", "../journal.jsonl"),
        ("/etc/passwd", "/etc/passwd"),
        ("excerpts/../../x.jsonl", ".."),
        ("excerpts\\..\\x.jsonl", "no member of this name"),
        ("excerpts/a/b.jsonl", "no member of this name"),
        ("other.txt", "no member of this name"),
        ("excerpts/\u202egnp.jsonl", "no member of this name"),
        ("ticket.\x1b[2J", "no member of this name"),
        ("excerpts/", "no member of this name"),
        ("C:journal.jsonl", "no member of this name"),
        ("manifest.json/x.json", "no member of this name"),
    ],
)
def test_no_other_name_is_taken(tmp_path: Path, name: str, word: str) -> None:
    """A name that leads out, hides, or is none of a bundle's is refused; nothing appears on the disk."""
    error = refusal(tmp_path, zipped(("manifest.json", b"{}"), (name, b"x")))
    assert word in error.message
    assert "\x1b" not in error.message
    assert [path.name for path in tmp_path.iterdir()] == ["b.zip"]


def encrypted() -> bytes:
    """Return an archive whose member says that it is encrypted."""
    content = bytearray(zipped(("manifest.json", b"{}")))
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: zipped(("manifest.json", b"{}"), ("manifest.json", b"[]")), "twice"),
        (lambda: zipped((info("journal.jsonl", stat.S_IFLNK | 0o777), b"/etc/passwd")), "no regular file"),
        (lambda: zipped((info("journal.jsonl", stat.S_IFIFO | 0o600), b"")), "no regular file"),
        (encrypted, "this member is encrypted"),
        (lambda: pack({f"excerpts/{i:04}.jsonl": b"" for i in range(form.MEMBERS + 1)}), "401 members"),
        (lambda: pack({"manifest.json": bytes(2 * 1024 * 1024)}), "1,048,576"),
        (lambda: pack({"journal.jsonl": bytes(30 * 1024 * 1024)}), "are packed into"),
        (lambda: b"a log\n" * 100, "no bundle"),
        (lambda: b"", "no bundle"),
        (lambda: pack(MEMBERS)[:-1], "its end is missing"),
        (lambda: pack(MEMBERS)[:100], "its end is missing"),
        (lambda: pack(MEMBERS) + b"more", "its end is missing"),
    ],
    ids=["twice", "link", "pipe", "encrypted", "many", "large", "bomb", "log", "empty", "torn", "half", "more"],
)
def test_what_no_export_writes_is_refused(tmp_path: Path, make: Callable[[], bytes], word: str) -> None:
    """Duplicates, links, pipes, encryption, too much, too dense, other files and torn ones are told apart."""
    assert word in refusal(tmp_path, make()).message


def test_sizes_are_judged_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that says it has a gigabyte is refused without one byte of it being unpacked."""
    content = bytearray(pack({"manifest.json": b"{}"}))
    struct.pack_into("<L", content, content.rindex(b"PK\x01\x02") + 24, 1 << 30)

    def never(*_: object) -> bytes:
        raise AssertionError("it was read")

    monkeypatch.setattr(archive, "_read", never)
    assert "1,073,741,824 bytes" in refusal(tmp_path, bytes(content)).message


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """A sparse file of a terabyte is refused by its size."""
    with (tmp_path / "b.zip").open("wb") as file:
        file.write(pack(MEMBERS))
        file.truncate(1 << 40)
    with pytest.raises(EvidenceError, match="1,099,511,627,776 bytes"):
        unpack(str(tmp_path / "b.zip"))


@pytest.mark.parametrize("name", ["none", "folder", "pipe"])
def test_what_is_no_file_is_a_usage_error(tmp_path: Path, name: str) -> None:
    """A missing file, a folder and a pipe that nobody writes to are named at once."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match=name):
        unpack(str(tmp_path / name))
    with pytest.raises(UsageError, match="null"):
        unpack(f"{tmp_path}/{name}\0")


def test_a_changed_byte_never_gives_other_members(tmp_path: Path) -> None:
    """One changed byte anywhere is an error of ours, or leaves every member as it was but for its name or mode."""
    content, path = pack(MEMBERS), tmp_path / "changed.zip"
    for at, byte in enumerate(content):
        for value in {0, 0xFF, *(byte ^ 1 << bit for bit in range(8))} - {byte}:
            path.write_bytes(content[:at] + bytes((value,)) + content[at + 1 :])
            found, refused = MEMBERS, f"{path}: "
            try:
                found = unpack(str(path))
            except RunbookError as error:
                refused = error.message
            assert list(found.values()) == list(MEMBERS.values()), (at, value)
            assert refused.startswith(f"{path}: "), (at, value)


@given(st.data())
def test_changed_bytes_are_an_error_of_ours(data: st.DataObject) -> None:
    """Whatever a few bytes are changed to, wherever, nothing but an error of ours comes of it."""
    content = bytearray(pack(MEMBERS))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = Path(os.environ["XDG_STATE_HOME"], "changed.zip")
    path.write_bytes(content)
    with contextlib.suppress(RunbookError):
        unpack(str(path))


def test_the_list_has_as_many_members_as_the_end_says(tmp_path: Path) -> None:
    """An end that tells fewer than are listed is a damaged bundle: a limit was judged by what it told."""
    content = bytearray(pack(MEMBERS))
    struct.pack_into("<H", content, len(content) - 12, 2)
    assert "its list has 3 members, and its end says 2" in refusal(tmp_path, bytes(content)).message
