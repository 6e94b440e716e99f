"""Writes the changed copy of a file that an experiment asks for: the seam between a flow's `change` and a format.

A package that can edit a kind of evidence declares a module-level `Changer`; it is found as its probes are. The
original is never touched: a changer returns the text of a copy, and the session keeps it. Invariants: a changer carries
out the whole of a change or says in `left` what is to be done by hand; it never leaves a part out silently; a run is
said to lack a change only where its own evidence shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from runbook.evidence import Evidence
from runbook.flow.model import Change
from runbook.text import Text


class Changed(msgspec.Struct, frozen=True):
    """A changed copy.

    of: path of the original. text: of the copy. notes: what a person should know, such as a flag that was there
    already. left: what could not be carried out, and where a person does it. submit: the words that start such a file,
    to stand before its path. beside: it looks for other files beside itself, so the copy works only there.
    """

    of: str
    text: str
    notes: tuple[Text, ...] = ()
    left: tuple[Text, ...] = ()
    submit: tuple[str, ...] = ()
    beside: bool = False


class Checked(msgspec.Struct, frozen=True):
    """Whether a run was made with a change. lacks: what is proven to be otherwise. notes: what could not be checked."""

    lacks: tuple[Text, ...] = ()
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Changer:
    """What a package can change: files of `slot`.

    change: of a file. check: of the evidence of a run that is said to have the change. Both run in a worker process
    and may raise RunbookError.
    """

    slot: str
    change: Callable[[str, Change], Changed] = field(repr=False)
    check: Callable[[Evidence, Change], Checked] = field(default=lambda *_: Checked(), repr=False)


def unified(before: str, after: str, name: str) -> str:
    """Return the unified diff of two texts of the file called `name`; "" when they are equal."""
    import difflib

    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}", n=3
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
