"""Where each value of a JSON file is written, so that a finding can cite the line and a patch can replace the text.

Invariants: places are byte offsets into the file as it is; a file that is not valid JSON yields the line of the first
fault instead; nesting is followed without recursion.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from runbook.finding import Citation, cite
from runbook.text import sanitise

Path = tuple[str | int, ...]

_TOKEN = re.compile(rb'[\s]+|"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)

MAX_PLACES = 200_000
"""Values whose places are kept; a config.json has hundreds."""


@dataclass(frozen=True)
class Place:
    """The bytes [start, end) that hold one value."""

    start: int
    end: int


@dataclass(frozen=True)
class BadJson:
    """Why a file is not JSON. line: 1-based; the citation has none where the line shows nothing that can be read."""

    what: str
    line: int
    citation: Citation


def places(data: bytes) -> dict[Path, Place]:
    """Return where each value of valid JSON is, by its keys and positions from the root; a later duplicate key wins."""
    found: dict[Path, Place] = {}
    stack: list[tuple[bytes, int]] = []
    path: list[str | int] = []
    expects_key = False
    for token in _TOKEN.finditer(data):
        text = token.group()
        first = text[:1]
        if first.isspace() or first == b":" or len(found) > MAX_PLACES:
            continue
        if first == b",":
            if stack and stack[-1][0] == b"[" and isinstance(path[-1], int):
                path[-1] += 1
            expects_key = bool(stack) and stack[-1][0] == b"{"
        elif first in b"{[":
            stack.append((first, token.start()))
            path.append("" if first == b"{" else 0)
            expects_key = first == b"{"
        elif first in b"}]":
            if not stack:
                return found
            path.pop()
            found[tuple(path)] = Place(stack.pop()[1], token.end())
            expects_key = False
        elif expects_key and first == b'"':
            path[-1] = _string(text)
            expects_key = False
        else:
            found[tuple(path)] = Place(token.start(), token.end())
    return found


def _string(text: bytes) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text.decode("utf-8", "replace").strip('"')


def cite_place(path: str, data: bytes, start: int) -> Citation:
    """Cite the line in which the byte `start` is; a line that shows nothing (NUL, blanks) is cited by its offset."""
    begin = data.rfind(b"\n", 0, start) + 1
    end = data.find(b"\n", start)
    line = data[begin : end if end >= 0 else len(data)]
    if not sanitise(line[:4096]).strip():
        return cite(path, "a line without readable text", offset=begin)
    return cite(path, line, line=data.count(b"\n", 0, begin) + 1, offset=begin)


def line_of(data: bytes, start: int) -> int:
    """Return the 1-based line of a byte."""
    return data.count(b"\n", 0, start) + 1


def bad_json(path: str, data: bytes) -> BadJson | None:
    """Return why a file is not JSON; None when it is."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return BadJson("not UTF-8", line_of(data, error.start), cite_place(path, data, error.start))
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        place = min(len(text[: error.pos].encode()), max(len(data) - 1, 0))
        return BadJson(sanitise(error.msg, 120), line_of(data, place), cite_place(path, data, place))
    except RecursionError:
        return BadJson("nested too deeply", 1, cite_place(path, data, 0))
    return None
