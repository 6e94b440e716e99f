"""The metrics and arguments of the runs in a job's logs, as every metrics probe needs them, read in one pass.

Invariant: a run is judged by its own lines only. A log may hold several runs, and each can be the broken one, so probes
look at all of them and report the worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from probes import logs
from probes.readers import arguments, metrics
from probes.readers.arguments import Arguments
from probes.readers.logscan import Coverage
from probes.readers.metrics import Record, Run
from runbook.evidence import Evidence
from runbook.finding import Finding
from runbook.probe import Progress


@dataclass(frozen=True)
class Metrics:
    """What the logs print. runs: in order. tables: arguments tables in order. coverage: how far the logs were read."""

    runs: tuple[Run, ...]
    tables: tuple[Arguments, ...]
    coverage: Coverage

    def table(self, record: Record) -> Arguments | None:
        """Return the arguments that were in force when a record was printed: the last table above it in its file."""
        same = [each for each in self.tables if each.file.stream == record.file.stream]
        above = [each for each in same if _place(each) <= _place(record)]
        if above:
            return above[-1]
        return self.tables[0] if len(self.tables) == 1 else None


def _place(each: Record | Arguments) -> tuple[int, int]:
    """Return where something stands in its log: the part of a rotated one, and the byte."""
    return (each.file.part, each.offset)


def read(evidence: Evidence, report: Progress, wanted: Iterable[str] | None = None) -> Metrics:
    """Read all metric lines of the logs; with `wanted`, only those keys of each."""
    keep = frozenset(wanted) | {metrics.MANAGER_KEY} if wanted is not None else None
    coverage = Coverage()
    tables: list[Arguments] = []

    def found() -> Iterator[Record]:
        signatures = (metrics.METRIC, metrics.ASSERTED, arguments.BEGIN)
        for hit in logs.stream(evidence, report, signatures, coverage):
            if hit.label == arguments.BEGIN.label:
                tables.append(arguments.table(hit.file, hit.line, hit.offset))
                continue
            yield metrics.record(hit, keep)

    runs = metrics.runs(found())
    return Metrics(tuple(runs), tuple(tables), coverage)


def worst(findings: Sequence[Finding], order: tuple[str, ...]) -> Finding | None:
    """Return the first of the findings with the gravest answer; `order` runs from harmless to grave."""
    return max(findings, key=lambda each: order.index(each.answer or order[0]), default=None)


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
        first, last = _place(run.rollouts[0]), _place(run.rollouts[-1])
        between = [step for step in run.steps if first < _place(step) < last]
        if rollouts > 0 and between:
            return max(round(len(between) / rollouts), 1)
    return None
