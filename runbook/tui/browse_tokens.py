"""The text of a reading with a cursor on one piece: words that wrap, pieces coloured by value, marks below them.

Draws only what is on the screen. Invariants: a piece that differs has a mark that is no colour; text is never read as
markup; the cursor stands on a piece of the reading whenever it has one.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from runbook.browse import Jump, Passage, Reading
from runbook.browse_layout import Laid, lay_out, marks
from runbook.tui import paint
from runbook.tui.actions import bindings
from runbook.tui.view import View

MARGIN = 2
"""Cells left of the numbers."""

LINE = 112
"""Cells of a line of text at most: longer ones are hard to follow."""


@dataclass(frozen=True)
class Drawn:
    """One line on the screen. laid: the text it shows; marks: what stands below the text before it; else words."""

    laid: Laid | None = None
    marks: str = ""
    words: Content | None = None


class Tokens(ScrollView, can_focus=True):
    """The text. Posts Moved when the cursor comes to another piece, Beyond when it wants another window or sample."""

    BINDINGS = bindings("reading")
    scopes: tuple[str, ...] = ("reading",)
    DEFAULT_CSS = """
    Tokens { height: 1fr; width: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """

    class Moved(Message):
        """The cursor came to a piece."""

    class Beyond(Message):
        """Something outside this window is wanted.

        jump: a jump of another window. part: another window. neighbour: 1 for the next row of the sheet, -1 for the one
        before. nothing: there is no further jump.
        """

        def __init__(
            self, *, jump: Jump | None = None, part: int | None = None, neighbour: int = 0, nothing: bool = False
        ) -> None:
            """Say what."""
            super().__init__()
            self.jump, self.part, self.neighbour, self.nothing = jump, part, neighbour, nothing

    def __init__(self) -> None:
        """Make an empty text."""
        super().__init__(id="tokens")
        self.reading: Reading | None = None
        self.cursor = (0, 0)  # passage, piece
        self.view: View | None = None
        self.tail: tuple[Content, ...] = ()
        self._lines: list[Drawn] = []
        self._starts: list[list[tuple[int, int]]] = []  # of each passage: (first piece, line), rising
        self._quiet: list[frozenset[int]] = []
        self._gutter = 0
        self._opened = False  # nothing was moved since the reading came: however often it is laid out, it leads
        self._drawn_for: object = None

    def show_reading(self, view: View, reading: Reading, tail: tuple[Content, ...], *, at: tuple[int, int]) -> None:
        """Draw a reading with the cursor `at` (passage, piece). tail: words that stand behind the text."""
        fresh = reading is not self.reading
        self.view, self.reading, self.tail = view, reading, tail
        self._quiet = [frozenset(passage.quiet) for passage in reading.passages]
        self.cursor = self._sane(at)
        self._lay(force=True)
        if fresh:
            self._opened = True
            self.call_after_refresh(self._to_cursor, lead=True)
        self.refresh()

    def _sane(self, at: tuple[int, int]) -> tuple[int, int]:
        reading = self.reading
        if reading is None or not reading.passages:
            return (0, 0)
        passage = min(max(at[0], 0), len(reading.passages) - 1)
        return passage, min(max(at[1], 0), max(len(reading.passages[passage].pieces) - 1, 0))

    def _lay(self, *, force: bool = False) -> None:
        """Lay out for the present width."""
        reading, view = self.reading, self.view
        if reading is None or view is None:
            return
        width = self.size.width
        key = (id(reading), width, view.language, view.signs, view.ink)
        if width < 10 or (key == self._drawn_for and not force):
            return
        self._drawn_for = key
        ascii_only = view.signs.ascii_only
        last = max((p.first + len(p.pieces) for p in reading.passages if p.values), default=0)
        self._gutter = max(len(f"{last:,}"), 2) + 1
        room = min(max(width - MARGIN - self._gutter - 2, 8), LINE)
        lines: list[Drawn] = []
        self._starts = []
        for number, passage in enumerate(reading.passages):
            lines.append(Drawn(words=Content("")))
            lines.append(Drawn(words=self._title(view, reading, passage)))
            starts: list[tuple[int, int]] = []
            for laid in lay_out(reading, number, room, ascii_only=ascii_only):
                starts.append((laid.first, len(lines)))
                lines.append(Drawn(laid))
                below = marks(reading, laid, ascii_only=ascii_only)
                if below:
                    lines.append(Drawn(laid, below))
            self._starts.append(starts)
        for content in self.tail:
            lines += [Drawn(words=line) for line in content.split("\n", allow_blank=True)]
        self._lines = lines
        self.virtual_size = Size(0, len(lines))

    @staticmethod
    def _title(view: View, reading: Reading, passage: Passage) -> Content:
        words = Content.styled(view.say(passage.title), f"{view.ink.accent} {view.ink.strong}".strip())
        if not passage.values:
            return words
        ends = passage.first + len(passage.pieces)
        name = view.say(passage.piece)
        window = f"{name} {passage.first:,} - {max(ends - 1, 0):,}" if reading.parts > 1 else ""
        return Content.assemble(words, (f"  {window}" if window else "", view.ink.dim))

    def on_resize(self) -> None:
        """Wrap to the new width."""
        self._lay()
        self._to_cursor(lead=self._opened)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        index, width, style = y + self.scroll_offset.y, self.size.width, self.visual_style
        view = self.view
        if view is None or self.reading is None or index >= len(self._lines) or width < 10:
            return Strip.blank(width, style.rich_style)
        content = self._line(view, self.reading, self._lines[index])
        content = content.truncate(width).pad_right(max(0, width - content.cell_length))
        return Visual.to_strips(self, content, width, 1, style)[0].adjust_cell_length(width, style.rich_style)

    def _line(self, view: View, reading: Reading, drawn: Drawn) -> Content:
        ink = view.ink
        if drawn.words is not None or drawn.laid is None:
            return Content.assemble(" " * MARGIN, drawn.words or "")
        laid = drawn.laid
        passage = reading.passages[laid.passage]
        if drawn.marks:
            edge = Content(" " * (MARGIN + self._gutter))
            return Content.assemble(edge, self._marks(view, reading, laid, drawn.marks))
        number = f"{passage.first + laid.first:,}" if passage.values else ""
        parts: list[Content] = [Content.styled(" " * MARGIN + f"{number:>{self._gutter - 1}} ", ink.dim)]
        quiet = self._quiet[laid.passage]
        for span in laid.spans:
            style = ""
            level = reading.level(passage.values[span.piece]) if passage.values else -1
            if span.piece in quiet:
                style = ink.dim
            elif level >= 0:
                style = view.role_ink(reading.levels[level].role)
            elif not passage.values:
                style = ink.quote
            if (laid.passage, span.piece) == self.cursor:
                style = f"{style} {ink.cursor} {ink.strong}" if ink.cursor == "reverse" else f"{style} reverse"
            parts.append(Content.styled(span.text, style.strip()) if style.strip() else Content(span.text))
        return Content.assemble(*parts)

    @staticmethod
    def _marks(view: View, reading: Reading, laid: Laid, below: str) -> Content:
        content = Content(below)
        passage = reading.passages[laid.passage]
        levels = [(s.start, reading.level(passage.values[s.piece])) for s in laid.spans if s.width]
        marked = [(start, level) for start, level in levels if level >= 0]
        for i, (start, level) in enumerate(marked):
            end = marked[i + 1][0] if i + 1 < len(marked) else len(below)
            content = content.stylize(view.role_ink(reading.levels[level].role), start, end)
        return content

    def watch_has_focus(self, has_focus: bool) -> None:
        """Draw the cursor anew."""
        super().watch_has_focus(has_focus)
        self.refresh()

    def _line_of(self, at: tuple[int, int]) -> int:
        if at[0] >= len(self._starts) or not self._starts[at[0]]:
            return 0
        starts = self._starts[at[0]]
        place = bisect_right(starts, at[1], key=lambda start: start[0]) - 1
        while place > 0 and starts[place][0] == at[1] and not self._holds(starts[place][1], at[1]):
            place -= 1
        return starts[max(place, 0)][1]

    def _holds(self, line: int, piece: int) -> bool:
        laid = self._lines[line].laid
        return laid is not None and any(span.piece == piece and span.width for span in laid.spans)

    def _to_cursor(self, *, lead: bool = False) -> None:
        """Bring the cursor into sight; lead: with a third of the screen above it."""
        if not self._lines:
            return
        line, top, height = self._line_of(self.cursor), self.scroll_offset.y, max(self.size.height, 1)
        if lead:
            self._scroll(line - height // 3)
        elif line < top + 1:
            self._scroll(line - 1)
        elif line + 1 >= top + height:
            self._scroll(line - height + 2)

    def _scroll(self, top: int) -> None:
        self.scroll_to(y=max(0, top), animate=False, force=True)

    def go(self, at: tuple[int, int], *, lead: bool = False) -> None:
        """Put the cursor on a piece."""
        self._opened = False
        self.cursor = self._sane(at)
        self._to_cursor(lead=lead)
        self.refresh()
        self.post_message(self.Moved())

    def jumps(self) -> tuple[Jump, ...]:
        """Return the places worth going to."""
        return self.reading.jumps if self.reading is not None else ()

    def action_next_jump(self) -> None:
        """Go to the next disagreement."""
        self._jump(1)

    def action_previous_jump(self) -> None:
        """Go to the disagreement before."""
        self._jump(-1)

    def _jump(self, by: int) -> None:
        reading = self.reading
        if reading is None:
            return
        here = (reading.part, *self.cursor)
        after = [jump for jump in reading.jumps if (jump.part, jump.passage, jump.piece) > here]
        before = [jump for jump in reading.jumps if (jump.part, jump.passage, jump.piece) < here]
        found = after[:1] if by > 0 else before[-1:]
        jump = found[0] if found else None
        if jump is None:
            self.post_message(self.Beyond(nothing=True))
        elif jump.part == reading.part:
            self.go((jump.passage, jump.piece), lead=not self._in_sight((jump.passage, jump.piece)))
        else:
            self.post_message(self.Beyond(jump=jump))

    def _in_sight(self, at: tuple[int, int]) -> bool:
        line, top = self._line_of(at), self.scroll_offset.y
        return top < line < top + self.size.height - 2

    def action_right(self) -> None:
        """Go to the next piece."""
        self._step(1)

    def action_left(self) -> None:
        """Go to the piece before."""
        self._step(-1)

    def _step(self, by: int) -> None:
        reading = self.reading
        if reading is None or not reading.passages:
            return
        passage, piece = self.cursor
        if 0 <= piece + by < len(reading.passages[passage].pieces):
            self.go((passage, piece + by))
        elif 0 <= passage + by < len(reading.passages):
            beyond = reading.passages[passage + by]
            self.go((passage + by, 0 if by > 0 else len(beyond.pieces) - 1))
        else:
            self._window(by)

    def _window(self, by: int) -> None:
        reading = self.reading
        if reading is not None and 0 <= reading.part + by < reading.parts:
            self.post_message(self.Beyond(part=reading.part + by))

    def action_line_down(self) -> None:
        """Go to the next line."""
        self._vertical(1)

    def action_line_up(self) -> None:
        """Go to the line before."""
        self._vertical(-1)

    def action_page_down(self) -> None:
        """Go one page down."""
        self._vertical(max(self.size.height - 3, 1))

    def action_page_up(self) -> None:
        """Go one page up."""
        self._vertical(-max(self.size.height - 3, 1))

    def _vertical(self, by: int) -> None:
        """Move the cursor by lines of the screen, to the piece that stands nearest below or above it."""
        line = self._line_of(self.cursor)
        x = self._x(line)
        target = line + by
        step = 1 if by > 0 else -1
        while 0 <= target < len(self._lines) and not self._rests(target):
            target += step
        if not 0 <= target < len(self._lines):
            back = min(max(line + by, 0), len(self._lines) - 1)
            while 0 <= back < len(self._lines) and not self._rests(back):
                back -= step
            if (back - line) * step <= 0:  # no further text that way: show what stands there, or the next window
                self._scroll(self.scroll_offset.y + by)
                if self.scroll_offset.y in (0, max(len(self._lines) - self.size.height, 0)):
                    self._window(step)
                return
            target = back
        laid = self._lines[target].laid
        assert laid is not None
        nearest = min(laid.spans, key=lambda span: abs(span.start + span.width // 2 - x))
        self.go((laid.passage, nearest.piece))

    def _rests(self, line: int) -> bool:
        drawn = self._lines[line]
        return drawn.laid is not None and not drawn.marks and bool(drawn.laid.spans)

    def _x(self, line: int) -> int:
        laid = self._lines[line].laid
        span = next((s for s in laid.spans if s.piece == self.cursor[1]), None) if laid is not None else None
        return span.start + span.width // 2 if span is not None else 0

    def action_first(self) -> None:
        """Go to the begin of the text."""
        self.go((0, 0))
        self._scroll(0)

    def action_last(self) -> None:
        """Go to the end of the text, and show what stands behind it."""
        reading = self.reading
        if reading is None or not reading.passages:
            return
        last = len(reading.passages) - 1
        self.go((last, len(reading.passages[last].pieces) - 1))
        self._scroll(len(self._lines))

    def action_next_row(self) -> None:
        """Open the next sample."""
        self.post_message(self.Beyond(neighbour=1))

    def action_previous_row(self) -> None:
        """Open the sample before."""
        self.post_message(self.Beyond(neighbour=-1))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked piece."""
        index = event.y + self.scroll_offset.y
        laid = self._lines[index].laid if 0 <= index < len(self._lines) else None
        if laid is None:
            return
        x = event.x - MARGIN - self._gutter
        span = next((s for s in laid.spans if s.start <= x < s.start + s.width), None)
        if span is not None:
            self.go((laid.passage, span.piece))


def fact_lines(view: View, reading: Reading, width: int) -> tuple[Content, ...]:
    """Return the facts of a reading, name and words, wrapped."""
    names = [view.say(name) for name, _ in reading.facts]
    column = min(max((Content(name).cell_length for name in names), default=0), max(width // 2 - 2, 8))
    lines = []
    for name, (_, words) in zip(names, reading.facts, strict=True):
        said = view.safe(words) if isinstance(words, str) else view.say(words)
        left = paint.cut(Content(name), column, view.signs)
        lead = Content.styled(left.plain + " " * (column - left.cell_length + 2), view.ink.dim)
        block = paint.wrapped(Content(said), width, lead=Content(" " * (column + 2)))
        first, *rest = block.split("\n", allow_blank=True)
        lines += [Content.assemble(lead, first[column + 2 :]), *rest[:5]]
    return tuple(lines)
