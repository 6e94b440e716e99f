"""Fits a ticket into what a tracker takes: marks, pieces under a limit, files as comments.

Invariants: nothing is lost, the pieces joined say what the text said; a fenced block that is cut is closed and opened
again; every text that is posted ends in its own mark, by which it is found again.
"""

from __future__ import annotations

import re
import secrets

from runbook.text import CUT, Text, sanitise
from runbook.ticket.outgoing import Attachment

MARKDOWN = ("markdown", "gitlab")
"""Layouts in which an HTML comment is not shown and a fence keeps text as it is."""

ROOM = 400
"""Characters that are kept free for the mark and for what stands around a piece."""

COMMENTS_MOST = 8
"""Comments that one file may become: more of them bury a ticket."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TICKS = re.compile(r"`+")

PART = Text("{name}, part {number} of {count}", "{name}，第 {number}/{count} 部分")
KEPT = Text(
    "Not attached, since {tracker} does not take it: {names}. It is kept with session {session}.",
    "{tracker} 不接受以下附件：{names}。文件保存在会话 {session} 中。",
)


def new_mark() -> str:
    """Return a mark that nothing else has: 32 hexadecimal digits."""
    return secrets.token_hex(16)


def marked(text: str, mark: str, format: str) -> str:
    """Return the text with its mark in the last line."""
    line = f"<!-- slime-runbook {mark} -->" if format in MARKDOWN else f"slime-runbook {mark}"
    return f"{text.rstrip()}\n\n{line}\n"


def one_line(title: str, limit: int) -> str:
    """Return a title in one line of at most `limit` characters, 0 for no limit."""
    plain = " ".join(sanitise(title.replace("\n", " ")).split()) or "slime-runbook"
    return plain if not limit or len(plain) <= limit else f"{plain[: limit - 1].rstrip()}{CUT}"


def pieces(text: str, limit: int, format: str) -> list[str]:
    """Return the text in pieces of at most `limit` characters, cut between lines where that is possible."""
    if not limit or len(text) <= limit:
        return [text]
    found: list[str] = []
    lines: list[str] = []
    size, fence = 0, ""
    for line in _short_lines(text, max(1, limit // 4)):
        closing = len(fence) + 1 if fence else 0
        if lines and size + len(line) + closing > limit:
            found.append("".join(lines) + (f"\n{_run(fence)}" if fence else ""))
            lines = [f"{fence}\n"] if fence else []
            size = sum(map(len, lines))
        lines.append(line)
        size += len(line)
        fence = _after(fence, line) if format in MARKDOWN else ""
    found.append("".join(lines))
    return found


def numbered(name: str, parts: list[str], language: str) -> list[str]:
    """Return the pieces with a line above each that says which it is; a single piece has only the name."""
    count = len(parts)
    heads = [PART.say(language).format(name=name, number=number, count=count) for number in range(1, count + 1)]
    return [f"{head if count > 1 else name}\n\n{part}" for head, part in zip(heads, parts, strict=True)]


def as_comments(file: Attachment, limit: int, format: str, language: str) -> list[str] | None:
    """Return a file as texts of at most `limit` characters, None when it is no text or would be too many."""
    try:
        text = file.content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    room = limit - ROOM if limit else len(text) + 1
    parts = pieces(text, room, "")
    if "\x00" in text or len(parts) > COMMENTS_MOST:
        return None
    if format in MARKDOWN:
        ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
        if len(ticks) > ROOM // 4:
            return None
        parts = [f"{ticks}\n{part.rstrip()}\n{ticks}" for part in parts]
    return numbered(one_line(file.name, 80), parts, language)


def size_of(content: bytes) -> str:
    """Return how large something is, for people."""
    count = float(len(content))
    if count < 1000:
        return f"{len(content)} B"
    for unit in ("kB", "MB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} GB"


def _short_lines(text: str, limit: int) -> list[str]:
    lines = text.splitlines(keepends=True)
    return [line[at : at + limit] for line in lines for at in range(0, len(line), limit)]


def _run(fence: str) -> str:
    found = _FENCE.match(fence)
    return found[1] if found is not None else fence


def _after(fence: str, line: str) -> str:
    """Return the line that opened the fenced block in which the text stands after `line`, "" outside of one."""
    found = _FENCE.match(line.rstrip("\n"))
    if found is None:
        return fence
    if not fence:
        return "" if found[1][0] == "`" and "`" in found[2] else line.rstrip("\n")
    run = _run(fence)
    closes = found[1][0] == run[0] and len(found[1]) >= len(run) and not found[2].strip()
    return "" if closes else fence
