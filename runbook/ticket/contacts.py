"""Finds the numbers of people: telephones and Chinese identity cards.

A run of eleven digits is a number of bytes far more often than a telephone. So digits alone are a telephone only after
a word that says so or behind a country code; grouped as people group them, they are one by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runbook.ticket.span import PHONE, SECRET, Gate, Span

_NUMBERS = (
    re.compile(r"(?<![\w.+-])(?:\+?86[- ]?)?(1[3-9]\d[- ]\d{4}[- ]\d{4})(?![\w.-])", re.ASCII),
    Gate(r"(?<![\w.])(?:\+|00)86[- ]?(1[3-9]\d{9})(?![\w.])", "+86", "0086"),
    Gate(r"(?<![\w.+])\+([1-9]\d{0,2}[ -](?:\(\d{1,4}\)[ -]?)?\d{1,4}(?:[ -]\d{2,8}){1,4})(?![\w.]\d|\w)", "+"),
    Gate(r"(?<![\w.)-])(\(\d{3}\) ?\d{3}-\d{4})(?![\w.-])", "("),
    Gate(
        r"(?i:\b(?:call|ring|reach|contact|text)(?: me| us| him| her)?(?: at| on)? )(1[3-9]\d{9})(?![\w.])",
        *("call", "ring", "reach", "contact", "text"),
    ),
    Gate(
        r"(?:(?i:\b(?:phone|telephone|tel|mobile|whatsapp|wechat)\b)|手机|电话|微信|联系|致电|拨打)"
        r"[号码人方式]{0,4}[\s:：=.(\"'是]{0,6}(?:(?:at|on|is|number|no\.?)[ :]{1,2}){0,3}"
        r"(?!\d{4}-\d\d-\d\d)(\+?\(?\d[\d ()-]{5,18}\d)(?![\w.]\w|\w)",
        *("phone", "tel", "mobile", "whatsapp", "wechat", "手机", "电话", "微信", "联系", "致电", "拨打"),
    ),
)
_IDENTITY = re.compile(
    r"(?<![\w.])[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![\w.])", re.ASCII
)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
"""Weights of the digits of an identity card, and below the check digit for each remainder by 11 (GB 11643)."""
_CHECKS = "10X98765432"


def contacts(text: str) -> Iterator[Span]:
    """Yield telephone numbers and numbers of identity cards."""
    for pattern in _NUMBERS:
        for match in pattern.finditer(text):
            if 7 <= sum(c.isdigit() for c in match[1]) <= 15:
                yield Span(*match.span(1), PHONE, everywhere=True)
    for match in _IDENTITY.finditer(text):
        if _CHECKS[sum(int(d) * w for d, w in zip(match[0], _WEIGHTS, strict=False)) % 11] == match[0][-1].upper():
            yield Span(match.start(), match.end(), SECRET, everywhere=True)
