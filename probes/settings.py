"""What a run was told to do: the launch script's flags, and the log's arguments table that says what applied.

The table wins: it is printed after slime's own rewrites, and unknown flags are dropped silently before it.
Invariants: every answer carries the line it comes from; a flag that is not on the command line is only called
absent when the whole command line is known and looks like a real one (slime requires --rollout-batch-size),
because people quote a few flags without the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from probes.readers import arguments
from probes.readers.arguments import Arguments
from probes.readers.launch import TRACE_LIMIT, read_launch, read_trace
from probes.readers.launch_model import Job, Launch, Occurrence, cite_place
from probes.readers.logfiles import LogFile, expand, window
from probes.readers.logscan import line_ends
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, cite, unknown

HEAD_LIMIT = 32 << 20
"""Bytes at the start of a log in which the arguments table is looked for: the driver prints it before anything
trains."""
MANY_LOGS = 64
"""Logs of a folder that are looked into; the driver's are looked at first."""
_MODEL_SCRIPT = re.compile(r"models/[\w.-]+\.sh$|^[\w.-]+$")
_RULED = b"- arguments -"
_RULER = re.compile(rb"-{10,} arguments -{10,}")
_RULER_END = len("- arguments ----------")
"""Bytes from `_RULED` to the end of the least ruler."""


@dataclass(frozen=True)
class Given:
    """A flag's value and where it stands.

    value: None when it is not known. shown: as written. sure: it certainly applies. default: it rests on the
    default of an environment variable.
    """

    value: str | None
    shown: str
    citation: Citation
    sure: bool = True
    default: bool = False


@dataclass(frozen=True)
class Settings:
    """The launch script that holds a training job, that job, and the arguments table; any of them may be None."""

    launch: Launch | None = None
    job: Job | None = None
    table: Arguments | None = None
    others: tuple[tuple[Launch, Job], ...] = ()

    @property
    def known(self) -> bool:
        """Return whether there is anything to read a flag from."""
        return self.job is not None or self.table is not None

    @property
    def whole(self) -> bool:
        """Return whether a flag of the run (not of the model) that is not found is certainly not given."""
        if self.table is not None and self.table.whole:
            return True
        return self.launch is not None and self.job is not None and complete(self.launch, self.job)

    @property
    def whole_model(self) -> bool:
        """Return whether a flag of the model (MODEL_ARGS) that is not found is certainly not given."""
        if self.table is not None and self.table.whole:
            return True
        return (
            self.whole
            and self.launch is not None
            and not self.launch.gaps
            and self.job is not None
            and "num-layers" in self.job.flags
        )

    @property
    def jobs(self) -> tuple[tuple[Launch, Job], ...]:
        """Return every training job of every launch script, the one that is looked at first."""
        first = ((self.launch, self.job),) if self.launch is not None and self.job is not None else ()
        return (*first, *self.others)


def complete(launch: Launch, job: Job) -> bool:
    """Return whether every flag of a job is known, but for those of a model script that is not at hand."""
    known = not job.gaps and all(_MODEL_SCRIPT.search(gap.what) for gap in launch.gaps)
    return known and job.flags.keys() >= {"hf-checkpoint", "rollout-batch-size"}


def read_settings(evidence: Evidence) -> Settings:
    """Read launch scripts and the start of the logs. Files that cannot be read are passed over: other probes say so."""
    launches = [read_launch(path) for path in evidence.paths("launch")]
    table: Arguments | None = None
    files, _ = expand(evidence.paths("log"))
    for file in sorted(files, key=lambda one: "driver" not in one.path)[:MANY_LOGS]:
        head = window(file, 0, HEAD_LIMIT)
        if table is None:
            table = read_table(file, head)
        if not any(launch.jobs for launch in launches) and (trace := read_trace(file.path, head[:TRACE_LIMIT])):
            launches.append(trace)
    pairs = [(launch, job) for launch in launches for job in launch.jobs]
    if not pairs:
        return Settings(launches[0] if launches else None, None, table)
    return Settings(pairs[0][0], pairs[0][1], table, tuple(pairs[1:]))


def read_table(file: LogFile, head: bytes) -> Arguments | None:
    """Return the last arguments table at the start of a log; None when there is none."""
    at = len(head)
    while (at := head.rfind(_RULED, 0, at)) >= 0:
        start = head.rfind(b"\n", 0, at) + 1
        if _RULER.search(head, start, at + _RULER_END):
            found = arguments.table(file, line_ends(head, 0, start) + 1, start)
            return found if found.rows else None
    return None


def given(settings: Settings, flag: str, name: str | None = None) -> Given | None:
    """Return what applied for `flag` (without dashes); None when it is not found.

    `name` is its row in the table where that differs. A row that says None counts as not found.
    """
    row = settings.table.rows.get(name or flag.replace("-", "_")) if settings.table is not None else None
    if row is not None and settings.table is not None:
        citation = cite(settings.table.file.path, row.raw, line=row.line, offset=row.offset)
        return None if row.value == "None" else Given(row.value, row.value, citation)
    return scripted(settings, flag)


def scripted(settings: Settings, flag: str) -> Given | None:
    """Return what the launch script itself gives for `flag`, whatever the table says."""
    return of_job(settings.job, flag) if settings.job is not None else None


def of_job(job: Job, flag: str) -> Given | None:
    """Return the last occurrence of a flag on one command line."""
    last = job.last(flag)
    return None if last is None else _given(last)


def _given(last: Occurrence) -> Given:
    return Given(last.text, last.shown, cite_place(last.place), last.sure, last.default)


def switched(
    settings: Settings, flag: str, name: str | None = None, *, of_model: bool = False
) -> tuple[bool | None, Given | None]:
    """Return whether a switch is on (None when that is not certain) and the line that says so."""
    if settings.table is not None and (name or flag.replace("-", "_")) in settings.table.rows:
        row = given(settings, flag, name)
        return row is not None and row.value not in ("False", "0"), row
    one = scripted(settings, flag)
    if one is None:
        return (False if (settings.whole_model if of_model else settings.whole) else None), None
    return (True if one.sure else None), one


def number(settings: Settings, flag: str, default: float | None = None) -> tuple[float | None, Given | None]:
    """Return a number and its line; `default` when the flag is certainly not given, None when nothing is certain."""
    one = given(settings, flag)
    if one is None:
        return (default if settings.whole else None), None
    try:
        value = float(one.value) if one.value is not None and one.sure else None
    except ValueError:
        value = None
    return value, one


def no_command() -> Finding:
    """Return the unknown of a question that only a training command answers."""
    return unknown(
        "No training command was found.",
        "没有找到训练命令。",
        settle_en="attach the launch script",
        settle_zh="附上启动脚本",
        slots=("launch",),
    )


def not_told(en: str, zh: str, citations: tuple[Citation, ...] = ()) -> Finding:
    """Return the unknown of a question that neither script nor table answers; en, zh: one sentence each."""
    return unknown(
        en,
        zh,
        settle_en="attach the launch script or a log with the arguments table",
        settle_zh="附上启动脚本或含参数表的日志",
        slots=("launch", "log"),
        citations=citations,
    )
