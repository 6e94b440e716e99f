"""A stretch of text that must not leave, as the finders of the redaction report it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

SECRET, MAIL, USER, HOST, ADDRESS, PHONE, CHOSEN = "secret", "mail", "user", "host", "ip", "phone", "hidden"
KINDS = (SECRET, MAIL, PHONE, ADDRESS, HOST, USER, CHOSEN)
"""Every kind, the one that wins where two overlap first. A kind is also the first part of its pseudonyms: user-1."""

WORD_START = r"(?:(?<![A-Za-z0-9])|(?<=%2[Ff])|(?<=%3[AaDd])|(?<=%[24]0))"
"""Pattern: no letter or digit stands before, or one that is the end of an escape such as %2F."""

PSEUDONYM = re.compile(
    WORD_START + r"(?!ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?![A-Za-z0-9_-]))"
    rf"(?:{'|'.join(KINDS)})-[0-9]{{1,6}}(?![A-Za-z0-9])"
)
"""What the redaction itself writes; it is never redacted again."""


class Gate:
    """A pattern that is tried only where one of the words stands without which it cannot match.

    A letter is an ASCII one: between Chinese and a name no blank need stand. words: in lower case; most lines hold
    none of them, and to look for a word is far cheaper than to try a pattern.
    """

    def __init__(self, pattern: str, *words: str) -> None:
        self.pattern = re.compile(pattern, re.ASCII)
        self.words = words

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Return the matches of the pattern in `text`."""
        lower = text.lower()
        for word in self.words:
            if word in lower:
                return self.pattern.finditer(text)
        return iter(())


class Span(NamedTuple):
    """text[start:end] is of `kind`. everywhere: its text is to be hidden wherever else it stands as a word."""

    start: int
    end: int
    kind: str
    everywhere: bool = False


Finder = Callable[[str], Iterator[Span]]
