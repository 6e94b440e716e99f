"""A bundle before it is packed: the ticket's draft, and every text that leaves in the journal and the excerpts besides.

The preview shows it and `runbook.bundle.write` packs it, so what leaves is what was looked at. Invariants: the ticket's
lines come first, with the numbers that they have without the rest; every redacted text of journal and excerpts is the
text of some line; ids and the flows are no texts (docs/bundle.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runbook.bundle.form import Excerpt
from runbook.bundle.redaction import Hiding, replaced
from runbook.session import events as ev
from runbook.session.journal import Header
from runbook.ticket.draft import Draft
from runbook.ticket.units import EVIDENCE, PERSON, TOOL, Unit, row_text

JOURNAL_SECTION, EXCERPTS_SECTION = "journal", "excerpts"
"""Headings in `runbook.ticket.words` of what is in the bundle besides the ticket."""

_OF_EVIDENCE = (ev.EvidenceAdded, ev.EvidenceDropped, ev.Found, ev.RunAttached, ev.CopyChanged)
_OF_PERSON = (ev.Noted, ev.Fixed)


@dataclass(frozen=True, kw_only=True)
class BundleDraft(Draft):
    """The draft of a bundle. header: of the journal. hiding: its records and the excerpts, before and after redaction.

    key: the one of the whole bundle, with which the ticket is redacted too.
    """

    header: Header
    hiding: Hiding

    @property
    def pairs(self) -> Iterator[tuple[Unit, Unit]]:
        """Yield every text that may leave before and after redaction, those of the ticket first."""
        yield from super().pairs
        for record in self.hiding.records:
            yield from self._told(record.event)
        for excerpt in self.hiding.excerpts:
            yield from self._taken(excerpt)

    def _told(self, event: ev.Event) -> Iterator[tuple[Unit, Unit]]:
        """Yield the texts of an event line by line; a row of a table is one text, as in the ticket."""
        known = self.hiding.known
        found: list[tuple[str, str]] = []

        def note(text: str) -> str:
            found.extend(zip(text.splitlines(), known[text].splitlines(), strict=True))
            return text

        def row(cells: tuple[str, ...]) -> tuple[str, ...]:
            found.append((_one_line(cells), _one_line(tuple(known[cell] for cell in cells))))
            return cells

        replaced(event, note, row)
        origin = EVIDENCE if isinstance(event, _OF_EVIDENCE) else PERSON if isinstance(event, _OF_PERSON) else TOOL
        place = event.finding.probe if isinstance(event, ev.Found) else ""
        for before, after in found:
            if after.strip():
                unit = Unit(JOURNAL_SECTION, JOURNAL_SECTION, place, "told", origin, after)
                yield unit._replace(text=before), unit

    def _taken(self, excerpt: Excerpt) -> Iterator[tuple[Unit, Unit]]:
        """Yield the lines of an excerpt with their places, and why a file has none."""
        known = self.hiding.known
        path = known[excerpt.path].removeprefix(f"{self.hidden.root}/") if self.hidden.root else known[excerpt.path]
        texts = [(path, excerpt.why)]
        texts += [(f"{path}:{line.number}" if line.number else f"{path} +{line.offset}", line.text)
                  for line in excerpt.lines]  # fmt: skip
        for place, text in texts:
            if known[text].strip():
                unit = Unit(EXCERPTS_SECTION, EXCERPTS_SECTION, place, "excerpt", EVIDENCE, known[text])
                yield unit._replace(text=text), unit


def _one_line(cells: tuple[str, ...]) -> str:
    text = row_text(cells)
    return text if len(text.splitlines()) == 1 else " ".join(text.split())
