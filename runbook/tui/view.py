"""What a screen draws: one frozen snapshot of the session with the language, the signs and the inks to draw it in.

Invariant: drawing is a function of a View and the size; widgets keep nothing of the session between two snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from textual.content import Content

from runbook.browse import Browser
from runbook.catalog import Catalog
from runbook.flow.model import Flow
from runbook.glyphs import Sign, as_cut
from runbook.session.state import SessionState
from runbook.text import Text, sanitise
from runbook.triage import Report, Verdicted
from runbook.tui import words
from runbook.tui.signs import Signs
from runbook.tui.theme import Ink
from runbook.walk import position
from runbook.whereabouts import whereabouts
from runbook.window import FILES, Source

STILL_AFTER = 3.0
"""Seconds after which a running probe is said to be still running."""


@dataclass(frozen=True)
class Running:
    """A probe that waits or runs.

    elapsed: seconds, None while it waits. done, total, unit: its last report, total None when unknown.
    """

    elapsed: float | None = None
    done: float = 0.0
    total: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class View:
    """One snapshot.

    running: (run, probe id) to a probe that waits or runs. all_probes: what triage asks. files: where the lines of
    evidence come from. bundled: it is a bundle, so nothing can be asked, attached or changed. held: what a reader is
    told in the head, "" for who writes the session. seen: what earlier sessions know of confirmed causes, by cause.
    """

    state: SessionState
    report: Report
    catalog: Catalog
    language: str
    signs: Signs
    ink: Ink
    running: Mapping[tuple[str, str], Running] = field(default_factory=dict)
    all_probes: tuple[str, ...] = ()
    looking: bool = False
    saving: bool = False
    trouble: str = ""
    files: Source = FILES
    bundled: bool = False
    held: str = ""
    seen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def say(self, text: Text | None) -> str:
        """Return `text` in the language, safe to draw; "" for None."""
        return "" if text is None else sanitise(text.say(self.language))

    def safe(self, text: str, limit: int | None = None) -> str:
        """Return `text` safe to draw, cut to `limit` characters, its cut end in the signs in use."""
        return as_cut(sanitise(text, limit), ascii_only=self.signs.ascii_only)

    def word(self, key: str, /, **values: object) -> str:
        """Return UI words in the language."""
        return words.word(key, self.language, **values)

    def cause_title(self, cause: str) -> str:
        """Return the title of a cause, its id when the vocabulary does not know it."""
        entry = self.catalog.vocabulary.get(cause)
        return self.say(entry.title) if entry else sanitise(cause)

    def here(self, flow: Flow) -> str:
        """Return the node at which the walk through `flow` stands."""
        return position(flow, self.state.walk(flow.flow))

    def is_address(self, path: str) -> bool:
        """Return whether evidence holds `path`, or what it lies in, in a slot of addresses rather than of files."""
        return any(
            (path == item.path or path.startswith(item.path.rstrip("/") + "/"))
            and (slot := self.catalog.slots.get(item.slot)) is not None
            and slot.holds == "url"
            for item in self.state.items
        )

    def whereabouts(self, width: int) -> tuple[str, ...]:
        """Return where the session stands, in lines of at most `width` cells that are safe to draw."""
        catalog = self.catalog
        lines = whereabouts(self.state, self.report, catalog.flows, catalog.vocabulary, self.language, width=width)
        return tuple(as_cut(line, ascii_only=self.signs.ascii_only) for line in lines)

    def browsers(self, run: str = "") -> list[Browser]:
        """Return the browsers whose evidence is there."""
        evidence = self.state.evidence(run)
        return [browser for browser in self.catalog.browsers.values() if not browser.lacks(evidence)]

    def can_change(self) -> bool:
        """Return whether the first run holds a file of which a changed copy can be written."""
        evidence = self.state.evidence()
        return any(evidence.paths(slot) for slot in self.catalog.changers)

    def verdict_of(self, cause: str) -> Verdicted | None:
        """Return how a cause stands in the report."""
        return next((v for v in (*self.report.causes, *self.report.ruled_out) if v.cause == cause), None)

    def sign(self, sign: Sign) -> str:
        """Return the one-column sign of a status."""
        return sign.draw(ascii_only=self.signs.ascii_only)

    def role_ink(self, role: str) -> str:
        """Return the style of a colour role of `runbook.glyphs`."""
        return {
            "good": self.ink.good,
            "bad": self.ink.bad,
            "warn": self.ink.warn,
            "accent": self.ink.accent,
        }.get(role, self.ink.dim)

    def status(self, sign: Sign, width: int = 0) -> Content:
        """Return sign and word of a status in its colour, padded to `width` cells."""
        words = Content.styled(f"{self.sign(sign)} {sign.words.say(self.language)}", self.role_ink(sign.role))
        return words.pad_right(max(0, width - words.cell_length))
