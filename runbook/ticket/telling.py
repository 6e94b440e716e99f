"""What every layout of a ticket says in the same way: its words, its paths, its times and its quotes, unescaped."""

from __future__ import annotations

import time
from collections.abc import Iterable

from runbook.ticket.transcript import Place, Remark, RuledOut, Transcript
from runbook.ticket.words import say


class Telling:
    """A transcript and how it is told."""

    def __init__(self, transcript: Transcript) -> None:
        self.of = transcript

    def say(self, key: str, **values: object) -> str:
        """Return the ticket's own words; they need no escaping, the values in them do."""
        return say(key, self.of.language, **values)

    def path(self, place: Place) -> str:
        """Return path and line of a place; the path is relative to the run, which stands at the top."""
        root = self.of.root.rstrip("/")
        if root and place.path.startswith(f"{root}/"):
            return place.where[len(root) + 1 :]
        return place.where.rpartition("/")[2] if root and place.path == root else place.where

    def between(self, sentences: Iterable[str]) -> str:
        """Return sentences with semicolons between, without their full stops."""
        return self.say("between").join(sentence.rstrip(".。 ") for sentence in sentences)

    def closed(self) -> dict[tuple[str, str, Place | None], list[RuledOut]]:
        """Return what is ruled out by what closed the way: its words, its probe and its place."""
        groups: dict[tuple[str, str, Place | None], list[RuledOut]] = {}
        for out in self.of.ruled_out:
            groups.setdefault((out.by, out.probe, out.place), []).append(out)
        return groups

    def quoted(self, place: Place) -> str:
        """Return a place as grep prints it: path, line and the very text."""
        times = f"  [{self.say('times', count=place.count)}]" if place.count > 1 else ""
        return f"{self.path(place)}{times}" + (f": {place.excerpt}" if place.excerpt else "")


def when(seconds: float) -> str:
    """Return a time in UTC, "–" when it is unknown."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) if seconds > 0 else "–"


def signed(note: Remark) -> str:
    """Return who wrote a note, at which question, and when."""
    time = f"{when(note.time)} UTC" if note.time > 0 else ""
    return " · ".join(part for part in (note.who, note.node, time) if part) or "–"
