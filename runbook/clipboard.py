r"""The clipboard of the terminal that a person sits at, also over SSH and inside tmux or screen: OSC 52.

The sequence is written and nothing comes back: whether the terminal took it cannot be known, so no word here or at a
caller may claim success, and what is offered stands in a named file as well. Nothing is read from a clipboard.

Who takes it: xterm with `allowWindowOps`, and by default kitty, Alacritty, WezTerm, foot, iTerm2 (after a setting),
Windows Terminal. tmux takes the plain sequence with `set -g set-clipboard on` (its default, `external`, ignores
programs) and hands it on to its own terminal; screen hands on what is wrapped for it.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping

PLAIN_LIMIT = 74_994
"""Bytes of text of which the sequence stays below 100,000 characters, beyond which xterm and hterm cut or drop it
(hterm's etc/osc52.sh has the number)."""

TMUX_LIMIT = 780_000
"""Bytes of text of which the sequence fits into tmux's buffer for one sequence, 1 MiB (input.c, INPUT_BUF_LIMIT)."""

_SCREEN_PIECE = 240
"""Characters of one wrapped piece: screen drops a string sequence longer than 256 (screen.h, MAXSTR, in old ones)."""

_NONE = ("dumb", "linux", "unknown")
"""Terminals that have no clipboard."""


def limit(environment: Mapping[str, str] = os.environ) -> int:
    """Return how many bytes of text the way to the clipboard takes, 0 where there is none."""
    if environment.get("TERM", "dumb") in _NONE:
        return 0
    return TMUX_LIMIT if environment.get("TMUX") else PLAIN_LIMIT


def sequence(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return what offers `text` to the terminal's clipboard, "" when the text is too long or there is no such way.

    It holds no byte of the text that a terminal could act upon.
    """
    raw = text.encode("utf-8", "replace")
    if len(raw) > limit(environment):
        return ""
    plain = f"\x1b]52;c;{base64.b64encode(raw).decode()}\x07"
    if environment.get("TMUX") or not _in_screen(environment):
        return plain
    pieces = (plain[at : at + _SCREEN_PIECE] for at in range(0, len(plain), _SCREEN_PIECE))
    return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)


def offer(text: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Offer `text` to the clipboard of the terminal of this process; False when nothing was written.

    It goes to the terminal itself, so that stdout may be a pipe.
    """
    written = sequence(text, environment)
    if not written:
        return False
    try:
        with open("/dev/tty", "wb", buffering=0) as terminal:
            rest = memoryview(written.encode())
            while rest:
                rest = rest[terminal.write(rest) or 0 :]
    except OSError:
        return False
    return True


def _in_screen(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("STY")) or environment.get("TERM", "").startswith("screen")
