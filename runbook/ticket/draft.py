"""A ticket before it is laid out: redacted, with the way back from its lines to the session's own texts.

The preview shows it and `export.prepare` lays it out. Choices are kept as the session's own texts, not as they leave:
a further hidden word changes what leaves, and what was dropped must stay dropped. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from runbook.ticket.preview import Line, holds, listed, without
from runbook.ticket.redact import Identity, Key, redact, redact_transcript
from runbook.ticket.transcript import Transcript
from runbook.ticket.units import PERSON, Unit, units

_NOTES = ("notes", "told")
"""Names of the fields that hold a note alone: of a remark, and of an event in a bundle."""


@dataclass(frozen=True)
class Draft:
    """A transcript before (`raw`) and after redaction (`hidden`); `raw` and `key` never leave."""

    raw: Transcript
    hidden: Transcript
    key: Key
    identity: Identity = field(default=Identity())

    @staticmethod
    def of(raw: Transcript, identity: Identity, key: Key | None = None) -> Draft:
        """Return the draft of a transcript."""
        hidden, learned = redact_transcript(raw, identity, key)
        return Draft(raw, hidden, learned, identity)

    @property
    def pairs(self) -> Iterator[tuple[Unit, Unit]]:
        """Yield every text that may leave, before and after redaction."""
        yield from zip(units(self.raw), units(self.hidden), strict=True)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Return what will leave, line by line."""
        return listed((after for _, after in self.pairs), self.hidden.language)

    @cached_property
    def origins(self) -> dict[str, set[str]]:
        """Return each text that will leave with the texts of the session that read so once redacted."""
        found: dict[str, set[str]] = {}
        for before, after in self.pairs:
            found.setdefault(after.text, set()).add(before.text)
        return found

    @cached_property
    def _said(self) -> frozenset[str]:
        """Return the lines of people's notes, and what they wrote on fixes, as they leave."""
        return frozenset(after.text for _, after in self.pairs if after.origin == PERSON and after.what in _NOTES)

    def work_out(self) -> None:
        """Work out what lines are asked for, for somebody who must not wait for it later."""
        _ = self.lines, self.origins, self._said

    def texts(self, lines: Iterable[Line]) -> set[str]:
        """Return the session's own texts of some lines, as choices keep them.

        Notes that stand whole in such a line, as they do in the timeline, go with it.
        """
        chosen = [line.text for line in lines]
        inside = (text for whole in chosen for text in self._said if holds(whole, text))
        return {text for line in (*chosen, *inside) for text in self.origins[line]}

    def dropped(self, drop: Sequence[str]) -> frozenset[str]:
        """Return how texts of the session read once redacted: those of its lines, and such as only stand in others."""
        if not drop:
            return frozenset()
        wanted = set(drop)
        shown = {text for text, before in self.origins.items() if before & wanted}
        known = set().union(*self.origins.values())
        other = [text for text in drop if text not in known]
        return frozenset((*shown, *redact(other, self.identity, self.key).texts))

    def leaving(self, drop: Sequence[str]) -> Transcript:
        """Return the redacted transcript without the texts of the session that were dropped."""
        return without(self.hidden, self.dropped(drop))
