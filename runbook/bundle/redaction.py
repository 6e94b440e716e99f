"""Redacts what a bundle holds in one go: every string of every event but ids, every line of the excerpts, the ticket.

Ids lead the replay (flows, nodes, answers, probes, slots, runs), so they stay as they are; which fields hold ids is
written down here, and a field that is not named is redacted: a new one is safe by default. Invariants: a text has one
form in the whole bundle, also where the sender dropped a part of a path, so a citation still names the file of its
excerpt; two files never get one name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from runbook.bundle.form import Excerpt
from runbook.evidence import Item
from runbook.finding import Citation, Finding, Grid, Table
from runbook.session import events as ev
from runbook.ticket import near
from runbook.ticket.preview import Dropping
from runbook.ticket.redact import Identity, Key, redact, together
from runbook.ticket.span import SECRET, Span
from runbook.ticket.tokens import closes_key, opens_key

IDS: frozenset[tuple[type, str]] = frozenset(
    (kind, field)
    for kind, fields in (
        (Item, "slot origin run"),
        (Finding, "answer slots probe"),
        (Grid, "cells"),
        (ev.Opened, "version flows"),
        (ev.EvidenceDropped, "slot run"),
        (ev.Found, "run"),
        (ev.FlowStarted, "flow"),
        (ev.Answered, "flow node answer probes"),
        (ev.WentBack, "flow node"),
        (ev.RunAttached, "flow node run"),
        (ev.CopyChanged, "flow node"),
        (ev.Noted, "flow node"),
        (ev.Fixed, "cause"),
        (ev.Judged, "causes decided stood"),
        (ev.Left, "cause"),
        (ev.Fixed, "cause"),
        (ev.Judged, "causes decided stood"),
        (ev.Exported, "format"),
    )
    for field in fields.split()
)
"""Fields that hold ids, or codes of a picture."""

CODED: frozenset[tuple[type, str]] = frozenset({(Grid, "legend")})
"""Fields whose bare strings are codes; the words in them are structures."""

PATHS: frozenset[tuple[type, str]] = frozenset({(Item, "path"), (Citation, "path"), (ev.CopyChanged, "path")})
"""Fields that name a file of which there may be an excerpt."""


class Redaction(NamedTuple):
    """What was redacted.

    records, excerpts: redacted. key: to the pseudonyms. used: kind to its pseudonyms. texts: every redacted text of
    the records and excerpts.
    """

    records: tuple[ev.Record, ...]
    excerpts: tuple[Excerpt, ...]
    key: Key
    used: Mapping[str, set[str]]
    texts: tuple[str, ...]


_Row = Callable[[tuple[str, ...]], tuple[str, ...]]


class Hiding(NamedTuple):
    """What goes into a bundle before anything is left out of it.

    records, excerpts: as the session has them. known: each of their texts to how it reads once redacted. key, used: as
    `Redaction`.
    """

    records: tuple[ev.Record, ...]
    excerpts: tuple[Excerpt, ...]
    known: Mapping[str, str]
    key: Key
    used: Mapping[str, set[str]]


def hide_all(
    records: Sequence[ev.Record], excerpts: Sequence[Excerpt], ticket: Any, identity: Identity, key: Key | None
) -> Hiding:
    """Return how every text of records and excerpts reads without anything private.

    ticket: the raw transcript as plain data; what shows only in it is hidden everywhere as well.
    """
    events = [record.event for record in records]
    texts = [*strings(events), *(text for one in excerpts for text in _lines(one)), *_plain(ticket)]
    beside = together([msgspec.to_builtins(events), ticket])
    for one in excerpts:
        for text, spans in _beside(one).items():
            beside.setdefault(text, []).extend(spans)
    result = redact(texts, identity, key, beside)
    known = dict(zip(texts, result.texts, strict=True))
    return Hiding(tuple(records), tuple(excerpts), known, result.key, result.used)


def leave_out(hiding: Hiding, out: Dropping) -> Redaction:
    """Return redacted records and excerpts without the texts that the sender dropped, also in the names of files."""
    events = [record.event for record in hiding.records]
    known = {text: out.text(hidden) for text, hidden in hiding.known.items()}
    known.update(_names(events, known))

    def new(text: str) -> str:
        return known[text]

    def row(cells: tuple[str, ...]) -> tuple[str, ...]:
        return out.row(tuple(hiding.known[cell] for cell in cells))

    clean = tuple(msgspec.structs.replace(r, event=replaced(r.event, new, row)) for r in hiding.records)
    shown = tuple(_excerpt(one, new) for one in hiding.excerpts)
    said = (*strings([record.event for record in clean]), *(text for one in shown for text in _lines(one)))
    return Redaction(clean, shown, hiding.key, hiding.used, tuple(dict.fromkeys(said)))


def redact_all(
    records: Sequence[ev.Record],
    excerpts: Sequence[Excerpt],
    ticket: Any,
    identity: Identity,
    key: Key | None,
    *,
    dropping: Callable[[Key], Dropping],
) -> Redaction:
    """Return records and excerpts without anything private, and without the texts that the sender dropped.

    ticket: as `hide_all`. dropping: gets the key once it is whole, for what is dropped reads as it does once redacted.
    """
    hiding = hide_all(records, excerpts, ticket, identity, key)
    return leave_out(hiding, dropping(hiding.key))


def strings(value: Any) -> list[str]:
    """Return every string of a value that is no id."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    replaced(value, note)
    return found


def replaced(value: Any, new: Callable[[str], str], row: _Row | None = None) -> Any:
    """Return a value with every string that is no id replaced. row: replaces each row of a table, instead of `new`."""
    if isinstance(value, str):
        return value if isinstance(value, Enum) else new(value)
    if isinstance(value, Table):
        rows = tuple(row(cells) if row is not None else tuple(map(new, cells)) for cells in value.rows)
        columns = tuple(map(new, value.columns))
        left = {*columns, *(cell for cells in rows for cell in cells)}
        said = tuple((new(en), new(zh)) for en, zh in value.zh)
        return Table(replaced(value.title, new), columns, rows, tuple(pair for pair in said if pair[0] in left))
    if isinstance(value, msgspec.Struct):
        changed = {
            field: _replaced(value, field, new, row)
            for field in value.__struct_fields__
            if (type(value), field) not in IDS
        }
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, Mapping):
        return {name: replaced(part, new, row) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return tuple(replaced(part, new, row) for part in value)
    return value


def _replaced(value: msgspec.Struct, field: str, new: Callable[[str], str], row: _Row | None) -> Any:
    """Return a field of a structure; where it holds codes, bare strings stay."""
    old = getattr(value, field)
    if (type(value), field) not in CODED:
        return replaced(old, new, row)
    return tuple(tuple(part if isinstance(part, str) else replaced(part, new, row) for part in line) for line in old)


def _plain(plain: Any) -> Iterator[str]:
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, Mapping):
        for value in plain.values():
            yield from _plain(value)
    elif isinstance(plain, list | tuple):
        for value in plain:
            yield from _plain(value)


def _paths(value: Any) -> Iterator[str]:
    """Yield the names of all files that may have an excerpt."""
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            old = getattr(value, field)
            if (type(value), field) in PATHS:
                yield old
            else:
                yield from _paths(old)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _paths(part)


def _names(events: Sequence[ev.Event], known: Mapping[str, str]) -> dict[str, str]:
    """Return other names for files that would get the name of another one."""
    taken: dict[str, str] = {}
    other: dict[str, str] = {}
    for path in dict.fromkeys(_paths(events)):
        name, number = known[path], 2
        while taken.setdefault(name, path) != path:
            name, number = f"{known[path]} ({number})", number + 1
        other[path] = name
    return other


def _lines(excerpt: Excerpt) -> Iterator[str]:
    yield excerpt.path
    yield excerpt.why
    for line in excerpt.lines:
        yield line.text


def _excerpt(excerpt: Excerpt, new: Callable[[str], str]) -> Excerpt:
    lines = tuple(msgspec.structs.replace(line, text=new(line.text)) for line in excerpt.lines)
    return msgspec.structs.replace(excerpt, path=new(excerpt.path), why=new(excerpt.why), lines=lines)


def _beside(excerpt: Excerpt) -> dict[str, list[Span]]:
    """Return text to what is private in it because of the lines around it, hole by hole."""
    found: dict[str, list[Span]] = {}
    for block in _blocks(excerpt):
        for number, span in (*near.between(block), *_beheaded(block)):
            found.setdefault(block[number], []).append(span)
    return found


def _blocks(excerpt: Excerpt) -> Iterator[list[str]]:
    """Yield the texts of lines that follow one another without a hole."""
    block: list[str] = []
    end = -1
    for line in excerpt.lines:
        if line.offset != end and block:
            yield block
            block = []
        block.append(line.text)
        end = line.offset + line.size
    if block:
        yield block


def _beheaded(block: Sequence[str]) -> Iterator[tuple[int, Span]]:
    """Yield the lines of an armoured key whose begin lies before the excerpt."""
    for last, line in enumerate(block):
        if opens_key(line):
            return
        if closes_key(line):
            yield from ((number, Span(0, len(text), SECRET)) for number, text in _upwards(block, last) if text)
            return


def _upwards(block: Sequence[str], last: int) -> Iterable[tuple[int, str]]:
    """Return the lines from `last` upwards as far as they are of one armoured key: no blank stands in them."""
    for number in range(last - 1, -1, -1):
        if " " in block[number].strip() or not block[number].strip():
            return
        yield number, block[number]
