"""Scan logs with the help of what an earlier pass has found.

The first probe that asks for hits in a large log looks for the signatures of all probes at once and keeps where they
hit; the others, and later runs, look there. Invariants: hits are those of `logscan.scan` for the same signatures, in
the same order, with and without an index and after any appends, since a hit is always made from the bytes of the log
itself; only what was appended since is read again, and of the line that is still growing what is behind its last cut;
a log that was replaced, truncated or overwritten is read anew. Several processes at once are fine: one of them builds,
the others wait as long as it gets on, and read for themselves when it does not.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import BinaryIO

import msgspec

from probes.readers import logscan
from probes.readers.logfiles import HEAD, LogFile, ReadProblem, blocks, open_stream
from probes.readers.logindex_store import (
    Kept,
    Segment,
    Store,
    edge_hash,
    key_of,
    open_store,
    prepare,
    set_hash,
    still_there,
)
from probes.readers.logscan import Coverage, Found, Hit, Matcher, Signature, Told, hit_of

WORTH = 256 * 1024
"""Bytes from which on it is quicker to ask an index than to read: a log, or what was appended to one."""
SEGMENT = 64 << 20
"""Bytes of a log after which what was found is kept."""
SEGMENT_SECONDS = 1.0
"""Seconds after which it is kept in any case: who waits sees that it goes on, and a kill loses no more than that."""
HITS = 200_000
"""Hits after which they are kept: both who builds and who asks hold one segment's in memory."""
TEXTS = 8 << 20
"""Bytes of text of a packed log after which they are kept."""

_ROW = struct.Struct("<4Q")


@dataclass(frozen=True)
class _Wanted:
    """What is asked for, and all that is looked for. ranks: by number in `known`, the place in `asked`.

    since: the byte of a log before which nothing is asked for.
    """

    asked: tuple[Signature, ...]
    known: tuple[Signature, ...]
    ranks: dict[int, int]
    since: int = 0

    @cached_property
    def match_asked(self) -> Matcher:
        return logscan.matcher(self.asked)

    @cached_property
    def match_known(self) -> Matcher:
        return logscan.matcher(self.known)

    @cached_property
    def in_order(self) -> bool:
        """Whether what is asked for stands in the order of what is known."""
        ranks = [self.ranks[number] for number in sorted(self.ranks)]
        return ranks == sorted(ranks)

    @cached_property
    def hash(self) -> bytes:
        return set_hash(self.known)


class _Changed(Exception):  # noqa: N818  # it says what happened to the log, and never leaves this module
    """A line that was kept is not there any more."""


def scan(
    files: Iterable[LogFile],
    signatures: Sequence[Signature],
    coverage: Coverage,
    *,
    known: Sequence[Signature],
    progress: Callable[[float], None] | None = None,
    since: int = 0,
) -> Iterator[Hit]:
    """Do what `logscan.scan` does. known: all signatures that are worth looking for in the same pass.

    since: lines that begin before this byte of their log give no hits; what an index has of them is not made again.
    """
    wanted = _wanted(signatures, known)
    if wanted is None:
        hits = logscan.scan(files, signatures, coverage, progress=progress)
        yield from (hit for hit in hits if hit.offset >= since)
        return
    wanted = replace(wanted, since=since)
    told = Told(progress)
    for file in files:
        coverage.files.append(file)
        if file.size < WORTH:
            hits = logscan.scan_file(file, wanted.asked, coverage, wanted.match_asked, told)
        else:
            hits = _scan_file(file, wanted, coverage, told)
        yield from (hit for hit in hits if hit.offset >= since) if since else hits
    told.end()


def _wanted(signatures: Sequence[Signature], known: Sequence[Signature]) -> _Wanted | None:
    """Return what to look for, None when something is asked for that is not known."""
    numbers = {each: number for number, each in enumerate(known)}
    asked = tuple(dict.fromkeys(signatures))
    if any(each not in numbers for each in asked):
        return None
    return _Wanted(asked, tuple(known), {numbers[each]: rank for rank, each in enumerate(asked)})


def _scan_file(file: LogFile, wanted: _Wanted, coverage: Coverage, told: Told) -> Iterator[Hit]:
    """Scan one file by its index where there can be one, else plainly."""
    store = None
    try:
        descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        yield from logscan.scan_file(file, wanted.asked, coverage, wanted.match_asked, told)
        return
    try:
        try:
            status = os.fstat(descriptor)
            store = open_store(key_of(descriptor, status, wanted.hash, packed=file.packing != "plain"))
        except OSError:
            store = None
        if store is None:
            yield from logscan.scan_file(file, wanted.asked, coverage, wanted.match_asked, told)
        elif file.packing == "plain":
            yield from _scan_plain(file, descriptor, store, wanted, coverage, told)
        else:
            yield from _scan_packed(file, status, store, wanted, coverage, told)
    finally:
        if store is not None:
            store.close()
        os.close(descriptor)


def _scan_plain(
    file: LogFile, descriptor: int, store: Store, wanted: _Wanted, coverage: Coverage, told: Told
) -> Iterator[Hit]:
    """Yield what the index has, then what stands behind it, adding that to the index as its writer."""

    def fits() -> bool:
        return still_there(store, descriptor)

    def enough() -> bool:
        size = os.fstat(descriptor).st_size
        done = bool(store.segments) and store.segments[-1].last and size == store.segments[-1].size
        return done or size - store.end < WORTH

    prepare(store, fits, enough)
    last = -1
    try:
        for segment in store.segments:
            for hit in _kept_hits(segment, file, descriptor, wanted):
                last = hit.offset
                yield hit
            told.add(segment.end - segment.start)
            coverage.lines += segment.lines
    except _Changed:
        coverage.problems.append(ReadProblem(file.path, "changed", "it was overwritten while it was looked at"))
        if store.ours or store.lock():
            store.clear()
        hits = logscan.scan_file(file, wanted.asked, coverage, wanted.match_asked, told)
        yield from (hit for hit in hits if hit.offset > last)
        return
    with open(os.dup(descriptor), "rb", buffering=0) as stream:
        if store.ours:
            yield from _build(file, stream, os.fstat(descriptor), store, wanted, coverage, told)
        else:
            yield from logscan.scan_file(
                file,
                wanted.asked,
                coverage,
                wanted.match_asked,
                told,
                start=store.end,
                line=store.line,
                stream=stream,
                line_offset=store.line_offset,
            )


def _scan_packed(
    file: LogFile, status: os.stat_result, store: Store, wanted: _Wanted, coverage: Coverage, told: Told
) -> Iterator[Hit]:
    """Yield what the index of a packed log has if it is complete; build it whole, or unpack the log, if it is not."""

    def complete() -> bool:
        return bool(store.segments) and store.segments[-1].last

    prepare(store, lambda: True, complete)
    if complete():
        for segment in store.segments:
            yield from _kept_hits(segment, file, -1, wanted)
            told.add(segment.end - segment.start)
            coverage.lines += segment.lines
            if segment.problem:
                coverage.problems.append(ReadProblem(file.path, *segment.problem))
    elif store.ours:
        store.clear()
        try:
            stream = open_stream(file)
        except (OSError, ValueError):
            yield from logscan.scan_file(file, wanted.asked, coverage, wanted.match_asked, told)
            return
        with stream:
            yield from _build(file, stream, status, store, wanted, coverage, told)
    else:
        yield from logscan.scan_file(file, wanted.asked, coverage, wanted.match_asked, told)


def _kept_hits(segment: Segment, file: LogFile, descriptor: int, wanted: _Wanted) -> Iterator[Hit]:
    """Make the hits of a segment again from the log's own bytes, or from the texts kept of a packed log."""
    text, at = b"", -1
    for offset, rank, line, line_offset, length, own in _kept_rows(segment, wanted):
        head = b""
        if own is not None:
            text, head = own
        elif offset != at:
            text, at = os.pread(descriptor, length, offset), offset
        if own is None and offset != line_offset:
            head = os.pread(descriptor, HEAD, line_offset)
        match = wanted.asked[rank].pattern.search(text)
        if match is None:
            raise _Changed
        yield hit_of(wanted.asked[rank], file, Found(rank, line, line_offset, offset, text, match, head))


def _kept_rows(segment: Segment, wanted: _Wanted) -> list[tuple[int, int, int, int, int, tuple[bytes, bytes] | None]]:
    """Return offset, rank, line, line offset, length and own text of what a segment has of the wanted, in order."""
    rows: list[tuple[int, int, int, int, int, tuple[bytes, bytes] | None]] = []
    if segment.end <= wanted.since:
        return rows
    for number, rank in wanted.ranks.items():
        if kept := segment.kept.get(number):
            texts = msgspec.msgpack.decode(_unpack(kept.texts), type=list[tuple[bytes, bytes]]) if kept.texts else None
            for at, (line, line_offset, offset, length) in enumerate(_ROW.iter_unpack(_unpack(kept.rows))):
                if line_offset >= wanted.since:
                    rows.append((offset, rank, line, line_offset, length, texts[at] if texts else None))
    rows.sort(key=lambda row: row[:2])
    return rows


@dataclass
class _Draft:
    """The segment that is being filled. open: matches in a piece that is not settled.

    end, next_line, line_offset: where it ends, which line stands there, and where that begins. rows: by signature, four
    numbers a hit (`Kept.rows`). texts: by signature, of a packed log. size: bytes of them. hits: how many in all.
    """

    start: int
    line: int
    packed: bool
    end: int
    next_line: int
    line_offset: int
    began: float = field(default_factory=time.monotonic)
    rows: dict[int, list[int]] = field(default_factory=dict)
    texts: dict[int, list[tuple[bytes, bytes]]] = field(default_factory=dict)
    size: int = 0
    hits: int = 0
    open: list[Found] = field(default_factory=list)

    def settle(self, end: int, next_line: int, line_offset: int) -> None:
        """Take over the matches of what is settled up to `end`, where the next line begins or is cut."""
        self.end, self.next_line, self.line_offset = end, next_line, line_offset
        self.hits += len(self.open)
        rows = self.rows
        for each in self.open:
            own = rows.get(each.which)
            if own is None:
                own = rows[each.which] = []
            own += (each.line, each.line_offset, each.offset, len(each.text))
            if self.packed:
                self.texts.setdefault(each.which, []).append((each.text, each.head))
                self.size += len(each.text)
        self.open = []

    @property
    def full(self) -> bool:
        """Whether it is time to keep it."""
        return (
            self.end - self.start >= SEGMENT
            or self.hits >= HITS
            or self.size >= TEXTS
            or (self.end > self.start and time.monotonic() - self.began >= SEGMENT_SECONDS)
        )


def _build(
    file: LogFile,
    stream: BinaryIO,
    status: os.stat_result,
    store: Store,
    wanted: _Wanted,
    coverage: Coverage,
    told: Told,
) -> Iterator[Hit]:
    """Scan what stands behind the index for all known signatures, and keep what is found as it comes."""
    plain = file.packing == "plain"
    line = first = store.line
    place = store.end
    draft = _Draft(place, line, not plain, place, line, store.line_offset)
    problems: list[ReadProblem] = []

    def keep(*, last: bool = False) -> None:
        before = edge_hash(stream.fileno(), draft.end) if plain else 0
        store.add(_segment(draft, before, status, problems, last=last))

    for block in blocks(file, problems, place, stream, store.line_offset if plain else None):
        found, line = wanted.match_known(block, line)
        yield from _asked_hits(found, file, wanted)
        told.add(len(block.data))
        place = block.offset + len(block.data)
        draft.open += found
        if block.settled:
            draft.settle(place, line, place if block.data.endswith(b"\n") else block.line_offset)
            if draft.full:
                keep()
                draft = _Draft(place, line, not plain, place, line, draft.line_offset)
    coverage.problems += problems
    coverage.lines += line - first
    if not plain and all(problem.kind == "damaged" for problem in problems):
        draft.settle(place, line, place)
        keep(last=True)
    elif plain and not problems and (draft.end > draft.start or place - draft.end >= WORTH):
        keep(last=True)
    elif plain and draft.end > draft.start:
        keep()


def _asked_hits(found: Sequence[Found], file: LogFile, wanted: _Wanted) -> Iterator[Hit]:
    """Yield the hits among all matches that were asked for, within a line in the order in which they were."""
    ranks, asked = wanted.ranks, wanted.asked
    if not wanted.in_order:
        found = sorted(
            (each for each in found if each.which in ranks), key=lambda each: (each.offset, ranks[each.which])
        )
    for each in found:
        rank = ranks.get(each.which)
        if rank is not None:
            yield hit_of(asked[rank], file, each)


def _segment(
    draft: _Draft, before: int, status: os.stat_result, problems: Sequence[ReadProblem], *, last: bool
) -> Segment:
    """Pack a draft."""
    kept = {}
    for number, rows in draft.rows.items():
        texts = _pack(msgspec.msgpack.encode(draft.texts[number])) if draft.packed else b""
        kept[number] = Kept(len(rows) // 4, _pack(struct.pack(f"<{len(rows)}Q", *rows)), texts)
    problem = next(((each.kind, each.detail) for each in problems), None) if last else None
    lines = draft.next_line - draft.line
    return Segment(
        draft.start,
        draft.end,
        draft.line,
        lines,
        before,
        status.st_size,
        status.st_mtime_ns,
        kept,
        last,
        problem,
        draft.end - draft.line_offset,
    )


def _pack(raw: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=1).compress(raw)


def _unpack(packed: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().decompress(packed)
