"""Takes from the files what is around their citations: true lines with their true places, as far as there is room.

It runs in a worker, for a disk may hang. Nothing here is redacted yet.

Invariants: a line is taken as a person would see it, so no byte that a terminal acts upon is in a text; lines do not
overlap and are in order; what is taken of one file is bounded whatever the file holds.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from runbook.bundle.form import FILES, Excerpt, KeptLine
from runbook.finding import Citation, Finding, Verdict
from runbook.text import CUT, sanitise
from runbook.window import GZIP, LINE_BYTES, ZSTD, Line, Window, extend, open_window

REACHES = (200, 20, 2)
"""Lines before and after a citation: the most for which there is room."""
SMALL_BYTES = 64 * 1024
"""A cited file up to this size is taken whole: a launch script, a configuration."""
FILE_BYTES = 1024 * 1024
TOTAL_BYTES = 4 * 1024 * 1024
"""Bytes taken of one file and of all."""
LINE_COST = 48
"""Bytes that a line costs beside its text."""
PLACES = 200
"""Citations of one file that are looked up; the rest stands in the findings."""
SECONDS = 5.0
"""After this no further citation of a file is looked up: one at the end of a packed log unpacks all of it.
Less than `runbook.bundle.write.ONE_DEADLINE`: what was found of a slow file must not be lost to that."""

_BREAK = re.compile(r"""[\s,;:=|"'{}()\[\]，。；：]""")
"""What stands between words."""
_ORDER = (Verdict.PROBLEM, Verdict.WARNING)


class Wanted(NamedTuple):
    """A file, and the citations in it, the most telling first."""

    path: str
    citations: tuple[Citation, ...] = ()


def wanted(findings: Iterable[Finding], copies: Iterable[str] = ()) -> list[Wanted]:
    """Return the files that findings cite, those of problems first, then the changed copies of the session."""
    found: dict[str, dict[Citation, None]] = {}
    for finding in sorted(findings, key=lambda finding: _rank(finding.verdict)):
        for citation in finding.citations:
            found.setdefault(citation.path, {})[citation] = None
    for path in copies:
        found.setdefault(path, {})
    return [Wanted(path, tuple(citations)[:PLACES]) for path, citations in found.items()][:FILES]


def _rank(verdict: Verdict) -> int:
    return _ORDER.index(verdict) if verdict in _ORDER else len(_ORDER)


def collect(files: Sequence[Wanted], room: int = TOTAL_BYTES) -> list[Excerpt]:
    """Return the excerpt of each file, in order. room: bytes for all of them. Never raises for a file."""
    taken = []
    for one in files:
        excerpt = take(one, min(room, FILE_BYTES))
        room -= cost(excerpt.lines)
        taken.append(excerpt)
    return taken


def cost(lines: Iterable[KeptLine]) -> int:
    """Return how much room lines take."""
    return sum(len(line.text) + LINE_COST for line in lines)


def take(one: Wanted, room: int) -> Excerpt:
    """Return what is taken of one file: of the room, half for the first place, the rest shared by all others."""
    until = time.monotonic() + SECONDS
    lines: dict[int, Line] = {}
    notes: dict[str, str] = {}
    whole = _whole(one.path)
    shown = whole
    if whole is not None and whole.kind == "text" and _cost(whole.lines) <= room:
        lines = {line.offset: line for line in whole.lines}
    end = -1  # of a packed file, where it was reached
    places = one.citations or (None,)
    for done, citation in enumerate(places):
        if citation is not None and citation.line is None and citation.offset is None and shown is not None:
            continue
        window = open_window(one.path, citation)
        shown = window if shown is None or window.kind == "text" else shown
        if window.note:
            notes[str((citation.offset or 0) if citation is not None else 0)] = window.note
        left = room - _cost(lines.values())
        fresh = _around(window, lines, left // (2 if done == 0 < len(places) - 1 else len(places) - done))
        if fresh and window.ends[1] and fresh[-1] is window.lines[-1]:
            end = fresh[-1].offset + fresh[-1].size
        lines.update((line.offset, line) for line in fresh if _better(line, lines.get(line.offset)))
        if time.monotonic() > until:
            break
    assert shown is not None
    kept = shown.lines if shown.kind == "folder" else _apart(lines.values())
    return Excerpt(
        one.path,
        shown.kind,
        end if shown.packed else shown.size,
        shown.packed,
        shown.why,
        notes,
        tuple(KeptLine(line.offset, line.size, line.number, line.part, text) for line, text in _texts(kept)),
    )


def _whole(path: str) -> Window | None:
    """Return all of a small plain text file, None of any other."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > SMALL_BYTES:
            return None
        with open(path, "rb") as file:
            head = file.read(4)
    except OSError:
        return None
    if head[:2] == GZIP or head == ZSTD:
        return None
    window = open_window(path)
    lines = {line.offset: line for line in window.lines}
    while window.kind == "text" and window.lines and not window.ends[1] and not window.why:
        window = extend(window, after=True)
        lines.update((line.offset, line) for line in window.lines)
    return Window(path, window.kind, tuple(lines.values()), window.size)


def _around(window: Window, known: Mapping[int, Line], room: int) -> tuple[Line, ...]:
    """Return the lines around the place of a window as far as there is room; those that are known cost nothing."""
    if window.kind != "text":
        return ()
    at = len(window.lines) - 1 if window.at is None else window.at
    for reach in REACHES:
        lines = window.lines[max(0, at - reach) : at + reach + 1]
        if _cost(line for line in lines if line.offset not in known) <= room:
            return lines
    return ()


def _better(fresh: Line, known: Line | None) -> bool:
    """Return whether a line is to stand in for what is known of it: one window may know its number, another not."""
    return known is None or (known.number is None and fresh.number is not None)


def _apart(lines: Iterable[Line]) -> list[Line]:
    """Return the lines in order, without those that begin inside another: long lines are cut where a window began."""
    kept: list[Line] = []
    for line in sorted(lines, key=lambda line: line.offset):
        if not kept or line.offset >= kept[-1].offset + kept[-1].size:
            kept.append(line)
    return kept


def _cost(lines: Iterable[Line]) -> int:
    return sum(len(line.raw) + LINE_COST for line in lines)


def _texts(lines: Sequence[Line]) -> Iterator[tuple[Line, str]]:
    """Yield lines as they are drawn. A word that was cut in two is left out: half of a secret is not known as one."""
    goes_on, end = False, 0
    for line in lines:
        text = sanitise(line.raw)
        if goes_on or (line.offset != end and line.size > LINE_BYTES):
            text = text[_first(text) :]
        if len(line.raw) >= LINE_BYTES or line.part:
            text = text[: _last(text)] + CUT
        goes_on, end = line.part, line.offset + line.size
        yield line, text


def _first(text: str) -> int:
    """Return where the first word that is whole begins."""
    found = _BREAK.search(text)
    return found.end() if found is not None else len(text)


def _last(text: str) -> int:
    """Return where the last word that is whole ends."""
    return max((found.end() for found in _BREAK.finditer(text)), default=0)
