"""Looks through a finished export for what must not leave: the second pair of eyes.

It shares no pattern for people and machines and no list of hosts with the redaction; of tokens it takes the kept list
of shapes that the redaction takes too (`tokens.known_shapes`), and has a list of beginnings of its own beside it.
It looks for every value that is known to be private, and casts a coarser net for the rest, in the text as written and
as it reads once escapes are undone. Where it is wrong it refuses an export that was clean; a person then hides the
word by name.
"""

from __future__ import annotations

import html
import ipaddress
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import unquote

from runbook.text import CUT
from runbook.ticket.span import ADDRESS, CHOSEN, HOST, MAIL, PHONE, SECRET, USER
from runbook.ticket.tokens import entropy, known_shapes


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
        """Return what names it without giving it away: its first characters, of a secret only how many it has."""
        if any(kind in self.what for kind in _SECRET_WORDS):
            return f"{len(self.word)} characters"
        return f"{self.word[: min(4, len(self.word) // 3)]}{CUT}"


_HIDDEN = {
    SECRET: "a secret that is hidden elsewhere",
    USER: "the name of a user that is hidden elsewhere",
    HOST: "the name of a host that is hidden elsewhere",
    ADDRESS: "an address that is hidden elsewhere",
    MAIL: "an e-mail address that is hidden elsewhere",
    PHONE: "a phone number that is hidden elsewhere",
    CHOSEN: "a word that you chose to hide",
}
"""Kind of a hidden value to what is said where it still stands."""

_SECRET_WORDS = ("secret", "token", "key", "password")


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
_OURS = re.compile(r"(?:user|host|ip|mail|phone|secret|hidden)-\d+")
_PEM = re.compile(r"BEGIN [A-Z ]{0,40}PRIVATE KEY")
_HOME = re.compile(
    r"(?i)/(?:home|users)/(?!(?:root|shared|default|public|nobody)\b|(?:user|hidden|secret|host|mail|phone|ip)-\d)"
    r"([a-z_][\w.-]{1,40})",
    re.ASCII,
)
_AT = re.compile(
    r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,5}(?:com|cn|net|org|edu|gov|internal|corp)\b", re.ASCII
)
_QUAD = re.compile(r"(?<![\w.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w]|\.\d)", re.ASCII)
_NUMBER_OF_VERSION = re.compile(
    r"(?i)(?:cu\d{2,3}\W{1,5}|[=<>~!]=|[-_+]|\bv|\b(?:ver|version|release|driver|toolkit|cudnn|nccl|cuda|python|build|rev)\W{0,5})$",
    re.ASCII,
)
_ADDRESS_SAID = re.compile(r"(?i)(?:@|://|\b(?:ip|addr(?:ess)?|host(?:name)?)\W{1,3})$", re.ASCII)
_NO_VERSION = 100
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
_TAG = re.compile(r"<[^<>]{1,400}>")
_TEARS = re.compile(r"[\s|\\`\u200b\u00ad\u2060]+")
"""What a layout may put into a word when it breaks it."""
_TORN_LEAST = 12
_KNOWN_LIMIT = 2


def scan(text: str, known: Mapping[str, str]) -> list[Left]:
    """Return what is left in a finished export, in order of place.

    known: private values to their kinds, each of which must not stand anywhere as a word.
    """
    lines = text.splitlines()
    found: dict[Left, None] = {}
    for view in (lines, [_plain(line) for line in lines]):
        if view is lines or view != lines:
            whole = _Whole(view)
            found.update(dict.fromkeys(whole.standing(known)))
            for number, line in enumerate(view, 1):
                if line:
                    found.update(dict.fromkeys(_net(line, number)))
    seen = {left.word for left in found}
    found.update(dict.fromkeys(left for left in _torn(lines, known) if left.word not in seen))
    return sorted(found)


def _plain(line: str) -> str:
    """Return a line as it reads when its escapes are undone."""
    plain = _ESCAPED.sub(r"\1", _INVISIBLE.sub("", html.unescape(line)))
    plain = _UNICODE.sub(lambda match: chr(int(match[1], 16)), plain)
    return unquote(plain, errors="replace") if "%" in plain else plain


class _Whole:
    """Lines as one text, in which a place is found once for all of them."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.text = "\n".join(lines)
        lower = self.text.lower()
        self.lower = lower if len(lower) == len(self.text) else self.text
        self.starts = [0, *accumulate(len(line) + 1 for line in lines)]

    def place(self, at: int) -> tuple[int, int]:
        """Return line and column, 1-based, of a place in the text."""
        line = bisect_right(self.starts, at)
        return line, at - self.starts[line - 1] + 1

    def standing(self, known: Mapping[str, str]) -> Iterator[Left]:
        """Yield where a known value stands as a word; a secret and a chosen word count inside others too."""
        for value, kind in known.items():
            if len(value) < _KNOWN_LIMIT:
                continue
            ignore = kind == CHOSEN or (kind in (HOST, MAIL) and len(value) >= 6)
            haystack, needle = (self.lower, value.lower()) if ignore else (self.text, value)
            inside = kind == CHOSEN or (kind == SECRET and len(value) >= 8)
            at = haystack.find(needle)
            while at >= 0:
                end = at + len(needle)
                alone = not _letter(haystack[at - 1 : at] if at else "") and not _letter(haystack[end : end + 1])
                if (inside or alone) and not _is_ours(haystack, at, len(needle)):
                    yield Left(*self.place(at), _HIDDEN[kind], value)
                at = haystack.find(needle, at + 1)


def _torn(lines: Sequence[str], known: Mapping[str, str]) -> Iterator[Left]:
    """Yield known secrets that a line break, a table's bar, a tag or a blank tears apart."""
    long = {value: _TEARS.sub("", value) for value, kind in known.items() if kind == SECRET}
    long = {value: pressed for value, pressed in long.items() if len(pressed) >= _TORN_LEAST}
    if not long:
        return
    pressed = [_TEARS.sub("", _TAG.sub("", html.unescape(line))) for line in lines]
    whole = "".join(pressed)
    starts = [0, *accumulate(map(len, pressed))]
    for value, needle in long.items():
        at = whole.find(needle)
        while at >= 0:
            yield Left(bisect_right(starts, at), 1, "pieces of a secret that is hidden elsewhere", value)
            at = whole.find(needle, at + 1)


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
        before = max(0, match.start() - 24)
        if _is_machine(
            match[0], said=_ADDRESS_SAID.search(view, before, match.start()) is not None
        ) and not _NUMBER_OF_VERSION.search(view, before, match.start()):
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


def _is_machine(quad: str, *, said: bool) -> bool:
    """Return whether four numbers are an address; small ones are a version unless something says what they are."""
    try:
        address = ipaddress.ip_address(quad)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or quad.startswith(("0.", "255.")):
        return False
    return said or address.is_private or any(int(part) >= _NO_VERSION for part in quad.split("."))
