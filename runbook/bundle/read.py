"""Opens a bundle: members to a session that draws as it did, with nothing else present.

Whoever made the file may mean harm. Invariants: nothing in a bundle is run, and it is replayed over its own flows only;
what does not fit its shape is an error that names file and member, never a screen that fails; nothing is written.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from runbook.bundle.archive import damaged, refused, unpack
from runbook.bundle.form import (
    CATALOG,
    EXCERPTS,
    JOURNAL,
    MANIFEST,
    SCHEMA,
    TOOL,
    Claim,
    Excerpt,
    KeptCatalog,
    KeptLine,
    Manifest,
    catalog_of,
    words_of,
)  # fmt: skip
from runbook.bundle.shelf import Excerpts
from runbook.catalog import Catalog
from runbook.errors import EvidenceError, RunbookError
from runbook.finding import Finding
from runbook.flow.lint import unsound
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.journal import decode
from runbook.text import Text, sanitise
from runbook.ticket.span import KINDS

T = TypeVar("T")

_LATEST = 32503680000.0
"""Seconds since the epoch that a time may be at most: the year 3000; calendars end somewhere."""
_WINDOWS = ("text", "binary", "folder", "missing", "url")
_NOTES = ("file_short", "file_changed")


@dataclass(frozen=True)
class Bundle:
    """A bundle as read. records: of its journal. warnings: what a person should know of that."""

    path: str
    manifest: Manifest
    records: tuple[ev.Record, ...] = field(repr=False)
    catalog: Catalog = field(repr=False)
    excerpts: Excerpts = field(repr=False)
    warnings: tuple[Text, ...] = ()


def read_bundle(path: str) -> Bundle:
    """Return a bundle. Raises UsageError when it is not there, EvidenceError when it cannot be trusted or read."""
    return decoded(path, unpack(path))


def open_bundle(bundle: Bundle, language: str = "en") -> Desk:
    """Return a desk over the session in a bundle; what is appended to it is kept nowhere."""
    return Desk(
        bundle.catalog,
        None,
        bundle.records,
        session_id=sanitise(bundle.manifest.session),
        language=language,
        warnings=bundle.warnings,
    )


def decoded(path: str, members: Mapping[str, bytes]) -> Bundle:
    """Return the bundle whose members these are. path: its name in messages. Raises EvidenceError."""
    manifest = _manifest(path, members)
    for name in (JOURNAL, CATALOG):
        if name not in members:
            raise damaged(path, f"{name} is missing")
    catalog = _catalog(path, members[CATALOG])
    records, warnings = _journal(path, members[JOURNAL])
    excerpts = [_excerpt(path, name, content) for name, content in members.items() if name.startswith(EXCERPTS)]
    return Bundle(path, manifest, records, catalog, Excerpts(excerpts), warnings)


def _manifest(path: str, members: Mapping[str, bytes]) -> Manifest:
    """Return the manifest once every other member is the one it names."""
    if MANIFEST not in members:
        raise damaged(path, f"{MANIFEST} is missing")
    claim = _guarded(path, MANIFEST, lambda: msgspec.json.decode(members[MANIFEST], type=Claim))
    if claim.tool != TOOL:
        raise EvidenceError(f"{path}: {MANIFEST}: this is a file of another tool", "give the .zip that an export wrote")
    if claim.schema > SCHEMA:
        raise EvidenceError(
            f"{path}: version {sanitise(claim.version, 40)} wrote this bundle in a form that this version cannot read",
            "install that version or a newer one; its ticket.html can be read in any browser (unzip takes it out)",
        )
    manifest = _guarded(path, MANIFEST, lambda: msgspec.json.decode(members[MANIFEST], type=Manifest))
    _agree(path, manifest, members)
    if any(one.kind not in KINDS for one in manifest.hidden):
        raise damaged(path, f"{MANIFEST}: a kind of hidden text that there is not")
    if not 0 <= manifest.written <= _LATEST:
        raise damaged(path, f"{MANIFEST}: it was written at no time")
    return manifest


def _agree(path: str, manifest: Manifest, members: Mapping[str, bytes]) -> None:
    """Raise EvidenceError when the members are not those that the manifest names."""
    for name in manifest.members:
        if name not in members:
            raise damaged(path, f"{sanitise(name, 80)} is missing")
    for name, content in members.items():
        told = manifest.members.get(name)
        if name != MANIFEST and told is None:
            raise refused(path, name, f"{MANIFEST} does not name this member")
        if told is not None and (told.size, told.sha256) != (len(content), hashlib.sha256(content).hexdigest()):
            raise refused(path, name, f"this member is not the one that {MANIFEST} names: it was changed")


def _catalog(path: str, content: bytes) -> Catalog:
    kept = _guarded(path, CATALOG, lambda: msgspec.json.decode(content, type=KeptCatalog))
    for words in words_of(msgspec.to_builtins(kept)):
        line = words.replace("\n", " ").replace("\t", " ")
        if sanitise(line) != line:
            raise refused(path, CATALOG, f"a control, escape or bidi character in {sanitise(line, 40)!r}")
    catalog = catalog_of(kept)
    if len(catalog.loaded) != len(kept.flows):
        raise refused(path, CATALOG, "a flow is there twice")
    for name, loaded in catalog.loaded.items():
        fault = unsound(loaded)
        if fault is not None:
            raise refused(path, CATALOG, f"flow {name}: {fault.message}")
        for matrix in loaded.flow.matrices:
            if matrix.hand.node not in loaded.flow.nodes or matrix.hand.by not in loaded.flow.nodes:
                raise refused(path, CATALOG, f"flow {name}: a matrix names no node")
            shape = (len(matrix.rows), len(matrix.columns))
            fits = len(matrix.cells) == shape[0] and all(len(row) == shape[1] for row in matrix.cells)
            if not fits or any(node not in loaded.flow.nodes for node in matrix.nodes):
                raise refused(path, CATALOG, f"flow {name}: a matrix does not fit its cells")
    return catalog


def _journal(path: str, content: bytes) -> tuple[tuple[ev.Record, ...], tuple[Text, ...]]:
    loaded = _guarded(path, JOURNAL, lambda: decode(f"{path}: {JOURNAL}", content))
    if loaded.torn:
        raise damaged(path, f"{JOURNAL}: its last line is no event")
    for number, record in enumerate(loaded.records, 2):
        why = _odd(record)
        if why:
            raise refused(path, JOURNAL, f"line {number}: {why}")
    return loaded.records, loaded.warnings


def _odd(record: ev.Record) -> str:
    """Return why an event cannot be drawn, "" when it can."""
    if not 0 <= record.t <= _LATEST:
        return "its time is no time"
    return next(_odd_finding(record.event.finding), "") if isinstance(record.event, ev.Found) else ""


def _odd_finding(finding: Finding) -> Iterator[str]:
    """Yield what is wrong with the shape of a finding: probes make them right, and drawing relies on it."""
    for citation in finding.citations:
        if min(citation.line or 1, citation.count) < 1 or (citation.offset or 0) < 0:
            yield "a citation of a place before the file"
        if citation.time is not None and not 0 <= citation.time <= _LATEST:
            yield "a citation at no time"
    for table in finding.tables:
        if not table.columns or any(len(row) != len(table.columns) for row in table.rows):
            yield "a table whose rows do not fit its columns"
    for grid in finding.grids:
        if len(grid.cells) != len(grid.rows) or any(len(row) != len(grid.columns) for row in grid.cells):
            yield "a picture whose cells do not fit its rows and columns"
    for plot in finding.plots:
        xs = [[x for x, _ in curve.points] for curve in plot.curves]
        numbers = [*(x for curve in xs for x in curve), *(x for x, _ in (*plot.marks, *plot.limits))]
        values = [y for curve in plot.curves for _, y in curve.points if y is not None]
        if not all(map(math.isfinite, (*numbers, *values))) or any(curve != sorted(curve) for curve in xs):
            yield "a plot whose points are in no order"


def _excerpt(path: str, name: str, content: bytes) -> Excerpt:
    head, *lines = content.decode("utf-8", "replace").removesuffix("\n").split("\n")

    def read() -> Excerpt:
        excerpt: Excerpt = msgspec.convert(json.loads(head), type=Excerpt)
        kept = tuple(msgspec.json.decode(line, type=KeptLine) for line in lines)
        return msgspec.structs.replace(excerpt, lines=kept)

    excerpt = _guarded(path, name, read)
    if excerpt.kind not in _WINDOWS or not set(excerpt.notes.values()) <= set(_NOTES):
        raise refused(path, name, "this is no excerpt")
    end = 0
    for number, line in enumerate(excerpt.lines, 2):
        if line.offset < end or line.size < 0 or (line.number is not None and line.number < 1):
            raise refused(path, name, f"line {number}: it lies within the one before")
        end = line.offset + line.size
    return excerpt


def _guarded(path: str, name: str, read: Callable[[], T]) -> T:
    """Return what `read` gives; whatever is wrong in a member is an error that names it."""
    try:
        return read()
    except RunbookError as error:
        raise EvidenceError(error.message, "ask for the bundle again") from error
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, AttributeError) as error:
        raise refused(path, name, f"it cannot be read: {sanitise(str(error), 200)}") from error
