"""Makes the ticket of a session ready for one kind of tracker: its layout, its title and labels, and what was hidden.

Invariant: a title or label that a person typed is redacted and looked through like every text of the session.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from runbook.errors import UsageError
from runbook.ticket.choices import choices
from runbook.ticket.draft import Draft
from runbook.ticket.export import draft_of, finished
from runbook.ticket.outgoing import Attachment, Outgoing
from runbook.ticket.redact import redact
from runbook.ticket.renderers import formats
from runbook.ticket.scan import scan
from runbook.ticket.transcript import Hidden
from runbook.trackers.model import Kind

if TYPE_CHECKING:
    from runbook.session.desk import Desk

_MEDIA = {".html": "text/html", ".json": "application/json", ".md": "text/markdown"}


class Ready(NamedTuple):
    """A ticket that may leave. hidden: the redaction report. session, language: of the session."""

    outgoing: Outgoing
    hidden: tuple[Hidden, ...]
    labels: tuple[str, ...]
    session: str
    language: str


def ready(
    desk: Desk,
    session: str | os.PathLike[str],
    kind: Kind,
    *,
    format: str = "",
    title: str = "",
    labels: Sequence[str] = (),
    hide: Sequence[str] = (),
    attach: Sequence[str] = (),
) -> Ready:
    """Return the ticket of a session for a tracker, with what was chosen in the session left out.

    session: its folder. format: "" for the best that the tracker shows. title: instead of the ticket's own. labels: of
    the new ticket. hide: further words to hide. attach: formats in which the whole ticket goes along as a file. Touches
    no network. Raises UsageError for a format or label that cannot be sent, RedactionError when something private is
    left.
    """
    draft = draft_of(desk, session, hide=hide)
    if title:
        draft = Draft.of(msgspec.structs.replace(draft.raw, title=title), draft.identity, draft.key)
    drop = choices(session).drop
    leaving = finished(draft, format_for(kind, format), session, drop=drop)
    files = [_file(finished(draft, name, session, drop=drop)) for name in attach]
    for label in labels:
        if redact((label,), draft.identity, draft.key).texts != (label,) or scan(label, draft.key.words):
            raise UsageError("a label holds something private", "labels are sent as they are: choose another one")
        if not label.strip() or not label.isprintable() or "," in label:
            raise UsageError(f"{label!r} is no label", "a label is a word or two, without commas")
    kept = {one.name: one for one in (*leaving.attachments, *files)}
    outgoing = msgspec.structs.replace(leaving, attachments=tuple(kept.values()))
    return Ready(outgoing, draft.leaving(drop).redaction, tuple(labels), desk.session_id, desk.language)


def format_for(kind: Kind, wanted: str = "") -> str:
    """Return the layout for a tracker. Raises UsageError when it does not show `wanted` as it is meant."""
    known = [name for name in kind.formats if name in formats()]
    if wanted and wanted not in known:
        hint = f"formats for it: {', '.join(known)}; another one goes along as a file: --attach {wanted}"
        raise UsageError(f"{kind.title} does not show {wanted}", hint)
    return wanted or known[0]


def _file(leaving: Outgoing) -> Attachment:
    media = _MEDIA.get(leaving.suffix, "text/plain")
    return Attachment(f"ticket-{leaving.format}{leaving.suffix}", media, leaving.body)
