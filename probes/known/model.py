"""What an entry of the signature library is: one kind of line, what it means, where that comes from, and samples.

Invariants: an entry is data and is never run; the pattern's alternatives are regular expressions over one line; every
field that a person reads is plain text. Written in `probes/known/*.yaml`, checked by `lint`, printed by `document`.
"""

from __future__ import annotations

from enum import Enum

import msgspec


class Role(str, Enum):
    """What a line is worth: a fault itself, its consequence, a sign beside others, or nothing to worry about."""

    ROOT = "root"
    CASCADE = "cascade"
    CONFIRMATION = "confirmation"
    BENIGN = "benign"


class Kind(str, Enum):
    """A kind of process, by what it prints as: Ray's prefix, the name of its file, a logger's stamp."""

    TRAINER = "trainer"
    ENGINE = "engine"
    MANAGER = "manager"
    DRIVER = "driver"
    RAYLET = "raylet"


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a line says, in words; Chinese where a finding shows it, elsewhere the probe has words of its own."""

    en: str
    zh: str = ""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a wording comes from. place: a file and symbol, or the address of an issue. versions: "" for all known."""

    project: str
    place: str
    versions: str = ""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One signature.

    id: the label of its hits. means: what the line says, in words. proves_not: what it leaves open. cause: an id of the
    vocabulary, "" where the probe decides. literals: one of them is in every line that matches. pattern: alternatives
    of a regular expression, each of which may use the file's parts as <NAME>; none: the literals are the pattern.
    reach: see `Signature`. where: kinds of process that print it, none for all. phase: when it is printed, in words.
    flags, without: flags of which one must be on, and flags that must not; `document` tells which probe checks them.
    fatal: its program ends where it prints it. over: ids of entries of other causes that match its
    samples too and say less.
    """

    id: str
    role: Role
    means: Words
    proves_not: str
    literals: tuple[str, ...]
    source: tuple[Source, ...]
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    cause: str = ""
    pattern: tuple[str, ...] = ()
    reach: int = 0
    where: tuple[Kind, ...] = ()
    phase: str = ""
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    fatal: bool = False
    over: tuple[str, ...] = ()


class Shelf(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One file. about: what its entries have in common. asked: the probes that look for them. parts: shared pieces."""

    about: str
    asked: tuple[str, ...]
    signatures: tuple[Entry, ...]
    parts: dict[str, str] = {}
