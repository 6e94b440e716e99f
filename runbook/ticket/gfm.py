"""Text as GitHub-flavoured Markdown that means nothing but itself.

What a log, a prompt or a file name holds must not become a heading, a link, an image, a mention, an issue reference,
an emoji or HTML, nor end the fence or the table it stands in. GitLab reads the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

CELL_LIMIT = 400
"""Characters of one table cell: a whole excerpt, and no more."""
TEXT_LIMIT = 4000
"""Characters of one paragraph or code block."""

_BREAK = "&#8203;"
"""A zero-width space, which keeps a mention, a reference or an emoji from being one without changing how it looks."""

_SPECIAL = re.compile(r"[\\`*\[\]~$|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_MENTION = re.compile(r"@(?=[A-Za-z0-9_])")
_REFERENCE = re.compile(r"(?:(?<=#)|(?<=[Gg][Hh]-))(?=[0-9])|(?<=[!%&])(?=[0-9])")
_EMOJI = re.compile(r":(?=(?:[A-Za-z_+-][A-Za-z0-9_+-]{0,60}|100|1234|8ball):)")
_LINE_START = re.compile(r"^(\s*)(?:([#>+=-])|(\d{1,9})([.)])(?=\s|$))", re.MULTILINE)
_AUTOLINK = re.compile(r"\b(https?|ftp|mailto|xmpp)(?=:)|\bwww(?=\.)", re.IGNORECASE)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_BACKTICKS = re.compile(r"`+")
_LINK = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")


def clip(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return at most `limit` characters of a text, the last one an ellipsis when it was longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plain(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return text that reads as itself in a paragraph, a heading or a list item; its lines stay lines."""
    text = "\n".join(line.strip() for line in clip(text, limit).splitlines())
    text = re.sub("[&<>]", lambda match: _ENTITIES[match[0]], _SPECIAL.sub(r"\\\g<0>", text))
    text = _REFERENCE.sub(_BREAK, _LINE_START.sub(_escape_start, text))
    text = _EMOJI.sub(f":{_BREAK}", _MENTION.sub(f"@{_BREAK}", text))
    return _AUTOLINK.sub(rf"\g<0>{_BREAK}", text)


def _escape_start(match: re.Match[str]) -> str:
    return match[1] + (f"\\{match[2]}" if match[2] else f"{match[3]}\\{match[4]}")


def cell(text: str) -> str:
    """Return text for a table cell."""
    return plain(" ".join(text.split()), CELL_LIMIT) or "–"


def code(text: str, *, in_table: bool = False) -> str:
    """Return text as a code span, in which nothing means anything; "–" for no text."""
    text = clip(" ".join(text.splitlines()), CELL_LIMIT)
    if not text.strip():
        return "–"
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or text[0] == " " == text[-1] else ""
    span = f"{fence}{pad}{text}{pad}{fence}"
    return span.replace("|", "\\|") if in_table else span


def fence(text: str, language: str = "text") -> list[str]:
    """Return the lines of a code block whose fence is longer than any in the text."""
    text = clip(text)
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    return [f"{marks}{language}", *text.splitlines(), marks]


def link(url: str) -> str:
    """Return a clickable address when it is an ordinary web address, else a code span."""
    return f"<{url}>" if _LINK.fullmatch(url) else code(url)


def row(cells: Iterable[str]) -> str:
    """Return a table row of finished cells."""
    return f"| {' | '.join(cells)} |"


def table_head(columns: Sequence[str]) -> tuple[str, str]:
    """Return the first two lines of a table."""
    return row(columns), row("---" for _ in columns)
