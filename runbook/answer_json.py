"""The JSON of `triage --json`: a contract with scripts, so it is a structure of its own and has a schema.

Its keys are fixed: nothing may be renamed. What is added later goes into a new schema number, unless it is left out
where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from runbook.finding import Citation, Finding
from runbook.flow.model import Action
from runbook.session.state import SessionState
from runbook.triage import Report, Standing, Verdicted

if TYPE_CHECKING:
    from runbook.ledger.telling import Sighting

SCHEMA = 1


class JsonEvidence(msgspec.Struct):
    """One item of evidence."""

    slot: str
    path: str
    why: str


class JsonCitation(msgspec.Struct):
    """A place that proves something; line is 1-based, offset in bytes."""

    path: str
    line: int | None
    offset: int | None
    excerpt: str
    count: int


class JsonAction(msgspec.Struct, omit_defaults=True):
    """Something a person can do; one of command, change and link is set."""

    say: str = ""
    command: str = ""
    link: str = ""
    change: dict[str, Any] = {}


class JsonCause(msgspec.Struct):
    """A confirmed or possible cause. rank counts from 1, confirmed causes first."""

    cause: str
    standing: str
    rank: int
    flow: str
    node: str
    summary: str
    citations: list[JsonCitation]
    consequences: list[str]
    actions: list[JsonAction]
    verify: list[str]


class JsonRuledOut(msgspec.Struct):
    """A cause that evidence excludes. by: always "probe": triage knows evidence only, no person's answers."""

    cause: str
    by: str
    citations: list[JsonCitation]


class JsonUnknown(msgspec.Struct):
    """An open node with its reason and what would settle it."""

    node: str
    flow: str
    why: str
    settle_with: str


class JsonFinding(msgspec.Struct):
    """What one probe said; seconds of wall time."""

    probe: str
    verdict: str
    answer: str | None
    summary: str
    seconds: float


class JsonSeen(msgspec.Struct):
    """What earlier sessions know of a confirmed cause.

    times: sessions with the same fingerprint. first, last: seconds since the epoch of the earliest and the latest of
    them, session: the latest. fixed: what fixed it in session fixed_in, "" when nobody said. other_lines: sessions that
    confirmed the cause by other lines only.
    """

    cause: str
    times: int
    first: float
    last: float
    session: str
    fixed: str
    fixed_in: str
    other_lines: int


class JsonAnswer(msgspec.Struct):
    """The whole answer of a triage. seen: left out where no earlier session knows anything."""

    schema: int
    evidence: list[JsonEvidence]
    causes: list[JsonCause]
    ruled_out: list[JsonRuledOut]
    unknown: list[JsonUnknown]
    findings: list[JsonFinding]
    seen: list[JsonSeen] | msgspec.UnsetType = msgspec.UNSET


def answer_json(
    state: SessionState,
    report: Report,
    titles: dict[str, str],
    language: str,
    seen: Mapping[str, Sighting] | None = None,
) -> JsonAnswer:
    """Return the answer for one triage.

    titles: cause id to its words, used where no finding explains the cause. seen: what earlier sessions know, by cause.
    """
    return JsonAnswer(
        SCHEMA,
        [JsonEvidence(item.slot, item.path, item.why.say(language)) for item in state.items if not item.missing],
        [_cause(cause, rank, titles, language) for rank, cause in enumerate(report.causes, 1)],
        [JsonRuledOut(c.cause, "probe", [_citation(x) for x in c.citations]) for c in report.ruled_out],
        [
            JsonUnknown(open_.node, open_.flow, open_.why.say(language), open_.settle_with.say(language))
            for open_ in report.unknown
        ],
        [_finding(finding, language) for finding in state.findings_of().values()],
        [_seen(cause, one) for cause, one in seen.items()] if seen else msgspec.UNSET,
    )


def answer_schema() -> dict[str, Any]:
    """Return the JSON Schema of the answer."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(JsonAnswer)}


def _cause(cause: Verdicted, rank: int, titles: dict[str, str], language: str) -> JsonCause:
    confirmed = cause.standing is Standing.CONFIRMED
    summary = (
        " ".join(finding.summary.say(language) for finding in cause.by) if confirmed else titles.get(cause.cause, "")
    )
    return JsonCause(
        cause.cause,
        cause.standing.value,
        rank,
        cause.flow,
        cause.node,
        summary,
        [_citation(citation) for citation in cause.citations] if confirmed else [],
        list(cause.consequences),
        [_action(action, language) for action in cause.leaf.actions],
        list(cause.leaf.verify),
    )


def _seen(cause: str, seen: Sighting) -> JsonSeen:
    return JsonSeen(cause, seen.times, seen.first, seen.last, seen.session, seen.fixed, seen.fixed_in, seen.others)


def _citation(citation: Citation) -> JsonCitation:
    return JsonCitation(citation.path, citation.line, citation.offset, citation.excerpt, citation.count)


def _action(action: Action, language: str) -> JsonAction:
    change = msgspec.to_builtins(action.change) if action.change else {}
    say = action.say.say(language) if action.say else ""
    return JsonAction(say, action.command or "", action.link or "", {key: v for key, v in change.items() if v})


def _finding(finding: Finding, language: str) -> JsonFinding:
    return JsonFinding(
        finding.probe, finding.verdict.value, finding.answer, finding.summary.say(language), finding.seconds
    )
