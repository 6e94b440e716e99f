"""The metric lines of one log as a table that is parsed once and kept, in a few arrays.

Every probe of metrics asks the same log for other columns. What takes the time is to find the lines' bytes again and
to take their dictionaries apart, so the table keeps the numbers themselves: lines with the same keys share one shape,
and a line costs eight bytes a value and some forty more. Invariants: a record made from the table is the record that
`metrics.record` makes from the line (a test holds it); the table of a log stays below CELLS values, and says so when
lines were left out (`cut`). Besides metric lines it has the places of what may change a run: starts of the job,
arguments tables, saves, aborts, faults of engines and tracebacks. `metric_store` keeps tables between processes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from probes.readers import arguments, attempts, joblog, metrics, timers
from probes.readers.logfiles import LogFile
from probes.readers.logscan import Hit, signature
from probes.readers.metrics import Record

TROUBLE = signature(
    "run-trouble",
    (
        "Traceback (most recent call last)", "dead rollout engines", "Health check failed for rollout engine",
        "Killing server group ", "Killing engine group ", "partially updated",
    ),
    r"(Traceback) \(most recent call last\)|(Recovered) \d+ dead rollout engines"
    r"|(Health check) failed for rollout engine|(Killing) (?:server|engine) group \d|(partially updated)",
)  # fmt: skip
"""What may change the numbers of a run without ending it (slime/ray/rollout.py, health_monitor.py, SGLang)."""
SIGNATURES = (
    metrics.METRIC, metrics.ASSERTED, metrics.ABORT, arguments.BEGIN, attempts.STARTED, timers.SAVE, TROUBLE,
)  # fmt: skip
CELLS = 8_000_000
"""Values of one log that are kept: 64 MB, forty thousand rollouts with all that slime prints of each."""
KINDS = (
    "step", "rollout", "perf", "eval", "multi_turn", "passrate", "critic-step", "asserted",
    "started", "arguments", "saving", "saved", "abort", "trouble",
)  # fmt: skip
"""What a row is; those from "started" on have no values."""
_NUMBER = {kind: number for number, kind in enumerate(KINDS)}


class Part(msgspec.Struct, array_like=True, frozen=True):
    """Some rows of a table, packed: its arrays as bytes, its shapes and sources as far as they are new in it."""

    kinds: bytes
    numbers: bytes
    lines: bytes
    offsets: bytes
    sources: bytes
    shapes: bytes
    values: bytes
    new_shapes: list[tuple[str, ...]]
    new_sources: list[tuple[str, int]]
    cut: int = 0


@dataclass
class Table:
    """The rows of one log, in the order of its lines.

    kinds: numbers in KINDS. numbers: rollout or step, -1 for none. sources: which (logger, pid) printed a row, pid -1
    where nobody says it. shapes: which keys it has; begins: where its values begin. cut: rows that were left out.
    """

    file: LogFile
    kinds: array[int] = field(default_factory=lambda: array("B"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    lines: array[int] = field(default_factory=lambda: array("Q"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    sources: array[int] = field(default_factory=lambda: array("I"))
    shapes: array[int] = field(default_factory=lambda: array("I"))
    values: array[float] = field(default_factory=lambda: array("d"))
    all_shapes: dict[tuple[str, ...], int] = field(default_factory=dict)
    all_sources: dict[tuple[str, int], int] = field(default_factory=dict)
    cut: int = 0

    def __len__(self) -> int:
        return len(self.kinds)

    def add(self, hit: Hit) -> None:
        """Take one hit of SIGNATURES in."""
        kind, each = "", None
        if hit.label in (metrics.METRIC.label, metrics.ASSERTED.label):
            each = metrics.record(hit)
            kind = each.kind
        elif hit.label == attempts.STARTED.label:
            kind = "started" if joblog.parse(hit.raw).actor is None else ""
        elif hit.label == timers.SAVE.label:
            kind = "saving" if hit.groups[0] == b"saving" else "saved"
        else:
            kind = {arguments.BEGIN.label: "arguments", metrics.ABORT.label: "abort"}.get(hit.label, "trouble")
        if not kind:
            return
        values = each.values if each else {}
        if len(self.values) + len(values) + len(self) > CELLS:
            self.cut += 1
            return
        self.kinds.append(_NUMBER[kind])
        self.numbers.append(each.number if each else -1)
        self.lines.append(hit.line)
        self.offsets.append(hit.offset)
        pid = each.pid if each and each.pid is not None else -1
        self.sources.append(self.all_sources.setdefault((each.logger if each else "", pid), len(self.all_sources)))
        self.shapes.append(self.all_shapes.setdefault(tuple(values), len(self.all_shapes)))
        self.values.extend(values.values())

    def records(self, keys: frozenset[str] | None = None) -> Iterator[Record]:
        """Yield all rows as records, with all their values or only those of `keys`."""
        shapes = [
            (len(shape), [(key, place) for place, key in enumerate(shape) if keys is None or key in keys])
            for shape in self.all_shapes
        ]
        sources, values, file, at = list(self.all_sources), self.values, self.file, 0
        for kind, number, line, offset, source, shape in zip(
            self.kinds, self.numbers, self.lines, self.offsets, self.sources, self.shapes, strict=True
        ):
            size, wanted = shapes[shape]
            logger, pid = sources[source]
            found = {key: values[at + place] for key, place in wanted}
            yield Record(KINDS[kind], number, found, logger, None if pid < 0 else pid, file, line, offset)
            at += size

    def part(self, since: tuple[int, int, int, int], until: int) -> Part:
        """Pack the rows from `since` (as `mark` gave it) up to row number `until`."""
        row, value, shape, source = since
        shapes, sources = list(self.all_shapes), list(self.all_sources)
        end = value + sum(len(shapes[each]) for each in self.shapes[row:until])
        rows = slice(row, until)
        return Part(
            self.kinds[rows].tobytes(),
            self.numbers[rows].tobytes(),
            self.lines[rows].tobytes(),
            self.offsets[rows].tobytes(),
            self.sources[rows].tobytes(),
            self.shapes[rows].tobytes(),
            self.values[value:end].tobytes(),
            shapes[shape:],
            sources[source:],
        )

    def mark(self) -> tuple[int, int, int, int]:
        """Return how many rows, values, shapes and sources there are."""
        return (len(self), len(self.values), len(self.all_shapes), len(self.all_sources))

    def take(self, part: Part) -> None:
        """Append a part that was packed by a table which had what this one has. Raises ValueError if it does not fit.

        A part that is not whole in itself is refused before anything is changed.
        """
        rows = [
            _array("B", part.kinds), _array("q", part.numbers), _array("Q", part.lines), _array("Q", part.offsets),
            _array("I", part.sources), _array("I", part.shapes),
        ]  # fmt: skip
        values: array[float] = array("d")
        values.frombytes(part.values)
        shapes = [*self.all_shapes, *part.new_shapes]
        if len(set(shapes)) != len(shapes) or not self.all_sources.keys().isdisjoint(part.new_sources):
            raise ValueError("a part repeats a shape or source")
        if len({len(each) for each in rows}) != 1 or any(kind >= len(KINDS) for kind in rows[0]):
            raise ValueError("columns of a part differ in length or kind")
        if max(rows[5], default=-1) >= len(shapes) or max(rows[4], default=-1) >= (
            len(self.all_sources) + len(part.new_sources)
        ):
            raise ValueError("a part names a shape or source that it does not have")
        if sum(len(shapes[each]) for each in rows[5]) != len(values):
            raise ValueError("a part has more or fewer values than its rows")
        for own, more in zip(
            (self.kinds, self.numbers, self.lines, self.offsets, self.sources, self.shapes), rows, strict=True
        ):
            own.extend(more)
        self.values.extend(values)
        for each in part.new_shapes:
            self.all_shapes.setdefault(each, len(self.all_shapes))
        for name in part.new_sources:
            self.all_sources.setdefault(name, len(self.all_sources))
        self.cut += part.cut


def _array(code: str, raw: bytes) -> array[int]:
    column: array[int] = array(code)
    column.frombytes(raw)
    return column
