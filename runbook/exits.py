"""Exit codes of the command, a contract with scripts that call it."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller."""

    CLEAR = 0
    """Nothing wrong was found and the main questions were answered."""
    CONFIRMED = 1
    """Evidence confirms at least one cause."""
    USAGE = 2
    """Bad usage or unusable evidence."""
    OPEN = 3
    """Nothing is confirmed, but something is unknown or possible."""
    INTERRUPTED = 130
    """Ctrl-C."""
