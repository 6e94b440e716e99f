"""How large a value and the work on a script may become, for bash and Python alike.

A few lines that double a string (`A="$A$A"`) ask for more memory than any machine has, so every place where values
are put together goes through `join` or spends from a `Budget`. Invariant: beyond a limit a value is unknown or the walk
ends with a gap that says so; nothing hangs and nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from probes.readers.bash_values import Fragment, Value

MAX_TEXT = 1 << 17
"""Characters of one value: Linux takes no longer word of a command (MAX_ARG_STRLEN, 128 KiB)."""
MAX_FRAGMENTS = 20_000
"""Pieces of one value; slime's longest launch scripts come to a few hundred."""
WORK = 500_000
"""Units of work on one script: one for each fragment handled, and one for each CHARACTERS_A_UNIT characters."""
CHARACTERS_A_UNIT = 32
TOO_LONG = "it is longer than the reader follows"


class Stop(Exception):  # noqa: N818 - not an error: the budget is used up
    """Ends a walk that has come to its limit."""


class TooLong(Exception):  # noqa: N818 - not an error: the value becomes unknown
    """Says that a value grew beyond its limits."""


@dataclass
class Budget:
    """What is left of the work on one script; shared by all scopes of a walk."""

    left: int = WORK

    def spend(self, units: int) -> None:
        """Take `units` off. Raises Stop when nothing is left."""
        self.left -= units
        if self.left < 0:
            raise Stop

    def handle(self, value: Iterable[Fragment]) -> None:
        """Take off what handling a value costs. Raises Stop."""
        count = characters = 0
        for part in value:
            count += 1
            characters += len(part.text or part.shown)
        self.spend(count + characters // CHARACTERS_A_UNIT)


def join(pieces: Iterable[Iterable[Fragment]]) -> Value:
    """Return one value of several. Raises TooLong as soon as it has grown beyond MAX_TEXT or MAX_FRAGMENTS."""
    parts: list[Fragment] = []
    characters = 0
    for piece in pieces:
        for part in piece:
            parts.append(part)
            characters += len(part.text or part.shown)
            if characters > MAX_TEXT or len(parts) > MAX_FRAGMENTS:
                raise TooLong
    return tuple(parts)
