"""Finds secrets that do not stand in one string: a name in one cell or line and its value in the next.

A table of arguments, a command split over lines, a key armoured over many lines, a token that a terminal wrapped: each
string alone looks harmless. Invariant: a span that is reported lies within one of the strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from runbook.ticket import credentials, tokens
from runbook.ticket.span import SECRET, Span

_MARK = re.compile(r"(?:[+\-> ] ?)?[\s|]*(?:- )?")
"""What may stand before the words of a line: the mark of a diff or of a quote, a bullet, blanks."""
_OPEN = re.compile(
    r"(?:(?:^|[\s\[{(,])(?P<flag>--?[\w-]{1,60})|[\"']?(?P<name>[\w .-]{1,60}?)[\"']?\s{0,8}[:=]?)[\s\\\"',|>]*$"
)
_LISTED = re.compile(r"(?i)[\s+>|-]*[\"']?name[\"']?\s{0,4}[:=]\s{0,4}[\"']?[\w.-]{1,60}[\"']?,?\s*")
_VALUE = re.compile(r"(?i)[\"']?value[\"']?\s{0,4}[:=]\s{0,4}")
"""How lists of variables name one in a line and give its value in the next."""
_KEY_LINES = 200
"""Lines of an armoured key at most: 16,384 bits are 200 of 64 characters."""


def between(lines: Sequence[str]) -> Iterator[tuple[int, Span]]:
    """Yield the number of a string and the place in it of a secret that shows only beside the strings around it."""
    left = 0
    for number, line in enumerate(lines):
        if left:
            left = 0 if tokens.closes_key(line) else left - 1
            if line:
                yield number, Span(0, len(line), SECRET, everywhere=len(line) >= 40)
        elif tokens.opens_key(line):
            left = _KEY_LINES
    for number in range(len(lines) - 1):
        before, after = lines[number], lines[number + 1]
        yield from ((number + 1, span) for span in _value(before, after))
        crossing = _wrapped(before, after)
        if crossing is not None:
            yield number, crossing[0]
            yield number + 1, crossing[1]


def of_columns(columns: Sequence[str], row: Sequence[str]) -> Iterator[tuple[int, Span]]:
    """Yield the number of a cell and the place in it of a secret that the name of its column announces."""
    for number, (name, cell) in enumerate(zip(columns, row, strict=False)):
        yield from ((number, span) for span in _value(name, cell))


def _value(before: str, after: str) -> Iterator[Span]:
    """Yield the value in one string whose name ends the string before it, or is that string."""
    tail = before.rstrip(" \\\"',:=|>")[-64:]
    if not credentials.is_name(tail) or not after:
        return
    opened = _OPEN.search(before[-160:])
    listed = _LISTED.fullmatch(before[-160:]) is not None
    whole = opened is not None and (opened["flag"] is not None or opened.start() == 0 or before.rstrip()[-1:] in ":=|>")
    if not whole and not listed:
        return
    mark = _MARK.match(after)
    start = mark.end() if mark is not None else 0
    given = _VALUE.match(after, start) if listed else None
    start = given.end() if given is not None else start
    name = re.split(r"[\s\"',]", tail)[-1] if " " not in tail.strip() else tail
    head = f"{name} ... "
    for span in credentials.find(head + after[start:]):
        if span.start >= len(head):
            shift = start - len(head)
            yield Span(span.start + shift, span.end + shift, span.kind, span.everywhere)


def _wrapped(before: str, after: str) -> tuple[Span, Span] | None:
    """Return the two parts of a token that goes on in the next string."""
    mark = _MARK.match(after)
    start = mark.end() if mark is not None else 0
    head = before[-200:]
    if not head[-1:].isalnum() or not after[start : start + 1].isalnum():
        return None
    parts = tokens.crosses(head, after[start : start + 200])
    if parts is None:
        return None
    first, second = parts
    end = Span(len(before) - first, len(before), SECRET, everywhere=True)
    return end, Span(start, start + second, SECRET, everywhere=second >= 8)
