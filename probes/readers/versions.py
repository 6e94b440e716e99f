"""Reads which versions were installed: `pip freeze`, `pip list`, conda's table, or an image tag.

A version is kept as the text it was written in: Ray itself compares debugpy's version as a string. Lines that are
none of these are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from runbook.finding import Citation, cite

LIMIT = 4 << 20
_PINNED = re.compile(rb"^\s*([A-Za-z0-9][\w.-]*?)(?:\[[^\]]*\])?\s*(?:===?|@)\s*([^\s;#]+)")
_TABLE = re.compile(rb"^([A-Za-z0-9][\w.-]*)\s+v?(\d[\w.+!-]*)(?:\s.*)?$")
_IMAGE = re.compile(rb"(?:^|[\s\"'=/])((?:[\w.-]+/)*([\w-]*(?:slime|sglang|megatron)[\w-]*)):([\w][\w.-]*)")


class Version(msgspec.Struct, frozen=True):
    """A package or image and its version as written."""

    name: str
    text: str
    citation: Citation


def normal(name: str) -> str:
    """Return a package name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_versions(paths: Iterable[str]) -> dict[str, Version]:
    """Return the versions in the files by normal name; the first mention wins, unreadable files give nothing."""
    found: dict[str, Version] = {}
    for path in paths:
        try:
            with open(path, "rb") as file:
                data = file.read(LIMIT)
        except OSError:
            continue
        for name, version in parse_versions(path, data).items():
            found.setdefault(name, version)
    return found


def parse_versions(path: str, data: bytes) -> dict[str, Version]:
    """Return the versions in one file's bytes."""
    found: dict[str, Version] = {}
    offset = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        short = line[:4096]
        for match in (_PINNED.match(short) or _TABLE.match(short.rstrip()),):
            if match:
                name, text = (part.decode("utf-8", "replace") for part in match.groups())
                found.setdefault(normal(name), Version(name, text, cite(path, line, line=number, offset=offset)))
        if (image := _IMAGE.search(short)) and b"//" not in short[: image.start(3)]:
            name, text = image[2].decode(), image[3].decode()
            found.setdefault(f"image:{name.lower()}", Version(name, text, cite(path, line, line=number, offset=offset)))
        offset += len(line) + 1
    return found
