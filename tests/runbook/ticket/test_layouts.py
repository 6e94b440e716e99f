"""Every layout says the same in the same order, stays within its limit, and makes nothing of hostile text but text."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook.errors import UsageError
from runbook.finding import Citation, Finding, Grid, Verdict
from runbook.session import events as ev
from runbook.session.state import fold
from runbook.text import sanitise
from runbook.ticket import transcript as tr
from runbook.ticket.fit import length
from runbook.ticket.renderers import Laid, formats, renderer
from runbook.ticket.words import say
from tests.runbook.ticket.crowd import COSTLY, crowded
from tests.runbook.ticket.hostile import HOSTILE_WORDS, hostile_state
from tests.runbook.ticket.reading import LAYOUTS, headings, says, squeezed
from tests.runbook.ticket.sample import (
    FLOWS,
    drawn_finding,
    drawn_state,
    open_state,
    sample,
    text,
    triage_state,
    walked_state,
)

ORDER = (
    "problem", "standing", "evidence", "checked", "ruled_out", "unknown", "next",
    "environment", "timeline", "answers", "redaction",
)  # fmt: skip
"""Sections in the order of the design."""

LIMITS = {"adf": 32_767, "gitlab": 1_000_000, "jira": 32_767, "markdown": 65_536}
"""What the receivers take: Jira Cloud, GitLab, Jira, GitHub."""

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_formats_are_found_by_their_modules() -> None:
    """A format is a module with a renderer; an unknown one is refused with the list; those with a limit say so."""
    assert {*LAYOUTS, "json"} <= set(formats())
    assert {name: renderer(name).limit for name in formats() if renderer(name).limit} == LIMITS
    assert len({renderer(name).suffix for name in formats()}) == len(formats())
    with pytest.raises(UsageError, match="no ticket format"):
        renderer("docx")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("state", [triage_state, walked_state, open_state], ids=["triage", "walked", "open"])
@pytest.mark.parametrize("format", LAYOUTS)
def test_every_section_is_there_in_order(format: str, state: object, language: str) -> None:
    """The sections of the design, in both languages; only a timeline without a moment is left out."""
    assert callable(state)
    of = sample(state(), language)
    expected = [say(key, language) for key in ORDER if key != "timeline" or of.timeline]
    assert headings(format, renderer(format).render(of)) == expected


@pytest.mark.parametrize("format", LAYOUTS)
def test_every_confirmed_cause_has_its_first_line(format: str) -> None:
    """Path, line and text of the first citation of each confirmed cause stand in every layout."""
    of = sample(drawn_state(drawn_finding()))
    told = says(format, renderer(format).render(of))
    assert len(of.confirmed) == 2
    for cause in of.confirmed:
        place = cause.proofs[0].places[0]
        assert place.line is not None
        assert squeezed(f"job.log:{place.line}") in told
        assert squeezed(place.excerpt) in told
        assert squeezed(cause.title) in told


@pytest.mark.parametrize("format", LAYOUTS)
def test_where_it_stands_comes_before_the_problem(format: str) -> None:
    """Where it stands follows the title, what the ledger knows stands in the problem; empty ones leave no trace."""
    of = msgspec.structs.replace(sample(walked_state()), where=("stands-here", "and_there"), seen=("seen 3 times",))
    told = says(format, renderer(format).render(of))
    places = [
        told.index(squeezed(words)) for words in (of.title, "stands-here", "and_there", of.session, "seen 3 times")
    ]
    assert places == sorted(places)
    assert told.index("seen3times") < told.index(squeezed("Causes: 2 confirmed"))
    bare = renderer(format).render(msgspec.structs.replace(of, where=(), seen=()))
    assert "stands-here" not in bare.decode()
    assert headings(format, bare) == [say(key, "en") for key in ORDER]


@pytest.mark.parametrize("format", LAYOUTS)
def test_a_note_tells_author_and_time(format: str) -> None:
    """Who wrote a note and when stands with it; a note without either has a dash."""
    of = sample(walked_state())
    assert squeezed("— lihua · 2026-11-29 18:47:00 UTC").lstrip("—") in says(format, renderer(format).render(of))
    bare = msgspec.structs.replace(of, notes=(tr.Remark(("said",), 0.0),))
    assert "said" in says(format, renderer(format).render(bare))


@pytest.mark.parametrize("words", HOSTILE_WORDS, ids=range(len(HOSTILE_WORDS)))
@pytest.mark.parametrize("format", LAYOUTS)
def test_hostile_text_neither_breaks_out_nor_vanishes(format: str, words: str) -> None:
    """It leaves the sections as they are, reads as itself in every place, and brings no control character."""
    of = sample(hostile_state(words))
    content = renderer(format).render(of)
    assert headings(format, content) == [say(key, "en") for key in ORDER]
    assert says(format, content).count(squeezed(sanitise(words))) >= 8
    assert not CONTROL.search(content.decode())


@pytest.mark.parametrize("format", LAYOUTS)
@pytest.mark.timeout(120)
def test_a_line_of_a_megabyte_does_no_harm(format: str) -> None:
    """A megabyte of a log, a summary, a name, a label or a note is cut where there is a limit and whole elsewhere."""
    words = "x" * 1_000_000
    grid = Grid(text("g"), (words,), ("a",), (words,), ())
    cited = (Citation(words, 3, 9, words),)
    long = Finding(Verdict.PROBLEM, "ima", text(words), cited, grids=(grid,), probe="cuda.fault")
    state = fold(walked_state(), ev.Record(0, 1795978000.0, ev.Found(long)), FLOWS)
    of = sample(fold(state, ev.Record(0, 1795978000.0, ev.Noted(words, "ann")), FLOWS))
    laid = renderer(format).laid(of)
    assert headings(format, laid.content) == [say(key, "en") for key in ORDER]
    if format in LIMITS:
        assert _counted(format, laid.content) <= LIMITS[format]
    else:
        assert words in (laid.content.decode() if format == "html" else says(format, laid.content))


@given(st.text(max_size=60))
@settings(max_examples=25, deadline=None)
def test_any_text_keeps_every_structure(words: str) -> None:
    """Any Unicode text in every place of evidence leaves the sections of every layout as they are."""
    of = sample(hostile_state(words))
    for format in LAYOUTS:
        assert headings(format, renderer(format).render(of)) == [say(key, "en") for key in ORDER]


def _counted(format: str, content: bytes) -> int:
    """Return the length that the receiver counts: of ADF, what it says."""
    return sum(length(text) for _, text in renderer(format).read(content))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", list(COSTLY))
@pytest.mark.parametrize("format", list(LIMITS))
def test_every_layout_stays_within_its_limit(format: str, kind: str, language: str) -> None:
    """However much there is and however costly, it fits, says that it was shortened, and keeps what matters."""
    of = crowded(COSTLY[kind], language, lines=4000, causes=60)
    laid = renderer(format).laid(of)
    assert laid.shortened
    assert LIMITS[format] // 3 < _counted(format, laid.content) <= LIMITS[format]
    assert headings(format, laid.content) == [say(key, language) for key in ORDER]
    told = says(format, laid.content)
    first = of.confirmed[0]
    words = squeezed(COSTLY[kind])[:8]
    start, standing = squeezed(say("problem", language)), squeezed(say("counts", language, confirmed=30, possible=30,
                                                                       ruled_out=300, unknown=300))  # fmt: skip
    problem = told[told.index(start) : told.index(standing)]
    assert first.cause in problem
    assert squeezed(f"/0.log:1[{say('times', language, count=2)}]").partition("[")[0] in problem
    assert words in problem
    assert squeezed(say("fix", language)) in problem
    assert "whole.txt" in told[-400:]


@pytest.mark.parametrize("format", list(LIMITS))
@pytest.mark.timeout(120)
def test_twenty_thousand_lines_and_three_hundred_causes_fit(format: str) -> None:
    """The largest session that is to be expected, in characters that count twice."""
    laid = renderer(format).laid(crowded(COSTLY["emoji"]))
    assert laid.shortened
    assert _counted(format, laid.content) <= LIMITS[format]


@pytest.mark.parametrize("format", LAYOUTS)
def test_a_ticket_that_fits_is_whole(format: str) -> None:
    """An ordinary session is not shortened, and says nothing of the kind."""
    of = sample(walked_state())
    laid = renderer(format).laid(of)
    assert laid == Laid(renderer(format).render(of))
    assert "whole.txt" not in laid.content.decode()


def test_the_text_has_all_that_others_left_out() -> None:
    """Each line, cause, question and note of a crowded session stands in the plain text, whole."""
    of = crowded("rank 3 stopped ", lines=400, causes=12)
    told = says("text", renderer("text").render(of))
    for proof in of.problems:
        for place in proof.places:
            assert squeezed(f"{place.path}:{place.line}:{place.excerpt}") in told
    for cause in of.causes:
        assert cause.cause in told
    assert told.count(squeezed(of.notes[0].lines[0])) >= 300 * 20


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("format", LAYOUTS)
def test_log_times_stand_apart_from_those_of_people(format: str, language: str) -> None:
    """The log's own clock is named as such, and its lines come before what people did, whatever the times are."""
    of = sample(walked_state(), language)
    late = tuple(tr.Moment(9e9 if one.source == "log" else one.time, *_rest(one)) for one in of.timeline)
    told = says(format, renderer(format).render(msgspec.structs.replace(of, timeline=late)))
    clocks = [told.rindex(squeezed(say(f"timeline.{key}", language))) for key in ("log", "people")]
    assert clocks == sorted(clocks)
    assert squeezed(say("col.log_time", language)) in told[clocks[0] : clocks[1]]
    assert "2255-03" not in told[clocks[1] :]
    assert "2255-03" in told[clocks[0] : clocks[1]]


def _rest(moment: tr.Moment) -> tuple[str, str, str]:
    return moment.source, moment.what, moment.where


@pytest.mark.parametrize("format", LAYOUTS)
def test_what_one_finding_rules_out_is_one_row(format: str) -> None:
    """Its sentence stands once above all its causes; sentences that are listed lose their full stops."""
    of = sample(walked_state())
    out = tuple(tr.RuledOut(f"cause-{n}", f"title {n}", "Closed by this sentence.", "a.probe") for n in range(20))
    found = msgspec.structs.replace(of, ruled_out=out, clear=("All is fine.", "So is this."))
    told = says(format, renderer(format).render(found))
    assert told.count(squeezed("Closed by this sentence.")) == 1
    assert all(f"cause-{n}" in told for n in range(20))
    assert squeezed("All is fine; So is this") in told
    assert ".;" not in told


@pytest.mark.parametrize("format", LAYOUTS)
def test_possible_causes_that_nothing_points_to_are_counted(format: str) -> None:
    """Only the led ones are listed, under a heading of their own; the rest is one line."""
    of = sample(walked_state())
    many = tuple(
        msgspec.structs.replace(of.confirmed[0], cause=f"maybe-{n:02}", standing="possible", led=n < 2)
        for n in range(30)
    )
    told = says(format, renderer(format).render(msgspec.structs.replace(of, causes=(*of.confirmed, *many))))
    assert "maybe-01" in told
    assert "maybe-02" not in told
    assert squeezed(say("more_possible", "en", count=28)) in told
    assert squeezed(say("possible", "en")) in told
