"""Text as Markdown of GitHub or GitLab that means nothing but itself.

What a log, a prompt or a file name holds must not become a heading, a link, an image, a mention, a reference, an emoji,
a quick action or HTML, nor end the fence or the table it stands in. The two hosts read the same CommonMark and differ
in what they make of the words: that is a `Flavour`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_BREAK = "\u200b"
"""A zero-width space, which keeps a mention, a reference or an emoji from being one without changing how it looks."""

_EVERYWHERE = (
    r"(?<=@)(?=[A-Za-z0-9_])"  # mentions, which notify; e-mail addresses
    r"|(?<=[#!%&])(?=[0-9])|(?<=[Gg][Hh]-)(?=[0-9])|(?<=[Gg][Ll]-)(?=[0-9])"  # issues, merge requests, milestones
    r"|(?<=:)(?=(?:[A-Za-z_+-][A-Za-z0-9_+-]{0,60}|100|1234|8ball):)"  # emoji
    r"|(?<=[A-Za-z0-9])(?=://)|(?<=mailto)(?=:)|(?<=xmpp)(?=:)|(?<=www)(?=\.)"  # links
)
_GITLAB = (
    r"|(?<=^/)(?=[A-Za-z])"  # quick actions, which act: /close, /assign
    r"|(?<=[~%])(?=[A-Za-z0-9\"_{])|(?<=\$)(?=[0-9])"  # labels, milestones, placeholders, snippets
    r"|(?<=[#&!])(?=[\"A-Za-z0-9])|(?<=\^)(?=alert)|(?<=\*)(?=iteration)"
    r"|(?<=\[)(?=\[|[A-Za-z_]+[:\]])"  # [epic:1], [contact:x], [[_TOC_]], [TOC]
    r"|(?<=[{\[])(?=[+-])|(?<=[+-])(?=[}\]])"  # inline differences
    r"|(?<=::)(?=include)"
)
_COMMIT = re.compile(r"(?<![0-9A-Za-z_])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}(?![0-9A-Za-z_])")
"""What reads as the id of a commit, which has seven digits or more; one without a letter is taken for a number."""
_SIX = re.compile(r".{6}(?=.)")


@dataclass(frozen=True)
class Flavour:
    """What a host makes of words. breaks: where a word is broken. indent: before every line of a fence.

    GitLab looks for quick actions line by line, with patterns of its own for what is code (gitlab-org/gitlab,
    lib/gitlab/quick_actions/extractor.rb), which a fence inside of a longer fence deceives. With one blank before
    every line no line begins with a slash; CommonMark takes the blank away again.
    """

    breaks: re.Pattern[str]
    indent: str = ""


GITHUB = Flavour(re.compile(_EVERYWHERE, re.IGNORECASE))
GITLAB = Flavour(re.compile(_EVERYWHERE + _GITLAB, re.IGNORECASE | re.MULTILINE), " ")

_SPECIAL = re.compile(r"[\\`*\[\]~$|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINE_START = re.compile(r"^(\s*)(?:([#>+=-])|(\d{1,9})([.)])(?=\s|$))", re.MULTILINE)
_LINE_BREAK = re.compile(r"(?<=[^\n])\n(?=[^\n])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", _BREAK: "&#8203;"}
_ENTITY = re.compile(f"[&<>{_BREAK}]")
_BACKTICKS = re.compile(r"`+")
_LINK = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_BLANKS = re.compile(r"\s+")


def plain(text: str, flavour: Flavour = GITHUB) -> str:
    """Return text that reads as itself in a paragraph, a heading or a list item; its lines stay lines."""
    lines = text.splitlines()
    if len(lines) > 1:
        text = "\n".join([lines[0].rstrip(), *(line.strip() for line in lines[1:])]).strip("\n")
    text = _SPECIAL.sub(lambda match: f"\\{match[0]}", _broken(text, flavour))
    text = _LINE_START.sub(_escape_start, _ENTITY.sub(lambda match: _ENTITIES[match[0]], text))
    return _LINE_BREAK.sub("\\\\\n", text)


def _broken(text: str, flavour: Flavour) -> str:
    """Return text in which no word is a mention, a reference, an emoji, a link or a command."""
    return _COMMIT.sub(lambda match: _SIX.sub(rf"\g<0>{_BREAK}", match[0]), flavour.breaks.sub(_BREAK, text))


def _escape_start(match: re.Match[str]) -> str:
    return match[1] + (f"\\{match[2]}" if match[2] else f"{match[3]}\\{match[4]}")


def cell(text: str, flavour: Flavour = GITHUB) -> str:
    """Return text for a table cell."""
    return plain(_BLANKS.sub(" ", text), flavour)


def summary(text: str, flavour: Flavour = GITHUB) -> str:
    """Return text for an HTML element, in which a backslash would be one."""
    return html.escape(_broken(" ".join(text.split()), flavour)).replace(_BREAK, "&#8203;")


def code(text: str, *, in_table: bool = False) -> str:
    """Return text as a code span, in which nothing means anything; "–" for no text."""
    text = " ".join(text.splitlines())
    if not text.strip():
        return "–"
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or text[0] == " " == text[-1] else ""
    span = f"{fence}{pad}{text}{pad}{fence}"
    return span.replace("|", "\\|") if in_table else span


def fence(lines: Iterable[str], language: str = "text", flavour: Flavour = GITHUB) -> str:
    """Return a code block whose fence is longer than any in the lines."""
    text = "\n".join(lines)
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    return "\n".join(f"{flavour.indent}{line}" for line in (f"{marks}{language}", *text.splitlines(), marks))


def link(url: str) -> str:
    """Return a clickable address when it is an ordinary web address, else a code span."""
    return f"<{url}>" if _LINK.fullmatch(url) else code(url)


def row(cells: Iterable[str]) -> str:
    """Return a table row of finished cells."""
    return f"| {' | '.join(cells)} |"


def table_head(columns: Sequence[str]) -> tuple[str, str]:
    """Return the first two lines of a table."""
    return row(columns), row("---" for _ in columns)
