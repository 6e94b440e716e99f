"""The start screen: what was found, where to start, the evidence, recent sessions.

One list on a narrow terminal, two on a wide one.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from runbook.evidence import Item
from runbook.glyphs import STANDINGS
from runbook.session.store import SessionInfo
from runbook.text import sanitise
from runbook.triage import Standing, Verdicted
from runbook.tui import paint
from runbook.tui.actions import bindings, key_of
from runbook.tui.page import Page
from runbook.tui.rows import Row, Rows
from runbook.tui.view import View

CAUSES, FLOWS, EVIDENCE, SESSIONS = "cause", "flow", "item", "session"
POSSIBLE_SHOWN = 4
"""Possible causes listed below the confirmed ones; the flows hold the rest."""
RECENT = 5


@dataclass(frozen=True)
class Target:
    """What a row stands for.

    kind: one of the four words above. id: cause, flow or session; for an item its place in the evidence.
    """

    kind: str
    id: str


class StartScreen(Page):
    """Posts Picked when a row is chosen."""

    BINDINGS = bindings("start")
    scope = "start"
    DEFAULT_CSS = """
    StartScreen #lists { height: 1fr; padding: 1 0 0 0; }
    StartScreen #main { width: 1fr; }
    StartScreen #side { width: 2fr; display: none; border-left: solid $ink-line; }
    StartScreen.-wide #main { width: 3fr; }
    StartScreen.-wide #side { display: block; }
    StartScreen #about { height: auto; min-height: 4; max-height: 9; padding: 0 2; border-top: solid $ink-line; }
    """

    class Picked(Message):
        """A row was chosen."""

        def __init__(self, target: Target) -> None:
            """Say which."""
            super().__init__()
            self.target = target

    class Dropped(Message):
        """An item of evidence is to be taken out. item: None when the cursor stands on none."""

        def __init__(self, item: Item | None) -> None:
            """Say which."""
            super().__init__()
            self.item = item

    def __init__(self) -> None:
        """Make the screen."""
        super().__init__()
        self.recent: tuple[SessionInfo, ...] = ()
        self.resumed = False
        self._moved = False
        self._where: tuple[tuple[int, str, int], tuple[str, ...]] | None = None

    def body(self) -> ComposeResult:
        """Lay out."""
        with Horizontal(id="lists"):
            yield Rows(id="main")
            yield Rows(id="side")
        yield Static(id="about", markup=False)

    def on_mount(self) -> None:
        """Put the focus on the list."""
        self.query_one("#side", Rows).quiet = True
        self.query_one("#main", Rows).focus()

    def show(self, view: View) -> None:
        """Draw `view`. The cursor stays on the top cause until a person moves it."""
        super().show(view)
        if not self.is_mounted:
            return
        width = self.app.size.width
        wide = self.has_class("-wide")
        main, side = self.query_one("#main", Rows), self.query_one("#side", Rows)
        for rows in (main, side):
            rows.ink, rows.signs = view.ink, view.signs
        room = (width * 3 // 5 if wide else width) - 4
        left = [*self._whereabouts(view, room), *self._causes(view, room), _gap(1), *self._flows(view, room)]
        right = [*self._evidence(view, width - room - 6 if wide else room), _gap(2), *self._sessions(view)]
        first = next((row.key for row in left if row.rest), "")
        main.set_rows(left if wide else [*left, _gap(3), *right], cursor=None if self._moved and main.key else first)
        side.set_rows(right if wide else ())
        self._about(view)

    def _whereabouts(self, view: View, room: int) -> list[Row]:
        """Return where a session stands that others have worked on, or that is gone on with; "" for a new one."""
        if not self.resumed:
            return []
        key = (view.state.revision, view.language, room)
        if self._where is None or self._where[0] != key:
            self._where = (key, view.whereabouts(room))
        rows = [Row("", paint.cut(Content(line), room, view.signs), rest=False) for line in self._where[1]]
        return [_heading(view, "where_title"), *rows, _gap(4)]

    def _causes(self, view: View, room: int) -> list[Row]:
        ink = view.ink
        rows = [_heading(view, "causes")]
        near = [v for v in view.report.possible if v.open <= 1 and v.flow in view.report.asked]
        possible = near[:POSSIBLE_SHOWN]
        for verdict in (*view.report.confirmed, *possible):
            sure = verdict.standing is Standing.CONFIRMED
            title = view.cause_title(verdict.cause)
            line = Content.assemble(view.status(STANDINGS[verdict.standing], 13), (title, ink.strong if sure else ""))
            flow = view.catalog.flows.get(verdict.flow)
            rows.append(
                Row(
                    f"{CAUSES} {verdict.cause}",
                    paint.cut(line, room, view.signs),
                    _dim(view, view.say(flow.title) if flow else ""),
                )
            )
        if not view.report.confirmed:
            busy = bool(view.running) or view.looking
            key = "looking" if view.looking else "no_cause_yet" if busy else "no_cause"
            rows.insert(1, Row("", _dim(view, view.word(key)), rest=False))
        return rows

    def _flows(self, view: View, room: int) -> list[Row]:
        rows = [_heading(view, "flows")]
        titles = {name: Content(view.say(flow.title)) for name, flow in view.catalog.flows.items()}
        width = min(max((title.cell_length for title in titles.values()), default=0), room // 2)
        for name, flow in view.catalog.flows.items():
            short = paint.cut(titles[name], width, view.signs)
            title = short.pad_right(width - short.cell_length + 2)
            line = Content.assemble(title, (view.say(flow.symptom), view.ink.dim))
            rows.append(Row(f"{FLOWS} {name}", paint.cut(line, room, view.signs)))
        return rows

    def _evidence(self, view: View, room: int) -> list[Row]:
        rows = [_heading(view, "evidence")]
        width = max((Content(_slot(view, item)).cell_length for item in view.state.items), default=0)
        width = min(width, max(room // 3, 8))
        for i, item in enumerate(view.state.items):
            slot = paint.cut(Content(_slot(view, item)), width, view.signs)
            gone = (f"  {view.word('missing')}", view.ink.warn) if item.missing else ("", "")
            path = _shorter(view, sanitise(item.path), max(room - width - 4 - len(gone[0]), 8))
            line = Content.assemble(
                slot.pad_right(width - slot.cell_length + 2).stylize(view.ink.dim or "not bold"), path, gone
            )
            rows.append(Row(f"{EVIDENCE} {i}", line))
        if not view.state.items:
            words = view.word("looking") if view.looking else view.word("no_evidence", key=key_of("start", "app.add"))
            rows.append(Row("", _dim(view, words), rest=False))
        return rows

    def _sessions(self, view: View) -> list[Row]:
        if not self.recent:
            return []
        rows = [_heading(view, "sessions")]
        for info in self.recent[:RECENT]:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.changed))
            root = os.path.basename(sanitise(info.root).rstrip("/"))
            line = Content.assemble((f"{when}  ", view.ink.dim), root, (f"  {sanitise(info.current)}", view.ink.dim))
            rows.append(Row(f"{SESSIONS} {info.id}", line))
        return rows

    def _about(self, view: View) -> None:
        """Show what the cursor's row is about, in full."""
        width = max(20, self.app.size.width - 4)
        target = self.target()
        self.query_one("#about", Static).update(_about(view, self, target, width))

    def target(self) -> Target | None:
        """Return what the cursor of the focused list stands on."""
        rows = self.focused if isinstance(self.focused, Rows) else self.query_one("#main", Rows)
        kind, _, id = rows.key.partition(" ")
        return Target(kind, id) if id else None

    @on(Rows.Moved)
    def _on_moved(self) -> None:
        self._moved = True
        if self.view is not None:
            self._about(self.view)

    def on_descendant_focus(self) -> None:
        """Show what the other list's cursor is about."""
        if self.view is not None:
            self._about(self.view)

    @on(Rows.Chosen)
    def _on_chosen(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Open what the cursor stands on."""
        target = self.target()
        if target is not None:
            self.post_message(self.Picked(target))

    def action_drop(self) -> None:
        """Ask whether the item under the cursor is to be taken out of the evidence."""
        target, items = self.target(), self.view.state.items if self.view is not None else ()
        mine = target is not None and target.kind == EVIDENCE and int(target.id) < len(items)
        self.post_message(self.Dropped(items[int(target.id)] if target is not None and mine else None))


def _heading(view: View, key: str) -> Row:
    return Row("", Content.styled(view.word(key), view.ink.accent), rest=False)


def _gap(n: int) -> Row:
    return Row(f"\0{n}", Content(""), rest=False)


def _dim(view: View, words: str) -> Content:
    return Content.styled(words, view.ink.dim)


def _slot(view: View, item: Item) -> str:
    slot = view.catalog.slots.get(item.slot)
    words = view.say(slot.title) if slot is not None else ""
    return words if words and len(words) <= 22 else sanitise(item.slot)


def _shorter(view: View, path: str, room: int) -> str:
    """Return a path as seen from RUN, cut at its left to fit."""
    root = view.state.root
    inside = path[len(root) :].lstrip("/") if root and path.startswith(root.rstrip("/") + "/") else path
    return paint.left_cut(inside, room, view.signs)


def _about(view: View, screen: StartScreen, target: Target | None, width: int) -> Content:
    ink = view.ink
    if target is None:
        return Content("")
    if target.kind == CAUSES and (verdict := view.verdict_of(target.id)) is not None:
        return _about_cause(view, verdict, width)
    if target.kind == FLOWS and target.id in view.catalog.flows:
        flow = view.catalog.flows[target.id]
        guide = "  ".join(
            view.word("guide", id=sanitise(g)) for g in ((flow.guide,) if isinstance(flow.guide, str) else flow.guide)
        )
        here = view.say(flow.nodes[view.here(flow)].question)
        head = Content.assemble((view.say(flow.title), ink.strong), (f"  {guide}" if guide else "", ink.dim))
        return paint.lines(
            head, paint.wrapped(Content(view.say(flow.symptom)), width), paint.wrapped(_dim(view, here), width)
        )
    if target.kind == EVIDENCE and int(target.id) < len(view.state.items):
        item = view.state.items[int(target.id)]
        gone = f"{view.word('missing')}: " if item.missing else ""
        path = Content.styled(sanitise(item.path), ink.strong)
        return paint.lines(
            paint.wrapped(path, width), paint.wrapped(Content.assemble((gone, ink.warn), view.say(item.why)), width)
        )
    info = next((info for info in screen.recent if info.id == target.id), None)
    if info is None:
        return Content("")
    held = Content.styled(sanitise(info.locked_by or info.damaged), ink.warn)
    return paint.lines(Content.styled(info.id, ink.strong), sanitise(info.root), held)


def _about_cause(view: View, verdict: Verdicted, width: int) -> Content:
    ink = view.ink
    parts = [Content.styled(view.cause_title(verdict.cause), ink.strong)]
    parts += [paint.wrapped(Content.styled(words, ink.warn), width) for words in view.seen.get(verdict.cause, ())]
    for finding in verdict.by[:1]:
        parts.append(paint.wrapped(Content(view.say(finding.summary)), width))
        parts += [paint.citation_block(view, citation, width, chosen=False) for citation in finding.citations[:1]]
    if verdict.consequences:
        names = ", ".join(view.cause_title(cause) for cause in verdict.consequences)
        parts.append(paint.wrapped(_dim(view, view.word("leads_to", cause=names)), width))
    return paint.lines(*parts)
