"""An HTML page being laid out: the pieces that its sections are made of, as elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element

from runbook.picture import Cells
from runbook.ticket.markup import Child, el
from runbook.ticket.plot_svg import figure
from runbook.ticket.telling import Telling
from runbook.ticket.transcript import Do, Place, Proof, Transcript

LONG = 8
"""Rows from which on a table is folded away."""

_ROLES = frozenset({"good", "bad", "warn", "dim", "accent"})
_LINK = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_DIFF = {"+": "add", "-": "del", "@": "hunk"}


class Page(Telling):
    """A transcript and the pieces of HTML that its sections are made of."""

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self._figures = 0

    def section(self, key: str, *parts: Child) -> Element:
        """Return a section under its heading."""
        return el("section", el("h2", self.say(key)), *parts)

    def labelled(self, key: str, *words: Child) -> Element:
        """Return a paragraph that begins with its name."""
        return el("p", el("b", f"{self.say(key)}:"), " ", *words)

    def where(self, place: Place | None) -> Child:
        """Return a place for a table cell."""
        return code(self.path(place)) if place is not None else "–"

    def quote(self, places: Sequence[Place]) -> list[Element]:
        """Return places as grep prints them, in one block."""
        return [el("pre", "\n".join(map(self.quoted, places)), cls="quote")] if places else []

    def table(
        self,
        name: str,
        keys: Sequence[str],
        rows: Iterable[Sequence[Child]],
        *,
        fold: bool = False,
        titled: bool = False,
    ) -> list[Element]:
        """Return a table, folded away under its name when it is long or `fold` says so; nothing without rows.

        titled: with its name above where it is not folded; of two tables of one section, each is.
        """
        return table(name, [self.say(f"col.{key}") for key in keys], list(rows), fold=fold, titled=titled)

    def pictures(self, proofs: Iterable[Proof]) -> list[Element]:
        """Return the plots, grids and proposed edits of some proofs."""
        drawn: list[Element] = []
        for proof in proofs:
            for plot in proof.plots:
                self._figures += 1
                drawn.append(figure(plot, self.of.language, f"plot{self._figures}"))
            drawn += map(cells, proof.grids)
            drawn += (el("figure", el("figcaption", edit.path), diff(edit.lines)) for edit in proof.edits)
        return drawn


def code(text: str) -> Child:
    """Return text as code, "–" for none."""
    return el("code", text) if text.strip() else "–"


def lines(text: str) -> list[Child]:
    """Return text with its line breaks."""
    parts: list[Child] = []
    for line in text.splitlines():
        parts += [el("br"), line] if parts else [line]
    return parts or ["–"]


def table(name: str, head: Sequence[str], rows: Sequence[Sequence[Child]], *, fold: bool = False,
          titled: bool = False) -> list[Element]:  # fmt: skip
    """Return a table of finished cells; see `Page.table`."""
    if not rows:
        return []
    top = el("thead", el("tr", *(el("th", column, attrs={"scope": "col"}) for column in head)))
    body = el("tbody", *(el("tr", *(el("td", cell) for cell in row)) for row in rows))
    whole = el("div", el("table", top, body), cls="wide")
    if fold or len(rows) > LONG:
        return [folded(name, len(rows), whole)]
    return [el("p", el("b", name)), whole] if titled else [whole]


def folded(name: str, count: int, *parts: Element) -> Element:
    """Return parts that are folded away under their name."""
    return el("details", el("summary", f"{name} ({count})"), *parts)


def cells(grid: Cells) -> Element:
    """Return a grid as a small table: a code letter a cell, coloured by its role, and the legend."""
    roles = {code: role for code, _, role in grid.legend if role in _ROLES}
    head = el("tr", el("th"), *(el("th", column, attrs={"scope": "col"}) for column in grid.columns))
    rows = [
        el("tr", el("th", label, attrs={"scope": "row"}), *(el("td", one, cls=roles.get(one, "")) for one in codes))
        for label, codes in zip(grid.rows, grid.cells, strict=False)
    ]
    legend = [el("li", el("b", code, cls=roles.get(code, "")), f" {words}") for code, words, _ in grid.legend]
    drawn = el("div", el("table", el("thead", head), el("tbody", *rows), cls="cells"), cls="wide")
    return el("figure", el("figcaption", grid.title), drawn, el("ul", *legend, cls="legend"))


def diff(changed: Iterable[str]) -> Element:
    """Return the lines of a diff, in the colours of one."""
    return el("pre", *(el("span", f"{line}\n", cls=_DIFF.get(line[:1], "")) for line in changed))


def action(do: Do) -> list[Element]:
    """Return a thing to do: its words, then its command, its change or its link."""
    parts = [el("p", *lines(do.say))] if do.say else []
    parts += [el("pre", do.command)] if do.command else []
    parts += [diff(do.change)] if do.change else []
    if do.link:
        plain = _LINK.fullmatch(do.link)
        link = el("a", do.link, attrs={"href": do.link, "rel": "noopener noreferrer"}) if plain else code(do.link)
        parts.append(el("p", link))
    return parts
