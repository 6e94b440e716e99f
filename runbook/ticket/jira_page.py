"""How the parts of a ticket are written in Jira wiki markup; there is no fold in it, so a folded part has a heading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runbook.ticket import jira_markup as jira
from runbook.ticket.layout import by_span, one_blank
from runbook.ticket.outline import NONE, Address, Code, Grid, Items, Node, Note, Outline, Paragraph, Quote, Words, words


class Jira:
    """A hand that writes Jira wiki markup."""

    folds = False

    def top(self, outline: Outline) -> list[str]:
        """Return title, where the session stands as a list, run and session."""
        where = [f"* {_line(words(line))}" for line in outline.where]
        return [f"h1. {_line(words(outline.title))}", "", *where, "", by_span(outline.about, _span), ""]

    def heading(self, title: str) -> list[str]:
        """Return the heading of a section."""
        return ["", f"h2. {title}", ""]

    def title(self, title: str) -> list[str]:
        """Return what stands above a part."""
        return ["", f"h4. {_line(words(title))}", ""]

    def node(self, node: Node) -> list[str]:
        """Return a node and a blank line."""
        match node:
            case Paragraph(spans):
                return [by_span(spans, _span).strip(), ""]
            case Items(items, numbered):
                return [*(f"{'#' if numbered else '*'} {_line(item)}" for item in items), ""]
            case Quote(lines) | Code(lines):
                return [jira.block(lines), ""]
            case Note(lines, by):
                return ["{quote}", *map(jira.plain, lines), f"— {jira.plain(by)}", "{quote}", ""]
            case Address(url):
                return [jira.link(url), ""]

    def grid(self, grid: Grid) -> tuple[Sequence[str], Iterable[str], Sequence[str]]:
        """Return a table."""
        head = f"||{'||'.join(_cell(words(column)) for column in grid.columns)}||"
        return [head], (f"|{'|'.join(map(_cell, row))}|" for row in grid.rows), [""]

    def fold(self, name: str, count: int) -> tuple[Sequence[str], Sequence[str]]:
        """Return the name as a heading."""
        return self.title(f"{name} ({count})"), [""]

    def note(self, text: str) -> list[str]:
        """Return a last paragraph under a rule."""
        return ["", "----", jira.plain(text)]

    def aside(self, text: str) -> str:
        """Return the ticket's own words."""
        return jira.plain(text)

    def join(self, lines: Iterable[str]) -> str:
        """Return the whole ticket."""
        return "\n".join(one_blank(lines)).strip("\n") + "\n"


def _line(spans: Words) -> str:
    """Return words in one line."""
    return " ".join(by_span(spans, _span).split())


def _cell(spans: Words) -> str:
    """Return words of a cell, whose own line breaks are forced ones; never an empty one, which would be a heading."""
    return by_span(spans, _cell_span).strip() or NONE


def _cell_span(text: str, kind: str) -> str:
    if text == "\n":
        return " \\\\ "
    return _span(" ".join(f".{text}.".split())[1:-1], kind)


def _span(text: str, kind: str) -> str:
    if kind == "plain" or not text.strip():
        return jira.plain(text)
    return {"strong": jira.strong, "struck": jira.struck, "code": jira.code}[kind](text)
