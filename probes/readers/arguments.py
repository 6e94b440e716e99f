"""Read the table of arguments that Megatron prints once, after every default and every rewrite of slime's.

It is the best witness of what really applied: a flag that was misspelt, dropped or replaced shows here and nowhere
else. Format (Megatron-LM megatron/training/arguments.py, `_print_args`): a ruler, rows of two blanks, name, dots up
to column 48, blank, `str(value)`, a ruler. The rows may carry a Ray prefix and colours, and lines of other processes
may stand between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from probes.readers import joblog
from probes.readers.logfiles import LogFile, window
from probes.readers.logscan import Coverage, signature

BEGIN = signature("arguments", " arguments ---", r"-{10,} arguments -{10,}")
_END = re.compile(r"-{10,} end of arguments -{10,}")
_ROW = re.compile(r"^ {2}(?P<name>[A-Za-z_][\w-]{0,120}) (?:\.+ | )?(?P<value>.*)$")
TABLE_LIMIT = 1024 * 1024
"""Bytes in which a table must end; the largest seen has 600 rows and 60 KB."""


@dataclass(frozen=True)
class Argument:
    """One row. value: as Python's str() printed it. line, offset: its place in the log."""

    value: str
    line: int
    offset: int
    raw: bytes


@dataclass(frozen=True)
class Arguments:
    """The table of one job. file, offset: the log that holds it and where it begins. whole: its last ruler was seen."""

    file: LogFile
    offset: int
    rows: dict[str, Argument]
    whole: bool

    def value(self, name: str) -> str | None:
        """Return the value of an argument (name with underscores), None when the table does not have it."""
        row = self.rows.get(name)
        return row.value if row else None

    def number(self, name: str) -> float | None:
        """Return the value of an argument as a number, None when it is absent or is none."""
        try:
            return float(self.value(name) or "")
        except ValueError:
            return None

    def true(self, name: str) -> bool:
        """Whether an argument is in the table as True."""
        return self.value(name) == "True"


def read(
    files: Iterable[LogFile], coverage: Coverage, *, progress: Callable[[float], None] | None = None
) -> tuple[Arguments, ...]:
    """Return every arguments table in the logs, in order: one for each job a log holds."""
    hits = joblog.scan_job(files, (BEGIN,), coverage, progress=progress)
    return tuple(table(hit.file, hit.line, hit.offset) for hit in hits)


def table(file: LogFile, line: int, offset: int) -> Arguments:
    """Read the table whose ruler stands at `line` and `offset`."""
    data = window(file, offset, TABLE_LIMIT)
    process = joblog.parse(data.split(b"\n", 1)[0]).process
    rows: dict[str, Argument] = {}
    begin = offset
    for number, raw in enumerate(data.split(b"\n"), start=line):
        parsed = joblog.parse(raw.rstrip(b"\r"))
        if number > line and parsed.process == process:
            if _END.search(parsed.message):
                return Arguments(file, begin, rows, whole=True)
            if row := _ROW.match(parsed.message):
                rows[row["name"]] = Argument(row["value"].strip(), number, offset, raw.rstrip(b"\r"))
        offset += len(raw) + 1
    return Arguments(file, begin, rows, whole=False)
