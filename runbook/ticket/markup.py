"""HTML and SVG as elements, so that text can only ever be text.

Nothing here joins strings into markup: the standard library's serialiser escapes every text and attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, tostring

Child = Element | str


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_BLOCKS = _set(
    """
    html head body main header section h1 h2 h3 p ul ol li table thead tbody tr pre details summary
    figure figcaption blockquote svg path line circle text title desc style meta br
    """
)
"""Elements after which a line may end without changing how the page reads."""

_OURS = _set(
    """
    class charset content http-equiv name lang id role scope aria-labelledby viewbox d x y x1 x2 y1 y2
    cx cy r text-anchor rel
    """
)
"""Attributes whose values are ours or numbers, never words of evidence."""


def el(tag: str, *children: Child, cls: str = "", attrs: Mapping[str, str] | None = None) -> Element:
    """Return an element with its children in order; cls: its class attribute."""
    element = Element(tag, {**({"class": cls} if cls else {}), **(attrs or {})})
    last: Element | None = None
    for child in children:
        if isinstance(child, str):
            if last is None:
                element.text = (element.text or "") + child
            else:
                last.tail = (last.tail or "") + child
        else:
            element.append(child)
            last = child
    if tag in _BLOCKS:
        element.tail = "\n"
    return element


def page(root: Element) -> bytes:
    """Return a whole document."""
    return b"<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html").encode("utf-8", "replace")


def readable(content: bytes) -> tuple[tuple[str, str], ...]:
    """Return what a document says, for the scan: its text, and the values of attributes that can hold words.

    Names of elements and the style sheet are left out: a person may be called "max" or "main".
    """
    reader = _Reader()
    reader.feed(content.decode("utf-8"))
    reader.close()
    return (("", "".join(reader.said)),)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.said: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._style = tag == "style"
        for name, value in attrs:
            if name not in _OURS and value:
                self.said.append(f"\n{value}\n")
        if tag == "br":
            self.said.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._style = False
        self.said.append("\n" if tag in _BLOCKS else "\t" if tag in ("td", "th") else "")

    def handle_data(self, data: str) -> None:
        if not self._style:
            self.said.append(data)

    def handle_comment(self, data: str) -> None:
        self.said.append(f"\n{data}\n")
