"""The outline of a ticket: its sections as paragraphs, quotes and tables, before any markup.

It stands between the transcript and the layouts, so that each layout says the same in the same order and only knows how
its own markup is written. Invariants: nothing in it is markup; a text is one `Span` and means nothing but itself; rows
stand from the most to the least telling, so that a layout with a limit drops them from the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["plain", "strong", "code", "struck"]


class Span(NamedTuple):
    """Text and how it stands out. A plain span may hold line breaks."""

    text: str
    kind: Kind = "plain"


Words = tuple[Span, ...]
NONE = "–"
"""What stands where there is nothing."""


def plain(text: str) -> Span:
    """Return text as it is."""
    return Span(text)


def strong(text: str) -> Span:
    """Return text that stands out, `NONE` for no text."""
    return Span(text, "strong") if text.strip() else Span(NONE)


def code(text: str) -> Span:
    """Return text that is read letter by letter, `NONE` for no text."""
    return Span(text, "code") if text.strip() else Span(NONE)


def words(*parts: str | Span) -> Words:
    """Return spans, strings as plain ones, without the empty ones."""
    spans = (part if isinstance(part, Span) else Span(part) for part in parts)
    return tuple(span for span in spans if span.text)


def listed(names: Iterable[str]) -> Words:
    """Return names as code, with commas between."""
    spans: list[str | Span] = []
    for name in names:
        spans += [", ", code(name)] if spans else [code(name)]
    return words(*spans)


@dataclass(frozen=True)
class Paragraph:
    """Words."""

    words: Words


@dataclass(frozen=True)
class Items:
    """A list, numbered from 1 or with bullets."""

    items: tuple[Words, ...]
    numbered: bool = False


@dataclass(frozen=True)
class Quote:
    """Places as grep prints them: path, line and the very text."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Lines that are copied or read as they are. language: "bash", "diff" or "text"."""

    lines: tuple[str, ...]
    language: str = "text"


@dataclass(frozen=True)
class Note:
    """What a person wrote. by: who and when."""

    lines: tuple[str, ...]
    by: str


@dataclass(frozen=True)
class Address:
    """A link of a flow."""

    url: str


Node = Paragraph | Items | Quote | Code | Note | Address


@dataclass(frozen=True, kw_only=True)
class Part:
    """Rows that belong together.

    name: for the line that tells what was left out, and of the fold. title: that stands above, "" for none. order: 0 is
    never shortened; of the others the highest goes first. floor: rows that stay. fold: few readers want it. quiet: no
    line tells that all of it is gone.
    """

    name: str = ""
    title: str = ""
    order: int = 0
    floor: int = 0
    fold: bool = False
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class Entries(Part):
    """Rows of paragraphs, quotes and pictures."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Grid(Part):
    """A table. Each row has as many cells as there are columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]


@dataclass(frozen=True)
class Section:
    """A section of the ticket. key: of its title in the catalogue of words."""

    key: str
    title: str
    parts: tuple[Entries | Grid, ...]


@dataclass(frozen=True)
class Outline:
    """A ticket. where: where the session stands, in lines. about: the run and the session."""

    title: str
    where: tuple[str, ...]
    about: Words
    sections: tuple[Section, ...]
