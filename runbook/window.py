"""Reads a piece of a file around a place, line by line, never the whole file. Blocking: call it on a thread.

Fronts read through a `Source`, so that what was kept of a file can stand for it where the file is not.

Invariants: at most LINES lines of at most LINE_BYTES bytes are kept, whatever the file holds; a line without an end
is cut into pieces; the file may grow, shrink or vanish between two reads; line numbers are known only when the
place's own number was, and are counted from it.
"""

from __future__ import annotations

import gzip
import itertools
import os
import stat
from dataclasses import dataclass, replace
from typing import IO, Any, Protocol

from runbook.finding import Citation
from runbook.text import sanitise

CHUNK = 128 * 1024
LINES = 3000
HALF = LINES // 2
LINE_BYTES = 4096
FOLDER_NAMES = 500
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Line:
    """One line.

    offset: of its first byte. raw: its first LINE_BYTES bytes without the end of line. size: bytes with it. number:
    1-based or None.

    part: it goes on a line that was too long for one piece. hole: it stands for `size` bytes that were not kept, -1
    where their number is not known.
    """

    offset: int
    raw: bytes
    size: int
    number: int | None = None
    part: bool = False
    hole: bool = False


@dataclass(frozen=True)
class Window:
    """What is in memory of a file.

    kind: "text", "binary", "folder", "missing", "absent" for what nobody kept, or "url" for an address. why: of what
    is missing. at: index of the line asked for, None when it is not in `lines`. note: key of UI words about the place,
    "" when all is well.
    """

    path: str
    kind: str
    lines: tuple[Line, ...] = ()
    size: int = 0
    at: int | None = None
    ends: tuple[bool, bool] = (True, True)
    packed: bool = False
    why: str = ""
    note: str = ""


class Source(Protocol):
    """Where windows come from. Both methods may block and never raise."""

    def open(self, path: str, citation: Citation | None = None, *, tail: bool = False) -> Window:
        """Return the window around a citation, at the start without one, or at the end with `tail`."""

    def extend(self, window: Window, *, after: bool) -> Window:
        """Return the window with more lines at one side and as many fewer at the other."""


def open_window(path: str, citation: Citation | None = None, *, tail: bool = False) -> Window:
    """Return the window around a citation, at the start of the file without one, or at its end with `tail`.

    Never raises.
    """
    try:
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                names = sorted(
                    entry.name + ("/" if entry.is_dir() else "") for entry in itertools.islice(entries, FOLDER_NAMES)
                )
            return Window(path, "folder", tuple(Line(i, os.fsencode(n), 0) for i, n in enumerate(names)))
        return _open_file(path, citation, tail=tail)
    except (OSError, EOFError, ValueError) as error:
        return Window(path, "missing", why=_reason(error))


def _open_file(path: str, citation: Citation | None, *, tail: bool) -> Window:
    with _opened(path) as plain:
        magic = plain.read(4)
        size = os.fstat(plain.fileno()).st_size
    packed = magic[:2] == GZIP or magic == ZSTD
    if b"\0" in _read(path, 0, CHUNK // 16) and not (citation and citation.line):
        return Window(path, "binary", size=size)
    offset = citation.offset or 0 if citation else 0
    number = citation.line if citation else 1
    note = ""
    if not packed and offset > size:
        offset, number, note, tail = size, None, "file_short", True
    if tail and not packed:
        return replace(_before(Window(path, "text", (), size, None, (False, True)), size), at=None, note=note)
    window = _after(Window(path, "text", (), -1 if packed else size, 0, (offset == 0, False), packed), offset, number)
    if not window.lines:
        window = replace(window, at=None)
    elif citation and citation.excerpt and _differs(window.lines[0].raw, citation.excerpt):
        window = replace(window, note="file_changed")
    return _before(window, offset) if offset else window


def extend(window: Window, *, after: bool) -> Window:
    """Return the window with more lines at one side and as many fewer at the other.

    Never raises; `at` follows its line.
    """
    if window.kind != "text" or not window.lines or window.ends[after]:
        return window
    try:
        if after:
            last = window.lines[-1]
            number = None if last.number is None else last.number + (0 if last.part else 1)
            return _after(window, last.offset + last.size, number)
        return _before(window, window.lines[0].offset)
    except (OSError, EOFError, ValueError) as error:
        return replace(window, why=_reason(error))


class Files:
    """The file system as a source."""

    def open(self, path: str, citation: Citation | None = None, *, tail: bool = False) -> Window:
        """Return a window of the file at `path`."""
        return open_window(path, citation, tail=tail)

    def extend(self, window: Window, *, after: bool) -> Window:
        """Return a window further on."""
        return extend(window, after=after)


FILES = Files()


def _opened(path: str) -> IO[bytes]:
    """Return a regular file, open; raises OSError, ValueError for a pipe or device, on which reading may never end."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115  # the caller's
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError("this is no regular file")
    return file


def _read(path: str, offset: int, count: int) -> bytes:
    """Return up to `count` bytes from `offset` of the text in a plain, gzip or zstd file.

    A packed one is unpacked up to there, piece by piece.
    """
    with _opened(path) as plain:
        magic = plain.read(4)
        if magic == ZSTD:
            import zstandard

            packed: Any = zstandard.ZstdDecompressor().stream_reader(plain)
        elif magic[:2] == GZIP:
            packed = gzip.GzipFile(fileobj=plain)
        else:
            plain.seek(offset)
            return plain.read(count)
        plain.seek(0)
        while offset > 0:
            passed = len(packed.read(min(offset, CHUNK)))
            if not passed:
                return b""
            offset -= passed
        return _full(packed, count)


def _full(file: IO[bytes], count: int) -> bytes:
    """Return `count` bytes, fewer only at the end: an unpacking reader may return less in one call."""
    parts: list[bytes] = []
    while count > 0 and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _reason(error: Exception) -> str:
    return sanitise(
        error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    )


def _differs(raw: bytes, excerpt: str) -> bool:
    """Whether a line no longer holds its excerpt; an excerpt may be a cut piece of the line."""
    line = sanitise(raw)
    return excerpt.rstrip("…").strip() not in line and line.strip()[:60] not in excerpt


def _split(data: bytes, offset: int, number: int | None, *, whole: bool) -> list[Line]:
    """Return the lines of `data`, which begins at `offset` with line `number`.

    whole: the last piece is a line though no end follows.
    """
    lines: list[Line] = []
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        if end < 0 and not whole and start:
            break
        stop = len(data) if end < 0 else end + 1
        raw = data[start:stop].rstrip(b"\r\n")[:LINE_BYTES]
        lines.append(Line(offset + start, raw, stop - start, number, part=end < 0 and not whole))
        number = None if number is None else number + (0 if lines[-1].part else 1)
        start = stop
    return lines


def _after(window: Window, offset: int, number: int | None) -> Window:
    data = _read(window.path, offset, CHUNK)
    ended = len(data) < CHUNK
    fresh = _split(data, offset, number, whole=ended)
    ended = ended and len(fresh) <= HALF
    lines = (*window.lines, *fresh[:HALF])
    drop = max(0, len(lines) - LINES)
    at = None if window.at is None else window.at - drop
    return replace(
        window,
        lines=lines[drop:],
        at=at if at is None or at >= 0 else None,
        ends=(window.ends[0] and not drop, ended),
    )


def _before(window: Window, offset: int) -> Window:
    start = max(0, offset - CHUNK)
    data = _read(window.path, start, offset - start)
    if start:
        cut = data.find(b"\n") + 1
        if 0 < cut < len(data):
            start, data = start + cut, data[cut:]
    fresh = _split(data, start, 1 if start == 0 else None, whole=True)
    joins = bool(fresh and window.lines) and not data.endswith(b"\n")
    if joins:
        fresh[-1] = replace(fresh[-1], part=True)
    if start and window.lines and window.lines[0].number is not None:
        first = window.lines[0].number - len(fresh) + joins
        fresh = [replace(line, number=first + i) for i, line in enumerate(fresh)]
    begun = start == 0 and len(fresh) <= HALF
    fresh = fresh[-HALF:]
    lines = (*fresh, *window.lines)
    at = None if window.at is None else window.at + len(fresh)
    return replace(
        window,
        lines=lines[:LINES],
        at=at if at is None or at < LINES else None,
        ends=(begun, window.ends[1] and len(lines) <= LINES),
    )
