"""The pages of browsers as lines of text: the same rows, plots and marked text as on the screen.

Invariants: every row of the filter is written, in its order; a mark below a line says what colour would.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text as RichText

from runbook.browse import Column, Page, Reading, Sheet, heading, say_cell
from runbook.browse_layout import lay_out, marks
from runbook.browse_rows import ROLE_SIGNS, Filter, chosen, over
from runbook.plain import ROLES, Plain
from runbook.text import sanitise

WORDS, PIPE_WORDS = 28, 120
"""Cells of a column of words, on a terminal and where stdout is none."""

WIDTH = 100
"""Cells of a line of a reading at most."""

JUMPS = 40
"""Jumps that are listed; the rest is counted, the JSON has them all."""


def write_page(plain: Plain, page: Page, filter: Filter, order: str, found: frozenset[str] | None) -> None:
    """Write a page; filter, order and found are for a sheet, see `browse_rows.chosen`."""
    if isinstance(page, Sheet):
        _sheet(plain, page, chosen(page, filter, order, found))
    else:
        _reading(plain, page)


def _sheet(plain: Plain, sheet: Sheet, places: list[int]) -> None:
    language = plain.language
    every = len(sheet.lines)
    count = f"{len(places):,}" if len(places) == every else f"{len(places):,} / {every:,}"
    plain.line(f"{sheet.title.say(language)}  ({count})", style="bold")
    for note in sheet.notes:
        plain.line(note.say(language), style=ROLES["warn"])
    if sheet.done < 1:
        plain.line(plain.say(f"only {sheet.done:.0%} could be read", f"只读取了 {sheet.done:.0%}"), style=ROLES["warn"])
    plotted = next((plot for column in sheet.columns if (plot := over(sheet, column)) is not None), None)
    if plotted is not None:
        plain.plot(plotted, 0)
    most = WORDS if plain.console.is_terminal else PIPE_WORDS
    widths = [
        max(cell_len(heading(column, language)), column.width if column.number else min(column.width, most))
        for column in sheet.columns
    ]
    head = [
        _padded(column, heading(column, language), width) for column, width in zip(sheet.columns, widths, strict=True)
    ]
    _write(plain, RichText(("  " + "  ".join(head)).rstrip(), "dim"))
    for place in places:
        line = sheet.lines[place]
        sign = ROLE_SIGNS[line.role][plain.ascii] if line.role in ROLE_SIGNS else " "
        text = RichText(f"{sign} ", ROLES.get(line.role, ""))
        cells = []
        for column, cell, width in zip(sheet.columns, line.cells, widths, strict=True):
            words = plain.cell(say_cell(column, cell, language), width)
            cells.append(_padded(column, words, width))
        text.append("  ".join(cells).rstrip())
        _write(plain, text)


def _padded(column: Column, words: str, width: int) -> str:
    pad = " " * max(0, width - cell_len(words))
    return pad + words if column.number else words + pad


def _write(plain: Plain, text: RichText) -> None:
    plain.console.print(text, soft_wrap=not plain.console.is_terminal, no_wrap=True, overflow="ellipsis")


def _reading(plain: Plain, reading: Reading) -> None:
    language = plain.language
    plain.line(reading.title.say(language), style="bold")
    for note in reading.notes:
        plain.line(note.say(language), style=ROLES["warn"])
    for name, words in reading.facts:
        said = words if isinstance(words, str) else words.say(language)
        plain.line(f"{name.say(language)}: {said}", 2)
    if reading.levels:
        _jumps(plain, reading)
    if reading.parts > 1:
        plain.line(
            plain.say(f"part {reading.part + 1} of {reading.parts}", f"第 {reading.part + 1} / {reading.parts} 部分")
        )
    width = max(min(plain.console.width - 10, WIDTH), 20)
    for number, passage in enumerate(reading.passages):
        plain.heading(passage.title.say(language))
        for laid in lay_out(reading, number, width, ascii_only=plain.ascii):
            edge = f"{passage.first + laid.first:>6,}  " if passage.values else " " * 8
            plain.console.print(RichText(edge, "dim") + RichText(laid.text), soft_wrap=True)
            below = marks(reading, laid, ascii_only=plain.ascii)
            if below:
                plain.console.print(RichText(" " * 8 + below, ROLES["bad"]), soft_wrap=True)


def _jumps(plain: Plain, reading: Reading) -> None:
    """Write where the values are far apart, the first ones with their text."""
    level = reading.levels[-1]
    count = len(reading.jumps) + reading.hidden
    least = f"{level.least:g} {reading.unit}"
    plain.line(
        plain.say(
            f"{count:,} {'place differs' if count == 1 else 'places differ'} by {least} or more",
            f"{count:,} 处相差不小于 {least}",
        ),
        style=ROLES["bad"] if count else ROLES["good"],
    )
    for jump in reading.jumps[:JUMPS]:
        words = sanitise(jump.words.replace("\n", "\\n"), 40)
        value = "" if jump.value is None else f"{jump.value:+.3f}"
        plain.line(f"{jump.number:,}  {value}  {words!r}", 2)
    if count > JUMPS:
        plain.line(plain.say(f"and {count - JUMPS:,} more", f"另有 {count - JUMPS:,} 处"), 2, "dim")
