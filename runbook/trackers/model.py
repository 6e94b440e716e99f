"""What a tracker is to the rest of the program.

A tracker is one module with a module-level `TRACKER`, a `Kind`: ours stand in `runbook/trackers/kinds/`, a third
party's are entry points of the group `slime_runbook.trackers` whose name is the kind. What only reads an address is in
the `Kind`; what talks to the server is a `Tracker`, which `Kind.connect` makes when something is really sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from runbook.ticket.outgoing import Attachment
from runbook.trackers.address import Address
from runbook.trackers.tokens import Credential, Secret

GROUP = "slime_runbook.trackers"
"""Entry-point group of third parties' trackers."""


class Posted(NamedTuple):
    """Something that stands in a tracker. item: name of the ticket there. url: where a person reads it."""

    item: str
    url: str


class Tracker(Protocol):
    """An open way to one place in one tracker.

    `since` is a time in seconds since the epoch before which nothing that is looked for can have been posted. Every
    method raises TrackerError, whose `again` says whether the same may be tried later. None repeats what it does: to
    look before trying again is the caller's part.
    """

    def create(self, title: str, body: str, labels: Sequence[str], mark: str) -> Posted:
        """Open a new ticket. mark: what stands in its body."""

    def comment(self, item: str, body: str, mark: str) -> Posted:
        """Add a comment to a ticket."""

    def attach(self, item: str, file: Attachment) -> str:
        """Add a file to a ticket, or to the place when `item` is ""; return what a body writes to link to it."""

    def find(self, item: str, mark: str, since: float) -> Posted | None:
        """Return the comment of a ticket, or the ticket when `item` is "", in which `mark` stands.

        Raises TrackerError, and never returns None, when it was not able to look at everything since then.
        """

    def holds(self, item: str, file: Attachment, since: float) -> bool:
        """Return whether a ticket has the file already."""

    def url_of(self, item: str) -> str:
        """Return where a person reads a ticket."""


class Attaches(Enum):
    """What a tracker makes of files."""

    FIRST = "first"
    """They are uploaded to the place first; the body links to them."""
    TO_ITEM = "to_item"
    """They are added to the ticket."""
    NEVER = "never"
    """It takes none: they become further comments."""


@dataclass(frozen=True)
class Kind:
    """A kind of tracker.

    title: its name to people. example: an address. formats: layouts of a ticket that it shows well, the best first.
    limit, title_limit: characters of a body and of a title, 0 for no limit. labels: whether a ticket can have some.
    package: the client library to install. lag: seconds until a look sees what was just written.
    settle: returns the address in its one form, or raises UsageError naming the part that is wrong; touches no network.
    needs: returns what has to be known to log in. connect: opens the way, with the secrets by the first name of each.
    """

    name: str
    title: str
    example: str
    formats: tuple[str, ...]
    attaches: Attaches
    limit: int
    title_limit: int
    labels: bool
    package: str
    settle: Callable[[Address], Address] = field(repr=False)
    needs: Callable[[Address], tuple[Credential, ...]] = field(repr=False)
    connect: Callable[[Address, Mapping[str, Secret]], Tracker] = field(repr=False)
    lag: float = 0.0
