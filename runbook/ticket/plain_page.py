"""How the parts of a ticket are written as plain text of 80 columns, for mail and for `less`.

Invariants: nothing is left out; no line is wider than `WIDTH` cells but commands and addresses, which are copied whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runbook.ticket.layout import one_blank
from runbook.ticket.outline import NONE, Address, Code, Grid, Items, Node, Note, Outline, Paragraph, Quote, Words
from runbook.ticket.plain_wrap import hang, pad, width_of, wrap

WIDTH = 80
"""Cells of a line."""

PICTURE = WIDTH - 4
"""Cells of a picture, which stands indented."""

_GAP = 2
_NARROW = 8
"""Cells of a column below which a table is written row by row."""


class Plain:
    """A hand that writes plain text."""

    folds = False

    def top(self, outline: Outline) -> list[str]:
        """Return the title underlined, where the session stands, run and session."""
        title = wrap(outline.title, WIDTH)
        where = [line for one in outline.where for line in hang(one, WIDTH, "- ", "  ")]
        about = [line for one in _text(outline.about).split(" · ") for line in hang(one, WIDTH, "", "  ")]
        return [*title, "=" * max(map(width_of, title)), "", *where, "", *about, ""]

    def heading(self, title: str) -> list[str]:
        """Return the heading of a section."""
        return ["", "", title, "-" * width_of(title), ""]

    def title(self, title: str) -> list[str]:
        """Return what stands above a part."""
        lines = wrap(title, WIDTH)
        return ["", *lines, "." * max(map(width_of, lines)), ""]

    def node(self, node: Node) -> list[str]:
        """Return a node and a blank line."""
        match node:
            case Paragraph(words):
                first, *others = _text(words).splitlines() or [""]
                return [*wrap(first, WIDTH), *(line for one in others for line in hang(one, WIDTH, "  ", "  ")), ""]
            case Items(items, numbered):
                return [*_items(items, numbered=numbered), ""]
            case Code(lines, "bash"):
                return [*(f"    {line}".rstrip() for line in lines), ""]
            case Quote(lines) | Code(lines):
                return [*(line for one in lines for line in hang(one, WIDTH, "    ", "      ")), ""]
            case Note(lines, by):
                return [*(line for one in (*lines, f"-- {by}") for line in hang(one, WIDTH, "> ", "> ")), ""]
            case Address(url):
                return [f"    {url}", ""]

    def grid(self, grid: Grid) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        """Return a table whose cells are wrapped; one of many columns row by row, each cell under its column's name."""
        cells = [[_text(cell) or NONE for cell in row] for row in grid.rows]
        count = len(grid.columns)
        if (WIDTH - _GAP * (count - 1)) // count < _NARROW:
            return (), ["\n".join(_record(grid.columns, row)) for row in cells], ()
        widths = _widths([list(grid.columns), *cells])
        rows = [_row(row, widths) for row in cells]
        apart = [""] if any(len(row) > 1 for row in rows) else []
        rule = (" " * _GAP).join("-" * width for width in widths)
        return [*_row(grid.columns, widths), rule], ["\n".join([*row, *apart]) for row in rows], [""]

    def fold(self, name: str, count: int) -> tuple[Sequence[str], Sequence[str]]:
        """Return the name above rows; there is no fold in plain text."""
        return self.title(f"{name} ({count})"), [""]

    def note(self, text: str) -> list[str]:
        """Return a last paragraph."""
        return ["", *wrap(text, WIDTH)]

    def aside(self, text: str) -> str:
        """Return the ticket's own words."""
        return "\n".join(wrap(text, WIDTH))

    def join(self, lines: Iterable[str]) -> str:
        """Return the whole ticket."""
        single = [part for line in lines for part in line.split("\n")]
        return "\n".join(line.rstrip() for line in one_blank(single)).strip("\n") + "\n"


def _text(words: Words) -> str:
    return "".join(span.text for span in words)


def _items(items: Sequence[Words], *, numbered: bool) -> list[str]:
    lines: list[str] = []
    for number, item in enumerate(items, 1):
        mark = f"{number}. " if numbered else "- "
        lines += hang(" ".join(_text(item).split()), WIDTH, mark, " " * len(mark))
    return lines


def _record(columns: Sequence[str], row: Sequence[str]) -> list[str]:
    return [line for name, cell in zip(columns, row, strict=False)
            for line in hang(f"{name}: {cell}", WIDTH, "", "  ")] + [""]  # fmt: skip


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the widths of columns: what their cells need, the widest narrowed until all fit."""
    needed = [
        max(max(map(width_of, cell.splitlines()), default=1) for cell in column) for column in zip(*rows, strict=True)
    ]
    room = WIDTH - _GAP * (len(needed) - 1)
    widths = [0] * len(needed)
    for place, column in enumerate(sorted(range(len(needed)), key=needed.__getitem__)):
        widths[column] = min(needed[column], room // (len(needed) - place))
        room -= widths[column]
    return widths


def _row(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return a row as lines, each cell wrapped within its column."""
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, wrapped))
    lines = []
    for number in range(height):
        parts = (pad(cell[number] if number < len(cell) else "", width)
                 for cell, width in zip(wrapped, widths, strict=True))  # fmt: skip
        lines.append((" " * _GAP).join(parts).rstrip())
    return lines
