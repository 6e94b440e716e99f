"""What a probe says: a finding, its citations and its measurements.

These structures cross process boundaries, go into the journal and into tickets, so they are frozen,
carry only plain data and hold text that was sanitised when it was made.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from runbook.text import EXCERPT_LIMIT, Text, sanitise


class Verdict(str, Enum):
    """The seven verdicts. The last two are given by the runner, never by a probe."""

    OK = "ok"
    PROBLEM = "problem"
    WARNING = "warning"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not_applicable"
    TIMED_OUT = "timed_out"
    PROBE_ERROR = "probe_error"

    @property
    def decides(self) -> bool:
        """Whether an answer with this verdict may choose a branch."""
        return self in (Verdict.OK, Verdict.PROBLEM, Verdict.WARNING)


class Citation(msgspec.Struct, frozen=True):
    """The place that proves a finding.

    path: file as it was opened. line: 1-based, None for binary files and folders. offset: bytes from
    the start of the file, None when the whole file is meant. excerpt: the sanitised text found there.
    count: how many like it (for example ranks that printed the same line). time: seconds since the epoch of the
    log line when it carries one; used for ordering only.
    """

    path: str
    line: int | None = None
    offset: int | None = None
    excerpt: str = ""
    count: int = 1
    time: float | None = None


def cite(
    path: str,
    raw: str | bytes,
    *,
    line: int | None = None,
    offset: int | None = None,
    count: int = 1,
    time: float | None = None,
) -> Citation:
    """Build a citation from raw text found in a file; the excerpt is sanitised and cut to EXCERPT_LIMIT."""
    return Citation(path, line, offset, sanitise(raw, EXCERPT_LIMIT), count, time)


class Measurement(msgspec.Struct, frozen=True):
    """One number with its unit, and the threshold it is judged by with the threshold's source."""

    name: str
    value: float
    unit: str
    threshold: float | None = None
    source: str = ""


class Table(msgspec.Struct, frozen=True):
    """Rows of sanitised text that show the evidence, drawn by every front as `said` returns them.

    zh: what reads otherwise in Chinese, as pairs of a cell or column and its Chinese words: a table has one language.
    """

    title: Text
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    zh: tuple[tuple[str, str], ...] = ()

    def said(self, language: str) -> Table:
        """Return the table with columns and cells in `language` ("en" or "zh")."""
        if language != "zh" or not self.zh:
            return self
        words = dict(self.zh)
        rows = tuple(tuple(words.get(cell, cell) for cell in row) for row in self.rows)
        return Table(self.title, tuple(words.get(column, column) for column in self.columns), rows)


class Grid(msgspec.Struct, frozen=True):
    """A picture made of cells, such as layer × parameter group.

    What makes a hole or a shifted diagonal visible at a glance.

    rows, columns: labels. cells: one string for each row with one code character for each column. legend: code,
    words, and colour role ("good", "bad", "warn", "dim", "accent") of every code that occurs; the code itself is
    what is drawn, so that colour is never the only sign.
    """

    title: Text
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[str, ...]
    legend: tuple[tuple[str, Text, str], ...]


class Proposal(msgspec.Struct, frozen=True):
    """An edit of one file that would mend the fault, as a unified diff; the original is never touched.

    name: file name under which the session keeps it, such as "config.json.patch". of: path of the file it is for.
    """

    name: str
    of: str
    diff: str


class Curve(msgspec.Struct, frozen=True):
    """One line of a plot. points: (x, y) in order of x; y is None where the value was printed but is not finite."""

    name: str
    points: tuple[tuple[float, float | None], ...]


class Plot(msgspec.Struct, frozen=True):
    """Numbers over steps, drawn as a plot by every front and as SVG where a ticket can show pictures.

    x: what the horizontal axis counts, such as "step". unit: of the values. marks: (x, words) of places to point at,
    such as the first bad step. limits: (value, words) of the thresholds that the curves are judged by.
    """

    title: Text
    x: str
    unit: str
    curves: tuple[Curve, ...]
    marks: tuple[tuple[float, Text], ...] = ()
    limits: tuple[tuple[float, Text], ...] = ()


class Finding(msgspec.Struct, frozen=True):
    """The answer of one probe.

    probe: id, filled by the runner. answer: one of the probe's declared answers, or None when the verdict does not
    decide. summary: one sentence. settle_with: what would turn an unknown into an answer. slots: the evidence slots
    that would settle it. seconds: wall time, filled by the runner.
    """

    verdict: Verdict
    answer: str | None
    summary: Text
    citations: tuple[Citation, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    tables: tuple[Table, ...] = ()
    grids: tuple[Grid, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    plots: tuple[Plot, ...] = ()
    settle_with: Text | None = None
    slots: tuple[str, ...] = ()
    probe: str = ""
    seconds: float = 0.0


def found(
    verdict: Verdict,
    answer: str,
    en: str,
    zh: str,
    *,
    citations: tuple[Citation, ...] = (),
    measurements: tuple[Measurement, ...] = (),
    tables: tuple[Table, ...] = (),
    grids: tuple[Grid, ...] = (),
    proposals: tuple[Proposal, ...] = (),
    plots: tuple[Plot, ...] = (),
) -> Finding:
    """Return a finding that answers its question (verdict ok, problem or warning)."""
    summary = Text(sanitise(en), sanitise(zh))
    return Finding(verdict, answer, summary, citations, measurements, tables, grids, proposals, plots)


def unknown(
    en: str,
    zh: str,
    *,
    settle_en: str,
    settle_zh: str,
    slots: tuple[str, ...] = (),
    citations: tuple[Citation, ...] = (),
) -> Finding:
    """Return a finding that could not answer, with the reason and what would settle it."""
    return Finding(
        Verdict.UNKNOWN,
        None,
        Text(sanitise(en), sanitise(zh)),
        citations,
        settle_with=Text(sanitise(settle_en), sanitise(settle_zh)),
        slots=slots,
    )


def not_applicable(en: str, zh: str) -> Finding:
    """Return a finding that says the question does not arise for this evidence."""
    return Finding(Verdict.NOT_APPLICABLE, None, Text(sanitise(en), sanitise(zh)))
