"""The transcript: everything a ticket says, in one language, as plain strings and numbers.

It stands between the session and the renderers, so that redaction happens once, on its strings, before anything is
laid out. Invariants: every string is sanitised; nothing in it is markup; no renderer needs anything but a transcript.
Times are seconds since the epoch, 0 when unknown. The order of the fields is the order of the ticket: the problem and
its standing first, then what proves it, what was checked and ruled out, what is open and what to do.
"""

from __future__ import annotations

import msgspec

from runbook.chart import Chart
from runbook.picture import Cells

SCHEMA = 1
"""Version of the transcript's shape in the JSON ticket; adding a field does not change it."""


class Place(msgspec.Struct, frozen=True):
    """A place that proves something.

    line: 1-based or None. offset: in bytes or None. count: how many like it. time: that the line carries.
    """

    path: str
    line: int | None = None
    offset: int | None = None
    excerpt: str = ""
    count: int = 1
    time: float | None = None

    @property
    def where(self) -> str:
        """Return path:line."""
        return self.path if self.line is None else f"{self.path}:{self.line}"


class Link(msgspec.Struct, frozen=True):
    """One step of the chain that leads to a cause.

    how: "evidence", "person" or "open" (nobody answered; `answer` says so, and which one leads on). by: probe ids, or
    the person.
    """

    node: str
    question: str
    answer: str
    how: str
    by: str = ""
    place: Place | None = None


class Do(msgspec.Struct, frozen=True):
    """One thing to do: words, and at most one of a command (lines), a change of the launch script (lines), a link."""

    say: str = ""
    command: str = ""
    change: tuple[str, ...] = ()
    link: str = ""


class Edit(msgspec.Struct, frozen=True):
    """A proposed edit of the file at `path`, as the lines of a diff."""

    path: str
    lines: tuple[str, ...]


class Proof(msgspec.Struct, frozen=True):
    """What a probe found, with the places that prove it and the pictures that show it.

    Pictures are kept as data and drawn by the renderer, after redaction, so that columns still stand in line.
    """

    probe: str
    summary: str
    places: tuple[Place, ...] = ()
    plots: tuple[Chart, ...] = ()
    grids: tuple[Cells, ...] = ()
    edits: tuple[Edit, ...] = ()


class CauseLine(msgspec.Struct, frozen=True):
    """A cause with its standing ("confirmed", "possible"), its rank from 1, and what the flow says to do about it.

    open: undecided questions on the way to a possible cause. led: something that went wrong leads there. consequences:
    titles of what follows from it.
    """

    rank: int
    cause: str
    title: str
    standing: str
    flow: str
    node: str
    guide: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    chain: tuple[Link, ...] = ()
    consequences: tuple[str, ...] = ()
    fix: str = ""
    actions: tuple[Do, ...] = ()
    verify: tuple[str, ...] = ()
    open: int = 0
    led: bool = False


class Number(msgspec.Struct, frozen=True):
    """A measurement. value: None when it is not finite; shown: the number as text with its unit."""

    name: str
    value: float | None
    shown: str
    unit: str = ""
    threshold: str = ""
    source: str = ""


class Table(msgspec.Struct, frozen=True):
    """A table of evidence."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Check(msgspec.Struct, frozen=True):
    """A probe that was asked. run: name of the attached run, "" for the first. seconds: wall time."""

    probe: str
    question: str
    verdict: str
    answer: str
    summary: str
    run: str = ""
    places: tuple[Place, ...] = ()
    numbers: tuple[Number, ...] = ()
    tables: tuple[Table, ...] = ()
    settle_with: str = ""
    seconds: float = 0.0


class Experiment(msgspec.Struct, frozen=True):
    """An experiment of which a copy was written or a run was attached.

    change: as the flow describes it. edit: what the copy changes, None when none was written. left: what of it was to
    be done by hand. run, path: name of the run in this ticket and its RUN, "" when none is there yet. lacks: what of
    the change the run is proven not to have. found: probe, answer and words of what was asked of the run. answer: what
    was concluded, "" when nothing was.
    """

    flow: str
    node: str
    question: str
    change: tuple[str, ...]
    edit: Edit | None = None
    left: tuple[str, ...] = ()
    run: str = ""
    path: str = ""
    lacks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    found: tuple[tuple[str, str, str], ...] = ()
    answer: str = ""


class RuledOut(msgspec.Struct, frozen=True):
    """A cause that is not it. by: what closed the way to it, probe: whose answer that was."""

    cause: str
    title: str
    by: str = ""
    probe: str = ""
    place: Place | None = None


class Question(msgspec.Struct, frozen=True):
    """Something unknown, why, and what would settle it. slots: evidence that is wanted."""

    flow: str
    node: str
    question: str
    why: str
    settle_with: str
    slots: tuple[str, ...] = ()
    experiment: bool = False


class Next(msgspec.Struct, frozen=True):
    """The one next action.

    title: what it is about. words: what to do. verify: probes that show whether it helped. settles: it answers a
    question rather than fixing a cause.
    """

    title: str
    words: str = ""
    actions: tuple[Do, ...] = ()
    verify: tuple[str, ...] = ()
    settles: bool = False


class Source(msgspec.Struct, frozen=True):
    """An item of evidence."""

    slot: str
    path: str
    why: str
    origin: str = ""
    missing: bool = False
    run: str = ""


class Moment(msgspec.Struct, frozen=True):
    """Something that happened. source: "log" for a line of evidence, "session" for what people did.

    time: seconds since the epoch; of a log, by its own clock as if that were UTC, for its lines tell no zone.
    """

    time: float
    source: str
    what: str
    where: str = ""


class Said(msgspec.Struct, frozen=True):
    """An answered node. by: "probe" or "person". overrules: what the probes say when the person said otherwise."""

    flow: str
    node: str
    question: str
    answer: str
    by: str
    who: str = ""
    time: float = 0.0
    stale: bool = False
    overrules: str = ""


class Remark(msgspec.Struct, frozen=True):
    """A note that a person wrote down, line by line."""

    lines: tuple[str, ...]
    time: float
    who: str = ""
    node: str = ""


class Hidden(msgspec.Struct, frozen=True):
    """A line of the redaction report.

    values: how many different ones. count: in how many different lines of text. where: parts of the ticket.
    """

    kind: str
    values: int
    count: int
    where: tuple[str, ...]


class Environment(msgspec.Struct, frozen=True):
    """Where and with what the diagnosis was made. facts: name and value. flows: id and content hash."""

    version: str
    sources: tuple[Source, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    flows: tuple[tuple[str, str], ...] = ()


class Transcript(msgspec.Struct, frozen=True):
    """A ticket before it is laid out.

    title: the problem in one line. symptoms: what the flows that were walked say a person sees. clear: what the flows
    that found nothing wrong say. asked: titles of the flows whose first question the evidence answered. problems:
    findings that say that something is wrong, those of confirmed causes first. walked: whether people walked a flow.
    matrices: grids of experiments, filled as far as they were run. runs: all runs side by side, None for one run.
    where: where the session stands, in at most five lines. seen: what the ledger knows of earlier incidents like this.
    began, changed: of the session.
    """

    schema: int
    language: str
    session: str
    title: str
    root: str
    symptoms: tuple[str, ...]
    notes: tuple[Remark, ...]
    causes: tuple[CauseLine, ...]
    clear: tuple[str, ...]
    asked: tuple[str, ...]
    problems: tuple[Proof, ...]
    checks: tuple[Check, ...]
    ruled_out: tuple[RuledOut, ...]
    unknown: tuple[Question, ...]
    next: Next
    environment: Environment
    timeline: tuple[Moment, ...]
    answers: tuple[Said, ...]
    walked: bool
    began: float
    changed: float
    experiments: tuple[Experiment, ...] = ()
    matrices: tuple[Table, ...] = ()
    runs: Table | None = None
    where: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    redaction: tuple[Hidden, ...] = ()

    @property
    def confirmed(self) -> tuple[CauseLine, ...]:
        """Return the confirmed causes in rank order."""
        return tuple(cause for cause in self.causes if cause.standing == "confirmed")

    @property
    def possible(self) -> tuple[CauseLine, ...]:
        """Return the possible causes, nearest first."""
        return tuple(cause for cause in self.causes if cause.standing == "possible")
