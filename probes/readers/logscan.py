"""Find many labelled signatures in logs of gigabytes, in one pass.

A signature has literals, one of which every matching line contains, and a regular expression that is tried once on
such a line only. The literals are searched with Hyperscan (block mode; its stream API crashes with a temporary
callback), or with `bytes.find` where hyperscan is not installed: both give the same hits in the same order, which a
test holds. Hits come out in file order as they are found, so a caller that folds them needs no memory for the log.
What the lines mean is not known here. `logindex` keeps what `matches` finds and builds the same hits from it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import BinaryIO

import msgspec

from probes.readers.logfiles import LINE_LIMIT, Block, LogFile, ReadProblem, blocks, window

RAW_LIMIT = 64 * 1024
"""Bytes of a hit line, and of what follows the match in it, that a hit keeps."""
PROGRESS_STEP = 16 * 1024 * 1024
"""Bytes between two reports of progress."""
FEW = 256 * 1024
"""Bytes of all logs below which they are searched without Hyperscan: compiling takes longer than to search these."""
TAIL_SPAN = 16 * 1024 * 1024
"""Bytes that `scan_tail` looks at, shared by all logs: some hundredths of a second."""
TAIL_LEAST = 64 * 1024
"""Bytes at the end of each log that it looks at however many there are."""


@dataclass(frozen=True)
class Signature:
    """What to look for.

    label: its name. literals: one of them is in every line that matches. expression: decides, on the whole line. reach:
    for an expression whose every match holds a literal, the most bytes from the start of a match to the end of the
    first literal in it, so that the text before need not be tried; 0 where that is not known.
    """

    label: str
    literals: tuple[bytes, ...]
    expression: bytes
    reach: int

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """Return the compiled expression; a process that scans nothing compiles none."""
        return re.compile(self.expression)


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A line that matches. offset: bytes from the start of the file to the start of the line.

    line: 1-based; 0 where the lines before it have not been counted (`scan_tail`). raw: the line without its end, cut
    to RAW_LIMIT. start: where in the line the match begins. text: the line from there on, cut to RAW_LIMIT. groups:
    the groups of the match.
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


def signature(label: str, literals: str | Sequence[str], pattern: str | None = None, reach: int = 0) -> Signature:
    """Build a Signature from text; without a pattern the first of its literals in the line is the match."""
    words = (literals,) if isinstance(literals, str) else tuple(literals)
    raw = tuple(word.encode() for word in words)
    if pattern is None:
        return Signature(label, raw, b"|".join(map(re.escape, raw)), max(map(len, raw)))
    return Signature(label, raw, pattern.encode(), reach)


def finder(signatures: Sequence[Signature], *, plain: bool = False) -> Finder:
    """Return the quickest literal search there is here; `plain` asks for the one without Hyperscan."""
    if not plain:
        try:
            return _hyperscan_finder(signatures)
        except (ImportError, OSError):
            pass
    return _plain_finder(signatures)


def _hyperscan_finder(signatures: Sequence[Signature]) -> Finder:
    """Search all literals at once; a literal is found at its last byte, which lies in the same line as its first.

    A literal that is part of another stands for both: it is found no later in a line, and the expressions decide.
    """
    import hyperscan

    words = {literal for each in signatures for literal in each.literals}
    least = sorted(word for word in words if not any(part != word and part in word for part in words))
    owners = [
        [index for index, each in enumerate(signatures) if any(word in literal for literal in each.literals)]
        for word in least
    ]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=least, ids=list(range(len(least))), elements=len(least), flags=0, literal=True)

    def find(data: bytes) -> list[tuple[int, int]]:
        ends: list[tuple[int, int]] = []

        def on_match(id: int, start: int, end: int, flags: int, context: object) -> None:  # noqa: ARG001
            ends.append((end, id))

        database.scan(data, match_event_handler=on_match)
        found = [(end - 1, owner) for end, id in ends for owner in owners[id]]
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


class Found(msgspec.Struct, gc=False):
    """A match before it becomes a hit.

    which: number of the signature. line, line_offset: of the line it stands in. offset: where the text begins that was
    tried, `line_offset` but in a cut line. text: that text. match: in it. head: the first bytes of a cut line.
    """

    which: int
    line: int
    line_offset: int
    offset: int
    text: bytes
    match: re.Match[bytes]
    head: bytes


_which = attrgetter("which")
_LF = ord("\n")


def hit_of(signature: Signature, file: LogFile, found: Found) -> Hit:
    """Return the hit that a match stands for."""
    begin = found.match.start()
    return Hit(
        signature.label,
        file,
        found.line,
        found.line_offset,
        found.head or found.text[:RAW_LIMIT],
        begin + found.offset - found.line_offset,
        found.text[begin : begin + RAW_LIMIT],
        found.match.groups(),
    )


def line_ends(data: bytes, start: int, end: int) -> int:
    """Count the line ends between two places of a block.

    Dropping them finds each by memchr; `bytes.count` looks at every byte, which takes three times as long.
    """
    piece = data[start:end]
    return len(piece) - len(piece.replace(b"\n", b""))


Matcher = Callable[[Block, int], "tuple[list[Found], int]"]
"""Takes a block and the number of its first line; returns the matches in it, and the number of the line behind it.
Matches come in the order of lines, within a line in the order of the signatures, of which each matches it at most
once."""


def matcher(signatures: Sequence[Signature], find: Finder | None = None) -> Matcher:
    """Return the function that finds all matches of `signatures` in a block."""
    find = find or finder(signatures)
    searches = [each.pattern.search for each in signatures]
    reaches = [each.reach or LINE_LIMIT for each in signatures]

    def matches(block: Block, line: int) -> tuple[list[Found], int]:
        data, place = block.data, block.offset
        found: list[Found] = []
        tried = [-1] * len(searches)
        counted = start = end = first = last = 0
        text, head, offset, line_offset = b"", b"", 0, 0
        for position, which in find(data):
            if position >= end:
                if last < 0:
                    found[first:] = sorted(found[first:], key=_which)
                first, last = len(found), 0
                start = data.rfind(b"\n", 0, position) + 1
                end = data.find(b"\n", position) + 1 or len(data)
                line += line_ends(data, counted, start)
                counted = start
                text = data[start : end - 1] if data[end - 1] == _LF else data[start:end]
                if text[-1:] == b"\r":
                    text = text.rstrip(b"\r")
                offset = place + start
                line_offset, head = (offset, b"") if start else (block.line_offset, block.head)
            if tried[which] == start:
                continue
            tried[which] = start
            begin = position + 1 - start - reaches[which]
            match = searches[which](text, begin) if begin > 0 else searches[which](text)
            if match is not None:
                found.append(Found(which, line, line_offset, offset, text, match, head))
                last = which if which >= last >= 0 else -1
        if last < 0:
            found[first:] = sorted(found[first:], key=_which)
        return found, line + line_ends(data, counted, len(data))

    return matches


class Told:
    """Adds up the bytes that were read, and reports them every PROGRESS_STEP."""

    def __init__(self, progress: Callable[[float], None] | None) -> None:
        self.read = 0
        self._progress = progress
        self._last = 0

    def add(self, count: int) -> None:
        """Count bytes, and report when there are enough."""
        self.read += count
        if self.read - self._last >= PROGRESS_STEP:
            self.end()

    def end(self) -> None:
        """Report what was read so far."""
        self._last = self.read
        if self._progress:
            self._progress(self.read)


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
    files = tuple(files)
    match = matcher(signatures, find or finder(signatures, plain=_few(files)))
    told = Told(progress)
    for file in files:
        coverage.files.append(file)
        yield from scan_file(file, signatures, coverage, match, told)
    told.end()


def _few(files: Sequence[LogFile]) -> bool:
    """Whether there is so little to read that Hyperscan would take longer to get ready than to search."""
    return sum(file.size for file in files) < FEW and all(file.packing == "plain" for file in files)


def scan_file(
    file: LogFile,
    signatures: Sequence[Signature],
    coverage: Coverage,
    match: Matcher,
    told: Told,
    *,
    start: int = 0,
    line: int = 1,
    stream: BinaryIO | None = None,
    line_offset: int | None = None,
) -> Iterator[Hit]:
    """Yield the hits in one file from `start` on, where the line of number `line` begins or (`blocks`) is cut."""
    first = line
    for block in blocks(file, coverage.problems, start, stream, line_offset):
        found, line = match(block, line)
        for each in found:
            yield hit_of(signatures[each.which], file, each)
        told.add(len(block.data))
    coverage.lines += line - first


def scan_tail(files: Sequence[LogFile], signatures: Sequence[Signature], *, span: int | None = None) -> Iterator[Hit]:
    """Yield the hits in the last `span` bytes of every log, without waiting for what stands before; by default a share.

    For a first look: it shows what is there and never that something is absent. The hits have no line number unless
    the log is shorter than the span; a packed log, which has no near end, is passed over.
    """
    match = matcher(signatures, finder(signatures, plain=_few(files)))
    span = span or max(TAIL_SPAN // max(len(files), 1), TAIL_LEAST)
    for file in files:
        if file.packing != "plain":
            continue
        start = max(file.size - span, 0)
        start = start and _line_start(file, start)
        line = 1
        for block in blocks(file, [], start):
            found, line = match(block, line)
            for each in found:
                hit = hit_of(signatures[each.which], file, each)
                yield msgspec.structs.replace(hit, line=0) if start else hit


def _line_start(file: LogFile, start: int) -> int:
    """Return where the first whole line begins from `start` on; the end of the file where none begins within reach."""
    end = window(file, start - 1, LINE_LIMIT).find(b"\n")
    return file.size if end < 0 else start + end
