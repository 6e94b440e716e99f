"""Evidence: what the engineer has, each item in a named slot.

The engine knows slots only by the descriptions that a probe package declares. Evidence is frozen: adding an item
makes a new value, so a finding can always be traced to what it was asked of.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from runbook.errors import EvidenceError
from runbook.text import Text

HEAD_BYTES = 64 * 1024
"""How much of a file discovery may read to recognise it."""


class Item(msgspec.Struct, frozen=True):
    """One piece of evidence.

    slot: name of the slot. path: file, folder or URL. why: one sentence, why it was taken. origin: "given" on the
    command line or in the UI, "found" in RUN, or "named" by another item. missing: it is named but not there. run:
    which run of the session it belongs to; "" is the first.
    """

    slot: str
    path: str
    why: Text
    origin: str = "given"
    missing: bool = False
    run: str = ""


class Evidence(msgspec.Struct, frozen=True):
    """All items of one run, in the order in which they were taken. root: RUN itself, "" when none was given."""

    items: tuple[Item, ...] = ()
    root: str = ""

    def paths(self, slot: str) -> tuple[str, ...]:
        """Return the paths in `slot` that exist, in order."""
        return tuple(item.path for item in self.items if item.slot == slot and not item.missing)

    def first(self, slot: str) -> str | None:
        """Return the first existing path in `slot`, or None."""
        return next(iter(self.paths(slot)), None)

    def missing(self, slot: str) -> tuple[Item, ...]:
        """Return the items of `slot` that something names but that are not there."""
        return tuple(item for item in self.items if item.slot == slot and item.missing)

    def has(self, need: str) -> bool:
        """Return whether a need is met: a slot name, or several joined by "|", of which one suffices."""
        return any(self.paths(slot) for slot in need.split("|"))


@dataclass(frozen=True)
class Candidate:
    """A file or folder that discovery looks at; content is read only when a recogniser asks for it.

    troubles: the system's words for what was asked for and could not be read.
    """

    path: str
    is_dir: bool
    size: int = 0
    troubles: list[str] = field(default_factory=list, compare=False, repr=False)

    @property
    def name(self) -> str:
        """Return the base name."""
        return os.path.basename(self.path.rstrip("/"))

    @cached_property
    def head(self) -> bytes:
        """Return the first HEAD_BYTES of a regular file; empty for a folder or an unreadable file."""
        if self.is_dir:
            return b""
        try:
            # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
            with open(self.path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
                regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                return (file.read(HEAD_BYTES) or b"") if regular else b""  # None where reading would wait
        except OSError as error:
            self.troubles.append(error.strerror or str(error))
            return b""

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the names in a folder; empty for a file or an unreadable folder."""
        if not self.is_dir:
            return frozenset()
        try:
            return frozenset(os.listdir(self.path))
        except OSError as error:
            self.troubles.append(error.strerror or str(error))
            return frozenset()


@dataclass(frozen=True)
class Match:
    """A recogniser's opinion.

    score: higher wins; of two slots with the same score the one declared first takes the candidate, and discovery
    notes both with how to choose. why: one sentence. closed: a folder whose content belongs to it, so discovery does
    not look inside.
    """

    score: int
    why: Text
    closed: bool = True


@dataclass(frozen=True)
class Slot:
    """A kind of evidence, declared by a probe package as a module-level constant.

    recognise: looks at a candidate's name and content and returns a Match or None; None as the function means that
    the slot is only ever given or named. holds: "path" or "url". many: whether several items stand side by side;
    else the first one is used.
    """

    name: str
    title: Text
    recognise: Callable[[Candidate], Match | None] | None = None
    holds: str = "path"
    many: bool = False

    @property
    def flag(self) -> str:
        """Return the option of the command line that fills the slot."""
        return f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True)
class Reference:
    """A path that one item names for another slot. near: folder against which a relative path is tried."""

    slot: str
    path: str
    why: Text
    near: str = ""


@dataclass(frozen=True)
class Follower:
    """Reads an item of `slot` and yields what it names, declared as a module-level constant.

    A Text that it yields is a note for the person. fills: the only slot that it names anything for, where finding that
    out is not free; it is then asked only while that slot is empty.
    """

    slot: str
    follow: Callable[[Item], Iterable[Reference | Text]] = field(repr=False)
    fills: str = ""


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/]\S*")
_HOST_AND_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?):[0-9]{1,5}")


def placed(slot: Slot, words: str) -> str:
    """Return what a person wrote for `slot` as evidence holds it.

    What the slot holds decides, not the look of the words: an absolute path ("~" unfolded), or an address as it was
    written, which is a URL or HOST:PORT. Raises EvidenceError naming the remedy for anything else.
    """
    if slot.holds == "url":
        if _URL.fullmatch(words) or _HOST_AND_PORT.fullmatch(words):
            return words
        raise EvidenceError(f"{slot.flag} {words}: this is no address", "write HOST:PORT or http://HOST:PORT")
    path = os.path.abspath(os.path.expanduser(words))
    if _URL.fullmatch(words) and not os.path.exists(path):
        raise EvidenceError(
            f"{slot.flag} {words}: this is an address, but a file or folder is wanted",
            "save what is there into a file, and give that",
        )
    return path
