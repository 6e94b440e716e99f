"""What a bundle is made of: its members, their shapes, and how large they may be.

Writer and reader share this module and nothing else, so that the two cannot differ. Invariants: a name inside a bundle
is one that `NAME` matches; a number that is raised here makes no older bundle unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from runbook.browse import Browser
from runbook.catalog import Catalog
from runbook.changing import Changer
from runbook.errors import EvidenceError
from runbook.evidence import Slot
from runbook.flow.load import LoadedFlow, Source
from runbook.flow.model import Cause, Flow
from runbook.probe import Probe
from runbook.text import Text

TOOL = "slime-runbook"
SCHEMA = 1
"""Raised when a reader of an older version could misread a newer bundle."""
FORMAT, SUFFIX = "bundle", ".zip"
"""Name of the format in lists of formats, and how its files end."""

MANIFEST, JOURNAL, CATALOG = "manifest.json", "journal.jsonl", "catalog.json"
EXCERPTS = "excerpts/"
TICKET = "ticket"
"""What the names of the finished tickets begin with."""
NAME = re.compile(r"(?:excerpts/)?[A-Za-z0-9][A-Za-z0-9_-]{0,60}(?:\.[A-Za-z0-9_-]{1,20}){1,6}")

MEMBERS = 400
FILES = 300
"""Members of a bundle, and files of which it holds excerpts, at most."""
_MIB = 1024 * 1024
BUNDLE_BYTES = 64 * _MIB
WHOLE_BYTES = 128 * _MIB
"""Bytes of a bundle as it is, and of all its members unpacked, at most."""
LIMITS: tuple[tuple[str, int], ...] = (
    (MANIFEST, _MIB), (JOURNAL, 64 * _MIB), (CATALOG, 16 * _MIB), (EXCERPTS, 8 * _MIB), (TICKET, 32 * _MIB)
)  # fmt: skip
"""What the name of a member begins with, and its bytes unpacked at most."""
DENSE_BYTES, DENSEST = 4 * _MIB, 400
"""A member above so many bytes may unpack to so many times what it takes packed, at most."""


def limit_of(name: str) -> int:
    """Return how many bytes a member may have, 0 for one that is none of a bundle's."""
    return next((limit for start, limit in LIMITS if name.startswith(start)), 0)


class Member(msgspec.Struct, frozen=True):
    """A member. size: bytes unpacked. sha256: of these, in hexadecimal digits."""

    size: int
    sha256: str


class Hidden(msgspec.Struct, frozen=True):
    """How many values of one kind were hidden."""

    kind: str
    values: int


class Manifest(msgspec.Struct, frozen=True):
    """The first member: what this is and what else is in it.

    version: of the tool that wrote it. written: seconds since the epoch. session: id. language: of the ticket. flows:
    id to content hash. members: every other member by name. left_out: cited files of which nothing is in it, redacted.
    dropped: texts that the sender left out.
    """

    tool: str
    schema: int
    version: str
    written: float
    session: str
    language: str
    flows: dict[str, str] = {}
    members: dict[str, Member] = {}
    hidden: tuple[Hidden, ...] = ()
    left_out: tuple[str, ...] = ()
    dropped: int = 0


class Claim(msgspec.Struct, frozen=True):
    """What every manifest says, of whatever version."""

    tool: str
    schema: int
    version: str


class KeptFlow(msgspec.Struct, frozen=True):
    """A flow as it was. hash: of its content."""

    flow: Flow
    hash: str


class KeptProbe(msgspec.Struct, frozen=True):
    """What is shown of a probe; it cannot be asked."""

    id: str
    needs: tuple[str, ...]
    answers: tuple[str, ...]
    title: Text
    heavy: bool = False
    early: bool = False


class KeptSlot(msgspec.Struct, frozen=True):
    """What is shown of a slot."""

    name: str
    title: Text
    holds: str = "path"
    many: bool = False


class KeptBrowser(msgspec.Struct, frozen=True):
    """What is shown of a browser; it has nothing to open."""

    id: str
    needs: tuple[str, ...]
    title: Text


class KeptCatalog(msgspec.Struct, frozen=True):
    """The catalog as it was, in its order. changers: slots whose files could be changed."""

    flows: tuple[KeptFlow, ...]
    vocabulary: dict[str, Cause]
    probes: tuple[KeptProbe, ...] = ()
    slots: tuple[KeptSlot, ...] = ()
    browsers: tuple[KeptBrowser, ...] = ()
    changers: tuple[str, ...] = ()


class KeptLine(msgspec.Struct, frozen=True, array_like=True):
    """A line of an excerpt: its place in the file as it was, and its text, redacted.

    offset, size: bytes in the file. number: 1-based or None. part: it goes on a line that was too long for one piece.
    """

    offset: int
    size: int
    number: int | None
    part: bool
    text: str


class Excerpt(msgspec.Struct, frozen=True):
    """What is kept of one file; the fields are those of `runbook.window.Window`.

    notes: offset of a citation to what is to be said about its place. lines: in order, without overlap; between two
    that do not touch is a hole.
    """

    path: str
    kind: str
    size: int = 0
    packed: bool = False
    why: str = ""
    notes: dict[str, str] = {}
    lines: tuple[KeptLine, ...] = ()


def kept_catalog(catalog: Catalog) -> KeptCatalog:
    """Return what a bundle keeps of a catalog."""
    return KeptCatalog(
        tuple(KeptFlow(one.flow, one.hash) for one in catalog.loaded.values()),
        dict(catalog.vocabulary),
        tuple(KeptProbe(p.id, p.needs, p.answers, p.title, p.heavy, p.early) for p in catalog.probes.values()),
        tuple(KeptSlot(s.name, s.title, s.holds, s.many) for s in catalog.slots.values()),
        tuple(KeptBrowser(b.id, b.needs, b.title) for b in catalog.browsers.values()),
        tuple(catalog.changers),
    )


def catalog_of(kept: KeptCatalog) -> Catalog:
    """Return a catalog that draws as the one that was kept; nothing in it can be asked, opened or changed."""
    return Catalog(
        {p.id: Probe(p.id, p.needs, p.answers, p.title, _gone, heavy=p.heavy, early=p.early) for p in kept.probes},
        {s.name: Slot(s.name, s.title, None, s.holds, s.many) for s in kept.slots},
        (),
        {one.flow.flow: LoadedFlow(one.flow, Source("", {}), one.hash) for one in kept.flows},
        dict(kept.vocabulary),
        (),
        {b.id: Browser(b.id, b.needs, b.title, (), _gone) for b in kept.browsers},
        {slot: Changer(slot, _gone) for slot in kept.changers},
    )


def _gone(*_: Any) -> Any:
    raise EvidenceError("a bundle holds no evidence, only what was cited of it", "ask where the run is")


def words_of(plain: Any) -> list[str]:
    """Return every string in plain data, the keys of mappings too."""
    if isinstance(plain, str):
        return [plain]
    if isinstance(plain, Mapping):
        return [word for pair in plain.items() for part in pair for word in words_of(part)]
    if isinstance(plain, list | tuple):
        return [word for part in plain for word in words_of(part)]
    return []
