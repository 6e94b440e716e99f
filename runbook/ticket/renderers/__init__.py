"""The formats of a ticket: one module each, found by its name, with a module-level `RENDERER`.

A format is added by adding a module; nothing else is edited. Invariant: a renderer lays out a redacted transcript and
takes nothing from elsewhere, so that what was hidden stays hidden.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from runbook.errors import UsageError
from runbook.ticket.transcript import Transcript


def one_text(content: bytes) -> tuple[tuple[str, str], ...]:
    """Return a text export as what a receiver reads: one nameless text."""
    return (("", content.decode("utf-8")),)


SENDER_ROOM = 1000
"""Characters below the receiver's limit that stay free for what a sender adds: mark, links to files, names."""


@dataclass(frozen=True)
class Laid:
    """A ticket in one layout. shortened: something had to be left out to stay under the layout's limit."""

    content: bytes
    shortened: bool = False


@dataclass(frozen=True)
class Renderer:
    """A format.

    suffix: of the file, with its dot. render: lays a transcript out. read: yields (name of a part, its text) of a
    finished export, for the scan that looks for what must not leave; a format that is no plain text brings its own.
    limit: characters that the receiver takes, None for no limit. lay: as `render`, for a format with a limit, and
    tells whether something was left out; see `limited`. wraps: it breaks words into lines, so that the scan looks at
    the transcript as well.
    """

    suffix: str
    render: Callable[[Transcript], bytes] = field(repr=False)
    read: Callable[[bytes], Iterable[tuple[str, str]]] = field(default=one_text, repr=False)
    limit: int | None = None
    lay: Callable[[Transcript], Laid] | None = field(default=None, repr=False)
    wraps: bool = False

    def laid(self, transcript: Transcript) -> Laid:
        """Return the ticket, and whether something was left out."""
        return self.lay(transcript) if self.lay is not None else Laid(self.render(transcript))


def limited(
    suffix: str,
    lay: Callable[[Transcript], Laid],
    limit: int,
    read: Callable[[bytes], Iterable[tuple[str, str]]] = one_text,
) -> Renderer:
    """Return a format with a limit. lay: lays a transcript out within `limit` characters."""
    return Renderer(suffix, lambda transcript: lay(transcript).content, read, limit, lay)


def formats() -> tuple[str, ...]:
    """Return the names of all formats, in alphabetical order, without importing one."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def renderer(format: str) -> Renderer:
    """Return the renderer of a format; raises UsageError when there is none of that name."""
    if format not in formats():
        raise UsageError(f"{format!r} is no ticket format", f"formats: {', '.join(formats())}")
    found = importlib.import_module(f"{__name__}.{format}").RENDERER
    assert isinstance(found, Renderer)
    return found
