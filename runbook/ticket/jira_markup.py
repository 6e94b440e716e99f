"""Text as Jira wiki markup that means nothing but itself, for Jira Server and Data Center.

The rules are those of Atlassian's wiki renderer (com.atlassian.renderer.v2.components): a phrase such as *bold* begins
at a sign that follows no letter or digit; an entity such as &#42; is kept as it is and is never markup, where a
backslash would be read differently before the bar of a table, a brace or another backslash. What cannot be prevented:
Jira links the key of an existing issue (ABC-123) also where it is broken here, in the activity stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PART = re.compile(
    r"(?:(?<![A-Za-z0-9])[A-Z][A-Z0-9_]+-(?=[0-9]))"  # the key of an issue
    r"|(?:^[ \t]*(?:[-#]|h[1-6](?=\.)|bq(?=\.)))"  # a list, a rule, a heading, a quotation
    r"|[\\{}\[\]|*^~+&]"
    r"|(?<![^\W_])[_-](?=\S)"  # emphasis, deletion, dashes
    r"|!(?=\S)|\?(?=\?)"  # images, citations
    r"|(?<=:)[()PpD]|(?<=[:;\\{}\[\]|*^~+&!?@_.()-])\)|(?<=:[PpD])\)"  # emoticons; an entity ends in half of one
    r"|\((?=(?:[ynixcr/!+?-]|on|off|tm|\*[rgby]?|flag|flagoff)\))"  # more of them
    r"|:(?=//)|(?<=mailto):|(?<=file):|(?<=www)\.|(?<=\w)@(?=\w)",  # links, which Jira makes by itself
    re.MULTILINE,
)
_LINK = re.compile(r"https?://[A-Za-z0-9._~:/?#@&=%+,;-]+")
_MACRO = re.compile(r"\{(?=\s*(?:noformat|code))", re.IGNORECASE)

_NOTHING = "\u200b"
"""A zero-width space: in a block where no entity is read it keeps an end of the block from being one."""


def plain(text: str) -> str:
    """Return text that reads as itself in a paragraph, a heading, a list item or a cell; its lines stay lines."""
    lines = text.splitlines()
    if len(lines) > 1:
        text = "\n".join([lines[0].rstrip(), *(line.strip() for line in lines[1:])])
    return _PART.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return f"{match[0][:-1]}{_entity(match[0][-1])}"


def _entity(sign: str) -> str:
    return "&amp;" if sign == "&" else f"&#{ord(sign)};"


def strong(text: str) -> str:
    """Return bold text of one line; what is in it does not end it."""
    return f"*{plain(' '.join(text.split()))}*"


def struck(text: str) -> str:
    """Return text that is struck out."""
    return f"-{plain(' '.join(text.split())).replace('-', '&#45;')}-"


def code(text: str) -> str:
    """Return monospaced text of one line."""
    return f"{{{{{plain(' '.join(text.split()))}}}}}"


def block(lines: Iterable[str]) -> str:
    """Return lines as they are; none of them ends the block."""
    return "\n".join(("{noformat}", *(_MACRO.sub(f"{{{_NOTHING}", line) for line in lines), "{noformat}"))


def link(url: str) -> str:
    """Return a link when it is an ordinary web address, else monospaced text."""
    return f"[{url}]" if _LINK.fullmatch(url) else code(url)
