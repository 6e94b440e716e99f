"""Whether there is a person at a terminal. Imports nothing: it is asked before the first frame."""

from __future__ import annotations

import os
import sys


def interactive() -> bool:
    """Return whether stdin and stdout are a terminal that can show the UI."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
