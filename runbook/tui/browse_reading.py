"""A reading on the screen: the text, the piece at the cursor in numbers, and beside it the jumps and the facts.

On a narrow terminal the facts stand behind the text. Invariant: what the cursor's piece is and how far apart its values
are can always be read in words.
"""

from __future__ import annotations

import math

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from runbook.browse import Jump, Reading, say_value
from runbook.tui import paint
from runbook.tui.actions import key_of
from runbook.tui.browse_tokens import Tokens, fact_lines
from runbook.tui.rows import LazyRows, Row, Rows
from runbook.tui.view import View

WIDE, BROAD = 110, 160
"""Columns of the screen from which jumps and facts stand beside the text, and from which they get more of it."""


class JumpRows(Rows):
    """The list of jumps."""


class ReadingPane(Horizontal):
    """One reading."""

    DEFAULT_CSS = """
    ReadingPane { height: 1fr; }
    ReadingPane #text { width: 1fr; }
    ReadingPane #notes { height: auto; max-height: 5; padding: 0 2; }
    ReadingPane #token { height: auto; max-height: 4; min-height: 3; padding: 0 2; border-top: solid $ink-line; }
    ReadingPane #beside { width: 38; display: none; border-left: solid $ink-line; }
    ReadingPane.-beside #beside { display: block; }
    ReadingPane.-broad #beside { width: 58; }
    ReadingPane #jumps-title { height: auto; padding: 0 2; }
    ReadingPane JumpRows { height: 1fr; min-height: 3; }
    ReadingPane VerticalScroll { height: 1fr; padding: 1 1 0 2; border-top: solid $ink-line; }
    ReadingPane VerticalScroll { scrollbar-size-vertical: 1; }
    """

    def __init__(self) -> None:
        """Make an empty pane."""
        super().__init__(id="reading-pane")
        self.reading: Reading | None = None
        self._view: View | None = None

    def compose(self) -> ComposeResult:
        """Lay out."""
        with Vertical(id="text"):
            yield Static(id="notes", markup=False)
            yield Tokens()
            yield Static(id="token", markup=False)
        with Vertical(id="beside"):
            yield Static(id="jumps-title", markup=False)
            yield JumpRows(id="jumps")
            with VerticalScroll(can_focus=True):
                yield Static(id="facts", markup=False)

    @property
    def tokens(self) -> Tokens:
        """Return the text."""
        return self.query_one(Tokens)

    def show_reading(self, view: View, reading: Reading, at: tuple[int, int]) -> None:
        """Draw a reading with the cursor `at` (passage, piece)."""
        fresh = reading is not self.reading
        self._view, self.reading = view, reading
        wide, broad = self.app.size.width >= WIDE, self.app.size.width >= BROAD
        self.set_class(wide, "-beside")
        self.set_class(broad, "-broad")
        jumps = self.query_one(JumpRows)
        jumps.ink, jumps.signs, jumps.quiet = view.ink, view.signs, True
        self.query_one("#notes", Static).update(self._notes(view, reading))
        beside = self._beside() - 5 if wide else max(self.app.size.width - 8, 20)
        facts = fact_lines(view, reading, beside)
        head = Content.styled(view.word("fields"), f"{view.ink.accent} {view.ink.strong}".strip())
        tail = () if wide else (Content(""), head, *(Content.assemble("  ", line) for line in facts))
        if wide:
            self.query_one("#facts", Static).update(paint.lines(*facts))
            count = self._count(view, reading)
            self.query_one("#jumps-title", Static).update(count)
            rows = LazyRows(
                len(reading.jumps), lambda i: self._jump(view, reading, i), lambda key: int(key) if key else -1
            )
            jumps.set_rows(rows, cursor=0 if fresh else None)
        self.tokens.show_reading(view, reading, tail, at=at)
        self._piece()

    def _beside(self) -> int:
        """Return the cells that stand beside the text."""
        return 0 if not self.has_class("-beside") else 58 if self.has_class("-broad") else 38

    def _notes(self, view: View, reading: Reading) -> Content:
        """Return what is to be said first: the fields that tell most, the disagreements, the notes."""
        ink, width = view.ink, max(self.app.size.width - self._beside() - 5, 20)
        first = reading.jumps[0] if reading.jumps else None
        if first is not None:
            lead = Content.assemble(
                (f"{'x' if view.signs.ascii_only else '✗'} {self._many(view, reading)}", ink.bad),
                (f"  {view.word('first_jump', n=f'{first.number:,}', key=key_of('reading', 'next_jump'))}", ink.dim),
            )
        elif reading.levels:
            sign = "+" if view.signs.ascii_only else "✓"
            least = f"{reading.levels[-1].least:g}"
            lead = Content.styled(f"{sign} {view.word('no_jumps', least=least, unit=reading.unit)}", ink.good)
        else:
            lead = Content("")
        notes = [paint.wrapped(Content.styled(view.say(note), ink.warn), width) for note in reading.notes[:3]]
        return paint.lines(*([paint.cut(lead, width, view.signs)] if lead.plain else []), *notes)

    @staticmethod
    def _many(view: View, reading: Reading) -> str:
        count = len(reading.jumps) + reading.hidden
        return view.word("jumps", n=f"{count:,}", least=f"{reading.levels[-1].least:g}", unit=reading.unit)

    def _count(self, view: View, reading: Reading) -> Content:
        count = len(reading.jumps) + reading.hidden
        return Content.assemble(
            (view.word("jump_list"), f"{view.ink.accent} {view.ink.strong}".strip()),
            (f"  {count:,}" if count else f"  {view.word('none_here')}", view.ink.dim),
        )

    @staticmethod
    def _jump(view: View, reading: Reading, i: int) -> Row:
        jump = reading.jumps[i]
        value = f"{jump.value:+8.2f}" if jump.value is not None else ""
        words = view.safe(repr_of(jump.words), 40)
        return Row(
            str(i), Content.assemble((f"{jump.number:>7,}", view.ink.dim), (f" {value}", view.ink.bad), f"  {words}")
        )

    def jump_at_cursor(self) -> Jump | None:
        """Return the jump that the list's cursor stands on."""
        at = self.query_one(JumpRows).cursor
        jumps = self.tokens.jumps()
        return jumps[at] if 0 <= at < len(jumps) else None

    def on_tokens_moved(self) -> None:
        """Show the piece at the cursor."""
        self._piece()
        reading = self.reading
        if reading is None or not self.has_class("-beside"):
            return
        here = (reading.part, *self.tokens.cursor)
        for i, jump in enumerate(reading.jumps):
            if (jump.part, jump.passage, jump.piece) == here:
                self.query_one(JumpRows).move_to(i, tell=False)
                break

    def _piece(self) -> None:
        """Show the piece at the cursor with all its values."""
        view, reading, strip = self._view, self.reading, self.query_one("#token", Static)
        if view is None or reading is None or not reading.passages:
            strip.update(Content(""))
            return
        ink = view.ink
        at, piece = self.tokens.cursor
        passage = reading.passages[at]
        if not passage.pieces:
            strip.update(Content(""))
            return
        number = f"{passage.first + piece:,}"
        value = passage.values[piece] if passage.values else None
        level = reading.level(value)
        name = Content.assemble((f"{view.say(passage.piece)} {number}", ink.strong), ("  ", ""))
        text = Content(view.safe(repr_of(passage.pieces[piece]), 60))
        if level >= 0 and value is not None:
            role = reading.levels[level]
            sign = {"bad": "✗x", "warn": "▲!"}.get(role.role, "··")[view.signs.ascii_only]
            gap = Content.styled(f"{sign} {view.say(role.words)}", view.role_ink(role.role))
        elif piece in passage.quiet:
            gap = Content.styled(view.word("masked"), ink.dim)
        elif value is None and passage.values:
            gap = Content.styled(view.word("not_compared"), ink.dim)
        else:
            gap = Content("")
        tracks = [
            Content.assemble(
                (f"{view.say(track.title)} ", ink.dim), say_value(track.values[piece], view.language, track.digits)
            )
            for track in passage.tracks
        ]
        if value is not None and math.isfinite(value):
            apart = Content.assemble(
                (f"{view.say(reading.value)} ", ink.dim),
                (f"{value:+.3f} {reading.unit}", view.role_ink(reading.levels[level].role) if level >= 0 else ink.good),
            )
            tracks = [apart, *tracks]
        width = max(self.app.size.width - self._beside() - 5, 20)
        head = paint.cut(Content.assemble(name, text, "  ", gap), width, view.signs)
        values = paint.wrapped(Content("   ").join(tracks), width) if tracks else Content("")
        strip.update(paint.lines(head, *values.split("\n", allow_blank=True)[:2]))

    def on_resize(self) -> None:
        """Fit the new width."""
        if self._view is not None and self.reading is not None:
            self.show_reading(self._view, self.reading, self.tokens.cursor)


def repr_of(piece: str) -> str:
    """Return a piece in quotes, its line ends written out, so that blanks can be seen."""
    return '"' + piece.replace("\n", "\\n") + '"'


def begin_of(reading: Reading) -> tuple[int, int]:
    """Return where the cursor stands first: the first piece of the first passage with values, else of the last one."""
    valued = next((i for i, passage in enumerate(reading.passages) if passage.values), None)
    return (max(len(reading.passages) - 1, 0) if valued is None else valued, 0)
