"""Open logs as streams of raw bytes, whatever they are packed in.

A job log has gigabytes and may be written to while it is read, so no file is ever loaded whole: `blocks` hands out
pieces that end at a line's end, from one reused buffer. Invariants: what is read never goes beyond the size the file
had when it was opened; a line longer than `LINE_LIMIT` is cut, never kept whole; whatever stops a read becomes a
`ReadProblem`, not an exception. Offsets of packed files count the unpacked bytes. How a file is packed is told by
its first bytes, not by its name. What log rotation has cut apart (`job.log.2.gz`, `job.log.1`, `job.log`) is one
stream, handed out oldest part first.
"""

from __future__ import annotations

import contextlib
import gzip
import mmap
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

from probes.readers import logpacked, zstd_stream

BUFFER = 256 * 1024
"""Bytes of one read: stays in the L2 cache, page aligned (measured: five times a bytearray)."""
WINDOW = 32 * 1024 * 1024
"""Bytes that a piece from the middle of a log is read in: what is not there takes no memory."""
LINE_LIMIT = 8 * 1024 * 1024
"""Bytes of a line that are looked at in one piece; a longer line is handed out in pieces of this size."""
HEAD = 4096
"""Bytes of the start of a cut line that its later pieces still carry, for a citation."""
FOLDER_LIMIT = 5000
"""Files of one folder that are taken; a Ray session folder of 256 GPUs has about 2000."""

_LOG_NAME = re.compile(
    r"(?P<base>.*\.(?:log|out|err|txt))"
    r"(?:\.(?P<number>\d{1,4})|[.-](?P<date>\d{4}-?\d\d-?\d\d(?:[-_T.]?\d{1,6})*))?(?:\.(?:gz|zst))?$",
    re.IGNORECASE,
)
_DATED_STEM = re.compile(
    r"(?P<stem>.*)-(?P<date>\d{8}(?:-\d{1,10})?)(?P<end>\.(?:log|out|err|txt))(?:\.(?:gz|zst))?$", re.IGNORECASE
)
"""Names that logrotate gives under `dateext` with `extension .log`; alone they may be the logs of several jobs."""
"""Names of logs; rotated ones carry a number (logrotate, Python, Ray: the highest is the oldest) or a date."""


@dataclass(frozen=True)
class LogFile:
    """One log, or one part of a rotated one.

    size: bytes on disk when it was listed. packing: "plain", "gzip" or "zstd". stream: the path that all parts of a
    rotated log share, the path itself for a log that stands alone. part: its place in the stream, 0 for the oldest.
    """

    path: str
    size: int
    packing: str = "plain"
    stream: str = ""
    part: int = 0

    def __post_init__(self) -> None:
        if not self.stream:
            object.__setattr__(self, "stream", self.path)


@dataclass(frozen=True)
class ReadProblem:
    """Why a log could not be read to its end.

    kind: "missing", "unreadable", "not-a-file", "shrank" (shorter than when it was opened), "grew" (still being
    written to; all that was there was read), "changed" (lines that were read before are others now), "damaged"
    (packed data broken or cut off), "too-many" (a folder with more logs than FOLDER_LIMIT).
    detail: the system's own words.
    """

    path: str
    kind: str
    detail: str = ""

    @property
    def harmless(self) -> bool:
        """Whether everything that was there has been read all the same."""
        return self.kind == "grew"


@dataclass(frozen=True)
class Block:
    """A piece of a log that ends at a line's end, at the end of the file or, within a long line, anywhere.

    offset: bytes from the start of the (unpacked) file. line_offset: where the first line in it begins; smaller than
    offset when the piece continues a cut line, whose first bytes are then in `head`. settled: whether every pass ends a
    piece where this one ends, however the log grows; False for a line at the end of the file that is still open.
    """

    offset: int
    data: bytes
    line_offset: int
    head: bytes = b""
    settled: bool = True


def expand(paths: Iterable[str]) -> tuple[tuple[LogFile, ...], tuple[ReadProblem, ...]]:
    """Return the log files that `paths` (files or folders) stand for, in order, and what could not be taken.

    A folder is searched to its bottom, without following links, for names of logs (.log, .out, .err, .txt, rotated,
    packed). The parts of a rotated log stand together, oldest first, where the first of them was named.
    """
    files: list[LogFile] = []
    problems: list[ReadProblem] = []
    for path in paths:
        if not os.path.isdir(path):
            _take(path, files, problems)
            continue
        found = 0
        refused: list[OSError] = []
        for folder, folders, names in os.walk(path, onerror=refused.append):
            folders.sort()
            for name in sorted(name for name in names if _LOG_NAME.match(name)):
                found += 1
                if found <= FOLDER_LIMIT:
                    _take(os.path.join(folder, name), files, problems)
        problems += [_problem(path, error) for error in refused]
        if found > FOLDER_LIMIT:
            problems.append(ReadProblem(path, "too-many", f"{found} files"))
    return _streams(files), tuple(problems)


def _streams(files: Iterable[LogFile]) -> tuple[LogFile, ...]:
    """Put the parts of each rotated log together, oldest first; everything else stays where it is."""
    sets: dict[str, list[tuple[tuple[int, str], LogFile]]] = {}
    listed = list(files)
    there = {file.path for file in listed}
    for file in listed:
        name, stem = _LOG_NAME.match(file.path), _DATED_STEM.match(file.path)
        base = name["base"] if name else file.path
        if stem and f"{stem['stem']}{stem['end']}" in there:
            base, age = f"{stem['stem']}{stem['end']}", (0, re.sub(r"\D", "", stem["date"]))
        elif name and name["number"]:
            age = (1, f"{9999 - int(name['number']):04d}")
        elif name and name["date"]:
            age = (0, re.sub(r"\D", "", name["date"]))
        else:
            age = (2, "")
        sets.setdefault(base, []).append((age, file))
    ordered: list[LogFile] = []
    for base, parts in sets.items():
        if len(parts) == 1:
            ordered.append(parts[0][1])
            continue
        parts.sort(key=lambda part: part[0])
        ordered += [replace(file, stream=base, part=number) for number, (_, file) in enumerate(parts)]
    return tuple(ordered)


def named_as_log(name: str) -> bool:
    """Whether a file is named as logs are, also when it was rotated or packed."""
    return _LOG_NAME.match(name) is not None


def _take(path: str, files: list[LogFile], problems: list[ReadProblem]) -> None:
    """Add a regular file to `files`, or the reason why not to `problems`; a pipe or device is never opened."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            problems.append(ReadProblem(path, "not-a-file", stat.filemode(status.st_mode)))
            return
        with open(path, "rb", buffering=0) as file:
            magic = file.read(4)
    except (OSError, ValueError) as error:
        problems.append(_problem(path, error))
        return
    packing = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd" if magic == b"\x28\xb5\x2f\xfd" else "plain"}.get(
        magic[:2], "plain"
    )
    files.append(LogFile(path, status.st_size, packing))


def _problem(path: str, error: BaseException) -> ReadProblem:
    """Turn what the system or an unpacker raised into a ReadProblem."""
    if isinstance(error, FileNotFoundError):
        return ReadProblem(path, "missing", str(error))
    damaged = isinstance(error, (EOFError, zlib.error, gzip.BadGzipFile)) or type(error).__name__ == "ZstdError"
    return ReadProblem(path, "damaged" if damaged else "unreadable", f"{type(error).__name__}: {error}")


def open_stream(file: LogFile) -> BinaryIO:
    """Open a log for reading raw, unpacked bytes. Raises OSError; reading may raise what the unpacker raises."""
    if file.packing == "gzip":
        return cast("BinaryIO", gzip.open(file.path, "rb"))
    if file.packing == "zstd":
        return zstd_stream.unpacked(file.path)
    return cast("BinaryIO", open(file.path, "rb", buffering=0))


def blocks(
    file: LogFile,
    problems: list[ReadProblem],
    start: int = 0,
    stream: BinaryIO | None = None,
    line_offset: int | None = None,
) -> Iterator[Block]:
    """Yield the log in pieces cut at line ends; add to `problems` whatever kept it from being read whole.

    start: where to begin, which must be the beginning of a line, or where a line of a plain log is cut that begins at
    `line_offset`. stream: the log where it is already open; it stays open.
    """
    try:
        with open_stream(file) if stream is None else contextlib.nullcontext(stream) as source:
            yield from _cut_at_lines(source, file, problems, start, start if line_offset is None else line_offset)
    except Exception as error:
        problems.append(_problem(file.path, error))


def _cut_at_lines(
    stream: BinaryIO, file: LogFile, problems: list[ReadProblem], start: int, line_offset: int
) -> Iterator[Block]:
    """Read into one buffer that doubles up to LINE_LIMIT while no line ends in it.

    Where a long line is cut depends only on where it begins, so that any `start` gives the same pieces.
    """
    buffer = mmap.mmap(-1, BUFFER)
    size, kept, offset = BUFFER, 0, start
    head = os.pread(stream.fileno(), HEAD, line_offset) if line_offset < start else b""
    limit = _size_now(stream, file)
    left = None if limit is None else max(limit - start, 0)
    _go_to(stream, file, start)
    trouble: Exception | None = None
    while True:
        want = size - kept if left is None else min(size - kept, left)
        got, trouble = (0, trouble) if trouble else _fill(stream, buffer, kept, want)
        left = None if left is None else left - got
        end = kept + got
        if not got:
            if end:
                yield Block(offset, buffer[:end], line_offset, head, settled=False)
            break
        cut = buffer.rfind(b"\n", kept, end) + 1
        if not cut and end < size:
            kept = end
        elif not cut and size < LINE_LIMIT:
            buffer, size, kept = _doubled(buffer, size), size * 2, end
        else:
            cut_line = not cut
            cut = cut or end
            yield Block(offset, buffer[:cut], line_offset, head)
            if cut_line:
                head = head or buffer[: min(HEAD, cut)]
            else:
                line_offset, head = offset + cut, b""
            offset += cut
            kept = end - cut
            buffer[:kept] = buffer[cut:end]
    if trouble is not None:
        problems.append(_problem(file.path, trouble))
    else:
        _compare_sizes(stream, file, limit, left, problems)


def _fill(stream: BinaryIO, buffer: mmap.mmap, kept: int, want: int) -> tuple[int, Exception | None]:
    """Read up to `want` bytes behind the `kept` ones; what was read before a fault in the file is still evidence.

    An unpacker is asked for what one step of its own gives: it drops what it has of a larger piece that it cannot fill.
    """
    read = getattr(stream, "readinto1", None) or stream.readinto  # type: ignore[attr-defined]
    got = 0
    try:
        with memoryview(buffer) as view, view[kept : kept + want] as free:
            while got < want and (part := read(free[got:])):
                got += part
    except Exception as error:
        return got, error
    return got, None


def _go_to(stream: BinaryIO, file: LogFile, start: int) -> None:
    """Move to a place in the (unpacked) log; a packed one must stand at its beginning."""
    if file.packing == "plain":
        stream.seek(start)
    else:
        _skip(stream, start)


def _doubled(buffer: mmap.mmap, size: int) -> mmap.mmap:
    """Return a buffer of twice the size with the same content."""
    larger = mmap.mmap(-1, size * 2)
    larger[:size] = buffer[:size]
    buffer.close()
    return larger


def _size_now(stream: BinaryIO, file: LogFile) -> int | None:
    """Return how many bytes of a plain file there are to read, None for a packed one."""
    return os.fstat(stream.fileno()).st_size if file.packing == "plain" else None


def _compare_sizes(
    stream: BinaryIO, file: LogFile, limit: int | None, left: int | None, problems: list[ReadProblem]
) -> None:
    """Note a plain file that is now shorter or longer than when it was opened."""
    if limit is None:
        return
    now = os.fstat(stream.fileno()).st_size
    if left or now < limit:
        problems.append(
            ReadProblem(file.path, "shrank", f"{limit} bytes when opened, {min(now, limit - (left or 0))} now")
        )
    elif now > limit:
        problems.append(ReadProblem(file.path, "grew", f"{limit} bytes when opened, {now} now"))


def window(file: LogFile, start: int, length: int) -> bytes:
    """Return up to `length` bytes from `start` on; empty where the file has none or cannot be read.

    A packed file can only be read forwards: pieces that are asked for in order cost one pass (`logpacked`).
    """
    start = max(start, 0)
    if file.packing != "plain":
        try:
            return logpacked.piece(file.path, file.packing, lambda: open_stream(file), start, length)
        except (OSError, ValueError):
            return b""
    parts: list[bytes] = []
    try:
        with open_stream(file) as stream:
            _go_to(stream, file, start)
            while length > 0 and (part := stream.read(min(length, WINDOW))):
                parts.append(part)
                length -= len(part)
    except Exception:
        return b"".join(parts)
    return b"".join(parts)


def _skip(stream: BinaryIO, count: int) -> None:
    """Read and drop `count` bytes."""
    while count > 0 and (part := stream.read(min(count, BUFFER))):
        count -= len(part)
