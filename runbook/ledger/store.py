"""The ledger: one file beside the sessions that says in which session which cause was confirmed, and what fixed it.

It is only ever appended to, one JSON line an entry, each by one write at the end of the file, so that many sessions on
one shared folder can write it without a lock. Invariants: nothing in it is needed, so whatever is wrong with it costs
no more than what it would have told: a line that is torn, too long or no entry is passed over, and only the last
READ bytes are read; it holds a fingerprint and words that were redacted, nothing else that is private to the run.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Sequence

import msgspec

from runbook.ledger.fingerprint import Fingerprint, begin
from runbook.private import access_of, share
from runbook.text import sanitise
from runbook.ticket.redact import Identity, Key, redact

LEDGER = "ledger.jsonl"
"""Name of the ledger in the folder of all sessions."""

READ = 8 * 1024 * 1024
"""Bytes that are read, from the end: some 30,000 entries."""

LONGEST = 4096
"""Bytes of a line; a longer one is none of ours."""

WORDS = 300
"""Characters of what a person says fixed it; the session holds all of it."""

NAME = 80
"""Characters of the name of a run."""

LATEST = 253402300799.0
"""The last second that a calendar of four digits has."""


class Confirmed(msgspec.Struct, frozen=True, tag="confirmed"):
    """A session confirmed a cause for the first time.

    time: seconds since the epoch. root: the last name of RUN. print: id of the fingerprint. text: what it was made
    from. root and text are redacted. run: `runbook.ledger.runs.identity_of` it, "" in entries of older versions.
    """

    time: float
    session: str
    root: str
    print: str
    cause: str
    flow: str
    node: str
    probe: str
    text: str
    run: str = ""


class Mended(msgspec.Struct, frozen=True, tag="fixed"):
    """A person said what fixed a cause of a session. cause: "" for all that it confirmed. words: redacted."""

    time: float
    session: str
    cause: str
    words: str


Entry = Confirmed | Mended

_DECODER = msgspec.json.Decoder(Entry)


def confirmed(
    made: Fingerprint,
    time: float,
    session: str,
    root: str,
    flow: str,
    node: str,
    identity: Identity,
    run: str = "",
    key: Key | None = None,
) -> Confirmed:
    """Return the entry of a cause. root: RUN as it was given. run: its identity.

    identity, key: what is private here, and what tickets of the session have hidden so far.
    """
    name = begin(sanitise(os.path.basename(root.rstrip("/"))), NAME)
    told = redact((name, made.text), identity, key).texts
    return Confirmed(time, session, told[0], made.id, made.cause, flow, node, made.probe, told[1], run)


def mended(time: float, session: str, cause: str, words: str, identity: Identity, key: Key | None = None) -> Mended:
    """Return the entry of what a person said fixed it. identity, key: as for `confirmed`."""
    return Mended(time, session, cause, redact((begin(sanitise(words), WORDS),), identity, key).texts[0])


def read(sessions: str | os.PathLike[str]) -> tuple[Entry, ...]:
    """Return the entries in the ledger of a folder of sessions, oldest first; none where it cannot be read."""
    try:
        descriptor = _open(sessions, os.O_RDONLY)
    except OSError:
        return ()
    with open(descriptor, "rb") as file:
        try:
            size = os.fstat(descriptor).st_size
            file.seek(max(0, size - READ))
            data = file.read(READ)
        except OSError:
            return ()
    if size > READ:
        data = data[data.find(b"\n") + 1 :]
    return tuple(entry for line in data.split(b"\n") if (entry := _entry(line)) is not None)


def append(sessions: str | os.PathLike[str], entries: Sequence[Entry]) -> None:
    """Add entries at the end, each on the disk when this returns. Raises OSError when they cannot be written."""
    if not entries:
        return
    descriptor = _open(sessions, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        for line in _lines(entries):
            ahead = b"" if _ends_whole(descriptor) else b"\n"
            whole = ahead + line
            if os.write(descriptor, whole) < len(whole):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open(sessions: str | os.PathLike[str], flags: int) -> int:
    """Open the ledger, which must be a plain file: a pipe would never answer, and a link may lead anywhere.

    A new one is for those who may use the folder.
    """
    path = os.path.join(sessions, LEDGER)
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no plain file", path)
    if flags & os.O_CREAT and not found.st_size and found.st_uid == os.geteuid():
        share(descriptor, access_of(sessions))
    return descriptor


def _lines(entries: Iterable[Entry]) -> Iterable[bytes]:
    for entry in entries:
        line = msgspec.json.encode(entry) + b"\n"
        if len(line) <= LONGEST:
            yield line


def _ends_whole(descriptor: int) -> bool:
    """Return whether the last line ends; one that a kill tore must not swallow the next."""
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"


def _entry(line: bytes) -> Entry | None:
    if not line or len(line) > LONGEST:
        return None
    try:
        entry = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return entry if 0 <= entry.time <= LATEST else None
