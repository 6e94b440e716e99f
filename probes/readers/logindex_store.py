"""The files in which hits of logs are kept: in the user's cache folder, one a log and set of signatures.

A file is a row of frames, each written by one append and guarded by a checksum that the file's own key seeds. What a
kill, a full disk or another program leaves behind is therefore one frame that does not check: reading stops before
it, and the next writer cuts it off. Writers hold a lock on the file, which the kernel lets go when they die; where
locks do not work nothing is written. Invariants: no text of a plain log is stored, only where to find it; folder 0700,
files 0600, and one that belongs to somebody else is not used; all of them together stay below LIMIT. Where nothing
can be kept, everything works without.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import xxhash

from probes.readers.logscan import Signature

FORMAT = b"slime-runbook log index 2"
"""Part of every key: a change of what is stored, or of how lines are cut, must change it."""
LIMIT = 256 << 20
"""Bytes that all index files may have together."""
MANY = 8192
"""Index files that stay; a Ray session folder of 256 GPUs has about 2000 logs."""
FILE_LIMIT = 64 << 20
"""Bytes of one index file, beyond which nothing is added to it."""
EDGE = 4096
"""Bytes at the start of a log, and before a place in it, by which it is known again."""
PATIENCE = 5.0
"""Seconds without a new segment after which a builder is waited for no longer."""
POLL = 0.02
"""Seconds between two looks at what a builder has done."""

_HEADER = 16
_MAGIC = b"SRLX"


class Kept(msgspec.Struct, array_like=True, frozen=True):
    """The hits of one signature in a segment.

    count: how many. rows: packed; four 64-bit numbers each: line, line_offset, offset and length of the text. texts:
    packed; of a packed log the text and the head of each hit, else empty.
    """

    count: int
    rows: bytes
    texts: bytes = b""


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """What was found between two places of a log at which a line begins or a long one is cut (`logfiles.blocks`).

    start, end: bytes. line: number of its first line. lines: line ends in it. before: hash of the EDGE bytes before
    `end`. size, mtime: of the log when it was read. kept: by number of the signature. last: nothing behind it can be
    kept of a log of this size; of a packed log with the `problem` (kind and detail) that ended it, if one did. open:
    bytes before `end` of the line that is cut there, 0 where one begins.
    """

    start: int
    end: int
    line: int
    lines: int
    before: int
    size: int
    mtime: int
    kept: dict[int, Kept]
    last: bool = False
    problem: tuple[str, str] | None = None
    open: int = 0


def cache_folder() -> str:
    """Return the folder of the index files: below SLIME_RUNBOOK_CACHE, else below the user's cache folder."""
    import platformdirs

    root = os.environ.get("SLIME_RUNBOOK_CACHE") or platformdirs.user_cache_dir("slime-runbook", appauthor=False)
    return os.path.join(root, "logs")


def edge_hash(descriptor: int, end: int) -> int:
    """Return the hash of up to EDGE bytes before `end` of a plain log. Raises OSError."""
    start = max(end - EDGE, 0)
    return xxhash.xxh3_64_intdigest(os.pread(descriptor, end - start, start))


def set_hash(signatures: Sequence[Signature]) -> bytes:
    """Return what tells one set of signatures, in their order, from another."""
    parts = [[each.label, each.literals, each.pattern.pattern, each.pattern.flags, each.reach] for each in signatures]
    return xxhash.xxh3_128_digest(msgspec.msgpack.encode(parts))


def key_of(descriptor: int, status: os.stat_result, wanted: bytes, *, packed: bool) -> bytes:
    """Return the key of a log: its device, inode and first bytes, and the signatures that are looked for.

    A packed log is another one when its size or time changes, for nothing can be appended to what was read.
    """
    known = [status.st_dev, status.st_ino, status.st_size if packed else 0, status.st_mtime_ns if packed else 0]
    head = xxhash.xxh3_128_digest(os.pread(descriptor, EDGE, 0))
    return xxhash.xxh3_128_digest(msgspec.msgpack.encode([FORMAT, known, head, wanted]))


@dataclass
class Store:
    """An open index file. good: bytes of it that have been read and check; ours: whether this process may write."""

    descriptor: int
    key: bytes
    good: int = 0
    ours: bool = False
    segments: list[Segment] = field(default_factory=list)

    @property
    def end(self) -> int:
        """How many bytes of the log the segments cover."""
        return self.segments[-1].end if self.segments else 0

    @property
    def line_offset(self) -> int:
        """Where the line begins that stands there: there, but for one that is cut."""
        return self.end - self.segments[-1].open if self.segments else 0

    @property
    def line(self) -> int:
        """The number of that line."""
        return self.segments[-1].line + self.segments[-1].lines if self.segments else 1

    def load(self) -> None:
        """Read on: add the segments that check and that continue each other."""
        for segment, end in _frames(self.descriptor, self.good, self.key):
            self.good = end
            if segment.start == self.end:
                self.segments.append(segment)

    def lock(self) -> bool | None:
        """Try to become the writer: True when this process is it, False when another is, None when none can be."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        self.ours = True
        return True

    def forget(self) -> None:
        """Disregard what was read; the next `load` begins anew."""
        self.segments, self.good = [], 0

    def clear(self) -> None:
        """Empty the file, as the writer."""
        self.forget()
        self._cut()

    def add(self, segment: Segment) -> None:
        """Append a segment, as the writer; a disk that does not take it ends the writing."""
        if not self.ours:
            return
        payload = msgspec.msgpack.encode(segment)
        if self.good + len(payload) > FILE_LIMIT:
            self.ours = False
            return
        frame = _MAGIC + len(payload).to_bytes(4, "little") + _check(payload, self.key) + payload
        try:
            if os.fstat(self.descriptor).st_size != self.good:
                self._cut()  # what a killed writer left, which does not check
            whole = os.pwrite(self.descriptor, frame, self.good) == len(frame)
        except OSError:
            whole = False
        if whole:
            self.good += len(frame)
            self.segments.append(segment)
        else:
            self._cut()
            self.ours = False

    def _cut(self) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self.descriptor, self.good)

    def close(self) -> None:
        """Close the file, which lets the lock go."""
        os.close(self.descriptor)


_decoder = msgspec.msgpack.Decoder(Segment)


def _check(payload: bytes, key: bytes) -> bytes:
    return xxhash.xxh3_64_digest(payload, seed=int.from_bytes(key[:8], "little"))


def _frames(descriptor: int, position: int, key: bytes) -> Iterator[tuple[Segment, int]]:
    """Yield the segments from `position` on, each with where its frame ends, up to the first that does not check."""
    while True:
        try:
            header = os.pread(descriptor, _HEADER, position)
            length = int.from_bytes(header[4:8], "little")
            if len(header) < _HEADER or header[:4] != _MAGIC or length > FILE_LIMIT:
                return
            payload = os.pread(descriptor, length, position + _HEADER)
            if len(payload) < length or _check(payload, key) != header[8:]:
                return
            segment = _decoder.decode(payload)
        except (OSError, msgspec.DecodeError):
            return
        position += _HEADER + length
        yield segment, position


def open_store(key: bytes) -> Store | None:
    """Open or make the index file of a key, making room for it; None where nothing can be kept."""
    folder = cache_folder()
    path = os.path.join(folder, key.hex())
    try:
        if not os.path.lexists(path):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if not _private(os.stat(folder), stat.S_ISDIR):
                return None
            _make_room(folder)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        if not _private(os.fstat(descriptor), stat.S_ISREG):
            os.close(descriptor)
            return None
        os.utime(descriptor)  # the oldest go first when room is needed
    except OSError:
        pass
    return Store(descriptor, key)


def prepare(store: Store, fits: Callable[[], bool], enough: Callable[[], bool]) -> None:
    """Load an index until it is enough, or this process is its writer, or whoever is does not get on.

    An index that does not fit the log is emptied, or disregarded.
    """
    seen, since = -1, time.monotonic()
    while True:
        store.load()
        if not fits():
            store.forget()
        elif enough():
            return
        writer = store.lock()
        if writer:
            store.load()
            if not fits():
                store.clear()
            return
        if store.good != seen:
            seen, since = store.good, time.monotonic()
        if writer is None or time.monotonic() - since > PATIENCE:
            return
        time.sleep(POLL)


def still_there(store: Store, descriptor: int) -> bool:
    """Return whether a plain log still begins with what the index has seen."""
    if not store.segments:
        return True
    last, status = store.segments[-1], os.fstat(descriptor)
    if status.st_size < last.end or (status.st_size == last.size and status.st_mtime_ns != last.mtime):
        return False
    return edge_hash(descriptor, last.end) == last.before


def _private(status: os.stat_result, kind: object) -> bool:
    """Return whether a file or folder is this user's own, and nobody else may write to it."""
    return callable(kind) and kind(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _make_room(folder: str) -> None:
    """Remove the files that were used longest ago until the limits are kept. Raises OSError."""
    with os.scandir(folder) as entries:
        files = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
    files.sort(key=lambda each: each[0].st_mtime_ns, reverse=True)
    total = 0
    for number, (status, path) in enumerate(files, start=1):
        total += status.st_size
        if total > LIMIT - FILE_LIMIT or number >= MANY:
            with contextlib.suppress(OSError):
                os.unlink(path)
