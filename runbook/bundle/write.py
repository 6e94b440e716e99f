"""Writes a bundle: the journal, the flows, what is around every citation, and the ticket, with nothing private in it.

Invariants: what is written was redacted in one go and scanned as it is written, and opens (it was read back); the same
session gives the same bytes but for the time of writing; the file appears whole, readable by its owner only.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import re
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from runbook import __version__
from runbook.bundle import form
from runbook.bundle.archive import pack
from runbook.bundle.draft import BundleDraft
from runbook.bundle.excerpts import TOTAL_BYTES, Wanted, collect, cost, wanted
from runbook.bundle.form import Excerpt, Hidden, Manifest, Member
from runbook.bundle.read import decoded
from runbook.bundle.redaction import Redaction, hide_all, leave_out, strings
from runbook.catalog import Catalog, load_flows
from runbook.errors import EvidenceError, RedactionError, SessionError
from runbook.runner import Runner
from runbook.session import journal
from runbook.ticket import export
from runbook.ticket.choices import choices
from runbook.ticket.draft import Draft
from runbook.ticket.outgoing import Outgoing
from runbook.ticket.preview import Dropping, remaining
from runbook.ticket.renderers import renderer
from runbook.ticket.scan import scan
from runbook.ticket.span import CHOSEN, SECRET

if TYPE_CHECKING:
    from runbook.session.desk import Desk

DEADLINE, ONE_DEADLINE, AGAIN_DEADLINE = 60.0, 10.0, 60.0
"""Seconds that reading what is around the citations may take; when all of it took too long, of one file, and of all
of them one by one: what is then left on a disk that hangs is left out."""
TICKETS = ("html", "text")
"""Formats in which the ticket goes along."""
_PART_OF_TICKET = ("schema", "language", "session", "redaction")
"""Fields of a transcript in which nothing private can stand."""


def write_bundle(
    desk: Desk,
    output: str | None,
    session: str | os.PathLike[str],
    *,
    hide: Sequence[str] = (),
    drop: Sequence[str] | None = None,
    overwrite: bool = False,
    into_run: bool = False,
    now: float | None = None,
) -> Path | None:
    """Write the bundle of a session and return its path, None when it went to stdout.

    All but `now` as in `runbook.ticket.export.write_ticket`. now: seconds since the epoch. Raises RedactionError naming
    member and line, and writes nothing, when something private or dropped is left; UsageError or SessionError when it
    cannot be written there, or the session has no journal.
    """
    if output not in (None, "-"):
        export.check_target(output or "", desk.state.root, overwrite=overwrite, into_run=into_run)
    leaving = prepare_bundle(desk, session, hide=hide, drop=drop, now=now, keep_key=output is None)
    if output == "-":
        sys.stdout.buffer.write(leaving.body)
        sys.stdout.buffer.flush()
        return None
    return export.put(leaving, output or export.free_name(session, form.SUFFIX), overwrite=overwrite)[0]


def prepare_bundle(
    desk: Desk,
    session: str | os.PathLike[str],
    *,
    hide: Sequence[str] = (),
    drop: Sequence[str] | None = None,
    now: float | None = None,
    keep_key: bool = False,
) -> Outgoing:
    """Return the finished bundle of a session; parameters and errors as `write_bundle` and `export.prepare`."""
    draft = bundle_draft(desk, session, hide=hide)
    out = choices(session).drop if drop is None else drop
    return finished_bundle(desk, draft, session, drop=out, now=now, keep_key=keep_key)


def bundle_draft(
    desk: Desk, session: str | os.PathLike[str], *, hide: Sequence[str] = (), kept: bool = True
) -> BundleDraft:
    """Return the bundle of a session before it is packed, with what is around its citations now.

    hide, kept: as `runbook.ticket.export.draft_of`. Writes nothing. Raises SessionError when the session has no
    journal, or what was chosen in it cannot be read.
    """
    loaded = journal.load(os.path.join(session, journal.JOURNAL))
    state, first = desk.state, export.draft_of(desk, session, hide=hide, kept=kept)
    plain = {name: value for name, value in msgspec.to_builtins(first.raw).items() if name not in _PART_OF_TICKET}
    files = wanted(state.findings.values(), (copy.path for copy in state.copies.values() if copy.path))
    known = export.read_key(export.key_path(session))
    hiding = hide_all(loaded.records, _collected(files), plain, first.identity, known)
    ticket = Draft.of(first.raw, first.identity, hiding.key)
    return BundleDraft(
        ticket.raw, ticket.hidden, ticket.key, ticket.identity, header=loaded.header, hiding=hiding
    )  # fmt: skip


def finished_bundle(
    desk: Desk,
    draft: BundleDraft,
    session: str | os.PathLike[str],
    *,
    drop: Sequence[str] = (),
    now: float | None = None,
    keep_key: bool = False,
) -> Outgoing:
    """Return the finished bundle of a draft that was looked at; parameters and errors as `write_bundle`."""
    ticket, dropped = draft.leaving(drop), draft.dropped(drop)
    redacted = leave_out(draft.hiding, Dropping(dropped, draft.hidden.language))
    members: dict[str, bytes] = {
        form.JOURNAL: _journal(draft.header, redacted),
        form.CATALOG: _json(form.kept_catalog(desk.catalog)),
        **{f"{form.TICKET}{(made := renderer(name)).suffix}": made.render(ticket) for name in TICKETS},
        **_excerpts(redacted.excerpts),
    }
    _look(members, redacted._replace(key=draft.key), desk.catalog, dropped)
    manifest = Manifest(
        form.TOOL,
        form.SCHEMA,
        __version__,
        time.time() if now is None else now,
        desk.session_id,
        draft.hidden.language,
        dict(desk.catalog.hashes),
        {name: Member(len(content), hashlib.sha256(content).hexdigest()) for name, content in members.items()},
        tuple(Hidden(kind, len(values)) for kind, values in sorted(redacted.used.items())),
        tuple(one.path for one in redacted.excerpts if one.kind == "text" and not one.lines and one.size),
        len(dropped),
    )
    members = {form.MANIFEST: _json(manifest), **members}
    _reads_back(members)
    export.keep_key_at(export.key_path(session), draft.key, needed=keep_key)
    return Outgoing(ticket.title, form.FORMAT, form.SUFFIX, pack(members))


def _collected(files: Sequence[Wanted]) -> list[Excerpt]:
    """Return what is around the citations, read by a worker; a file that hangs costs its own excerpt only."""
    if not files:
        return []
    with Runner(()) as runner:
        answer = _answer(runner, files, TOTAL_BYTES, DEADLINE)
        if isinstance(answer, list):
            return answer
        room, until = TOTAL_BYTES, time.monotonic() + AGAIN_DEADLINE
        taken: list[Excerpt] = []
        for one in files:
            left = min(ONE_DEADLINE, until - time.monotonic())
            answer = _answer(runner, (one,), room, left) if left > 0 else None
            mine = answer if isinstance(answer, list) else [Excerpt(one.path, "text", -1)]
            room -= cost(mine[0].lines)
            taken += mine
        return taken


def _answer(runner: Runner, files: Sequence[Wanted], room: int, deadline: float) -> Any:
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    runner.call(collect, (files, room), answers.put, deadline)
    return answers.get()


def _journal(header: journal.Header, redacted: Redaction) -> bytes:
    """Return the journal; its records are counted anew, for those of an unknown kind are not in it."""
    records = (msgspec.structs.replace(record, n=number) for number, record in enumerate(redacted.records))
    return b"".join((msgspec.json.encode(header) + b"\n", *map(journal.encode, records)))


def _excerpts(excerpts: Sequence[Excerpt]) -> dict[str, bytes]:
    """Return the excerpts by member: a line on the file, then one for each line of it."""
    members = {}
    for number, excerpt in enumerate(excerpts, 1):
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(excerpt.path.rstrip("/"))).strip("-")[:40]
        head = msgspec.to_builtins(msgspec.structs.replace(excerpt, lines=()))
        del head["lines"]
        first = json.dumps(head, separators=(",", ":")).encode()
        lines = (first, *(msgspec.json.encode(line) for line in excerpt.lines))
        members[f"{form.EXCERPTS}{number:03}-{stem or 'file'}.jsonl"] = b"\n".join(lines) + b"\n"
    return members


def _json(value: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _look(members: Mapping[str, bytes], redacted: Redaction, catalog: Catalog, drop: Collection[str]) -> None:
    """Look at every member as it will be read; raise RedactionError naming the place when something is left.

    As they are packed, journal and catalog hold ids and public flows besides: there only secrets are sought.
    """
    every = redacted.key.words
    secrets = {word: kind for word, kind in every.items() if kind == SECRET}
    for name, text, known in (
        *((name, content.decode("utf-8", "replace"), secrets) for name, content in members.items()
          if name in (form.JOURNAL, form.CATALOG)),
        *((name, text, every) for name, text in _read(members, redacted, catalog)),
    ):  # fmt: skip
        left = scan(text, known) if known is every else [one for one in scan(text, known) if one.word in known]
        if left:
            first = left[0]
            more = f", and {len(left) - 1} more places" if len(left) > 1 else ""
            raise RedactionError(
                f"the bundle was not written: {name}, line {first.line} still holds {first.what} ({first.shown}){more}",
                "it is a word that tickets are written with: hide it no longer (--unhide WORD)"
                if every.get(first.word) == CHOSEN and name.startswith(form.TICKET)
                else "hide the word by name as well (--hide WORD), or take that evidence out of the session",
                word=first.word,
                shown=first.shown,
            )
        for line, wanted_out in remaining(text, drop if known is every else ()):
            raise RedactionError(
                f"the bundle was not written: {name}, line {line} still holds a text that was to be left out "
                f"({len(wanted_out)} characters)",
                "take that line back in the preview, and hide a word of it instead",
                line=wanted_out,
            )


def _read(members: Mapping[str, bytes], redacted: Redaction, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield (member, text) of all that is not there by its id: an id may read like a name, and must stay."""
    names = (name.removeprefix(form.EXCERPTS) for name in members if name.startswith(form.EXCERPTS))
    yield "the names of the members", "\n".join(names)
    told = (" \u2502 ".join(strings(record.event)).replace("\n", " ") for record in redacted.records)
    yield form.JOURNAL, "\n".join(("", *told))
    for (name, _), one in zip(_excerpts(redacted.excerpts).items(), redacted.excerpts, strict=True):
        yield name, "\n".join((f"{one.path} {one.why}", *(line.text for line in one.lines)))
    yield form.CATALOG, _not_installed(catalog)
    for name, content in members.items():
        if name.startswith(form.TICKET):
            made = next(one for one in map(renderer, TICKETS) if name == f"{form.TICKET}{one.suffix}")
            for _, text in made.read(content):
                yield name, text


def _not_installed(catalog: Catalog) -> str:
    """Return what of the flows and the causes no installed package brings: those are public already."""
    installed = load_flows()
    known = {name: one.hash for name, one in installed.loaded.items()}
    flows = [one.flow for name, one in catalog.loaded.items() if known.get(name) != one.hash]
    causes = {name: one for name, one in catalog.vocabulary.items() if installed.vocabulary.get(name) != one}
    return "\n".join(form.words_of(msgspec.to_builtins((flows, causes))))


def _reads_back(members: Mapping[str, bytes]) -> None:
    """Raise SessionError when the bundle would not open."""
    for name, content in members.items():
        if len(content) > form.limit_of(name):
            raise SessionError(
                f"the bundle was not written: {name} would have {len(content):,} bytes, more than a reader takes",
                "take evidence with large tables or plots out of the session, or write the ticket as HTML",
            )
    try:
        decoded("the bundle", members)
    except EvidenceError as error:
        raise SessionError(f"the bundle was not written, for it would not open: {error.message}", error.hint) from error
