"""What plain mode says for a hand-over: where a session stands, its notes, and who may read it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable

from runbook.glyphs import as_cut
from runbook.plain import Plain
from runbook.private import access_of
from runbook.session.desk import Desk
from runbook.session.lock import Holder
from runbook.session.state import Note
from runbook.text import Text, sanitise
from runbook.whereabouts import IN_TICKET, WIDTH, note_head, whereabouts


def brief(desk: Desk, *, ascii_only: bool = False) -> tuple[str, ...]:
    """Return the lines that say where a session stands, in the desk's language."""
    catalog = desk.catalog
    width = _room()
    lines = whereabouts(desk.state, desk.report(), catalog.flows, catalog.vocabulary, desk.language, width=width)
    return tuple(as_cut(line, ascii_only=ascii_only) for line in lines)


def _room() -> int:
    """Return the cells of a line: those of the terminal, where that is wide; on a pipe there is no edge to keep to."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else IN_TICKET
    return min(max(columns, WIDTH), IN_TICKET)


def where(plain: Plain, desk: Desk) -> None:
    """Write where a session stands."""
    plain.line(plain.say("Where we are", "当前进展"), style="bold")
    for line in brief(desk, ascii_only=plain.ascii):
        plain.line(line, 2)


def notes(plain: Plain, every: Iterable[Note], indent: int = 0) -> None:
    """Write notes under a heading, each with its author, its time and the node that it is about."""
    kept = tuple(every)
    if kept:
        plain.heading(plain.say("Notes", "备注"))
    for note in kept:
        place = f"  {note.flow}/{note.node}" if note.node else ""
        plain.line(f"{note_head(note, plain.language)}{place}", indent, "dim")
        for words in note.words.splitlines():
            plain.line(words, indent + 2)


def node_notes(plain: Plain, desk: Desk, flow: str, node: str) -> None:
    """Write the notes at a node, each line with its author and time."""
    for note in desk.state.notes:
        if (note.flow, note.node) == (flow, node):
            words = " / ".join(note.words.splitlines())
            head = note_head(note, plain.language)
            plain.line(plain.say(f"note by {head}: {words}", f"备注（{head}）：{words}"), 2)


def held(holder: Holder | None) -> Text:
    """Return in words who holds a session."""
    if holder is None:
        return Text("nobody has it open", "无人打开")
    who = holder.describe()
    return Text(f"held by {who}", f"持有者：{who}")


def readers(folder: str) -> Text:
    """Return in words who may read a session, as the mode of its folder says; everything in it but the key follows."""
    owner, access = _owner(folder), access_of(folder)
    if access.group is None:
        return Text(f"{owner} alone reads it", f"仅 {owner} 可读")
    group = sanitise(_group(access.group))
    if access.writes:
        return Text(f"group {group} reads it and may take it over", f"组 {group} 可读，也可接管")
    return Text(f"group {group} reads it, {owner} alone goes on with it", f"组 {group} 可读，仅 {owner} 可继续")


def _owner(folder: str) -> str:
    import pwd

    try:
        uid = os.stat(folder).st_uid
        return sanitise(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
