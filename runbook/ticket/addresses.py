"""Finds the addresses of machines: IPv4, IPv6, and those of network cards.

`12.4.1.0` is a version far more often than an address. So four numbers are an address when they lie in a private
range, when something beside them says so, or when a number is larger than versions have; never after the word
"version" and the like. A time of day, a shape and a PCI slot are none.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from runbook.ticket.span import ADDRESS, WORD_START, Span

_QUAD = re.compile(WORD_START + r"(?<!\.)(?:\d{1,3}\.){3}\d{1,3}(?![A-Za-z0-9]|\.\d)")
_DASHED = re.compile(r"(?<![A-Za-z0-9.])(?<!\d[-_])(?:\d{1,3}-){3}\d{1,3}(?![-_]?[A-Za-z0-9.]*\d-|[A-Za-z0-9])")
_SIX = re.compile(r"(?<![A-Za-z0-9_.])(?<!::)(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![A-Za-z0-9_:])")
_PAIRS = re.compile(
    r"(?<![A-Za-z0-9:.-])(?:[0-9A-Fa-f]{2}([:-]))(?:[0-9A-Fa-f]{2}\1){4}(?:[0-9A-Fa-f]{2}\1){0,14}[0-9A-Fa-f]{2}(?![A-Za-z0-9:-])"
)
_GUID = re.compile(r"(?<![A-Za-z0-9_:.-])(?:[0-9A-Fa-f]{4}:){3}[0-9A-Fa-f]{4}(?![A-Za-z0-9_:.-])")
_VERSION_BEFORE = re.compile(
    r"(?i)(?:==|>=|<=|~=|!=|[-+]|(?<!ip)(?<!host)(?<!log)_|\bv|cu\d{2,3}[\"']?[\s:=]{1,3}"
    r"|\b(?:version|ver|release|driver|toolkit|cudnn|nccl|cuda|python|build|rev)\b[\"']?[\s:=(]{0,4})$",
    re.ASCII,
)
_SAID_BEFORE = re.compile(
    r"(?i)(?:://|@|\b(?:ip|ips|ipv4|addr|address|host|hostname|node|inet|from|to|at|on|via|server|endpoint|peer|gateway|dns|ssh|ping)\b"
    r"[\"']?[\s:=(\[]{1,4})$",
    re.ASCII,
)
_SAID_AFTER = re.compile(r"(?::\d{2,5}(?!\d)|/\d{1,2}(?![\d.])|<\d|\s+port\b)", re.ASCII)
_LARGE = 100
"""No part of a version, but of most addresses: 1 - (100/256)^4 is 98 % of them."""


def addresses(text: str) -> Iterator[Span]:
    """Yield the addresses that name one machine; loopback, unspecified and broadcast ones stay."""
    for start, end in (*_of_network(text), *_of_hardware(text)):
        yield Span(start, end, ADDRESS)


def _of_network(text: str) -> Iterator[tuple[int, int]]:
    for match in _QUAD.finditer(text):
        if _is_meant(text, match):
            yield match.span()
    for match in _DASHED.finditer(text):
        quad = match[0].replace("-", ".")
        if is_address(quad) and _is_private(quad) and max(map(int, quad.split("."))) >= _LARGE:
            yield match.span()
    for match in _SIX.finditer(text):
        # A colon that ends a word before it or begins what follows is no part of it.
        start = match.start() + (match[0][0] == ":" and match[0][:2] != "::")
        end = match.end() - (match[0][-1] == ":" and match[0][-2:] != "::")
        if _names_one_machine(text[start:end]):
            yield start, end


def _of_hardware(text: str) -> Iterator[tuple[int, int]]:
    for match in _PAIRS.finditer(text):
        if any(c.isalpha() for c in match[0]) or match[0].count(match[1]) == 5:
            yield match.span()
    for match in _GUID.finditer(text):
        if any(c.isalpha() for c in match[0]) and any(c.isdigit() for c in match[0]):
            yield match.span()


def is_address(quad: str) -> bool:
    """Return whether four numbers are an IPv4 address of one machine."""
    try:
        address = ipaddress.IPv4Address(quad)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_multicast or quad.startswith(("0.", "255.")))


def _is_private(quad: str) -> bool:
    first, second = (int(part) for part in quad.split(".")[:2])
    return (
        first == 10
        or (first, second) in {(192, 168), (169, 254)}
        or (first == 172 and 16 <= second < 32)
        or (first == 100 and 64 <= second < 128)
    )


def _is_meant(text: str, match: re.Match[str]) -> bool:
    """Return whether four numbers are meant as an address and not as a version."""
    quad = match[0]
    before = max(0, match.start() - 24)
    if not is_address(quad):
        return False
    private, large = _is_private(quad), max(map(int, quad.split("."))) >= _LARGE
    if _VERSION_BEFORE.search(text, before, match.start()):
        # "run_10.1.2.200_log" is none: what is large and private is an address whatever joins it to a name.
        return private and large and text[match.start() - 1] in "_-+"
    if private or large:
        return True
    said = _SAID_BEFORE.search(text, before, match.start()) or _SAID_AFTER.match(text, match.end())
    return said is not None


def _names_one_machine(text: str) -> bool:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    groups = [group for group in text.split(":") if group]
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return False
    if len(groups) == 8:
        return any(len(group) > 2 for group in groups) or any(c.isalpha() for c in text)
    # "c10d::add" names something in C++, and is an address by the letter of the law.
    known = len(groups[0]) == 4 and text[0].lower() in "23f" if groups else False
    return known or (len(groups) >= 3 and len(text) >= 7 and any(c.isdigit() for c in text))
