"""How the parts of a ticket are written in Markdown: tables, quotes and folded parts of GitHub and GitLab."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runbook.ticket import gfm
from runbook.ticket.layout import by_span, one_blank
from runbook.ticket.outline import (
    NONE,
    Address,
    Code,
    Grid,
    Items,
    Node,
    Note,
    Outline,
    Paragraph,
    Quote,
    Span,
    Words,
    words,
)


class Markdown:
    """A hand that writes Markdown."""

    folds = True

    def __init__(self, flavour: gfm.Flavour) -> None:
        self.flavour = flavour

    def top(self, outline: Outline) -> list[str]:
        """Return title, where the session stands as a list, run and session."""
        where = [f"- {self.one_line(words(line))}" for line in outline.where]
        return [f"# {self.one_line(words(outline.title))}", "", *where, "", self.words(outline.about), ""]

    def heading(self, title: str) -> list[str]:
        """Return the heading of a section."""
        return ["", f"## {title}", ""]

    def title(self, title: str) -> list[str]:
        """Return what stands above a part."""
        return ["", f"**{self.one_line(words(title))}**", ""]

    def node(self, node: Node) -> list[str]:
        """Return a node and a blank line."""
        match node:
            case Paragraph(words):
                return [self.words(words).strip(), ""]
            case Items(items, numbered):
                marks = (f"{number}." if numbered else "-" for number in range(1, len(items) + 1))
                return [*(f"{mark} {self.one_line(item)}" for mark, item in zip(marks, items, strict=True)), ""]
            case Quote(lines):
                return [gfm.fence(lines, "text", self.flavour), ""]
            case Code(lines, language):
                return [gfm.fence(lines, language, self.flavour), ""]
            case Note(lines, by):
                return [*(f"> {line}" for line in self.plain("\n".join((*lines, f"— {by}"))).split("\n")), ""]
            case Address(url):
                return [gfm.link(url), ""]

    def grid(self, grid: Grid) -> tuple[Sequence[str], Iterable[str], Sequence[str]]:
        """Return a table."""
        head = gfm.table_head([self.cell_text(column) for column in grid.columns])
        return head, (gfm.row(map(self.cell, row)) for row in grid.rows), ("",)

    def fold(self, name: str, count: int) -> tuple[Sequence[str], Sequence[str]]:
        """Return the tags of what opens on a click."""
        opening = f"<details><summary>{gfm.summary(name, self.flavour)} ({count})</summary>"
        return ("", opening, ""), ("", "</details>", "")

    def note(self, text: str) -> list[str]:
        """Return a last paragraph under a rule."""
        return ["", "---", "", self.plain(text)]

    def aside(self, text: str) -> str:
        """Return the ticket's own words."""
        return self.plain(text)

    def join(self, lines: Iterable[str]) -> str:
        """Return the whole ticket."""
        return "\n".join(one_blank(lines)).strip("\n") + "\n"

    def plain(self, text: str) -> str:
        """Return text that means nothing but itself."""
        return gfm.plain(text, self.flavour)

    def words(self, words: Words) -> str:
        """Return words of a paragraph."""
        return by_span(words, self._span)

    def one_line(self, words: Words) -> str:
        """Return words in one line."""
        return by_span(
            tuple(Span(" ".join(f".{text}.".split())[1:-1], kind) for text, kind in words), self._span
        ).strip()

    def cell(self, words: Words) -> str:
        """Return words of a cell."""
        return by_span(words, self._cell_span).strip() or NONE

    def cell_text(self, text: str) -> str:
        """Return text of a cell."""
        return gfm.cell(text, self.flavour).strip() or NONE

    def _span(self, text: str, kind: str) -> str:
        return gfm.code(text) if kind == "code" else _marked(self.plain(text), kind)

    def _cell_span(self, text: str, kind: str) -> str:
        if text == "\n":
            return "<br>"
        if kind == "code":
            return gfm.code(text, in_table=True)
        return _marked(gfm.cell(text, self.flavour), kind)


def _marked(text: str, kind: str) -> str:
    mark = {"strong": "**", "struck": "~~"}.get(kind, "")
    return f"{mark}{text.strip()}{mark}" if mark and text.strip() else text
