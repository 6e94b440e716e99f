"""The metrics and arguments of the runs in a job's logs and TensorBoard files, as every metrics probe needs them.

They are parsed once and kept (`readers.metric_store`). Invariants: a run is judged by its own lines only. A log may
hold several runs, each of which can be the broken one, so probes look at all of them; what an earlier run of a log
shows is history where a later one got past it, as with every other fault (`readers.attempts`), and is said to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from probes import logs
from probes.readers import arguments, logfiles, metric_store, metrics, tensorboard
from probes.readers.arguments import Arguments
from probes.readers.logfiles import ReadProblem
from probes.readers.logindex import WORTH
from probes.readers.logscan import Coverage
from probes.readers.metrics import Record, Run, place
from probes.signatures import every
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict
from runbook.probe import Progress
from runbook.text import Text

_MARKS = frozenset(("started", "arguments", "saving", "saved", "abort", "trouble"))


@dataclass(frozen=True)
class Metrics:
    """What the logs print. runs: in order. tables: arguments tables in order. coverage: how far the logs were read.

    marks: what may change a run (`metric_table.KINDS` from "started" on). cut: metric lines beyond what is kept.
    """

    runs: tuple[Run, ...]
    tables: tuple[Arguments, ...]
    coverage: Coverage
    marks: tuple[Record, ...] = ()
    cut: int = 0

    def table(self, record: Record) -> Arguments | None:
        """Return the arguments that were in force when a record was printed: the last table above it in its file."""
        same = [each for each in self.tables if each.file.stream == record.file.stream]
        above = [each for each in same if (each.file.part, each.offset) <= place(record)]
        if above:
            return above[-1]
        return self.tables[0] if len(self.tables) == 1 else None

    def later(self, run: Run) -> Iterator[Run]:
        """Yield the runs that begin in the same log behind the end of `run`."""
        last = run.edges[1]
        for other in self.runs:
            first = other.edges[0]
            if first.file.stream == last.file.stream and place(first) > place(last):
                yield other


class Judged(NamedTuple):
    """What a probe says of one run. number: the step or rollout at which what it says first shows."""

    run: Run
    finding: Finding
    number: int


def read(evidence: Evidence, report: Progress, wanted: Iterable[str] | None = None) -> Metrics:
    """Read all metric lines of the logs and TensorBoard files; with `wanted`, only those keys of each."""
    keep = frozenset(wanted) | {metrics.MANAGER_KEY} if wanted is not None else None
    coverage = Coverage()
    files, problems = logfiles.expand(evidence.paths("log"))
    coverage.problems.extend(problems)
    text = [file for file in files if not tensorboard.named(file.path)]
    events = dict.fromkeys([file.path for file in files if tensorboard.named(file.path)])
    for folder in evidence.paths("log"):
        inside = tensorboard.inside(folder)
        events |= dict.fromkeys(inside)
        if len(inside) >= tensorboard.FILES:
            coverage.problems.append(ReadProblem(folder, "too-many", f"{tensorboard.FILES} event files were read"))
    total = float(sum(file.size for file in text))
    known = every() if any(file.size >= WORTH for file in text) else ()
    tables: list[Arguments] = []
    marks: list[Record] = []
    cut = 0

    def found() -> Iterator[Record]:
        nonlocal cut
        for table in metric_store.tables(
            text, coverage, known=known, progress=lambda done: report(done, max(total, done), "byte")
        ):
            cut += table.cut
            for record in table.records(keep):
                if record.kind == "arguments":
                    tables.append(arguments.table(record.file, record.line, record.offset))
                if record.kind in _MARKS:
                    marks.append(record)
                if record.kind == "started" or record.kind not in _MARKS:
                    yield record

    runs = metrics.runs(found())
    for path in events:
        runs += metrics.runs(tensorboard.records(path, coverage, keep))
    return Metrics(tuple(runs), tuple(tables), coverage, tuple(marks), cut)


def judge(found: Metrics, one: Callable[[Run], Judged | None], order: Sequence[str]) -> Finding | None:
    """Return what holds of all runs: the gravest answer, unless a later run of the same log got past it.

    one: judges a run, None where it cannot. order: answers, from harmless to grave; a finding without an answer is
    graver than the harmless one, so that a healthy run never hides that another could not be judged. A run got past
    what another shows when it is judged harmless and came as far as the step or rollout at which that showed. None
    where nothing is judged.
    """
    judged = [each for run in found.runs if (each := one(run))]

    def gravity(each: Judged) -> float:
        return order.index(each.finding.answer) if each.finding.answer is not None else 0.5

    history: list[tuple[Judged, Judged]] = []
    for each in sorted(judged, key=gravity, reverse=True):
        past = _past(found, each, judged, order[0])
        if past is None:
            return _with_history(found, each, history if each.finding.answer == order[0] else [])
        if each.finding.answer is not None:
            history.append((each, past))
    return None


def _past(found: Metrics, each: Judged, told: Sequence[Judged], harmless: str) -> Judged | None:
    """Return the later run of the same log that got past what a run shows, the last there is."""
    if each.finding.answer == harmless:
        return None
    behind = [id(run) for run in found.later(each.run)]
    healthy = [
        other
        for other in told
        if id(other.run) in behind and other.finding.answer == harmless and reach(other.run) >= each.number
    ]
    return healthy[-1] if healthy else None


def reach(run: Run) -> int:
    """Return the highest step of a run, or rollout where it prints no steps."""
    records = run.steps or run.rollouts or run.managers
    return records[-1].number if records else -1


def _with_history(found: Metrics, each: Judged, history: Sequence[tuple[Judged, Judged]]) -> Finding:
    """Add to a finding what an earlier run shows that it got past, or that a run behind it has not come so far."""
    finding = each.finding
    if history:
        earlier, later = history[0]
        last = earlier.run.edges[1]
        en = f" An earlier run of the same log, up to line {last.line}, showed: {earlier.finding.summary.en}"
        zh = f" 同一日志中较早的一次运行（到第 {last.line} 行）：{earlier.finding.summary.zh}"
        finding = later.finding
        return msgspec.structs.replace(
            finding,
            verdict=Verdict.WARNING if finding.verdict is Verdict.OK else finding.verdict,
            summary=Text(finding.summary.en + en, finding.summary.zh + zh),
            citations=(*finding.citations, *earlier.finding.citations[:1]),
            plots=(*finding.plots, *earlier.finding.plots),
        )
    behind = [run for run in found.later(each.run) if run.steps or run.rollouts]
    if behind and finding.verdict in (Verdict.PROBLEM, Verdict.WARNING):
        start, end = behind[-1].edges
        en = f" This is an earlier run; the last one in this log, from line {start.line} on, came to"
        en += f" {end.kind} {end.number} and does not take it back."
        zh = f" 这是较早的一次运行；日志中最后一次运行从第 {start.line} 行开始，"
        zh += f"到 {end.kind} {end.number}，尚不能推翻它。"
        finding = msgspec.structs.replace(finding, summary=Text(finding.summary.en + en, finding.summary.zh + zh))
    return finding


def no_metrics(read: Metrics) -> Finding:
    """Return the unknown of logs without the metric lines a question needs."""
    return logs.unread(read.coverage) or logs.nothing_said(
        "The log prints no metric line that answers this.", "日志中没有能回答此问题的指标行。"
    )


def first_rollout(run: Run) -> Record | None:
    """Return the record of rollout 0, None when the run's log begins later (a resumed run, or a cut log)."""
    return run.rollouts[0] if run.rollouts and run.rollouts[0].number == 0 else None


def first_step(run: Run) -> Record | None:
    """Return the record of step 0, None when the run's log begins later."""
    return run.steps[0] if run.steps and run.steps[0].number == 0 else None


def steps_per_rollout(run: Run, table: Arguments | None) -> int | None:
    """Return how many optimizer steps use one rollout, by the arguments or by counting, None when neither tells."""
    told = table.number("num_steps_per_rollout") if table else None
    if told and told >= 1:
        return int(told)
    if len(run.rollouts) >= 2 and run.steps:
        rollouts = run.rollouts[-1].number - run.rollouts[0].number
        first, last = place(run.rollouts[0]), place(run.rollouts[-1])
        between = [step for step in run.steps if first < place(step) < last]
        if rollouts > 0 and between:
            return max(round(len(between) / rollouts), 1)
    return None
