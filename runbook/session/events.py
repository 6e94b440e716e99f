"""What can happen in a session. A session is nothing but its events, in order.

Events are facts with their time and author; the state is folded from them (`runbook.session.state`), so a session
replays to the same screens anywhere. Adding a kind is allowed, changing the meaning of one is not: kept journals
must stay readable.
"""

from __future__ import annotations

import msgspec

from runbook.evidence import Item
from runbook.finding import Finding
from runbook.text import Text
from runbook.walk import By


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The session began or was resumed.

    version: of the tool. flows: flow id to content hash. root: RUN. who: login name, or the name that was given.
    """

    version: str
    flows: dict[str, str]
    root: str = ""
    who: str = ""


class EvidenceAdded(msgspec.Struct, frozen=True, tag="evidence"):
    """Items were taken into evidence."""

    items: tuple[Item, ...]


class EvidenceDropped(msgspec.Struct, frozen=True, tag="evidence-dropped"):
    """An item was taken out of evidence by the person."""

    slot: str
    path: str
    run: str = ""


class Found(msgspec.Struct, frozen=True, tag="found"):
    """A probe answered for one run of the session."""

    finding: Finding
    run: str = ""


class FlowStarted(msgspec.Struct, frozen=True, tag="flow"):
    """The person turned to a flow."""

    flow: str


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """A node was answered. probes: ids whose findings were on the table."""

    flow: str
    node: str
    answer: str
    by: By
    who: str = ""
    probes: tuple[str, ...] = ()


class WentBack(msgspec.Struct, frozen=True, tag="back"):
    """The person went back to a node; what followed is stale."""

    flow: str
    node: str


class RunAttached(msgspec.Struct, frozen=True, tag="run-attached"):
    """A new run was attached to an experiment node; its items are added under the same run name.

    run: a name that no run of the session had before. root: its RUN. lacks: what of the experiment's change it is
    proven not to have; then it decides nothing. notes: what could not be checked.
    """

    flow: str
    node: str
    run: str
    root: str = ""
    lacks: tuple[Text, ...] = ()
    notes: tuple[Text, ...] = ()


class CopyChanged(msgspec.Struct, frozen=True, tag="copy-changed"):
    """A changed copy of a file was written for an experiment; the original is as it was.

    of: path of the original. path: of the copy, "" when the session keeps no files. diff: from the original to the
    copy. notes: what a person should know. left: what a person has to do by hand. command: what submits the copy, ""
    when nothing is known to.
    """

    flow: str
    node: str
    of: str
    path: str
    diff: str
    notes: tuple[Text, ...] = ()
    left: tuple[Text, ...] = ()
    command: str = ""


class Noted(msgspec.Struct, frozen=True, tag="note"):
    """A person wrote something down, at a node or for the whole session."""

    words: str
    who: str = ""
    flow: str = ""
    node: str = ""


class Fixed(msgspec.Struct, frozen=True, tag="fixed"):
    """A person said what fixed the fault. cause: which one, "" for all that the session confirmed."""

    cause: str
    words: str
    who: str = ""


class Stood(msgspec.Struct, frozen=True, array_like=True):
    """How a cause stood: the standing as a word, and the leaf that it has from."""

    standing: str
    flow: str
    node: str


class Judged(msgspec.Struct, frozen=True, tag="judged"):
    """What the flows then at hand made of everything before this event: they may read otherwise later.

    causes: cause to how it stood. decided: flow, then node, to the answer that the findings gave there and the node it
    leads to; nodes that were not reached or not decided are left out. stood: flow to the node at which its walk stood.
    """

    causes: dict[str, Stood]
    decided: dict[str, dict[str, tuple[str, str]]] = {}
    stood: dict[str, str] = {}


class Exported(msgspec.Struct, frozen=True, tag="exported"):
    """A ticket was written."""

    format: str
    path: str


class Left(msgspec.Struct, frozen=True, tag="left"):
    """The session was closed in good order, which is where lists of sessions look.

    who: who left. cause: the first confirmed cause then, "" when there was none, None where that was not recorded.
    notes: how many notes there were. fixed: a person said what fixed that cause.
    """

    who: str = ""
    cause: str | None = None
    notes: int = 0
    fixed: bool = False


Event = (
    Opened
    | EvidenceAdded
    | EvidenceDropped
    | Found
    | FlowStarted
    | Answered
    | WentBack
    | RunAttached
    | CopyChanged
    | Noted
    | Fixed
    | Judged
    | Exported
    | Left
)


class Record(msgspec.Struct, frozen=True):
    """One line of the journal. n: 0-based sequence number without gaps. t: seconds since the epoch."""

    n: int
    t: float
    event: Event
