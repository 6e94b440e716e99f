"""What `slime-runbook export --preview` prints: every line that will leave, with the number that drops it."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from runbook.errors import UsageError
from runbook.text import Text, counted, sanitise
from runbook.ticket.preview import Line, marks
from runbook.ticket.units import EVIDENCE, PERSON, TOOL
from runbook.ticket.words import say

ORIGINS = {
    EVIDENCE: Text("evidence", "证据"),
    PERSON: Text("a person", "人"),
    TOOL: Text("the tool", "工具"),
}
HIDDEN_SIGNS = {False: ("‹", "›"), True: ("<", ">")}
"""What stands around a pseudonym, by whether signs are ASCII only."""

MOST_LINES = 1_000_000
"""A number beyond it is a slip of the hand, and a range up to it would never end."""

_LEFT_OUT = Text("LEFT OUT", "已略去")


def numbers(words: str) -> tuple[int, ...]:
    """Return the numbers of "3", "3,7" or "3-9"; raises ArgumentTypeError for anything else."""
    found: list[int] = []
    for part in words.split(","):
        first, dash, last = part.partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            low, high = 0, -1
        if not 1 <= low <= high <= MOST_LINES:
            raise argparse.ArgumentTypeError(f"{words}: give numbers of the preview, as in 3,7-9")
        found.extend(range(low, high + 1))
    return tuple(found)


def picked(lines: Sequence[Line], chosen: Iterable[Sequence[int]]) -> list[Line]:
    """Return the lines of some numbers. Raises UsageError when there is no such line."""
    wanted = sorted({number for some in chosen for number in some})
    unknown = [number for number in wanted if number > len(lines)]
    if unknown:
        said = f"{unknown[0]}: the preview has no such line, it has {counted(len(lines), 'line')}"
        raise UsageError(said, "the numbers are those of --preview")
    return [lines[number - 1] for number in wanted]


def as_json(lines: Iterable[Line], dropped: Collection[str], *, session: str, language: str) -> str:
    """Return the preview as JSON: under `lines` the fields of `Line`, and whether each is dropped."""
    rows = [{**msgspec.to_builtins(_safe(line)), "dropped": line.text in dropped} for line in lines]
    answer = {"schema": 1, "session": session, "language": language, "lines": rows}
    return msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()


def _safe(line: Line) -> Line:
    """Return a line of which nothing harms a terminal that it is printed on."""
    text, places = sanitise(line.text), tuple(map(sanitise, line.places))
    found = line.marks if text == line.text else marks(text)
    return msgspec.structs.replace(line, text=text, place=sanitise(line.place), places=places, marks=found)


def as_text(lines: Iterable[Line], dropped: Collection[str], *, language: str, ascii_only: bool) -> Iterator[str]:
    """Yield the preview as lines: headings, and below them two lines for each text."""
    section = ""
    dot = " - " if ascii_only else " · "
    for line in lines:
        if line.section != section:
            section = line.section
            yield f"\n{say(section, language)}" if line.number > 1 else say(section, language)
        about = [line.place, line.about, ORIGINS[line.origin].say(language)]
        if line.count > 1:
            about.append(Text(f"{line.count} places", f"{line.count} 处").say(language))
        if line.text in dropped:
            about.append(_LEFT_OUT.say(language))
        yield f"{line.number:>5}  {sanitise(dot.join(filter(None, about)))}"
        yield f"       {marked(line, ascii_only=ascii_only)}"


def marked(line: Line, *, ascii_only: bool) -> str:
    """Return the text of a line with signs around its pseudonyms, safe to print."""
    before, after = HIDDEN_SIGNS[ascii_only]
    pieces, at = [], 0
    for mark in line.marks:
        pieces += [line.text[at : mark.start], before, line.text[mark.start : mark.end], after]
        at = mark.end
    return sanitise("".join((*pieces, line.text[at:])))
