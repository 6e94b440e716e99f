"""A ticket before it is laid out: redacted, with the way back from its lines to the session's own texts.

The preview shows it and `export.prepare` lays it out. Choices are kept as the session's own texts, not as they leave:
a further hidden word changes what leaves, and what was dropped must stay dropped. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from runbook.ticket.preview import Line, preview, without
from runbook.ticket.redact import Identity, Key, redact, redact_transcript
from runbook.ticket.transcript import Transcript
from runbook.ticket.units import units


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

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Return what will leave, line by line."""
        return preview(self.hidden)

    @cached_property
    def origins(self) -> dict[str, set[str]]:
        """Return each text that will leave with the texts of the session that read so once redacted."""
        found: dict[str, set[str]] = {}
        for before, after in zip(units(self.raw), units(self.hidden), strict=True):
            found.setdefault(after.text, set()).add(before.text)
        return found

    def work_out(self) -> None:
        """Work out `lines` and `origins`, for somebody who must not wait for them later."""
        _ = self.lines, self.origins

    def texts(self, lines: Iterable[Line]) -> set[str]:
        """Return the session's own texts of some lines, as choices keep them."""
        return {text for line in lines for text in self.origins[line.text]}

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
