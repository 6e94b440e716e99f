"""Yield the hits of logs while their job still writes them.

Logs are looked at again and again, since login nodes and shared file systems tell nobody of a change. Invariants: a
hit comes once, with its true line and offset, when its line has ended (or has not grown for a while, as the last words
of a process that died do), and never twice; a log that was rotated is read to its end before the new one is begun;
one that was truncated is begun anew; a folder is looked through for new logs.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import xxhash

from probes.readers import joblog
from probes.readers.logfiles import LogFile, blocks, expand, open_stream
from probes.readers.logscan import Found, Hit, Matcher, Signature, hit_of, line_counter, matcher

POLL = 0.5
"""Seconds between two looks."""
LOOK_FOR_LOGS = 10
"""Looks between two searches of the folders for new logs."""
SETTLED = 4
"""Looks without growth after which a line without an end is taken as it is."""
HELD = 256
"""Logs that are held open, so that one which is removed is still read to its end; more would run into limits."""
EDGE = 256
"""Bytes before the place reached by which a log is known to be the same."""


_Identity = tuple[int, int]
"""Device and inode of a log: what stays the same when it is renamed."""


@dataclass
class _Followed:
    """A log. held: the open file, for the first HELD logs.

    offset, line: where the first line begins that has not ended. edge: hash of the bytes before it. size: when it was
    last looked at. still: looks without growth since. said: labels that were yielded of the line without an end.
    """

    file: LogFile
    identity: _Identity
    held: BinaryIO | None
    offset: int = 0
    line: int = 1
    edge: int = 0
    size: int = -1
    still: int = 0
    said: set[str] = field(default_factory=set)


def follow(
    paths: Iterable[str],
    signatures: Sequence[Signature],
    *,
    stop: Callable[[], bool],
    poll: float = POLL,
    whole: bool = False,
) -> Iterator[Hit]:
    """Yield the hits that appear in logs (files or folders) from now on, until `stop()` says so.

    Logs that are there at the start are followed from their end (with `whole`, from their beginning), later ones from
    their beginning. Packed logs are not followed. Printed samples and repeated tails are left out, as in
    `joblog.scan_job`. `stop` is asked between looks; poll: seconds between them.
    """
    yield from joblog.events(_follow(list(paths), (*signatures, joblog.TAIL), stop, poll, whole=whole))


def _follow(
    paths: Sequence[str],
    signatures: Sequence[Signature],
    stop: Callable[[], bool],
    poll: float,
    *,
    whole: bool,
) -> Iterator[Hit]:
    match = matcher(signatures)
    followed: dict[_Identity, _Followed] = {}
    for file in expand(paths)[0]:
        with contextlib.suppress(OSError):
            _begin(followed, file, at_end=not whole)
    looks = 0
    try:
        while not stop():
            looks += 1
            if looks % LOOK_FOR_LOGS == 0:
                for file in expand(paths)[0]:
                    with contextlib.suppress(OSError):
                        _begin(followed, file, at_end=False)
            for at in list(followed.values()):
                with contextlib.suppress(OSError):  # a log that cannot be read now may be at the next look
                    yield from _look(followed, at, match, signatures)
            time.sleep(poll)
    finally:
        for at in followed.values():
            if at.held is not None:
                at.held.close()


def _begin(followed: dict[_Identity, _Followed], file: LogFile, *, at_end: bool) -> _Followed | None:
    """Follow a log from its beginning, or from behind its last line that has ended. Raises OSError.

    Returns None where it is packed, or followed already under whatever name.
    """
    if file.packing != "plain" or _identity(os.stat(file.path)) in followed:
        return None
    stream = open_stream(file)
    identity = _identity(os.fstat(stream.fileno()))
    at = followed[identity] = _Followed(file, identity, stream)
    if at_end:
        count = line_counter(file.size)
        for block in blocks(file, [], 0, stream):
            at.line += count(block.data)(0, len(block.data))
            end = block.data.rfind(b"\n")
            at.offset = block.offset + end + 1 if end >= 0 else at.offset
    at.edge = _edge(stream, at.offset)
    if len(followed) > HELD:
        at.held = None
        stream.close()
    return at


def _identity(status: os.stat_result) -> _Identity:
    return (status.st_dev, status.st_ino)


@contextlib.contextmanager
def _opened(at: _Followed) -> Iterator[BinaryIO]:
    """Open a log that is not held open. Raises OSError, also where its name is another log's."""
    if at.held is not None:
        yield at.held
        return
    with open_stream(at.file) as stream:
        if _identity(os.fstat(stream.fileno())) != at.identity:
            raise FileNotFoundError(at.file.path)
        yield stream


def _look(
    followed: dict[_Identity, _Followed], at: _Followed, match: Matcher, signatures: Sequence[Signature]
) -> Iterator[Hit]:
    """Yield what is new in one log; where another has taken its name, also what is in that. Raises OSError."""
    name, new = at.file.path, False
    with contextlib.suppress(OSError):  # without a name, what is held open can still be read
        status = os.stat(name)
        new = _identity(status) != at.identity
        if new:
            at.file = replace(at.file, path=_new_name(name, at.identity))
        elif at.held is None and status.st_size == at.size and at.still > SETTLED:
            return
    with contextlib.suppress(FileNotFoundError), _opened(at) as stream:
        if os.fstat(stream.fileno()).st_size < at.offset or _edge(stream, at.offset) != at.edge:
            at.offset, at.line, at.said, at.size = 0, 1, set(), -1
        yield from _read(at, stream, match, signatures)
    if new and (other := _begin(followed, replace(at.file, path=name), at_end=False)):
        with _opened(other) as stream:
            yield from _read(other, stream, match, signatures)


def _edge(stream: BinaryIO, offset: int) -> int:
    start = max(offset - EDGE, 0)
    return xxhash.xxh3_64_intdigest(os.pread(stream.fileno(), offset - start, start))


def _new_name(path: str, identity: _Identity) -> str:
    """Return the name that a rotated log has now, the old one where it is not found beside it."""
    with os.scandir(os.path.dirname(path) or ".") as entries:
        for entry in entries:
            if entry.inode() == identity[1] and _identity(os.stat(entry.path)) == identity:
                return entry.path
    return path


def _read(at: _Followed, stream: BinaryIO, match: Matcher, signatures: Sequence[Signature]) -> Iterator[Hit]:
    """Yield the hits of the lines that have ended since the last look, and of one that does not go on."""
    size = os.fstat(stream.fileno()).st_size
    at.still = 0 if size != at.size else at.still + 1
    at.size = size
    if size <= at.offset or (at.still and at.still != SETTLED):
        return
    began, line, unended = at.offset, at.line, list[Found]()
    for block in blocks(at.file, [], at.offset, stream):
        found, line = match(block, line, line_counter(0)(block.data))
        unended += found
        if block.data.endswith(b"\n"):
            yield from _unsaid(at, began, unended, signatures)
            at.offset, at.line, at.said, unended = block.offset + len(block.data), line, set(), []
    if at.still == SETTLED:
        yield from _unsaid(at, began, unended, signatures)
        at.said |= {signatures[each.which].label for each in unended}
    at.edge = _edge(stream, at.offset)


def _unsaid(at: _Followed, began: int, found: Sequence[Found], signatures: Sequence[Signature]) -> Iterator[Hit]:
    """Yield the hits but those of the line at `began` that were yielded before it ended."""
    for each in found:
        if each.line_offset != began or signatures[each.which].label not in at.said:
            yield hit_of(signatures[each.which], at.file, each)
