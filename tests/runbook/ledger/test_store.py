"""Tests of runbook.ledger.store: many writers lose nothing, and nothing in the file can do harm."""

from __future__ import annotations

import multiprocessing
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.ledger import store
from runbook.ledger.fingerprint import Fingerprint
from runbook.ledger.store import Confirmed, Entry, Mended
from runbook.ticket.redact import Identity

PRINT = Fingerprint("0123456789abcdef", "boom", "p.x", "host <host> says boom at #")


def entry(session: str = "s1", time: float = 1.0, print: str = PRINT.id, cause: str = "boom") -> Confirmed:
    """Return the entry of one confirmed cause."""
    return Confirmed(time, session, "run", print, cause, "flow", "node", "p.x", "boom at #")


def write_many(folder: str, writer: int, count: int) -> None:
    """Append entries one by one, as a session does."""
    for number in range(count):
        store.append(folder, (entry(f"w{writer}", float(number)),))


def test_what_was_written_is_read_in_its_order(tmp_path: Path) -> None:
    """Entries of both kinds come back as they were; a folder without a ledger has none."""
    assert store.read(tmp_path) == ()
    assert store.read(tmp_path / "missing") == ()
    first: tuple[Entry, ...] = (entry(), Mended(2.0, "s1", "boom", "it was the cable — 换线"))
    store.append(tmp_path, first)
    store.append(tmp_path, (entry("s2"),))
    assert store.read(tmp_path) == (*first, entry("s2"))


def test_eight_processes_lose_nothing(tmp_path: Path) -> None:
    """Sessions that end at once all stand in the ledger, each line whole, in each one's order."""
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(str(tmp_path), n, 25)) for n in range(8)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert [one.exitcode for one in writers] == [0] * 8
    entries = [one for one in store.read(tmp_path) if isinstance(one, Confirmed)]
    for n in range(8):
        assert [one.time for one in entries if one.session == f"w{n}"] == list(map(float, range(25)))
    lines = (tmp_path / store.LEDGER).read_bytes().split(b"\n")
    assert len([line for line in lines if line]) == 200  # one that saw another's half-written line begins a new one


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    """A writer that was killed in the middle of a line does not swallow the next entry."""
    store.append(tmp_path, (entry("before"),))
    with open(tmp_path / store.LEDGER, "ab") as file:
        file.write(b'{"type":"confirmed","time":3,"sess')
    store.append(tmp_path, (entry("after"),))
    assert [one.session for one in store.read(tmp_path)] == ["before", "after"]


HOSTILE_LINES = [
    b"",
    b"no json",
    b'{"type":"confirmed"}',
    b'{"type":"other","time":1}',
    b'{"type":"fixed","time":-1,"session":"s","cause":"","words":""}',
    b'{"type":"fixed","time":1e300,"session":"s","cause":"","words":""}',
    b'{"type":"fixed","time":NaN,"session":"s","cause":"","words":""}',
    b"[" * 3000,
    b"\xff\xfe\x00",
    b'{"type":"fixed","time":1,"session":"s","cause":"","words":"' + b"x" * 100_000 + b'"}',
]


def test_hostile_lines_are_passed_over(tmp_path: Path) -> None:
    """What is no entry, has no time, or is too long is not read; what stands between is."""
    lines = [line for bad in HOSTILE_LINES for line in (bad, msgspec.json.encode(entry("good")))]
    (tmp_path / store.LEDGER).write_bytes(b"\n".join(lines) + b"\n")
    assert store.read(tmp_path) == (entry("good"),) * len(HOSTILE_LINES)


@given(st.binary(max_size=400))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever is in the file, reading it gives entries or nothing, and writing goes on behind it."""
    folder = tmp_path_factory.mktemp("any")
    (folder / store.LEDGER).write_bytes(data)
    before = store.read(folder)
    store.append(folder, (entry("mine"),))
    assert store.read(folder) == (*before, entry("mine"))


def test_only_the_end_of_a_huge_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the oldest entries are not looked at, and the line at the edge is not read in part."""
    line = len(msgspec.json.encode(entry("a0000"))) + 1
    store.append(tmp_path, tuple(entry(f"a{n:04}") for n in range(100)))
    monkeypatch.setattr(store, "READ", 10 * line + line // 2)
    assert [one.session for one in store.read(tmp_path)] == [f"a{n:04}" for n in range(90, 100)]


def test_what_is_no_plain_file_is_left_alone(tmp_path: Path) -> None:
    """A pipe, a folder or a link in the ledger's place is not waited for, followed or written."""
    other = tmp_path / "other"
    other.write_text("")
    makers: list[Callable[[Path], None]] = [os.mkfifo, os.mkdir, lambda path: os.symlink(other, path)]
    for number, make in enumerate(makers):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder / store.LEDGER)
        assert store.read(folder) == ()
        with pytest.raises(OSError, match=store.LEDGER):
            store.append(folder, (entry(),))
    assert other.read_text() == ""


def test_it_is_for_whom_the_folder_is_for(tmp_path: Path) -> None:
    """In a private folder it is the owner's; in one that a group writes to, the group writes it, whatever the umask."""
    old = os.umask(0o077)
    try:
        for mode, expected in ((0o700, 0o600), (0o2770, 0o660), (0o755, 0o640)):
            folder = tmp_path / f"{mode:o}"
            folder.mkdir()
            folder.chmod(mode)
            store.append(folder, (entry(),))
            assert stat.S_IMODE((folder / store.LEDGER).stat().st_mode) == expected
    finally:
        os.umask(old)


def test_nothing_private_is_kept() -> None:
    """Names of machines and people, tokens and paths do not stand in an entry; RUN is only its last name."""
    identity = Identity(("jdoe",), ("login7",))
    made = Fingerprint(
        "0" * 16, "boom", "p.x", "jdoe on login7 with --wandb-key 0123456789abcdef0123456789abcdef01234567"
    )
    kept = store.confirmed(made, 1.0, "s", "/home/jdoe/runs/login7-test/", "f", "n", identity)
    said = store.mended(
        1.0, "s", "", "asked jdoe@corp.com, export HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", identity
    )
    whole = msgspec.json.encode((kept, said)).decode()
    for private in ("jdoe", "login7", "/home", "0123456789abcdef0123", "corp.com", "hf_AbCd"):
        assert private not in whole, private
    assert kept.print == made.id


def test_long_words_fit_into_a_line(tmp_path: Path) -> None:
    """A novel about the fix is cut, so that the entry is written at all."""
    store.append(tmp_path, (store.mended(1.0, "s", "", "换线" * 10_000, Identity()),))
    (kept,) = store.read(tmp_path)
    assert isinstance(kept, Mended)
    assert len(kept.words) == store.WORDS
