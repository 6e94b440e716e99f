"""The answer of a probe that asks which of two switches of a job are on."""

from __future__ import annotations

from probes.settings import not_told
from runbook.finding import Citation, Finding, Verdict, found
from runbook.text import Text


def two_switches(
    one: bool | None,
    other: bool | None,
    answers: tuple[tuple[str, Text], tuple[str, Text], tuple[str, Text], tuple[str, Text]],
    lines: list[Citation],
    unknown: Text,
) -> Finding:
    """Return the finding for two switches, each None when it is not known.

    answers: word and sentence for both on, only the first, only the second, neither. lines: what says so. unknown: the
    sentence when a switch is not known.
    """
    if one is None or other is None:
        return not_told(unknown.en, unknown.zh, tuple(lines))
    answer, words = answers[(0 if other else 1) if one else (2 if other else 3)]
    return found(Verdict.OK, answer, words.en, words.zh, citations=tuple(lines))
