"""Keep the metric tables of large logs beside their indexes, so that only the first of all probes parses the lines.

The file is one of `logindex_store`: frames with checksums, a lock, the same folder and limits; a segment holds packed
rows instead of places. Invariants: a kept table and what is read behind it give the table of a fresh parse, after any
appends; only what was appended is parsed; what a log that was replaced, truncated or shortened gave is forgotten. The
last line with a hit is never kept, since it may still grow. Several processes at once are fine: one parses, the others
wait as long as it gets on. Where nothing can be kept, each parses for itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import xxhash

from probes.readers import joblog, logindex
from probes.readers.logfiles import LogFile
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
from probes.readers.logscan import Coverage, Signature
from probes.readers.metric_table import SIGNATURES, Part, Table

FORMAT = b"slime-runbook metric table 1"
"""Part of every key: a change of what a row holds, or of how numbers are read, must change it."""
MARGIN = 1 << 20
"""Bytes before the end of what is kept from which on lines are looked at again: whether a line only repeats an earlier
one (`joblog.without_tail`) depends on a tenth of that."""
ROWS = 20_000
"""Rows after which they are kept."""

_decoder = msgspec.msgpack.Decoder(Part)


def tables(
    files: Iterable[LogFile],
    coverage: Coverage,
    *,
    known: Sequence[Signature],
    progress: Callable[[float], None] | None = None,
) -> Iterator[Table]:
    """Yield the table of each log. known: all signatures that are worth looking for in the same pass."""
    done = 0

    def report(read: float) -> None:
        if progress:
            progress(done + read)

    for file in files:
        with _open(file) as opened:
            if opened is None:
                table = Table(file)
                for hit in joblog.scan_job((file,), SIGNATURES, coverage, known=known, progress=report):
                    table.add(hit)
            else:
                table = _kept(file, *opened, coverage, known, report)
        done += file.size
        yield table


@contextmanager
def _open(file: LogFile) -> Iterator[tuple[int, Store] | None]:
    """Open a large log and what is kept of it; None where nothing is or can be."""
    if file.size < logindex.WORTH:
        yield None
        return
    try:
        descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        yield None
        return
    store = None
    try:
        try:
            wanted = xxhash.xxh3_128_digest(FORMAT + set_hash((*SIGNATURES, joblog.TAIL)))
            store = open_store(key_of(descriptor, os.fstat(descriptor), wanted, packed=file.packing != "plain"))
        except OSError:
            store = None
        yield None if store is None else (descriptor, store)
    finally:
        if store is not None:
            store.close()
        os.close(descriptor)


def _kept(
    file: LogFile,
    descriptor: int,
    store: Store,
    coverage: Coverage,
    known: Sequence[Signature],
    progress: Callable[[float], None],
) -> Table:
    """Return the table of what is kept and of what stands behind it; as the writer, keep that too."""
    plain = file.packing == "plain"
    status = os.fstat(descriptor)

    def fits() -> bool:
        return not plain or still_there(store, descriptor)

    def enough() -> bool:
        return bool(store.segments) and store.segments[-1].last and status.st_size == store.segments[-1].size

    prepare(store, fits, enough)
    table = Table(file)
    try:
        for segment in store.segments:
            for kept in segment.kept.values():
                table.take(_decoder.decode(_unpack(kept.rows)))
    except (ValueError, msgspec.DecodeError, KeyError):
        if store.ours:
            store.clear()
        else:
            store.forget()
        table = Table(file)
    _read_on(table, descriptor if plain else -1, store, status, coverage, known, progress)
    return table


def _read_on(
    table: Table,
    descriptor: int,
    store: Store,
    status: os.stat_result,
    coverage: Coverage,
    known: Sequence[Signature],
    progress: Callable[[float], None],
) -> None:
    """Add the rows of the lines behind what is kept. descriptor: of a plain log, -1 for a packed one."""
    end = store.end
    mark, cut, settled, began = table.mark(), table.cut, (end, store.line, len(table), table.cut), time.monotonic()
    problems = len(coverage.problems)

    def keep(*, last: bool) -> None:
        nonlocal mark, cut, began
        until, line, row, lost = settled
        part = msgspec.structs.replace(table.part(mark, row), cut=lost - cut)
        before = edge_hash(descriptor, until) if descriptor >= 0 else 0
        kept = {0: Kept(row - mark[0], _pack(msgspec.msgpack.encode(part)))}
        lines = line - store.line
        store.add(Segment(store.end, until, store.line, lines, before, status.st_size, status.st_mtime_ns, kept, last))
        mark, cut, began = (row, mark[1] + len(part.values) // 8, *table.mark()[2:]), lost, time.monotonic()

    since = max(end - MARGIN, 0)
    for hit in joblog.scan_job((table.file,), SIGNATURES, coverage, known=known, progress=progress, since=since):
        if hit.offset < end:
            continue
        if hit.offset > settled[0]:
            settled = (hit.offset, hit.line, len(table), table.cut)
            if store.ours and (len(table) - mark[0] >= ROWS or time.monotonic() - began >= logindex.SEGMENT_SECONDS):
                keep(last=False)
        table.add(hit)
    trouble = coverage.problems[problems:]
    if store.ours and any(each.kind == "changed" for each in trouble):
        store.clear()
    elif store.ours and all(each.harmless for each in trouble):
        keep(last=True)


def _pack(raw: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=1).compress(raw)


def _unpack(packed: bytes) -> bytes:
    import zstandard

    try:
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
