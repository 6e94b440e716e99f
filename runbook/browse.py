"""Browsers: what a probe package adds for looking into bulk data page by page, found as its probes are.

A browser answers "open this place" with a page: a `Sheet` of rows that lead one level deeper, or a `Reading` of text
whose pieces carry values. Invariants: a page is made in a worker process and the fronts never open the evidence
themselves; pages are frozen, bounded and hold text that is safe to draw; a value that is not there is None, never 0.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from runbook.errors import EvidenceError
from runbook.evidence import Evidence
from runbook.text import Text, sanitise, visible

DEADLINE = 60.0
"""Seconds that a page may take unless its browser declares another deadline."""

ROW_LIMIT, PIECE_LIMIT, CHARACTER_LIMIT = 200_000, 60_000, 4_000_000
"""Rows of a sheet, pieces and characters of a reading: what crosses to the front and is drawn without a pause."""

CELL_LIMIT = 200
"""Characters of a cell."""

FACT_LIMIT = 2_000
"""Characters of a fact about a reading."""

Cell = str | int | float | Text | None
"""None is what is not known; Text is said in the language in force."""
Place = tuple[str, ...]
"""Where a page is: one id a level, from the outermost sheet inwards. () is the first page."""


class Ask(msgspec.Struct, frozen=True):
    """What is wanted: the page at `place`.

    find: only the rows whose whole content holds these words, "" for all. part: which window of a long reading, from 0.
    keep: a folder that lives as long as the browsing does, for what is worth keeping between pages; "" for none. again:
    the page is there already, and the rest of it is wanted.
    """

    place: Place = ()
    find: str = ""
    part: int = 0
    keep: str = ""
    again: bool = False


class Column(msgspec.Struct, frozen=True):
    """A column of a sheet.

    id: the word that filters and orders name it by. number: its cells are numbers or None. digits: decimals shown of
    a float. percent: a share, shown as percent. limits: (value, words) of thresholds that its numbers are judged by.
    plotted: it may be drawn over the rows. width: of its cells without the
    heading, filled in by `open_page`.
    """

    id: str
    title: Text
    number: bool = False
    unit: str = ""
    digits: int = 2
    percent: bool = False
    limits: tuple[tuple[float, Text], ...] = ()
    plotted: bool = False
    width: int = 0


class Line(msgspec.Struct, frozen=True):
    """A row. id: the place below this page that it opens. role: "good", "bad", "warn", "dim" or "", drawn as a sign."""

    id: str
    cells: tuple[Cell, ...]
    role: str = ""
    opens: bool = True


class Sheet(msgspec.Struct, frozen=True, tag="sheet"):
    """A table. The fronts sort and filter it.

    order: column id that the rows are first ordered by, "-" before it for the largest first, "" for as they are. over:
    column of whole numbers that plots go over, "" for none. done: share of the work that is in this page; below 1
    asking again gives more. finds: `Ask.find` searches more than the cells hold.
    """

    title: Text
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    order: str = ""
    over: str = ""
    notes: tuple[Text, ...] = ()
    done: float = 1.0
    finds: bool = False

    def column(self, id: str) -> int:
        """Return the place of a column, -1 when there is none."""
        return next((place for place, column in enumerate(self.columns) if column.id == id), -1)


class Track(msgspec.Struct, frozen=True):
    """One more value for each piece of a passage, shown of the piece at the cursor."""

    title: Text
    values: tuple[Cell, ...]
    digits: int = 3


class Passage(msgspec.Struct, frozen=True):
    """Text in pieces, such as the tokens of a response.

    first: number of the first piece. values: what each piece is coloured by, None where there is none; () when no
    piece has one. quiet: pieces that count for nothing, by place. units: what a piece is called.
    """

    title: Text
    pieces: tuple[str, ...]
    first: int = 0
    values: tuple[float | None, ...] = ()
    tracks: tuple[Track, ...] = ()
    quiet: tuple[int, ...] = ()
    piece: Text = Text("piece", "片段")


class Level(msgspec.Struct, frozen=True):
    """Pieces whose value is this far from zero are drawn in `role` and marked. words: what that means."""

    least: float
    role: str
    words: Text


class Jump(msgspec.Struct, frozen=True):
    """A piece worth going to.

    part: window that holds it. passage, piece: where in that window. number: as it is counted. value, words: its own.
    """

    part: int
    passage: int
    piece: int
    number: int
    value: float | None = None
    words: str = ""


class Reading(msgspec.Struct, frozen=True, tag="reading"):
    """Text with values.

    value: what the values are. levels: rising. jumps: of all windows, in order; hidden: how many more there are. part
    of parts: which window this is. facts: (name, words) about the whole.
    """

    title: Text
    passages: tuple[Passage, ...]
    value: Text = Text("", "")
    unit: str = ""
    levels: tuple[Level, ...] = ()
    jumps: tuple[Jump, ...] = ()
    hidden: int = 0
    part: int = 0
    parts: int = 1
    facts: tuple[tuple[Text, Text | str], ...] = ()
    notes: tuple[Text, ...] = ()

    def level(self, value: float | None) -> int:
        """Return the place of the highest level that a value reaches; -1 for none, or where it is not finite."""
        if value is None or not math.isfinite(value):
            return -1
        return max((i for i, level in enumerate(self.levels) if abs(value) >= level.least), default=-1)


Page = Sheet | Reading


@dataclass(frozen=True)
class Depth:
    """A level of a browser below its first page. word: the option of the command line that names a place on it."""

    word: str
    title: Text


@dataclass(frozen=True)
class Browser:
    """A browser's declaration; see `browser`."""

    id: str
    needs: tuple[str, ...]
    title: Text
    depths: tuple[Depth, ...]
    open: Callable[[Evidence, Ask], Page] = field(repr=False)
    deadline: float = DEADLINE

    def lacks(self, evidence: Evidence) -> list[str]:
        """Return the needs that `evidence` does not meet; each is a slot, or several joined by "|"."""
        return [need for need in self.needs if not evidence.has(need)]


def browser(
    id: str,
    *,
    needs: str | tuple[str, ...],
    en: str,
    zh: str,
    depths: tuple[Depth, ...] = (),
    deadline: float = DEADLINE,
) -> Callable[[Callable[[Evidence, Ask], Page]], Browser]:
    """Turn a function of (evidence, ask) into a Browser; the module-level name is then the browser itself.

    needs: as those of a probe. depths: the levels below the first page, outermost first. The function raises
    EvidenceError for a place that is not there or cannot be read.
    """

    def declare(open: Callable[[Evidence, Ask], Page]) -> Browser:
        wanted = (needs,) if isinstance(needs, str) else needs
        return Browser(id, wanted, Text(en, zh), depths, open, deadline)

    return declare


def open_page(module: str, id: str, evidence: Evidence, ask: Ask) -> Page:
    """Open a page of the browser `id` of `module`: what a worker runs.

    The page comes back safe to draw and within the limits. Raises what the browser raises, and ValueError for a page
    that breaks the contract.
    """
    for value in vars(importlib.import_module(module)).values():
        if isinstance(value, Browser) and value.id == id:
            return checked(value.open(evidence, ask))
    raise LookupError(f"{module} has no browser {id}")


def checked(page: Page) -> Page:
    """Return `page` safe to draw, its columns measured. Raises ValueError for one that breaks the contract."""
    page = _safe_sheet(page) if isinstance(page, Sheet) else _safe_reading(page)
    msgspec.json.encode(page)
    return page


def _safe(text: Text) -> Text:
    return Text(sanitise(text.en), sanitise(text.zh))


def _safe_cell(cell: Cell) -> Cell:
    if isinstance(cell, Text):
        return Text(sanitise(cell.en, CELL_LIMIT), sanitise(cell.zh, CELL_LIMIT))
    return sanitise(cell, CELL_LIMIT) if isinstance(cell, str) else cell


def _safe_sheet(sheet: Sheet) -> Sheet:
    if len(sheet.lines) > ROW_LIMIT:
        raise ValueError(f"a sheet of {len(sheet.lines)} rows; at most {ROW_LIMIT} can be shown")
    from rich.cells import cell_len

    count = len(sheet.columns)
    if any(len(line.cells) != count for line in sheet.lines):
        raise ValueError("a row has another number of cells than the sheet has columns")
    lines = tuple(
        Line(
            line.id,
            tuple(_safe_cell(cell) for cell in line.cells),
            line.role,
            line.opens,
        )
        for line in sheet.lines
    )
    columns = []
    for place, column in enumerate(sheet.columns):
        cells = [line.cells[place] for line in lines]
        both = [words for cell in cells if isinstance(cell, Text) for words in (cell.en, cell.zh)]
        plain = [say_cell(column, cell, "en") for cell in cells if not isinstance(cell, Text)]
        shown = max(map(cell_len, (*both, *plain)), default=0)
        columns.append(msgspec.structs.replace(column, width=shown))
    notes = tuple(_safe(note) for note in sheet.notes)
    return msgspec.structs.replace(sheet, title=_safe(sheet.title), columns=tuple(columns), lines=lines, notes=notes)


def _safe_reading(reading: Reading) -> Reading:
    pieces = sum(len(passage.pieces) for passage in reading.passages)
    length = sum(len(piece) for passage in reading.passages for piece in passage.pieces)
    if pieces > PIECE_LIMIT or length > CHARACTER_LIMIT:
        raise ValueError(f"a reading of {pieces} pieces and {length} characters; give it in windows")
    for passage in reading.passages:
        lengths = {len(track.values) for track in passage.tracks} | ({len(passage.values)} if passage.values else set())
        if lengths - {len(passage.pieces)}:
            raise ValueError("a passage has another number of values than of pieces")
    passages = tuple(
        msgspec.structs.replace(
            passage,
            title=_safe(passage.title),
            pieces=tuple(visible(piece) for piece in passage.pieces),
            tracks=tuple(
                msgspec.structs.replace(track, values=tuple(_safe_cell(value) for value in track.values))
                for track in passage.tracks
            ),
        )
        for passage in reading.passages
    )
    jumps = tuple(msgspec.structs.replace(jump, words=visible(jump.words)) for jump in reading.jumps)
    facts = tuple(
        (_safe(name), _safe(words) if isinstance(words, Text) else sanitise(words, FACT_LIMIT))
        for name, words in reading.facts
    )
    notes = tuple(_safe(note) for note in reading.notes)
    return msgspec.structs.replace(
        reading, title=_safe(reading.title), passages=passages, jumps=jumps, facts=facts, notes=notes
    )


def heading(column: Column, language: str) -> str:
    """Return a column's title with its unit."""
    words = sanitise(column.title.say(language))
    return f"{words} {column.unit}" if column.unit else words


def say_cell(column: Column, value: Cell, language: str) -> str:
    """Return a cell as people write it; "" for what is not known."""
    return say_value(value, language, column.digits, percent=column.percent)


def say_value(value: Cell, language: str, digits: int, *, percent: bool = False) -> str:
    """Return a value as people write it; digits: decimals of a float."""
    if value is None:
        return ""
    if isinstance(value, Text):
        return value.say(language)
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return str(value)
    if percent:
        return f"{value:.0%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def no_such(what: str, id: str, known: str) -> EvidenceError:
    """Return the error for a place that is not there. known: what there is, in words."""
    return EvidenceError(f"there is no {what} {sanitise(id, 60)!r}", f"there is: {known}" if known else "")
