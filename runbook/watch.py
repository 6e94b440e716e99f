"""What changes while a run goes on: which evidence grew, and what that changed in the triage. Pure but for `marks`.

Evidence is known to have changed by what the system says of its files, never by their content, so a look costs some
`stat` calls whatever the size. Invariants: a change of a file, and one that came or went in a folder, counts for every
slot that holds it; of a folder with very many files the first LIMIT are looked at; a comparison names what is now, what
was, and nothing that stayed the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from runbook.evidence import Item
from runbook.finding import Citation, Finding
from runbook.text import Text
from runbook.triage import Report, Standing

LIMIT = 5000
"""Files of one folder whose marks are taken."""

Mark = tuple[int, int, int, int]
"""Device, inode, size and time of change (ns): another file, or other content, has another mark."""


class Kind(str, Enum):
    """What changed."""

    ANSWER = "answer"
    STANDING = "standing"
    RANKING = "ranking"


class Change(NamedTuple):
    """One thing that is not as it was.

    subject: a probe, a cause, or "" for the ranking. was, now: an answer, a standing, or the confirmed causes in order;
    "" where there was none. why: the words of the finding behind it. citation: the place that proves it.
    """

    kind: Kind
    subject: str
    was: str
    now: str
    why: Text | None = None
    citation: Citation | None = None


class Picture(NamedTuple):
    """What a triage said at one time."""

    findings: Mapping[str, Finding]
    report: Report


def marks(paths: Iterable[str], root: str = "") -> dict[str, Mark]:
    """Return the marks of files, and of folders with all that is in them; what is not there has none.

    root: a folder that is looked at without what is in it, so that a file which came or went there is seen.
    """
    found: dict[str, Mark] = {}
    if root:
        _take(root, found)
    for path in paths:
        _take(path, found)
        left = LIMIT
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names)[:left]:
                _take(os.path.join(folder, name), found)
            left -= len(names)
            if left <= 0:
                break
    return found


def _take(path: str, found: dict[str, Mark]) -> None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return
    found[path] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def changed_slots(items: Iterable[Item], before: Mapping[str, Mark], after: Mapping[str, Mark]) -> set[str]:
    """Return the slots of which some item, or a file in it, is not as it was."""
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return {
        item.slot
        for item in items
        if item.path in paths or any(path.startswith(item.path.rstrip("/") + "/") for path in paths)
    }


def changes(before: Picture, after: Picture) -> tuple[Change, ...]:
    """Return what changed: causes first, then their ranking, then the answers of the probes."""
    return (*_standings(before.report, after.report), *_ranking(before, after), *_answers(before, after))


def _standings(before: Report, after: Report) -> Iterable[Change]:
    were = {cause.cause: cause.standing for cause in (*before.causes, *before.ruled_out)}
    for cause in (*after.causes, *after.ruled_out):
        was = were.get(cause.cause)
        if was is not cause.standing and Standing.CONFIRMED in (was, cause.standing):
            finding = cause.by[0] if cause.by else None
            citation = next(iter(cause.citations), None)
            why = finding.summary if finding else None
            yield Change(Kind.STANDING, cause.cause, was.value if was else "", cause.standing.value, why, citation)


def _ranking(before: Picture, after: Picture) -> Iterable[Change]:
    was, now = ([cause.cause for cause in each.report.confirmed] for each in (before, after))
    if was != now and len(now) > 1:
        yield Change(Kind.RANKING, "", ", ".join(was), ", ".join(now))


def _answers(before: Picture, after: Picture) -> Iterable[Change]:
    for probe, finding in after.findings.items():
        was = before.findings.get(probe)
        if was is None or (was.verdict, was.answer) != (finding.verdict, finding.answer):
            citation = next(iter(finding.citations), None)
            yield Change(Kind.ANSWER, probe, _said(was), _said(finding), finding.summary, citation)


def _said(finding: Finding | None) -> str:
    """Return verdict and answer in words."""
    if finding is None:
        return ""
    return f"{finding.answer} ({finding.verdict.value})" if finding.answer is not None else finding.verdict.value
