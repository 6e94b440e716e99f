"""Finds where values that are known to be private stand, in many texts at once.

All texts are searched as one, so that the cost is that of a plain search a value, however many texts there are.
Invariant: a place found here is within one text, and is the value itself, not a part of a longer word.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from urllib.parse import quote

from runbook.text import CUT
from runbook.ticket.span import CHOSEN, HOST, MAIL, SECRET, WORD_START, Span

_BETWEEN = "\0"
"""Stands in no text that was sanitised."""
_LEAST_OF_CUT = 4


def standing(texts: Sequence[str], words: Mapping[str, str]) -> dict[str, list[Span]]:
    """Return text to the places in it where one of the words (value to kind) stands for itself."""
    found: dict[str, list[Span]] = {}
    joined = _BETWEEN.join(texts)
    lower = lowered(joined)
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    for word, kind in words.items():
        loose = kind in (HOST, MAIL, CHOSEN)
        for start, end in _places(joined, lower if loose else joined, lowered(word) if loose else word, word, kind):
            number = bisect_right(starts, start) - 1
            text, offset = texts[number], starts[number]
            if end <= offset + len(text):
                found.setdefault(text, []).append(Span(start - offset, end - offset, kind))
    for text in texts:
        if text.endswith(CUT):
            found.setdefault(text, []).extend(_cut(text, words))
    return found


def _places(joined: str, within: str, sought: str, word: str, kind: str) -> Iterator[tuple[int, int]]:
    at = within.find(sought)
    while at >= 0:
        match = word_pattern(word, kind).match(joined, at)
        if match is not None:
            yield match.span()
        at = within.find(sought, at + len(sought))


def _cut(text: str, words: Mapping[str, str]) -> Iterator[Span]:
    """Yield the beginning of a known secret at the end of a text that was shortened inside it."""
    end = len(text) - len(CUT)
    tail = text[max(0, end - 256) : end]
    for word, kind in words.items():
        at = tail.rfind(word[:_LEAST_OF_CUT]) if kind == SECRET and len(word) > _LEAST_OF_CUT else -1
        if at >= 0 and word.startswith(tail[at:]):
            yield Span(end - len(tail) + at, end, kind)


@lru_cache(8192)
def word_pattern(word: str, kind: str) -> re.Pattern[str]:
    """Return the pattern that finds a known value where it stands for itself.

    A user or a host is sought as a word ("_" is no letter here, and "%2F" is a slash); a secret and a chosen word
    anywhere.
    """
    literal = re.escape(word)
    if kind == CHOSEN or (kind == SECRET and len(word) >= 8):
        return re.compile(literal, re.IGNORECASE if kind == CHOSEN else 0)
    flags = re.IGNORECASE if kind == MAIL or (kind == HOST and len(word) >= 6) else 0
    return re.compile(rf"{WORD_START}{literal}(?![A-Za-z0-9])", flags)


def lowered(text: str) -> str:
    """Return a text in lower case that is as long as the text."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)


def variants(value: str) -> Iterable[str]:
    """Return how a value is written in addresses, in JSON and in HTML, where that differs from how it is."""
    written = (quote(value, safe=""), quote(value), json.dumps(value)[1:-1], html.escape(value))
    return [one for one in dict.fromkeys(written) if one != value]
