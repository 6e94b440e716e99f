"""Nodes of the Atlassian Document Format, version 1: what Jira Cloud takes as the description of an issue.

Text can only ever be text here: there is no markup in a node of text. Invariants: no text node is empty; a mark of code
stands alone; what a node may hold is that of Atlassian's JSON schema (https://go.atlassian.com/adf-json-schema), which
a test holds every ticket against.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runbook.ticket.fit import length
from runbook.ticket.outline import Address, Code, Items, Kind, Node, Note, Paragraph, Quote, Span, Words, words

Adf = dict[str, Any]
"""A node as JSON: type, and attrs, content, text or marks where it has them."""

_LINK = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_MARKS: dict[Kind, list[str]] = {"plain": [], "strong": ["strong"], "code": ["code"], "struck": ["strike"]}


def element(type: str, content: Iterable[Adf], **attrs: Any) -> Adf:
    """Return a node with children. attrs: its attributes."""
    return {"type": type, **({"attrs": attrs} if attrs else {}), "content": list(content)}


def paragraph(spans: Words) -> Adf:
    """Return a paragraph."""
    return element("paragraph", _inline(spans))


def heading(text: str, level: int) -> Adf:
    """Return a heading."""
    return element("heading", _inline(words(" ".join(text.split()))), level=level)


def code_block(lines: Sequence[str], language: str = "") -> Adf:
    """Return lines as they are."""
    text = "\n".join(lines)
    attrs = {"language": language} if language not in ("", "text") else {}
    return element("codeBlock", [{"type": "text", "text": text}] if text else [], **attrs)


def expand(title: str, content: Iterable[Adf]) -> Adf:
    """Return nodes that are folded away under a title."""
    return element("expand", content, title=title)


def table(columns: Sequence[str], rows: Iterable[Adf]) -> Adf:
    """Return a table of finished rows."""
    head = (element("tableHeader", [paragraph(words(column))]) for column in columns)
    return element("table", [element("tableRow", head), *rows])


def table_row(cells: Iterable[Words]) -> Adf:
    """Return a row of a table."""
    return element("tableRow", (element("tableCell", [paragraph(cell)]) for cell in cells))


def bullets(items: Iterable[Words], *, numbered: bool = False) -> Adf:
    """Return a list of at least one item."""
    return element(
        "orderedList" if numbered else "bulletList", (element("listItem", [paragraph(item)]) for item in items)
    )


def adf(node: Node) -> Adf:
    """Return a node of an outline."""
    match node:
        case Paragraph(spans):
            return paragraph(spans)
        case Items(items, numbered):
            return bullets(items, numbered=numbered)
        case Quote(lines):
            return code_block(lines)
        case Code(lines, language):
            return code_block(lines, language)
        case Note(lines, by):
            return element("blockquote", [paragraph(words("\n".join((*lines, f"— {by}"))))])
        case Address(url):
            marks = [{"type": "link", "attrs": {"href": url}} if _LINK.fullmatch(url) else {"type": "code"}]
            return element("paragraph", [{"type": "text", "text": url, "marks": marks}] if url else [])


def _inline(spans: Words) -> Iterator[Adf]:
    for span in spans:
        yield from _texts(span)


def _texts(span: Span) -> Iterator[Adf]:
    """Yield the lines of a span with breaks between."""
    marks = [{"type": mark} for mark in _MARKS[span.kind]]
    for number, line in enumerate(_BREAK.split(span.text)):
        if number:
            yield {"type": "hardBreak"}
        if line:
            yield {"type": "text", "text": line, **({"marks": marks} if marks else {})}


def said(node: Adf) -> str:
    """Return what a node says: its texts, titles and addresses, every block in a line of its own."""
    return "".join(_said(node))


def _said(node: Adf) -> Iterator[str]:
    if node["type"] == "text":
        yield node["text"]
        yield from (f"\n{mark['attrs']['href']}\n" for mark in node.get("marks", ()) if mark["type"] == "link")
        return
    if "title" in node.get("attrs", {}):
        yield f"{node['attrs']['title']}\n"
    for child in node.get("content", ()):
        yield from _said(child)
    yield "\n"


def counted(nodes: Iterable[Adf]) -> int:
    """Return how many characters nodes count: those of their texts, and one for every node around them."""
    return sum(length(said(node)) for node in nodes)
