"""A stretch of text that must not leave, as the finders of the redaction report it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

SECRET, MAIL, USER, HOST, ADDRESS, CHOSEN = "secret", "mail", "user", "host", "ip", "hidden"
KINDS = (SECRET, MAIL, ADDRESS, HOST, USER, CHOSEN)
"""Every kind, the one that wins where two overlap first. A kind is also the first part of its pseudonyms: user-1."""

WORD_START = r"(?:(?<![A-Za-z0-9])|(?<=%2[Ff])|(?<=%3[AaDd])|(?<=%[24]0))"
"""Pattern: no letter or digit stands before, or one that is the end of an escape such as %2F."""


class Span(NamedTuple):
    """text[start:end] is of `kind`. everywhere: its text is to be hidden wherever else it stands as a word."""

    start: int
    end: int
    kind: str
    everywhere: bool = False


Finder = Callable[[str], Iterator[Span]]
