"""The journal: a session's events on disk, one JSON line each, only ever appended to.

Invariants: an event is on the disk when `append` returns; a kill, a full disk or a cut cable at any byte costs at
most the event being written; what was written is never changed, so the file is a whole record of the session. The
first line is a header. A line that this version does not know is kept and passed over. Python's JSON superset is used
for what JSON cannot say (NaN, infinity, bytes of file names that are no UTF-8), so that no finding can fail to be
written. Whoever takes a session over from a holder that may still run goes on in a new file with the same content
under the same name: a holder that was stopped in the middle of writing wakes over a file that nobody reads any more.
An event counts as written only when the lock was still held after it was on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from runbook import __version__
from runbook.errors import LostError, SessionError
from runbook.private import PRIVATE, Access, access_of, make_folder, sync_folder, write_at, write_whole
from runbook.session.events import Event, FlowStarted, Found, Left, Opened, Record
from runbook.session.lock import Holder, Lock, acquire
from runbook.session.log import told
from runbook.text import Text, sanitise

JOURNAL = "journal.jsonl"
"""Name of the journal in the session folder."""
TOOL = "slime-runbook"
SCHEMA = 1
"""Raised when a reader of an older version could misread a newer journal; a new kind of event does not raise it."""

_KINDS = frozenset(kind.__struct_config__.tag for kind in get_args(Event))
_SEE_WHAT_THEY_ADDED = "leave this one, and open the session again to see what they added"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Header(msgspec.Struct, frozen=True):
    """First line of a journal.

    version: of the tool. began: seconds since the epoch. flows: id to content hash of every flow that was there.
    """

    tool: str
    schema: int
    version: str
    id: str
    began: float
    flows: dict[str, str] = {}


@dataclass(frozen=True)
class Loaded:
    """A journal as read. next: number of the next record. size: bytes of the whole lines. torn: what follows them."""

    header: Header
    records: tuple[Record, ...]
    warnings: tuple[Text, ...]
    next: int
    size: int
    torn: bytes


class Journal:
    """A journal open for writing; hold it only as long as its lock. Use it as a context manager, or call `close`.

    records, warnings: what was in it when it was opened.
    """

    def __init__(self, folder: str, lock: Lock, loaded: Loaded, warnings: tuple[Text, ...]) -> None:
        self.folder = Path(folder)
        self.id = loaded.header.id
        self.header = loaded.header
        self.records = loaded.records
        self.warnings = warnings
        self._path = os.path.join(folder, JOURNAL)
        self._lock = lock
        self._next = loaded.next
        self._size = loaded.size
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)

    @staticmethod
    def create(
        sessions: str | os.PathLike[str],
        now: float,
        flows: Mapping[str, str] | None = None,
        access: Access = PRIVATE,
    ) -> Journal:
        """Begin a session in a new folder under `sessions` (made when missing) and return its journal, locked.

        now: seconds since the epoch. flows: id to content hash of the flows at hand. access: who may use the session.
        Raises SessionError when the folder cannot be made or written.
        """
        try:
            os.makedirs(sessions, mode=0o700, exist_ok=True)
            folder = _new_folder(os.fspath(sessions), now, access)
            lock = acquire(folder)
            header = Header(TOOL, SCHEMA, __version__, os.path.basename(folder), now, dict(flows or {}))
            line = msgspec.json.encode(header) + b"\n"
            write_whole(os.path.join(folder, JOURNAL), line, access=access_of(folder))
            sync_folder(folder)
            sync_folder(os.fspath(sessions))
        except OSError as error:
            raise SessionError(
                f"{os.fspath(sessions)}: cannot begin a session: {error.strerror}",
                "choose another folder for sessions, or make room",
            ) from error
        return Journal(folder, lock, Loaded(header, (), (), 0, len(line), b""), ())

    @staticmethod
    def open(folder: str | os.PathLike[str], *, take_over: bool = False, instead_of: Holder | None = None) -> Journal:
        """Open a kept session to go on with it.

        A torn last line is cut off, its bytes kept in a file beside the journal and named in `warnings`. take_over,
        instead_of: see `runbook.session.lock.acquire`. Raises HeldError when it is locked, SessionError when it is
        damaged before its last line, or unreadable.
        """
        folder = os.fspath(folder)
        path = os.path.join(folder, JOURNAL)
        if not os.path.isfile(path):
            raise SessionError(f"{path}: there is no journal", "name a session's folder")
        lock = acquire(folder, take_over=take_over, instead_of=instead_of)
        try:
            if lock.taken:
                _go_on_elsewhere(path)
            loaded = load(path)
            warnings = loaded.warnings
            if loaded.torn:
                warnings = (*warnings, _set_aside(path, loaded))
            return Journal(folder, lock, loaded, warnings)
        except BaseException:
            lock.release()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def append(self, event: Event, now: float) -> Record:
        """Write one event and return its record once it is on the disk.

        Raises LostError when somebody took the session over, SessionError when it cannot be written for another
        reason; the journal is then as it was before, and stays usable.
        """
        if self._descriptor < 0:
            raise SessionError(f"{self._path}: the session was closed", "open it again")
        if not self.held():
            raise LostError(
                f"{self._path}: somebody took this session over; not written: {told(event)}",
                _SEE_WHAT_THEY_ADDED,
                what=_lost(event),
            )
        record = Record(self._next, now, event)
        line = encode(record)
        self._cut_back()
        try:
            write_at(self._descriptor, line, self._size)
            os.fsync(self._descriptor)
            still = self.held()
        except (OSError, SessionError) as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            if isinstance(error, SessionError):
                raise
            hint = "make room and repeat it; the session is whole" if error.errno in _FULL else "see to the file system"
            raise SessionError(f"{self._path}: the last event was not written: {error.strerror}", hint) from error
        if not still:
            raise LostError(
                f"{self._path}: somebody took this session over while this was being written: {told(event)}",
                f"it may be missing; {_SEE_WHAT_THEY_ADDED}",
                what=_lost(event),
            )
        self._size += len(line)
        self._next += 1
        return record

    def held(self) -> bool:
        """Return whether the session is still ours to write; costs one small read. Raises as `Lock.held`."""
        return self._lock.held()

    def close(self) -> None:
        """Close the file and give up the lock; harmless when repeated."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._lock.release()

    def _cut_back(self) -> None:
        """Remove what an interrupted append left behind the last whole record."""
        try:
            size = os.fstat(self._descriptor).st_size
            if size > self._size:
                os.ftruncate(self._descriptor, self._size)
        except OSError as error:
            raise SessionError(
                f"{self._path}: cannot be written: {error.strerror}", "see to the file system"
            ) from error
        if size < self._size:
            raise SessionError(
                f"{self._path}: somebody shortened the journal while it was open", "open the session again"
            )


def _lost(event: Event) -> str:
    """Return what a person has to do again, "" for what the program does again by itself."""
    return "" if isinstance(event, Found | FlowStarted | Left | Opened) else told(event)


def read(folder: str | os.PathLike[str]) -> tuple[tuple[Record, ...], tuple[Text, ...]]:
    """Return the records of a session and what a person should know about them; needs no lock and changes nothing.

    Raises SessionError when the journal is damaged before its last line or cannot be read.
    """
    loaded = load(os.path.join(folder, JOURNAL))
    if not loaded.torn:
        return loaded.records, loaded.warnings
    path, size = sanitise(os.path.join(folder, JOURNAL)), len(loaded.torn)
    torn = Text(
        f"{path}: the last line is torn ({size} bytes) and was passed over",
        f"{path}：最后一行不完整（{size} 字节），已跳过",
    )
    return loaded.records, (*loaded.warnings, torn)


def load(path: str) -> Loaded:
    """Read and check a whole journal; raises SessionError as `decode` does, and when it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SessionError(f"{path}: cannot be read: {error.strerror}", "check the path and its rights") from error
    return decode(path, data)


def decode(path: str, data: bytes) -> Loaded:
    """Return the content of a journal, checked. path: its name in messages.

    Raises SessionError naming file and line when it is no journal, newer than this version can read, or damaged
    before its last line.
    """
    lines = data.split(b"\n")
    header = decode_header(path, lines[0] if len(lines) > 1 else b"")
    records: list[Record] = []
    warnings: list[Text] = []
    size = len(lines[0]) + 1
    last = len(lines) - 2
    expected = 0
    for index in range(1, last + 1):
        line = lines[index]
        try:
            found = parse(line)
            _check_number(found, expected)
        except (ValueError, RecursionError) as error:
            if index == last:
                break
            raise _damaged(path, index + 1, len(records), _whole(lines[index + 1 : last + 1]), str(error)) from error
        if isinstance(found, int):
            place = f"{sanitise(path)}, line {index + 1}"
            warnings.append(
                Text(
                    f"{place}: an event of a kind that this version does not know was passed over",
                    f"{place}：本版本不认识的事件，已跳过",
                )
            )
        else:
            records.append(found)
        expected += 1
        size += len(line) + 1
    return Loaded(header, tuple(records), tuple(warnings), expected, size, data[size:])


def decode_header(path: str, line: bytes) -> Header:
    """Return the header; raises SessionError when this is no journal that this version can read."""
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SessionError(
            f"{path}, line 1: this is no journal: its header is damaged", "restore it from a copy"
        ) from error
    if header.tool != TOOL:
        raise SessionError(f"{path}, line 1: this is a journal of another tool", "name a session's folder")
    if header.schema > SCHEMA:
        raise SessionError(
            f"{path}, line 1: version {header.version} wrote this journal in a format that this version cannot read",
            "install that version or a newer one",
        )
    return header


def encode(record: Record) -> bytes:
    """Return the line of a record, with its newline."""
    plain = msgspec.to_builtins(record)
    return json.dumps(plain, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def parse(line: bytes) -> Record | int:
    """Return the record of a line, or its number when its kind is unknown; raises ValueError when damaged."""
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(line, type=Record)
    try:
        plain: Any = json.loads(line.decode("utf-8"))
    except ValueError as error:
        raise ValueError("it is no JSON") from error
    try:
        return msgspec.convert(plain, type=Record)
    except msgspec.ValidationError as error:
        number, kind = _unknown_kind(plain)
        if number is None:
            raise ValueError(f"it is no event of the kind {kind!r}: {error}") from error
        return number


def _unknown_kind(plain: Any) -> tuple[int | None, object]:
    """Return the number of a record whose kind this version does not know (None when it is not that) and its kind."""
    event = plain.get("event") if isinstance(plain, dict) else None
    kind = event.get("type") if isinstance(event, dict) else None
    known = not isinstance(kind, str) or kind in _KINDS
    number = plain.get("n") if isinstance(plain, dict) else None
    return (number if isinstance(number, int) and not known else None), kind


def _check_number(found: Record | int, expected: int) -> None:
    number = found if isinstance(found, int) else found.n
    if number != expected:
        raise ValueError(f"record {expected} is expected, this is {number}")


def _whole(lines: list[bytes]) -> int:
    """Return how many of the lines could be read."""
    count = 0
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            parse(line)
            count += 1
    return count


def _damaged(path: str, line: int, before: int, after: int, why: str) -> SessionError:
    return SessionError(
        f"{path}, line {line}: the journal is damaged: {why}",
        f"{before} events before it and {after} after it are whole; "
        f"in a copy of the folder, a journal cut to its first {line - 1} lines opens as a session",
    )


def _set_aside(path: str, loaded: Loaded) -> Text:
    """Cut the torn line off the journal, keep its bytes beside it and return what a person should know."""
    aside = f"{path}.torn-{secrets.token_hex(3)}"
    try:
        write_whole(aside, loaded.torn, access=access_of(os.path.dirname(path)))
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, loaded.size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SessionError(f"{path}: the torn last line cannot be cut off: {error.strerror}", "make room") from error
    size, kept = len(loaded.torn), os.path.basename(aside)
    return Text(
        f"{sanitise(path)}: the last line was torn; its {size} bytes are kept in {kept}",
        f"{sanitise(path)}：最后一行不完整；其 {size} 字节保存在 {kept}",
    )


def _go_on_elsewhere(path: str) -> None:
    """Put a new file with the same content in the journal's place, out of reach of who still has the old one open."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        write_whole(path, content, access=access_of(os.path.dirname(path)))
    except OSError as error:
        raise SessionError(
            f"{path}: cannot be taken over: {error.strerror}", "make room, or see to its rights"
        ) from error


def _new_folder(sessions: str, now: float, access: Access) -> str:
    """Make a folder whose name sorts by time and is not taken."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    while True:
        folder = os.path.join(sessions, f"{stamp}-{secrets.token_hex(3)}")
        with contextlib.suppress(FileExistsError):
            make_folder(folder, access)
            return folder
