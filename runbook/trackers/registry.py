"""Finds the trackers: ours by their modules, third parties' by entry points. Nothing is imported before it is named."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import EntryPoint, entry_points

from runbook.errors import UsageError
from runbook.trackers import kinds
from runbook.trackers.address import SYNTAX, Address, parse_address
from runbook.trackers.model import GROUP, Kind


def kind_names() -> tuple[str, ...]:
    """Return the names of all kinds in alphabetical order."""
    return tuple(sorted({*_ours(), *(point.name for point in entry_points(group=GROUP))}))


def kind_of(address: Address) -> Kind:
    """Return the kind of tracker that an address names; of two of one name ours is meant.

    Raises UsageError when there is none, or when a third party's cannot be used.
    """
    name = address.kind
    if name in _ours():
        found = importlib.import_module(f"{kinds.__name__}.{name}").TRACKER
    else:
        points = [point for point in entry_points(group=GROUP) if point.name == name]
        if not points:
            hint = f"kinds of tracker: {', '.join(kind_names())}; {SYNTAX}"
            raise UsageError(f"{address}: there is no kind of tracker {name!r}", hint)
        found = _third(points[0])
    if not isinstance(found, Kind) or found.name != name:
        raise UsageError(f"the tracker {name!r} of another package is no Kind of that name", "ask its authors")
    return found


def place_of(words: str, item: str = "") -> tuple[Kind, Address]:
    """Return kind and address that a person typed. item: a ticket to comment on, named apart from the address.

    Raises UsageError naming the part that is wrong.
    """
    address = parse_address(words)
    kind = kind_of(address)
    if item:
        further = parse_address(f"{address.kind}:x#{item}").item
        settled = kind.settle(address)
        if settled.item and settled.item != further:
            raise UsageError(f"{words}: two tickets to comment on: {settled.item} and {further}", "name one of them")
        address = Address(settled.kind, settled.site, settled.place, further)
    return kind, kind.settle(address)


def _ours() -> tuple[str, ...]:
    return tuple(module.name for module in pkgutil.iter_modules(kinds.__path__))


def _third(point: EntryPoint) -> object:
    try:
        return importlib.import_module(point.module).TRACKER
    except Exception as error:
        words = f"the tracker {point.name!r} of {point.module} cannot be used: {type(error).__name__}"
        raise UsageError(words, "repair or remove that package") from error
