"""The very first frame, in raw ANSI, written before Textual is imported.

Invariants: imports nothing beyond the standard library's cheapest parts; the frame stands on the alternate screen,
where the app then draws over it, so nothing of it is left in the scrollback; no colour under NO_COLOR.
"""

from __future__ import annotations

import os

ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H"
LEAVE = "\x1b[?25h\x1b[?1049l"

TITLE = "runbook"
WAIT = "looking at the evidence"


def first_frame(columns: int, rows: int) -> str:
    """Return the frame for a terminal of that size: the bar of the start screen and one quiet line below it.

    The caller writes LEAVE if the app is never started.
    """
    plain = bool(os.environ.get("NO_COLOR"))
    strong, dim, reset = (
        ("\x1b[1m", "\x1b[2m", "\x1b[0m") if plain else ("\x1b[1;38;5;111m", "\x1b[38;5;245m", "\x1b[0m")
    )
    width = max(columns, 1)
    parts = [ENTER, f"\x1b[1;1H{strong}{(' ' + TITLE)[:width]}{reset}"]
    if rows >= 3:
        parts.append(f"\x1b[3;1H{dim}{('  ' + WAIT)[:width]}{reset}")
    return "".join(parts)
