"""The library of known failures: `*.yaml` beside this file, one file a topic, read when something first asks.

A module names the entries it needs (`known("id")`) or all that are its question (`Asked("probe.id")`) at module level;
that reads nothing. The first look at more than a label reads the folder, once a process, in some hundredths of a
second; the fork server does it for all jobs. docs/decisions/0110-signatures.md says what an entry must be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import msgspec
import yaml

from probes.known.model import Entry, Shelf
from probes.readers.logscan import Signature, signature
from runbook.errors import RunbookError

FOLDER = os.path.dirname(os.path.abspath(__file__))
_PART = re.compile(r"<([A-Z_]+)>")
_LAZY = ("literals", "expression", "reach")


class Known(Signature):
    """The signature of one entry, which is looked up when more than its label is asked for."""

    def __init__(self, label: str) -> None:
        object.__setattr__(self, "label", label)

    def __getattr__(self, name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(name)
        real = signatures()[self.label]
        for each in _LAZY:
            object.__setattr__(self, each, getattr(real, each))
        return getattr(real, name)


@dataclass(frozen=True)
class Asked:
    """All entries of the files that one probe asks."""

    probe: str

    def signatures(self) -> tuple[Signature, ...]:
        """Return their signatures, in the order of the files."""
        return tuple(known(each.id) for each in self.entries().values())

    def entries(self) -> Mapping[str, Entry]:
        """Return the entries by id."""
        return _asked(self.probe)


@cache
def _asked(probe: str) -> dict[str, Entry]:
    return {each.id: each for shelf in shelves().values() if probe in shelf.asked for each in shelf.signatures}


@cache
def known(label: str) -> Signature:
    """Return the signature with this id. Raises KeyError when it is first used and the library has none."""
    return Known(label)


@cache
def shelves() -> dict[str, Shelf]:
    """Return every file of the library by its name without the ending. Raises RunbookError when one is malformed."""
    names = sorted(name for name in os.listdir(FOLDER) if name.endswith(".yaml"))
    return {name.removesuffix(".yaml"): load_shelf(os.path.join(FOLDER, name)) for name in names}


def load_shelf(path: str) -> Shelf:
    """Read one file. Raises RunbookError naming it when it is no file of signatures."""
    try:
        with open(path, encoding="utf-8") as file:
            data = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
        return msgspec.convert(data, Shelf)
    except (OSError, yaml.YAMLError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise RunbookError(f"{path}: no file of signatures: {error}", "See docs/signatures.md.") from error


@cache
def entries() -> dict[str, Entry]:
    """Return every entry by its id."""
    return {each.id: each for shelf in shelves().values() for each in shelf.signatures}


@cache
def signatures() -> dict[str, Signature]:
    """Return the signature of every entry by its id."""
    return {each.id: build(each, shelf.parts) for shelf in shelves().values() for each in shelf.signatures}


def build(entry: Entry, parts: Mapping[str, str]) -> Signature:
    """Return what a scan looks for. Raises KeyError for a part that the file does not have."""
    if not entry.pattern:
        return signature(entry.id, entry.literals)
    whole = "|".join(entry.pattern)
    return signature(entry.id, entry.literals, _PART.sub(lambda match: parts[match[1]], whole), entry.reach)
