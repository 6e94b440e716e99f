"""The decorator that makes a function a probe, and the progress it may report.

A probe answers one question from evidence. It runs in a worker process, may be killed at any moment, and must not
write to the run, execute anything found in it or reach an address it was not given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from runbook.evidence import Evidence
from runbook.finding import Finding
from runbook.text import Text

DEADLINE = 60.0
"""Seconds a probe may take unless it declares another deadline."""


class Progress(Protocol):
    """How a probe says how far it is."""

    def __call__(self, done: float, total: float | None, unit: str) -> None:
        """Report `done` of `total` (None when unknown) in `unit`; cheap, never blocks, may be dropped."""


def silent(done: float, total: float | None, unit: str) -> None:
    """Drop progress: for tests and for callers that do not show it."""


@dataclass(frozen=True)
class Probe:
    """A probe's declaration.

    id: dotted name. needs: evidence slots that must all be there; "a|b" means that one of them suffices. answers:
    the words a flow may branch on. title: the question in words. deadline: seconds. heavy: reads bulk data, so
    it runs only where a person asks for it, at its node or of all. early: it looks only at what is quickest to look
    at, so that something is seen within a second; its finding decides nothing and is not kept, and no flow may ask it.
    over: answers that say that what is looked at has ended, so that nobody need watch it any longer.
    """

    id: str
    needs: tuple[str, ...]
    answers: tuple[str, ...]
    title: Text
    run: Callable[[Evidence, Progress], Finding] = field(repr=False)
    deadline: float = DEADLINE
    heavy: bool = False
    early: bool = False
    over: tuple[str, ...] = ()


def probe(
    id: str,
    *,
    needs: str | tuple[str, ...],
    answers: tuple[str, ...],
    en: str,
    zh: str,
    deadline: float = DEADLINE,
    heavy: bool = False,
    early: bool = False,
    over: tuple[str, ...] = (),
) -> Callable[[Callable[[Evidence, Progress], Finding]], Probe]:
    """Turn a function of (evidence, progress) into a Probe; the module-level name is then the probe itself."""

    def declare(run: Callable[[Evidence, Progress], Finding]) -> Probe:
        wanted = (needs,) if isinstance(needs, str) else needs
        return Probe(id, wanted, answers, Text(en, zh), run, deadline, heavy, early, over)

    return declare
