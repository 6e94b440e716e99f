"""A stretch of text that must not leave, as the finders of the redaction report it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

SECRET, MAIL, USER, HOST, ADDRESS, CHOSEN = "secret", "mail", "user", "host", "ip", "hidden"
KINDS = (SECRET, MAIL, ADDRESS, HOST, USER, CHOSEN)
"""Every kind, the one that wins where two overlap first. A kind is also the first part of its pseudonyms: user-1."""


class Span(NamedTuple):
    """text[start:end] is of `kind`. everywhere: its text is to be hidden wherever else it stands as a word."""

    start: int
    end: int
    kind: str
    everywhere: bool = False


Finder = Callable[[str], Iterator[Span]]
