"""The metrics and arguments of the runs in a job's logs and TensorBoard files, as every metrics probe needs them.

They are parsed once and kept (`readers.metric_store`). Invariants: a run is judged by its own lines only. A log may
hold several runs, each of which can be the broken one, so probes look at all of them; what an earlier run of a log
shows is history where a later one got past it, as with every other fault (`readers.attempts`), and is said to be.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, TypeVar

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

Place = tuple[int, int]
"""Where something stands in its log (`metrics.place`)."""
_Item = TypeVar("_Item")
_Placed = tuple[list[Place], list[_Item]]
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
        places, tables = _of_log(self._tables, record.file.stream)
        above = bisect.bisect_right(places, place(record))
        if above:
            return tables[above - 1]
        return self.tables[0] if len(self.tables) == 1 else None

    def later(self, run: Run) -> Sequence[Run]:
        """Return the runs that begin in the same log behind the end of `run`, in order."""
        last = run.edges[1]
        places, runs = _of_log(self._runs, last.file.stream)
        return runs[bisect.bisect_right(places, place(last)) :]

    def next_start(self, run: Run) -> Place | None:
        """Return where the first run begins that is behind the end of `run` in the same log."""
        last = run.edges[1]
        places, _ = _of_log(self._runs, last.file.stream)
        at = bisect.bisect_right(places, place(last))
        return places[at] if at < len(places) else None

    def marked(self, stream: str, since: Place, until: Place | None) -> Sequence[Record]:
        """Return the marks of a log from `since` on that stand before `until` (None: its end), in order."""
        places, marks = _of_log(self._marks, stream)
        end = len(marks) if until is None else bisect.bisect_left(places, until)
        return marks[bisect.bisect_left(places, since) : end]

    @cached_property
    def _runs(self) -> Mapping[str, _Placed[Run]]:
        return _by_log(self.runs, lambda run: run.edges[0].file.stream, lambda run: place(run.edges[0]))

    @cached_property
    def _tables(self) -> Mapping[str, _Placed[Arguments]]:
        return _by_log(self.tables, lambda each: each.file.stream, lambda each: (each.file.part, each.offset))

    @cached_property
    def _marks(self) -> Mapping[str, _Placed[Record]]:
        return _by_log(self.marks, lambda each: each.file.stream, place)


def _by_log(
    found: Iterable[_Item], stream_of: Callable[[_Item], str], place_of: Callable[[_Item], Place]
) -> Mapping[str, _Placed[_Item]]:
    """Return, by log, the places of what was found there and what was found, both in the order of its lines.

    A log may hold ten thousands of runs, so what is before or behind one is looked up, never searched for.
    """
    logs_: dict[str, list[tuple[Place, _Item]]] = {}
    for each in found:
        logs_.setdefault(stream_of(each), []).append((place_of(each), each))
    placed: dict[str, _Placed[_Item]] = {}
    for stream, items in logs_.items():
        items.sort(key=lambda item: item[0])
        placed[stream] = ([where for where, _ in items], [each for _, each in items])
    return placed


def _of_log(placed: Mapping[str, _Placed[_Item]], stream: str) -> _Placed[_Item]:
    """Return what one log has."""
    return placed.get(stream) or ([], [])


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

    healthy = _healthy(judged, order[0])
    history: list[tuple[Judged, Judged]] = []
    for each in sorted(judged, key=gravity, reverse=True):
        past = None if each.finding.answer == order[0] else _past(each, healthy)
        if past is None:
            return _with_history(found, each, history if each.finding.answer == order[0] else [])
        if each.finding.answer is not None:
            history.append((each, past))
    return None


class _Healthy(NamedTuple):
    """The runs of one log that are judged harmless, in order.

    starts: where each begins. short: how far any came from each on, negated, so that it rises. told: what is said.
    """

    starts: list[Place]
    short: list[int]
    told: list[Judged]


def _healthy(judged: Sequence[Judged], harmless: str) -> Mapping[str, _Healthy]:
    """Return the harmless runs by log."""
    told = _by_log(
        [each for each in judged if each.finding.answer == harmless],
        lambda each: each.run.edges[0].file.stream,
        lambda each: place(each.run.edges[0]),
    )
    found: dict[str, _Healthy] = {}
    for stream, (starts, runs) in told.items():
        short = list(accumulate((-reach(each.run) for each in reversed(runs)), min))
        found[stream] = _Healthy(starts, short[::-1], runs)
    return found


def _past(each: Judged, healthy: Mapping[str, _Healthy]) -> Judged | None:
    """Return the later run of the same log that got past what a run shows, the last there is."""
    last = each.run.edges[1]
    there = healthy.get(last.file.stream)
    if there is None:
        return None
    at = bisect.bisect_right(there.short, -each.number) - 1
    return there.told[at] if at >= bisect.bisect_right(there.starts, place(last)) else None


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
