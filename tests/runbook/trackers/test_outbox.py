"""Tests of the outbox: what is on the disk, who may have written it, and who is sending it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.errors import UsageError
from runbook.ticket.outgoing import Attachment
from runbook.trackers import outbox as ob
from runbook.trackers.outbox import Content, Damaged, Entry, OutboxError, Step

CONTENT = Content(
    to="github:o/r",
    title="T",
    format="markdown",
    session="s",
    labels=("bug",),
    steps=(Step("create", "body", "a" * 32), Step("attach", file=0)),
    files=(Attachment("a.bin", "x/y", b"\x00\xff"),),
)


def stored(outbox: Path, content: Content = CONTENT) -> Entry:
    """Return an entry that was put into the outbox."""
    entry = ob.new_entry(content, 1_700_000_000.0)
    with ob.put(outbox, entry):
        pass
    return entry


def changed(outbox: Path, entry: Entry, change: Callable[[bytes], bytes]) -> Path:
    """Change the file of an entry and return its path."""
    path = outbox / entry.id / "entry.json"
    path.write_bytes(change(path.read_bytes()))
    return path


def test_an_entry_is_read_as_it_was_put(tmp_path: Path) -> None:
    """An entry comes back whole, from a file that only its owner can read, whatever the umask."""
    before = os.umask(0)
    try:
        entry = stored(tmp_path / "box")
    finally:
        os.umask(before)
    assert ob.read(tmp_path / "box", entry.id) == entry
    assert stat.S_IMODE((tmp_path / "box" / entry.id / "entry.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "box" / entry.id).stat().st_mode) == 0o700
    assert ob.entries(tmp_path / "box") == [entry]
    assert entry.id.startswith("20231114-221320-")


def test_progress_is_kept(tmp_path: Path) -> None:
    """What was done is on the disk when `save` returns, and says which files went along."""
    entry = stored(tmp_path)
    with ob.hold(tmp_path, entry.id) as held:
        held.save(msgspec.structs.replace(entry, done=("u",), item="7", url="https://x/7"))
        assert ob.read(tmp_path, entry.id).attached == ()
        held.save(msgspec.structs.replace(held.entry, done=("u", "v"), state="posted"))
    found = ob.read(tmp_path, entry.id)
    assert (found.done, found.item, found.state, found.attached) == (("u", "v"), "7", "posted", ("a.bin",))


def test_two_senders_do_not_send_one_entry(tmp_path: Path) -> None:
    """While one holds an entry another is told who; one who lost it to a third writes no more."""
    entry = stored(tmp_path)
    with ob.hold(tmp_path, entry.id) as first:
        with pytest.raises(OutboxError, match="being sent by"), ob.hold(tmp_path, entry.id):
            pass
        with pytest.raises(OutboxError, match="being sent by"):
            ob.drop(tmp_path, entry.id)
        with ob.hold(tmp_path, entry.id, take_over=True), pytest.raises(OutboxError, match="took over"):
            first.save(entry)
    with ob.hold(tmp_path, entry.id) as again:
        assert again.entry == entry


def test_a_sender_that_died_is_replaced(tmp_path: Path) -> None:
    """The lock of a process that is gone keeps nobody out."""
    entry = stored(tmp_path)
    pid = os.fork()
    if pid == 0:
        with ob.hold(tmp_path, entry.id):
            os._exit(0)
    os.waitpid(pid, 0)
    assert (tmp_path / entry.id / "lock").exists()
    with ob.hold(tmp_path, entry.id) as held:
        assert held.entry == entry


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda raw: raw[: len(raw) // 2], "no entry"),
        (lambda _: b"", "no entry"),
        (lambda _: b"\xff\xfe", "no entry"),
        (lambda _: b"[" * 100_000, "no entry"),
        (lambda raw: raw.replace(b"github:o/r", b"github:e/r"), "changed or damaged"),
        (lambda raw: raw.replace(b'"body"', b'"b\x1b[2Jdy"'), "no entry"),
        (lambda raw: raw.replace(b'"schema":1', b'"schema":2'), "newer version"),
        (lambda raw: raw.replace(b'"done":[]', b'"done":["a","b","c"]'), "more was done"),
        (lambda raw: raw.replace(b'"state":"waiting"', b'"state":"sent"'), "no entry"),
    ],
    ids=["torn", "empty", "binary", "deep", "address", "control", "schema", "done", "state"],
)
def test_a_damaged_entry_is_told_and_keeps_no_other_back(
    tmp_path: Path, change: Callable[[bytes], bytes], why: str
) -> None:
    """A damaged or changed entry is named with its file and reason; the others are there; it can be dropped."""
    bad, good = stored(tmp_path), stored(tmp_path)
    path = changed(tmp_path, bad, change)
    damaged = [one for one in ob.entries(tmp_path) if isinstance(one, Damaged)]
    assert [one.id for one in damaged] == [bad.id]
    assert str(path) in damaged[0].error.message
    assert why in damaged[0].error.message
    assert good in ob.entries(tmp_path)
    ob.drop(tmp_path, bad.id)
    assert ob.entries(tmp_path) == [good]
    assert not (tmp_path / bad.id).exists()


def test_a_changed_file_number_is_no_entry(tmp_path: Path) -> None:
    """A step that names no file is found even where the digest was made to fit."""
    content = msgspec.structs.replace(CONTENT, files=())
    entry = ob.new_entry(content, 1.0)
    (tmp_path / entry.id).mkdir()
    (tmp_path / entry.id / "entry.json").write_bytes(msgspec.json.encode(entry))
    os.chmod(tmp_path / entry.id, 0o700)
    os.chmod(tmp_path / entry.id / "entry.json", 0o600)
    with pytest.raises(OutboxError, match="names a file"):
        ob.read(tmp_path, entry.id)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_others_may_write_is_not_sent(tmp_path: Path, what: str) -> None:
    """An entry that a group or the world can write to could send a token anywhere: it is refused."""
    entry = stored(tmp_path)
    folder = tmp_path / entry.id
    os.chmod(folder if what == "folder" else folder / "entry.json", 0o722 if what == "folder" else 0o622)
    with pytest.raises(OutboxError, match="somebody else"):
        ob.read(tmp_path, entry.id)


def test_links_and_odd_files_are_no_entries(tmp_path: Path) -> None:
    """A link to an entry, a link in place of its file, a pipe and a foreign id are refused without being followed."""
    entry = stored(tmp_path / "elsewhere")
    box = tmp_path / "box"
    box.mkdir()
    (box / "linked").symlink_to(tmp_path / "elsewhere" / entry.id)
    for name in (entry.id, "pipe", "foreign"):
        (box / name).mkdir(0o700)
    (box / entry.id / "entry.json").symlink_to(tmp_path / "elsewhere" / entry.id / "entry.json")
    os.mkfifo(box / "pipe" / "entry.json", 0o600)
    (box / "foreign" / "entry.json").write_bytes(msgspec.json.encode(entry))
    os.chmod(box / "foreign" / "entry.json", 0o600)
    (box / "stray.txt").write_text("x")
    found = ob.entries(box)
    assert [one.id for one in found if isinstance(one, Damaged)] == [entry.id, "foreign", "linked", "pipe"]
    for one in found:
        ob.drop(box, one.id)
    assert ob.entries(box) == []
    assert ob.read(tmp_path / "elsewhere", entry.id) == entry


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """An outbox that cannot be made is an error that names it."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(OutboxError, match="cannot be made"),
        ob.put(tmp_path / "file" / "box", ob.new_entry(CONTENT, 1.0)),
    ):
        pass


def test_ids_are_found_by_their_ends(tmp_path: Path) -> None:
    """An entry is found by its id, its beginning or its last part; none and several are told apart."""
    entry = stored(tmp_path)
    other = stored(tmp_path)
    assert ob.find_id(tmp_path, entry.id) == entry.id
    assert ob.find_id(tmp_path, entry.id[-4:]) == entry.id
    with pytest.raises(UsageError, match="2 entries"):
        ob.find_id(tmp_path, "2023")
    for words in ("", "nothing", "../x"):
        with pytest.raises(UsageError):
            ob.find_id(tmp_path, words)
    assert other.id in ob.ids(tmp_path)
    assert ob.ids(tmp_path / "none") == []


@given(st.binary(max_size=60), st.integers(0, 10_000), st.booleans())
def test_whatever_the_file_holds_is_an_entry_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int, cut: bool
) -> None:
    """Bytes put into a file anywhere give the same entry or an OutboxError, nothing else."""
    box = tmp_path_factory.mktemp("box")
    entry = stored(box)
    raw = (box / entry.id / "entry.json").read_bytes()
    at %= len(raw)
    changed(box, entry, lambda raw: raw[:at] + noise + (b"" if cut else raw[at + len(noise) :]))
    try:
        found = ob.read(box, entry.id)
    except OutboxError:
        return
    assert found.content == CONTENT


def test_no_name_in_the_file_is_new(tmp_path: Path) -> None:
    """The file holds what its description says and no more: no token, no environment."""
    entry = stored(tmp_path)
    kept = json.loads((tmp_path / entry.id / "entry.json").read_bytes())
    assert set(kept) == {
        "id", "made", "content", "digest", "schema", "done", "item", "url", "tries", "state", "trouble",
        "folder", "again",
    }  # fmt: skip
    assert set(kept["content"]) == {"to", "title", "format", "session", "labels", "steps", "files"}
