"""Every text of a transcript, line by line: where it stands, and whose words it is.

The preview lists them and the sender's drops are looked for among them, so nothing may be missed. Invariants: every
string of a transcript is the text or in the place of some unit, but words from closed sets (`FIXED`), codes of a
picture, and what no evidence and no person wrote (session id, language, the redaction report); the units of a
transcript and of the same one redacted are as many, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from runbook.chart import Chart
from runbook.finding import Curve
from runbook.picture import Cells
from runbook.ticket import transcript as tr
from runbook.ticket.words import say

EVIDENCE, PERSON, TOOL = "evidence", "person", "tool"

SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("problem", ("title", "root", "where", "seen", "symptoms", "notes")),
    ("standing", ("causes", "clear", "asked")),
    ("evidence", ("problems",)),
    ("checked", ("checks",)),
    ("experiments", ("experiments", "matrices", "runs")),
    ("ruled_out", ("ruled_out",)),
    ("unknown", ("unknown",)),
    ("next", ("next",)),
    ("environment", ("environment",)),
    ("timeline", ("timeline",)),
    ("answers", ("answers",)),
)
"""Heading in `runbook.ticket.words` to the fields of a transcript that stand below it, in the order of the ticket."""

FIXED: frozenset[tuple[type, str]] = frozenset(
    {
        (tr.CauseLine, "standing"),
        (tr.Check, "verdict"),
        (tr.Link, "how"),
        (tr.Said, "by"),
        (tr.Moment, "source"),
        (Cells, "cells"),
    }
)
"""Fields that hold a word of a closed set, or codes: they are no texts, and the layouts read them."""

BAR = " | "
"""Stands between the cells of a row where that is one text."""

_NAMES: dict[type, tuple[str, ...]] = {
    tr.Place: ("path",),
    tr.Link: ("node", "by"),
    tr.Edit: ("path",),
    tr.Proof: ("probe",),
    tr.CauseLine: ("flow", "node", "cause"),
    tr.Number: ("name", "unit"),
    tr.Check: ("probe", "run"),
    tr.Experiment: ("flow", "node", "run"),
    tr.RuledOut: ("cause", "probe"),
    tr.Question: ("flow", "node"),
    tr.Source: ("slot", "origin", "run"),
    tr.Moment: ("where",),
    tr.Said: ("flow", "node", "who"),
    tr.Remark: ("who", "node"),
}
"""Fields that say what a thing is rather than what is told of it: the place of its texts."""

_INSIDE = (tr.Number, tr.Table, Chart, Curve, Cells)
"""Parts whose place says what they are a part of."""

_PAIRS = ("facts", "flows", "found")
"""Fields whose entries are tuples of a name and texts."""

_OF_EVIDENCE = (tr.Place, tr.Edit, tr.Table, Chart, Curve, Cells)
_EVIDENCE_FIELDS = {(tr.Source, "path"), (tr.Experiment, "path"), (tr.Transcript, "root")}


class Unit(NamedTuple):
    """One line of text.

    section: key of its heading. field: of the transcript. place: path:line, or what it is about. what: name of the
    field that holds it. origin: whose words: EVIDENCE, PERSON or TOOL.
    """

    section: str
    field: str
    place: str
    what: str
    origin: str
    text: str


class _At(NamedTuple):
    section: str
    field: str
    what: str
    place: str = ""
    origin: str = TOOL


def units(transcript: tr.Transcript) -> Iterator[Unit]:
    """Yield every text of a transcript in the order of the ticket."""
    began = say("moment.began", transcript.language)
    for section, fields in SECTIONS:
        for name in fields:
            origin = EVIDENCE if (tr.Transcript, name) in _EVIDENCE_FIELDS else TOOL
            for unit in _walk(getattr(transcript, name), _At(section, name, name, "", origin)):
                yield unit._replace(origin=TOOL) if unit.text == began else unit


def row_text(cells: tuple[str, ...]) -> str:
    """Return the cells of a row as one text."""
    return BAR.join(cells)


def _walk(value: Any, at: _At) -> Iterator[Unit]:
    if isinstance(value, str):
        for line in value.splitlines():
            if line.strip():
                yield Unit(at.section, at.field, at.place, at.what, at.origin, line)
    elif isinstance(value, tr.Table):
        yield from _table(value, at)
    elif isinstance(value, Cells):
        yield from _cells(value, at)
    elif isinstance(value, msgspec.Struct):
        yield from _struct(value, at)
    elif isinstance(value, tuple) and at.what in _PAIRS and value and isinstance(value[0], str):
        yield from _walk(value[1:], at._replace(place=_joined(at.place, value[0]), what="value"))
    elif isinstance(value, tuple):
        for one in value:
            yield from _walk(one, at)


def _struct(value: msgspec.Struct, at: _At) -> Iterator[Unit]:
    kind = type(value)
    names = _NAMES.get(kind, ())
    name = value.where if isinstance(value, tr.Place) else " ".join(filter(None, (getattr(value, n) for n in names)))
    at = at._replace(
        place=_joined(at.place, name) if kind in _INSIDE else name or at.place,
        origin=EVIDENCE if kind in _OF_EVIDENCE else TOOL,
    )
    told = False
    for field in value.__struct_fields__:
        if field not in names and (kind, field) not in FIXED:
            what = "notes" if kind is tr.Remark else field
            for unit in _walk(getattr(value, field), at._replace(what=what, origin=_origin(value, field, at.origin))):
                told = True
                yield unit
    if not told:
        for field in names:
            yield from _walk(getattr(value, field), at._replace(what=field))


def _origin(value: msgspec.Struct, field: str, origin: str) -> str:
    """Return whose words a field of a struct holds."""
    if isinstance(value, tr.Moment):
        return EVIDENCE if value.source == "log" else PERSON
    if isinstance(value, tr.Remark):
        return PERSON
    if field == "answer" and (getattr(value, "by", "") == "person" or getattr(value, "how", "") == "person"):
        return PERSON
    return EVIDENCE if (type(value), field) in _EVIDENCE_FIELDS else origin


def _table(table: tr.Table, at: _At) -> Iterator[Unit]:
    at = at._replace(origin=EVIDENCE if at.field == "checks" else TOOL)
    yield from _walk(table.title, at._replace(what="title"))
    at = at._replace(place=_joined(at.place, table.title))
    yield from _walk(row_text(table.columns), at._replace(what="columns"))
    for row in table.rows:
        yield from _walk(row_text(row), at._replace(what="row"))


def _cells(picture: Cells, at: _At) -> Iterator[Unit]:
    at = at._replace(origin=EVIDENCE)
    yield from _walk(picture.title, at._replace(what="title"))
    at = at._replace(place=_joined(at.place, picture.title))
    yield from _walk(picture.rows, at._replace(what="row"))
    yield from _walk(picture.columns, at._replace(what="columns"))
    yield from _walk(tuple(words for _, words, _ in picture.legend), at._replace(what="legend"))


def _joined(place: str, name: str) -> str:
    return f"{place} {name}".strip()
