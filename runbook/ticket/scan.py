"""Looks through a finished export for what must not leave: the second pair of eyes.

It shares no pattern for people and machines and no list of hosts with the redaction; of tokens it takes the kept list
of shapes that the redaction takes too (`credentials.known_shapes`), and has a list of beginnings of its own beside it.
It looks for every value that is known to be private, and casts a coarser net for the rest, in the text as written and
as it reads once escapes are undone. Where it is wrong it refuses an export that was clean; a person then hides the
word by name.
"""

from __future__ import annotations

import html
import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from runbook.text import CUT
from runbook.ticket.credentials import entropy, known_shapes
from runbook.ticket.span import CHOSEN, HOST, MAIL, SECRET


class Left(NamedTuple):
    """Something private that is still there.

    line, column: 1-based. what: what it looks like. word: the whole of it, which goes into no message.
    """

    line: int
    column: int
    what: str
    word: str

    @property
    def shown(self) -> str:
        """Return its first characters, which name the place without giving it away."""
        return f"{self.word[: min(4, len(self.word) // 3)]}{CUT}"


_TOKEN_STARTS = (
    ("hf_", 24),
    ("ghp_", 24),
    ("gho_", 24),
    ("ghs_", 24),
    ("ghu_", 24),
    ("github_pat_", 30),
    ("glpat-", 22),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 39),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("sk-proj-", 28),
    ("sk-ant-", 28),
    ("eyJhbGci", 16),
    ("wandb_v1_", 28),
)
_LOGIN = re.compile(r"://(?:[^\s/:@]{0,64}):([^\s/@]{1,200})@")
_LETTERS = re.compile(r"[A-Za-z0-9]*")
_WORD_CHARACTERS = re.compile(r"[A-Za-z0-9_-]*")
_OURS = re.compile(r"(?:user|host|ip|mail|secret|hidden)-\d+")
_PEM = re.compile(r"BEGIN [A-Z ]{0,40}PRIVATE KEY")
_HOME = re.compile(
    r"(?i)/(?:home|users)/(?!(?:root|shared|default|public|nobody)\b|(?:user|hidden|secret|host|mail|ip)-\d)"
    r"([a-z_][\w.-]{1,40})"
)
_AT = re.compile(r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,5}(?:com|cn|net|org|edu|gov|internal|corp)\b")
_QUAD = re.compile(r"(?<![\w.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w]|\.\d)")
_NUMBER_OF_VERSION = re.compile(
    r"(?i)(?:[=<>~!]=|[-_+]|\bv|\b(?:ver|version|release|driver|toolkit|cudnn|nccl|cuda|python|build|rev)\W{0,5})$"
)
_NAMED = re.compile(
    r"(?i)(?:wandb_?-?(?:api_?)?key|api[_-]?key|password|passwd|secret_access_key|authorization|hf_token|access_token|auth_token)"
    r"[\"'\\]{0,4}(?: {0,8}[:=] {0,8}| ?\.{2,90} ?| {1,8}|, ?)[\"'\\]{0,4}(?:bearer |basic )?"
    r"([A-Za-z0-9+/_=.~-]{16,256})"
)
_SHAPES = (
    (_PEM, "a private key"),
    (_AT, "an e-mail address"),
    (_HOME, "the home of a user"),
    (_LOGIN, "a password in an address"),
)
_INVISIBLE = re.compile("[\u200b\u2060\ufeff]")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_UNICODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_PERCENT = re.compile(r"%(2[Ff]|3[AaDd]|40)")
"""The escapes that could hide where a word begins or ends."""
_KNOWN_LIMIT = 2


def scan(text: str, known: Mapping[str, str]) -> list[Left]:
    """Return what is left in a finished export, in order of place.

    known: private values to their kinds, each of which must not stand anywhere as a word.
    """
    found: dict[Left, None] = {}
    lowered = {value: value.lower() for value in known if len(value) >= _KNOWN_LIMIT}
    for number, line in enumerate(text.splitlines(), 1):
        for view in _views(line):
            lower = view.lower()
            for value, low in lowered.items():
                if low in lower:
                    found.update(dict.fromkeys(_standing(view, value, known[value], number)))
            found.update(dict.fromkeys(_net(view, number)))
    return sorted(found)


def _views(line: str) -> Iterator[str]:
    """Yield a line as written, and as it reads when its escapes are undone."""
    yield line
    plain = _ESCAPED.sub(r"\1", _INVISIBLE.sub("", html.unescape(line)))
    plain = _UNICODE.sub(lambda match: chr(int(match[1], 16)), plain)
    plain = _PERCENT.sub(lambda match: chr(int(match[1], 16)), plain)
    if plain != line:
        yield plain


def _standing(view: str, value: str, kind: str, number: int) -> Iterator[Left]:
    """Yield the places where a known value stands as a word; a secret and a chosen word count inside others too."""
    ignore = kind in (HOST, MAIL) and len(value) >= 6
    haystack, needle = (view.lower(), value.lower()) if ignore or kind == CHOSEN else (view, value)
    inside = kind == CHOSEN or (kind == SECRET and len(value) >= 8)
    at = haystack.find(needle)
    while at >= 0:
        before, after = haystack[at - 1 : at] if at else "", haystack[at + len(needle) : at + len(needle) + 1]
        alone = not _letter(before) and not _letter(after)
        if (inside or alone) and not _is_ours(haystack, at, len(needle)):
            yield Left(number, at + 1, f"a {kind} that was hidden elsewhere", value)
        at = haystack.find(needle, at + 1)


def _letter(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _is_ours(text: str, at: int, length: int) -> bool:
    """Return whether a place lies within a pseudonym."""
    return any(
        m.start() <= at and at + length <= m.end() for m in _OURS.finditer(text, max(0, at - 16), at + length + 16)
    )


def _net(view: str, number: int) -> Iterator[Left]:
    """Yield what looks private without being known."""
    yield from _tokens(view, number)
    for pattern in known_shapes():
        for match in pattern.finditer(view):
            yield Left(number, match.start() + 1, "a token", match[0])
    for pattern, what in _SHAPES:
        for match in pattern.finditer(view):
            yield Left(number, match.start() + 1, what, match[match.lastindex or 0])
    for match in _NAMED.finditer(view):
        if (
            not _OURS.match(match[1])
            and match[1][0] not in "/-."
            and any(c.isdigit() for c in match[1])
            and entropy(match[1]) > 3.0
        ):
            yield Left(number, match.start(1) + 1, "the value of a key", match[1])
    for match in _QUAD.finditer(view):
        if _is_machine(match[0]) and not _NUMBER_OF_VERSION.search(view, max(0, match.start() - 24), match.start()):
            yield Left(number, match.start() + 1, "an address", match[0])


def _tokens(view: str, number: int) -> Iterator[Left]:
    for start, least in _TOKEN_STARTS:
        at = view.find(start)
        while at >= 0:
            run = (_LETTERS if start[:3] in ("hf_", "ghp", "gho", "ghs", "ghu") else _WORD_CHARACTERS).match(
                view, at + len(start)
            )
            word = start + (run[0] if run is not None else "")
            if len(word) >= least and not _letter(view[at - 1 : at] if at else "") and entropy(word) > 2.5:
                yield Left(number, at + 1, "a token", word)
            at = view.find(start, at + len(word))


def _is_machine(quad: str) -> bool:
    try:
        address = ipaddress.ip_address(quad)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast) and not quad.startswith(
        ("0.", "255.")
    )
