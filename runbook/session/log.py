"""Where the records of a desk go: a journal on disk, memory, or nowhere, since somebody else writes the session."""

from __future__ import annotations

from typing import Protocol

from runbook.errors import LostError
from runbook.session import events as ev
from runbook.text import sanitise


class Log(Protocol):
    """A log of a session."""

    def append(self, event: ev.Event, now: float) -> ev.Record:
        """Make the next record durable and return it; raises SessionError when it cannot be written."""

    def held(self) -> bool:
        """Return whether the session is still ours to write."""

    def close(self) -> None:
        """Release what is held."""


class Memory:
    """A log that keeps nothing: triage and tests."""

    def __init__(self) -> None:
        self._n = 0

    def append(self, event: ev.Event, now: float) -> ev.Record:
        """Return the next record."""
        record = ev.Record(self._n, now, event)
        self._n += 1
        return record

    def held(self) -> bool:
        """Return True: nobody else sees it."""
        return True

    def close(self) -> None:
        """Do nothing."""


class Reading:
    """The log of a reader: it takes nothing."""

    def append(self, event: ev.Event, now: float) -> ev.Record:  # noqa: ARG002  # the signature of a log
        """Raise LostError."""
        words = f"not written, for the session is only read here: {told(event)}"
        raise LostError(words, "take it over to write in it", what=told(event))

    def held(self) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Do nothing."""


def told(event: ev.Event) -> str:
    """Return an event in a few words that are safe to draw, for saying that it was not written."""
    if isinstance(event, ev.Noted):
        return f"note: {' / '.join(sanitise(line) for line in event.words.splitlines())}"
    if isinstance(event, ev.Answered):
        return f"answer {sanitise(event.answer)} at {sanitise(event.flow)}/{sanitise(event.node)}"
    if isinstance(event, ev.WentBack):
        return f"back to {sanitise(event.flow)}/{sanitise(event.node)}"
    if isinstance(event, ev.Found):
        return f"finding of {sanitise(event.finding.probe)}"
    return str(event.__struct_config__.tag)
