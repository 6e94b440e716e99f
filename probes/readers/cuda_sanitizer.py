"""Reads the reports of compute-sanitizer (memcheck, racecheck, initcheck, synccheck) in a text or a log.

A report begins with its headline behind "========= ", and its details follow indented. Sources of the words: outputs
of compute-sanitizer 2025.3 (CUDA 13.0), which differ between versions only in details that are read one by one.
Invariant: of a kernel that a report does not name nothing is said; host frames are no kernels but those that carry a
kernel's signature (the stub that launches it).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

MAX_LINES = 400
"""Lines behind a headline that may belong to its report."""
MAX_LINE = 8192
"""Characters of a line that are read; the name of a kernel of templates may be long."""
MAX_NAME = 4000

_MARK = re.compile(r"^.{0,200}?=========(?: (?P<text>.*))?$")
_AT = re.compile(
    r"^ {4}at (?:0x[0-9a-f]+ in )?(?P<kernel>\S.*?)(?:\+0x[0-9a-f]+)?"
    r"(?: in (?P<source>\S{1,400}:\d+(?::.*)?))?$"
)
_OLD_SOURCE = re.compile(r"^(?P<source>/?\S{1,400}:\d+):(?P<kernel>\S.*)$")
_BY = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
_ADDRESS = re.compile(r"Address (0x[0-9a-f]+) is (.*)|Access (?:to|at) (0x[0-9a-f]+) is (.*)")
_NEAREST = re.compile(r"^ {4}and is (.{1,200}allocation.{0,200})$")
_STUB = re.compile(r"^ {4,}Host Frame: ?(\S.*\))(?: \[0x[0-9a-f]+\])?(?: in .*)?$")


class Kind(Enum):
    """What a report is about, by the headlines of the four tools."""

    ACCESS = "access"
    ASSERT = "assert"
    TRAP = "trap"
    RACE = "race"
    UNINITIALISED = "uninitialised"
    BARRIER = "barrier"


_HEADLINES = (
    (Kind.ACCESS, re.compile(r"^Invalid __(?:global|shared|local)__ (?:read|write|atomic)\b")),
    (Kind.ASSERT, re.compile(r"^Warp assert")),
    (Kind.TRAP, re.compile(r"^Trace/breakpoint trap")),
    (Kind.RACE, re.compile(r"^(?:Error|Warning|Info): (?:Race reported|Potential .{0,20} hazard)")),
    (Kind.UNINITIALISED, re.compile(r"^Uninitialized .{0,40}read")),
    (Kind.BARRIER, re.compile(r"^Barrier error detected")),
)
_SUMMARY = re.compile(r"^(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)")


@dataclass(frozen=True)
class Report:
    """One report.

    headline: its first words. kernel: as printed, "" when it is not named. source: "k.cu:9", "" likewise. address:
    hexadecimal. fault: what is wrong with it. distance: how it lies to the nearest allocation, in the tool's words.
    line: 0-based number of the line that names the kernel, else of the headline.
    """

    kind: Kind
    headline: str
    kernel: str = ""
    source: str = ""
    thread: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    address: str = ""
    fault: str = ""
    distance: str = ""
    line: int = 0


def headline(text: str) -> Kind | None:
    """Return what a line begins a report about, None for every other line."""
    mark = _MARK.match(text[:MAX_LINE])
    words = (mark["text"] or "") if mark else ""
    return next((kind for kind, pattern in _HEADLINES if pattern.match(words)), None)


def errors(text: str) -> int | None:
    """Return the number of errors of a summary line, None for every other line."""
    mark = _MARK.match(text[:MAX_LINE])
    found = _SUMMARY.match(mark["text"] or "") if mark else None
    return int(found[1][:9]) if found else None


def read_report(lines: list[str]) -> Report | None:
    """Return the report that begins with the first of these lines, None when none does."""
    kind = headline(lines[0]) if lines else None
    if kind is None:
        return None
    first = _MARK.match(lines[0][:MAX_LINE])
    report = Report(kind, ((first["text"] or "") if first else "").strip()[:200])
    stub = ""
    for number, line in enumerate(lines[1:MAX_LINES], 1):
        mark = _MARK.match(line[:MAX_LINE])
        if mark is None:
            continue  # what the program prints between
        text = (mark["text"] or "").rstrip()
        if not text or not text.startswith(" "):
            break
        report = _detail(report, text, number)
        if not stub and (frame := _STUB.match(text)):
            stub = frame[1][:MAX_NAME]
    if report.kernel.startswith("__assert"):  # the library's function; the kernel is whom the host launched
        report = replace(report, kernel=stub if "(" in stub and not stub.startswith("main") else "")
    return report


def kernel_at(text: str) -> tuple[str, str] | None:
    """Return kernel and source of a line that names the place of a report, None for every other line."""
    mark = _MARK.match(text[:MAX_LINE])
    return _at((mark["text"] or "").rstrip()) if mark else None


def _at(text: str) -> tuple[str, str] | None:
    at = _AT.match(text)
    if at is None:
        return None
    kernel, source = at["kernel"][:MAX_NAME], at["source"] or ""
    if old := _OLD_SOURCE.match(kernel):  # before CUDA 11.6: "at 0x140 in /a/k.cu:9:kernel(int*)"
        kernel, source = old["kernel"], old["source"]
    return kernel, source


def _detail(report: Report, text: str, number: int) -> Report:
    if not report.kernel and (at := _at(text)):
        return replace(report, kernel=at[0], source=at[1], line=number)
    if by := _BY.search(text):
        numbers = [int(part[:9]) for part in by.groups()]
        return replace(report, thread=(numbers[0], numbers[1], numbers[2]), block=(numbers[3], numbers[4], numbers[5]))
    if address := _ADDRESS.search(text):
        return replace(report, address=address[1] or address[3], fault=(address[2] or address[4])[:200])
    if nearest := _NEAREST.match(text):
        return replace(report, distance=nearest[1])
    return report
