"""The preview as rows, and the line at the cursor in full. Pure functions of a draft and of what was dropped.

Invariants: a pseudonym stands between signs besides its colour, a dropped line has a sign and words; a row is made when
it is drawn, so that any number of lines costs what the screen shows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from textual.content import Content

from runbook.bundle.form import FORMAT
from runbook.text import sanitise
from runbook.ticket.preview import Line
from runbook.ticket.units import EVIDENCE, PERSON
from runbook.ticket.words import say
from runbook.tui import paint
from runbook.tui.rows import LazyRows, Row
from runbook.tui.view import View

ROW_CHARACTERS = 600
"""Characters of a line that its row holds; the strip below shows more."""

DETAIL_CHARACTERS = 4000
"""Characters of a line that the strip below the list wraps."""


@dataclass(frozen=True)
class Shown:
    """Lines as a person sees them. entries: a key of a heading, or the place of a line in `lines`."""

    lines: Sequence[Line]
    entries: tuple[str | int, ...]
    index: dict[str, int]

    @staticmethod
    def of(lines: Sequence[Line], *, told: bool = True) -> Shown:
        """Return lines under their headings. told: also the tool's own words in which nothing is hidden."""
        entries: list[str | int] = []
        section = ""
        for place, line in enumerate(lines):
            if told or line.origin in (EVIDENCE, PERSON) or line.marks:
                if line.section != section:
                    section = line.section
                    entries.append(section)
                entries.append(place)
        return Shown(lines, tuple(entries), {_key(lines, entry): i for i, entry in enumerate(entries)})

    def at(self, cursor: int) -> Line | None:
        """Return the line at a row, None for a heading."""
        entry = self.entries[cursor] if 0 <= cursor < len(self.entries) else ""
        return self.lines[entry] if isinstance(entry, int) else None


def _key(lines: Sequence[Line], entry: str | int) -> str:
    return entry if isinstance(entry, str) else str(lines[entry].number)


def preview_rows(view: View, shown: Shown, dropped: Collection[str]) -> LazyRows:
    """Return the rows; dropped: texts that are left out."""
    width = len(str(len(shown.lines)))

    def make(index: int) -> Row:
        entry = shown.entries[index]
        if isinstance(entry, str):
            return Row(entry, Content.styled(say(entry, view.language), view.ink.strong), rest=False)
        line = shown.lines[entry]
        out = line.text in dropped
        head = Content.assemble((f"{line.number:>{width}} ", view.ink.dim), (drop_sign(view, out=out), view.ink.bad))
        words = marked(view, line, ROW_CHARACTERS)
        if out:
            words = words.stylize(f"{view.ink.dim} strike".strip())
        right = Content.styled(paint.left_cut(sanitise(line.place), 28, view.signs), view.ink.dim)
        return Row(str(line.number), Content.assemble(head, " ", words), right)

    return LazyRows(len(shown.entries), make, lambda key: shown.index.get(key, -1))


def drop_sign(view: View, *, out: bool) -> str:
    """Return the one-column sign of a line that is left out, a blank for one that leaves."""
    return ("x" if view.signs.ascii_only else "✗") if out else " "


def marked(view: View, line: Line, limit: int) -> Content:
    """Return the text of a line with its pseudonyms between signs and in colour, safe to draw."""
    before, after = hidden_signs(view)
    pieces: list[Content | str | tuple[str, str]] = []
    at = 0
    for mark in line.marks:
        if mark.end > limit:
            break
        pieces += [
            sanitise(line.text[at : mark.start]),
            (f"{before}{line.text[mark.start : mark.end]}{after}", view.ink.warn),
        ]
        at = mark.end
    return Content.assemble(*pieces, view.safe(line.text[at:], max(limit - at, 1)))


def hidden_signs(view: View) -> tuple[str, str]:
    """Return what stands around a pseudonym."""
    return ("<", ">") if view.signs.ascii_only else ("‹", "›")


_ORIGINS = {EVIDENCE: "from_evidence", PERSON: "from_person"}


def detail(view: View, line: Line, width: int, rows: int, *, out: bool) -> Content:
    """Return where a line stands, whose words it is, and its text wrapped to `width` cells in at most `rows` rows."""
    dot = f" {view.signs.dot} "
    told = [say(line.section, view.language), sanitise(line.place), line.about]
    told.append(view.word(_ORIGINS.get(line.origin, "from_tool")))
    told += [view.word("in_places", n=line.count)] if line.count > 1 else []
    kinds = dict.fromkeys(say(f"hidden.{mark.kind}", view.language) for mark in line.marks)
    head = Content.styled(dot.join(filter(None, told)), view.ink.dim)
    if out:
        head = Content.assemble((f"{drop_sign(view, out=True)} {view.word('left_out')}{dot}", view.ink.bad), head)
    if kinds:
        head = Content.assemble(head, (f"{dot}{view.word('hides', what=', '.join(kinds))}", view.ink.warn))
    wrapped = marked(view, line, DETAIL_CHARACTERS).wrap(max(width, 8))
    cut = [paint.cut(part.rstrip(), width, view.signs) for part in wrapped[:rows]]
    return paint.lines(paint.cut(head, width, view.signs), *cut)


def find(shown: Shown, words: str, start: int, by: int) -> int:
    """Return the nearest row after (by=1) or before (by=-1) `start` whose text or place holds `words`, -1 for none.

    Upper and lower case are the same; the search goes on at the other end.
    """
    wanted = words.casefold()
    return _next(shown, start, by, lambda line: wanted in f"{line.text}\n{' '.join(line.places)}".casefold())


def next_hidden(shown: Shown, start: int, by: int) -> int:
    """Return the nearest row with a pseudonym, as `find` does."""
    return _next(shown, start, by, lambda line: bool(line.marks))


def _next(shown: Shown, start: int, by: int, wanted: Callable[[Line], bool]) -> int:
    count = len(shown.entries)
    for step in range(1, count + 1):
        index = (start + by * step) % count
        line = shown.at(index)
        if line is not None and wanted(line):
            return index
    return -1


def summary(view: View, format: str, shown: Shown, dropped: Collection[str], *, told: bool = True) -> Content:
    """Return in a line what will be written: format, how many lines are left out, how many hide something, all.

    told: as `Shown.of`.
    """
    out = sum(line.text in dropped for line in shown.lines)
    hidden = sum(bool(line.marks) for line in shown.lines)
    before, after = hidden_signs(view)
    parts = [Content.styled(format, view.ink.strong)]
    if out:
        parts.append(Content.styled(view.word("preview_out", n=out, sign=drop_sign(view, out=True)), view.ink.bad))
    parts.append(Content.styled(view.word("preview_hidden", n=hidden, before=before, after=after), view.ink.warn))
    if not told:
        parts.append(Content.styled(view.word("preview_only"), view.ink.accent))
    parts.append(Content.styled(view.word("preview_lines", n=f"{len(shown.lines):,}"), view.ink.dim))
    if format == FORMAT:
        parts.append(Content.styled(view.word("bundle_more"), view.ink.dim))
    return Content("   ").join(parts)
