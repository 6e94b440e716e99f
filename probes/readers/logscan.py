"""Find many labelled signatures in logs of gigabytes, in one pass.

A signature has literals, one of which every matching line contains, and a regular expression that is tried once on
such a line only. The literals are searched with Hyperscan (block mode; its stream API crashes with a temporary
callback), or with `bytes.find` where hyperscan is not installed: both give the same hits in the same order, which a
test holds. Hits come out in file order as they are found, so a caller that folds them needs no memory for the log.
What the lines mean is not known here. An index of hits, or an ordering by time, can stand between `scan` and its
callers without either noticing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from probes.readers.logfiles import Block, LogFile, ReadProblem, blocks

RAW_LIMIT = 64 * 1024
"""Bytes of a hit line, and of what follows the match in it, that a hit keeps."""
PROGRESS_STEP = 16 * 1024 * 1024
"""Bytes between two reports of progress."""


@dataclass(frozen=True)
class Signature:
    """What to look for.

    label: its name. literals: one of them is in every line that matches. pattern: decides, on the whole line.
    """

    label: str
    literals: tuple[bytes, ...]
    pattern: re.Pattern[bytes]


@dataclass(frozen=True)
class Hit:
    """A line that matches. line: 1-based. offset: bytes from the start of the file to the start of the line.

    raw: the line without its end, cut to RAW_LIMIT. start: where in the line the match begins. text: the line from
    there on, cut to RAW_LIMIT. groups: the groups of the match.
    """

    label: str
    file: LogFile
    line: int
    offset: int
    raw: bytes
    start: int
    text: bytes
    groups: tuple[bytes | None, ...] = ()


@dataclass
class Coverage:
    """How far a scan came; filled while it runs. lines: how many line ends were read."""

    files: list[LogFile] = field(default_factory=list)
    problems: list[ReadProblem] = field(default_factory=list)
    lines: int = 0

    @property
    def whole(self) -> bool:
        """Whether at least one log was read and every log was read to its end."""
        return bool(self.files) and all(problem.harmless for problem in self.problems)


Finder = Callable[[bytes], list[tuple[int, int]]]
"""Takes a block; returns (position, signature index) in order, at least one for each line and signature it may hit."""


def signature(label: str, literals: str | Sequence[str], pattern: str | None = None) -> Signature:
    """Build a Signature from text; without a pattern the first of its literals in the line is the match."""
    words = (literals,) if isinstance(literals, str) else tuple(literals)
    raw = tuple(word.encode() for word in words)
    compiled = re.compile(pattern.encode() if pattern is not None else b"|".join(map(re.escape, raw)))
    return Signature(label, raw, compiled)


def finder(signatures: Sequence[Signature], *, plain: bool = False) -> Finder:
    """Return the quickest literal search there is here; `plain` asks for the one without Hyperscan."""
    if not plain:
        try:
            return _hyperscan_finder(signatures)
        except (ImportError, OSError):
            pass
    return _plain_finder(signatures)


def _hyperscan_finder(signatures: Sequence[Signature]) -> Finder:
    """Search all literals at once; a literal is found at its last byte, which lies in the same line as its first."""
    import hyperscan

    pairs = [(literal, index) for index, each in enumerate(signatures) for literal in each.literals]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[literal for literal, _ in pairs],
        ids=list(range(len(pairs))),
        elements=len(pairs),
        flags=0,
        literal=True,
    )
    owners = [index for _, index in pairs]

    def find(data: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def on_match(id: int, start: int, end: int, flags: int, context: object) -> None:  # noqa: ARG001
            found.append((end - 1, owners[id]))

        database.scan(data, match_event_handler=on_match)
        found.sort()
        return found

    return find


def _plain_finder(signatures: Sequence[Signature]) -> Finder:
    """Search one literal after the other; after a hit go on in the next line."""

    def find(data: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for index, each in enumerate(signatures):
            for literal in each.literals:
                at = data.find(literal)
                while at >= 0:
                    found.append((at + len(literal) - 1, index))
                    line_end = data.find(b"\n", at)
                    at = data.find(literal, line_end + 1) if line_end >= 0 else -1
        found.sort()
        return found

    return find


def scan(
    files: Iterable[LogFile],
    signatures: Sequence[Signature],
    coverage: Coverage,
    *,
    progress: Callable[[float], None] | None = None,
    find: Finder | None = None,
) -> Iterator[Hit]:
    """Yield the hits of all signatures in all files, in order; within a line in the order of `signatures`.

    A signature hits a line at most once. `coverage` tells, when the scan has ended, what was read and what was not.
    `progress` is told the (unpacked) bytes read so far.
    """
    find = find or finder(signatures)
    read, told = 0, 0
    for file in files:
        coverage.files.append(file)
        line = 1
        for block in blocks(file, coverage.problems):
            yield from _hits(file, block, line, signatures, find)
            line += block.data.count(b"\n")
            read += len(block.data)
            if progress and read - told >= PROGRESS_STEP:
                told = read
                progress(read)
        coverage.lines += line - 1
    if progress:
        progress(read)


def _hits(file: LogFile, block: Block, line: int, signatures: Sequence[Signature], find: Finder) -> Iterator[Hit]:
    """Yield the hits in one block whose first line has the number `line`."""
    data = block.data
    counted = 0
    start, end, tried = 0, 0, set[int]()
    pending: list[Hit] = []
    for position, index in find(data):
        if position >= end:
            yield from _ordered(pending, signatures)
            pending = []
            start = data.rfind(b"\n", 0, position) + 1
            end = data.find(b"\n", position)
            end = len(data) if end < 0 else end + 1
            tried = set()
            line += data.count(b"\n", counted, start)
            counted = start
        if index in tried:
            continue
        tried.add(index)
        text = data[start:end].rstrip(b"\r\n")
        match = signatures[index].pattern.search(text)
        if match is None:
            continue
        continued = not start and bool(block.head)
        raw = block.head if continued else text[:RAW_LIMIT]
        pending.append(
            Hit(
                signatures[index].label,
                file,
                line,
                block.line_offset if not start else block.offset + start,
                raw,
                match.start() + (block.offset - block.line_offset if not start else 0),
                text[match.start() : match.start() + RAW_LIMIT],
                match.groups(),
            )
        )
    yield from _ordered(pending, signatures)


def _ordered(hits: list[Hit], signatures: Sequence[Signature]) -> list[Hit]:
    """Return the hits of one line in the order of their signatures, whichever literal came first in the line."""
    if len(hits) < 2:
        return hits
    rank = {each.label: index for index, each in enumerate(signatures)}
    return sorted(hits, key=lambda hit: rank[hit.label])
