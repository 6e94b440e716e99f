"""Open logs as streams of raw bytes, whatever they are packed in.

A job log has gigabytes and may be written to while it is read, so no file is ever loaded whole: `blocks` hands out
pieces that end at a line's end, from one reused buffer. Invariants: what is read never goes beyond the size the file
had when it was opened; a line longer than `LINE_LIMIT` is cut, never kept whole; whatever stops a read becomes a
`ReadProblem`, not an exception. Offsets of packed files count the unpacked bytes. How a file is packed is told by
its first bytes, not by its name.
"""

from __future__ import annotations

import gzip
import mmap
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

BUFFER = 256 * 1024
"""Bytes of one read: stays in the L2 cache, page aligned (measured: five times a bytearray)."""
LINE_LIMIT = 8 * 1024 * 1024
"""Bytes of a line that are looked at in one piece; a longer line is handed out in pieces of this size."""
HEAD = 4096
"""Bytes of the start of a cut line that its later pieces still carry, for a citation."""
FOLDER_LIMIT = 5000
"""Files of one folder that are taken; a Ray session folder of 256 GPUs has about 2000."""

_LOG_NAME = re.compile(r"\.(?:log|out|err|txt)(?:\.\d+)?(?:\.(?:gz|zst))?$")


@dataclass(frozen=True)
class LogFile:
    """One log. size: bytes on disk when it was listed. packing: "plain", "gzip" or "zstd"."""

    path: str
    size: int
    packing: str = "plain"


@dataclass(frozen=True)
class ReadProblem:
    """Why a log could not be read to its end.

    kind: "missing", "unreadable", "not-a-file", "shrank" (shorter than when it was opened), "grew" (still being
    written to; all that was there was read), "damaged" (packed data broken or cut off), "too-many" (a folder with
    more logs than FOLDER_LIMIT).
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
    offset when the piece continues a cut line, whose first bytes are then in `head`.
    """

    offset: int
    data: bytes
    line_offset: int
    head: bytes = b""


def expand(paths: Iterable[str]) -> tuple[tuple[LogFile, ...], tuple[ReadProblem, ...]]:
    """Return the log files that `paths` (files or folders) stand for, in order, and what could not be taken.

    A folder is searched to its bottom, without following links, for names of logs (.log, .out, .err, .txt, rotated,
    packed).
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
            for name in sorted(name for name in names if _LOG_NAME.search(name)):
                found += 1
                if found <= FOLDER_LIMIT:
                    _take(os.path.join(folder, name), files, problems)
        problems += [_problem(path, error) for error in refused]
        if found > FOLDER_LIMIT:
            problems.append(ReadProblem(path, "too-many", f"{found} files"))
    return tuple(files), tuple(problems)


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
        import zstandard

        source = open(file.path, "rb")  # noqa: SIM115 - closed with the reader that wraps it
        unpacker = zstandard.ZstdDecompressor()
        return cast("BinaryIO", unpacker.stream_reader(source, read_across_frames=True, closefd=True))
    return cast("BinaryIO", open(file.path, "rb", buffering=0))


def blocks(file: LogFile, problems: list[ReadProblem]) -> Iterator[Block]:
    """Yield the log in pieces cut at line ends; add to `problems` whatever kept it from being read whole."""
    try:
        with open_stream(file) as stream:
            yield from _cut_at_lines(stream, file, problems)
    except GeneratorExit:
        raise
    except Exception as error:
        problems.append(_problem(file.path, error))


def _cut_at_lines(stream: BinaryIO, file: LogFile, problems: list[ReadProblem]) -> Iterator[Block]:
    """Read into one buffer that doubles up to LINE_LIMIT while no line ends in it."""
    buffer = mmap.mmap(-1, BUFFER)
    size, kept, offset, line_offset, head = BUFFER, 0, 0, 0, b""
    limit = _size_now(stream, file)
    left = limit
    while True:
        want = size - kept if left is None else min(size - kept, left)
        with memoryview(buffer) as view, view[kept : kept + want] as free:
            got = stream.readinto(free) if want else 0  # type: ignore[attr-defined]
        if left is not None:
            left -= got
        end = kept + got
        if not got:
            if end:
                yield Block(offset, buffer[:end], line_offset, head)
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
    _compare_sizes(stream, file, limit, left, problems)


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

    A packed file is unpacked from its beginning, so this is for the few places that a finding cites.
    """
    start = max(start, 0)
    parts: list[bytes] = []
    try:
        with open_stream(file) as stream:
            if file.packing == "plain":
                stream.seek(start)
            else:
                _skip(stream, start)
            while length > 0 and (part := stream.read(min(length, BUFFER))):
                parts.append(part)
                length -= len(part)
    except Exception:
        return b"".join(parts)
    return b"".join(parts)


def _skip(stream: BinaryIO, count: int) -> None:
    """Read and drop `count` bytes."""
    while count > 0 and (part := stream.read(min(count, BUFFER))):
        count -= len(part)
