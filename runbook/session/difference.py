"""What differs between two sides: two sessions, two runs of one, or two runs that were only triaged. Pure.

Only what tells something is a difference: paths are compared as seen from each side's RUN, and a number counts when it
moved by more than MOVED or to the other side of its threshold.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

import msgspec

from runbook.evidence import Item
from runbook.finding import Finding, Measurement, Table
from runbook.flow.model import Cause, Flow
from runbook.session.state import SessionState
from runbook.triage import Report, Standing, triage
from runbook.walk import By

MOVED = 0.05
"""Part of the larger of two numbers by which they must differ to be told; chosen: less is noise from run to run."""


@dataclass(frozen=True)
class Side:
    """One side. name: as it was asked for. findings: by probe id. answers: flow/node to answer and who gave it.

    asked: flow/node of the answers that probes gave, to those probes.
    runs: flow/node of an experiment to the RUN that was attached. flows: id to content hash.
    """

    name: str
    root: str
    report: Report
    findings: Mapping[str, Finding]
    items: tuple[Item, ...]
    answers: Mapping[str, str]
    asked: Mapping[str, tuple[str, ...]]
    runs: Mapping[str, str]
    flows: Mapping[str, str]
    notes: tuple[str, ...]
    version: str

    def seen(self, text: str) -> str:
        """Return a text with paths as seen from RUN."""
        root = self.root.rstrip("/")
        return text.replace(f"{root}/", "") if root else text


class Change(msgspec.Struct, frozen=True):
    """Something that is another. before, after: in words, "" where it is not there."""

    what: str
    before: str
    after: str


class NumberChange(msgspec.Struct, frozen=True):
    """A measurement that moved. before, after: None where it was not taken."""

    name: str
    unit: str
    before: float | None
    after: float | None


class FindingChange(msgspec.Struct, frozen=True):
    """A probe that says something else.

    before, after: verdict and answer, "" where it was not asked. summary: in words. numbers, rows: what moved in its
    measurements and tables; the latter are named by table, row and column.
    """

    probe: str
    before: str
    after: str
    summary: Change
    numbers: tuple[NumberChange, ...] = ()
    rows: tuple[Change, ...] = ()


class Difference(msgspec.Struct, frozen=True):
    """Everything that differs. before, after: the names of the sides."""

    before: str
    after: str
    causes: tuple[Change, ...] = ()
    findings: tuple[FindingChange, ...] = ()
    evidence: tuple[Change, ...] = ()
    answers: tuple[Change, ...] = ()
    runs: tuple[Change, ...] = ()
    flows: tuple[Change, ...] = ()
    notes: tuple[Change, ...] = ()
    version: tuple[Change, ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return any(getattr(self, field) for field in self.__struct_fields__ if field not in ("before", "after"))


def side(state: SessionState, report: Report, name: str) -> Side:
    """Return a whole session as a side. report: its triage."""
    return Side(
        name,
        state.root,
        report,
        state.findings_of(),
        state.evidence().items,
        {
            f"{walk.flow}/{step.node}": f"{step.answer} ({step.who or step.by.value})"
            for walk in state.walks.values()
            for step in walk.steps
        },
        {
            f"{walk.flow}/{step.node}": step.probes
            for walk in state.walks.values()
            for step in walk.steps
            if step.by is By.PROBE
        },
        {f"{flow}/{node}": state.runs.get(run, "") for (flow, node), run in state.attached.items()},
        state.flow_hashes,
        tuple(note.words for note in state.notes),
        state.version,
    )


def side_of_run(
    state: SessionState, run: str, flows: Iterable[Flow], vocabulary: Mapping[str, Cause], name: str
) -> Side:
    """Return one run of a session as a side: what was found in it, judged by itself. run: "" for the first."""
    findings = state.findings_of(run)
    evidence = state.evidence(run)
    report = triage(flows, vocabulary, findings)
    return Side(name, evidence.root, report, findings, evidence.items, {}, {}, {}, state.flow_hashes, (), state.version)


def difference(before: Side, after: Side, language: str) -> Difference:
    """Return what differs, in the words of `language` ("en" or "zh")."""
    return Difference(
        before.name,
        after.name,
        tuple(_changes(_standings(before.report), _standings(after.report))),
        tuple(_findings(before, after, language)),
        tuple(_evidence(before, after)),
        tuple(_answers(before, after)),
        tuple(_changes(before.runs, after.runs)) if before.answers and after.answers else (),
        tuple(_changes(before.flows, after.flows)),
        tuple(_only(before.notes, after.notes)),
        tuple(_changes({"version": before.version}, {"version": after.version})),
    )


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[Change]:
    """Yield what is another under a name, in the order of the second side."""
    for name in dict.fromkeys((*after, *before)):
        if before.get(name, "") != after.get(name, ""):
            yield Change(name, before.get(name, ""), after.get(name, ""))


def _answers(before: Side, after: Side) -> Iterable[Change]:
    """Yield the answers that differ, of the flows that were walked on both sides.

    One that only one side has since its probes gave it there is left out where both sides' findings of them agree.
    """
    first, second = ({name.partition("/")[0] for name in side.answers} for side in (before, after))
    for change in _changes(before.answers, after.answers):
        asked = (before if change.before else after).asked.get(change.what)
        alone = not (change.before and change.after)
        if change.what.partition("/")[0] not in first & second or (alone and asked and _agree(before, after, asked)):
            continue
        yield change


def _agree(before: Side, after: Side, probes: Iterable[str]) -> bool:
    return all(_head(before.findings.get(probe)) == _head(after.findings.get(probe)) for probe in probes)


def _only(before: Iterable[str], after: Iterable[str]) -> Iterable[Change]:
    """Yield texts that only one side has."""
    first, second = dict.fromkeys(before), dict.fromkeys(after)
    yield from (Change("", text, "") for text in first if text not in second)
    yield from (Change("", "", text) for text in second if text not in first)


def _standings(report: Report) -> dict[str, str]:
    return {one.cause: one.standing.value for one in (*report.causes, *report.ruled_out)}


def weight(change: Change) -> int:
    """Return how much the change of a standing matters, the most first: what is or was confirmed."""
    return (Standing.CONFIRMED.value not in (change.before, change.after)) + (change.after != Standing.CONFIRMED.value)


def _evidence(before: Side, after: Side) -> Iterable[Change]:
    """Yield the items that only one side has, those of one slot beside each other."""
    first, second = _items(before), _items(after)
    for slot in dict.fromkeys((*second, *first)):
        gone = [path for path in first.get(slot, {}) if path not in second.get(slot, {})]
        new = [path for path in second.get(slot, {}) if path not in first.get(slot, {})]
        yield from (Change(slot, old, other) for old, other in zip_longest(gone, new, fillvalue=""))


def _items(side: Side) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {}
    for item in side.items:
        gone = " (missing)" if item.missing else ""
        found.setdefault(item.slot, {})[f"{side.seen(item.path)}{gone}"] = None
    return found


def _findings(before: Side, after: Side, language: str) -> Iterable[FindingChange]:
    for probe in sorted({*before.findings, *after.findings}):
        old, new = before.findings.get(probe), after.findings.get(probe)
        heads = (_head(old), _head(new))
        numbers = tuple(_numbers(old, new))
        rows = tuple(_rows(before, after, old, new, language))
        if heads[0] != heads[1] or numbers or rows:
            words = [one.summary.say(language) if one is not None else "" for one in (old, new)]
            yield FindingChange(probe, *heads, Change("summary", *words), numbers, rows)


def _head(finding: Finding | None) -> str:
    if finding is None:
        return ""
    return f"{finding.verdict.value}: {finding.answer}" if finding.answer else finding.verdict.value


def _numbers(before: Finding | None, after: Finding | None) -> Iterable[NumberChange]:
    """Yield the measurements of a probe that decided on both sides and moved."""
    if before is None or after is None or not (before.verdict.decides and after.verdict.decides):
        return
    first = {(one.name, one.unit): one for one in before.measurements}
    second = {(one.name, one.unit): one for one in after.measurements}
    for key in dict.fromkeys((*second, *first)):
        old, new = first.get(key), second.get(key)
        if old is None or new is None or moved(old, new):
            yield NumberChange(*key, old.value if old else None, new.value if new else None)


def moved(before: Measurement, after: Measurement) -> bool:
    """Return whether a measurement moved so far that it tells something."""
    return _apart(before.value, after.value) or any(
        (before.value > limit) != (after.value > limit)
        for limit in (before.threshold, after.threshold)
        if limit is not None and before.value != after.value
    )


def _apart(before: float, after: float) -> bool:
    if not (math.isfinite(before) and math.isfinite(after)):
        return repr(before) != repr(after)
    return abs(before - after) > MOVED * max(abs(before), abs(after))


def _rows(before: Side, after: Side, old: Finding | None, new: Finding | None, language: str) -> Iterable[Change]:
    """Yield the cells that differ in tables of the same title, rows paired by their first column."""
    if old is None or new is None:
        return
    known = {table.title.en: table for table in old.tables}
    for table in new.tables:
        if (other := known.get(table.title.en)) is not None and table.columns and other.columns:
            title = table.title.say(language)
            old_cells, new_cells = _keyed(before, other.said(language)), _keyed(after, table.said(language))
            yield from _cells(title, old_cells, new_cells)


def _cells(
    title: str, first: Mapping[str, Mapping[str, str]], second: Mapping[str, Mapping[str, str]]
) -> Iterable[Change]:
    for key in dict.fromkeys((*second, *first)):
        if key not in first or key not in second:
            whole = [", ".join(filter(None, rows.get(key, {}).values())) or key for rows in (first, second)]
            yield Change(f"{title}: {key}", whole[0] if key in first else "", whole[1] if key in second else "")
            continue
        for column in first[key]:
            old, new = first[key][column], second[key].get(column, "")
            if column in second[key] and old != new and _tells(old, new):
                yield Change(f"{title}: {key}, {column}", old, new)


def _keyed(side: Side, table: Table) -> dict[str, dict[str, str]]:
    """Return the rows of a table by their first cell, the second one of a name as "name (2)"."""
    rows: dict[str, dict[str, str]] = {}
    for row in table.rows:
        cells = [side.seen(cell) for cell in row]
        name, number = cells[0], 2
        while name in rows:
            name, number = f"{cells[0]} ({number})", number + 1
        rows[name] = dict(zip(table.columns[1:], cells[1:], strict=False))
    return rows


def _tells(before: str, after: str) -> bool:
    """Return whether two cells differ by more than noise: numbers that moved, words; a time of day never."""
    try:
        return _apart(float(before), float(after))
    except ValueError:
        return not (_is_time(before) and _is_time(after))


def _is_time(cell: str) -> bool:
    for read in (dt.time.fromisoformat, dt.datetime.fromisoformat):
        with contextlib.suppress(ValueError):
            read(cell)
            return True
    return False
