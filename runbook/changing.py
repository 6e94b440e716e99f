"""Writes the changed copy of a file that an experiment asks for: the seam between a flow's `change` and a format.

A package that can edit a kind of evidence declares a module-level `Changer`; it is found as its probes are. The
original is never touched: a changer returns the text of a copy, and the session keeps it. Invariant: a changer carries
out the whole of a change or says in `left` what is to be done by hand; it never leaves a part out silently.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from runbook.flow.model import Change
from runbook.text import Text


class Changed(msgspec.Struct, frozen=True):
    """A changed copy.

    of: path of the original. text: of the copy. notes: what a person should know, such as a flag that was there
    already. left: what could not be carried out, and where a person does it. language: what the text is written in,
    such as "bash".
    """

    of: str
    text: str
    notes: tuple[Text, ...] = ()
    left: tuple[Text, ...] = ()
    language: str = ""


@dataclass(frozen=True)
class Changer:
    """What a package can change: files of `slot`. change: runs in a worker process and may raise RunbookError."""

    slot: str
    change: Callable[[str, Change], Changed] = field(repr=False)


def unified(before: str, after: str, name: str) -> str:
    """Return the unified diff of two texts of the file called `name`; "" when they are equal."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}", n=3
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
