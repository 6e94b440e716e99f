"""Notes, and where a session stands, as the UI draws them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from runbook.session.state import Note
from runbook.text import sanitise
from runbook.tui import paint
from runbook.tui.actions import key_of
from runbook.tui.view import View
from runbook.whereabouts import IN_TICKET, note_head


def where_text(view: View, unwritten: Sequence[str], width: int) -> Content:
    """Return where the session stands, then what was not written, then the notes, the latest first."""
    ink = view.ink
    blocks = [paint.lines(*(paint.wrapped(Content(line), width) for line in view.whereabouts(IN_TICKET)))]
    if view.held:
        blocks.append(Content.styled(sanitise(view.held), ink.warn))
    if unwritten:
        title = Content.styled(view.word("unwritten_title"), ink.bad)
        blocks.append(paint.lines(title, *(paint.wrapped(Content(sanitise(words)), width, 2) for words in unwritten)))
    notes = [note_block(view, note, width) for note in reversed(view.state.notes)]
    if not notes:
        notes = [Content.styled(view.word("no_notes", key=key_of("walk", "note")), ink.dim)]
    blocks.append(paint.lines(Content.styled(view.word("notes"), ink.accent), *notes))
    return Content.assemble("\n", Content("\n\n").join(blocks))


def note_block(view: View, note: Note, width: int, *, place: bool = True) -> Content:
    """Return a note under its author and time, line by line; place: name the node that it is about."""
    where = f"  {sanitise(note.flow)}/{sanitise(note.node)}" if place and note.node else ""
    head = Content.styled(f"{note_head(note, view.language)}{where}", view.ink.dim)
    words = (paint.wrapped(Content(sanitise(line)), width, 4) for line in note.words.splitlines())
    return paint.lines(paint.wrapped(head, width, 2), *words)
