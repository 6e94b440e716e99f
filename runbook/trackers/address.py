"""Where a ticket goes, in one line that a person can type.

    KIND[+SITE][:PLACE][#ITEM]

KIND is a tracker (`github`), SITE the address of a server of one's own (`https://ghe.example.com/api/v3`), PLACE what
the tracker calls a project (`owner/repo`), ITEM an existing ticket that is commented on. Invariants: an address holds
no login, no token and no query; what is printed of a wrong one holds none either; a token never goes over a connection
that others can read.
"""

from __future__ import annotations

import ipaddress
import re
from typing import NoReturn
from urllib.parse import SplitResult, urlsplit

import msgspec

from runbook.errors import UsageError

LIMIT = 1000
"""Characters of an address."""

SYNTAX = "write KIND[+SITE][:PLACE][#ITEM], such as github:owner/repo, github:owner/repo#12, jira+https://host/PROJECT"

_KIND = re.compile(r"[a-z][a-z0-9-]{0,39}", re.ASCII)
_ITEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,79}", re.ASCII)
_PART = re.compile(r"[\w.~-]{1,200}", re.ASCII)
_SITE = re.compile(
    r"(?P<site>[A-Za-z][A-Za-z0-9+.-]*://(?:\[[0-9A-Fa-f:.]*\]|[^/:\[\]]*)(?::\d+(?=[:/]|$))?(?:/[^:]*)?)(?::(?P<place>.*))?",
    re.ASCII | re.DOTALL,
)
"""A site with its port, and the place after the next colon."""


class Address(msgspec.Struct, frozen=True):
    """Where a ticket goes.

    site: address of the server without a slash at its end, "" for the public one. place: project on it. item: name of
    an existing ticket to comment on, "" for a new one.
    """

    kind: str
    site: str = ""
    place: str = ""
    item: str = ""

    def __str__(self) -> str:
        site = f"+{self.site}" if self.site else ""
        place = f":{self.place}" if self.place else ""
        return f"{self.kind}{site}{place}{f'#{self.item}' if self.item else ''}"

    @property
    def host(self) -> str:
        """Return the name of the server, "" for the public one."""
        return urlsplit(self.site).hostname or "" if self.site else ""


def parse_address(words: str) -> Address:
    """Return the address that `words` say; what a tracker makes of place and item it checks itself.

    Raises UsageError naming the part that is wrong.
    """
    if not words or len(words) > LIMIT:
        raise UsageError(f"an address of {len(words)} characters is none", SYNTAX)
    if "@" in words:
        raise UsageError(
            "an address holds no login and no token", "leave out what stands before @, and put it into the environment"
        )
    if "?" in words:
        _wrong(
            words, "it holds a query, which belongs to no place and may hold a token", "leave out what begins with ?"
        )
    if not words.isprintable() or " " in words:
        _wrong(words, "it holds a blank or a control character", SYNTAX)
    before, sharp, item = words.partition("#")
    if sharp and not _ITEM.fullmatch(item):
        _wrong(words, f"what follows # names no ticket: {item!r}", "write the number of an existing ticket, as in #12")
    kind = _KIND.match(before)
    if kind is None:
        _wrong(words, "it begins with no kind of tracker", SYNTAX)
    rest = before[kind.end() :]
    if rest.startswith("+"):
        site, place = _site(words, rest[1:])
        return Address(kind[0], site, place, item)
    if not rest.startswith(":"):
        _wrong(words, f"after {kind[0]!r} comes neither + with a site nor : with a place", SYNTAX)
    return Address(kind[0], "", rest[1:].strip("/"), item)


def check_place(address: Address, form: str, least: int, most: int) -> None:
    """Check that the place is `least` to `most` names with a slash between them. form: what it should look like."""
    parts = address.place.split("/")
    if not least <= len(parts) <= most or not all(_PART.fullmatch(part) and part.strip(".") for part in parts):
        _wrong(str(address), f"the place is {address.place!r}", f"write it as {form}")


def check_number(address: Address) -> None:
    """Check that the ticket to comment on is named by its number."""
    if address.item and not address.item.isdigit():
        _wrong(str(address), f"the ticket is {address.item!r}", "write its number, as in #12")


def need_site(address: Address, form: str) -> None:
    """Check that the address names a server of one's own."""
    if not address.site:
        _wrong(str(address), f"it names no server; there is no public {address.kind}", f"write it as {form}")


def _site(words: str, rest: str) -> tuple[str, str]:
    found = _SITE.fullmatch(rest)
    if found is None:
        _wrong(words, f"the site is {rest!r}, which is no web address", "write https://HOST, as in " + SYNTAX)
    site = found["site"].rstrip("/")
    try:
        parts = urlsplit(site)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        named = False
    if not named:
        _wrong(
            words,
            f"the site {site!r} names no host, or no port that there is",
            "write https://HOST or https://HOST:PORT",
        )
    if "\\" in rest:
        _wrong(words, f"the site {site!r} holds more than host and path", "leave out the backslash")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts)):
        _wrong(
            words,
            f"the site begins with {parts.scheme}://, over which a token could be read",
            "write https://, or go through a tunnel that ends at http://127.0.0.1:PORT",
        )
    return site, (found["place"] or "").strip("/")


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _wrong(words: str, why: str, hint: str) -> NoReturn:
    raise UsageError(f"{words.partition('?')[0]}: {why}", hint)
