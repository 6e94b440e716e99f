"""Reads a finished ticket back as its receiver does: the headings of its sections, and what it says.

Markdown is read with a CommonMark parser, HTML with the standard library's, ADF as JSON; Jira markup and plain text by
what a heading looks like there.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from markdown_it import MarkdownIt

from runbook.ticket.renderers import renderer

LAYOUTS = ("adf", "gitlab", "html", "jira", "markdown", "text")
_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_NOFORMAT = re.compile(r"\{noformat\}\n(.*?)\n\{noformat\}", re.DOTALL)


def headings(format: str, content: bytes) -> list[str]:
    """Return the headings of the sections, in order."""
    text = content.decode()
    if format in ("markdown", "gitlab"):
        tokens = _PARSER.parse(text)
        return [tokens[i + 1].content for i, one in enumerate(tokens) if one.type == "heading_open" and one.tag == "h2"]
    if format == "html":
        return re.findall(r"<h2>(.*?)</h2>", text)
    if format == "jira":
        return re.findall(r"^h2\. (.*)$", _NOFORMAT.sub("", text), re.MULTILINE)
    if format == "adf":
        nodes = (one for one in json.loads(text)["content"] if one["type"] == "heading" and one["attrs"]["level"] == 2)
        return [node["content"][0]["text"] for node in nodes]
    return re.findall(r"\n\n(.+)\n-+\n(?=\n)", text)


def says(format: str, content: bytes) -> str:
    """Return what a ticket says, without blanks and without characters of no width."""
    text = content.decode()
    if format in ("markdown", "gitlab"):
        text = "".join(_of_markdown(text))
    elif format == "html":
        reader = _Words()
        reader.feed(text)
        text = "".join(reader.words)
    elif format == "jira":
        text = html.unescape(_NOFORMAT.sub(lambda m: html.escape(m[1]), text.replace(" \\\\ ", " ")))
    elif format == "adf":
        text = "".join(text for _, text in renderer("adf").read(content))
    else:
        text = re.sub(r"^> ", "", text, flags=re.MULTILINE)
    return re.sub("[\\s\u200b]", "", text)


def squeezed(text: str) -> str:
    """Return text as `says` returns it."""
    return re.sub("[\\s\u200b]", "", text)


def _of_markdown(text: str) -> Iterator[str]:
    def inner(tokens: Any) -> Iterator[str]:
        for token in tokens:
            if token.children:
                yield from inner(token.children)
            elif token.type in ("text", "text_special", "code_inline", "fence", "code_block"):
                yield token.content
            elif token.type in ("html_inline", "html_block"):
                yield html.unescape(re.sub(r"<[^<>]*>", "", token.content))

    return inner(_PARSER.parse(text))


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []

    def handle_data(self, data: str) -> None:
        """Keep the words."""
        self.words.append(data)
