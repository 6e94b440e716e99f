"""What a person drops is gone from every part and format of a ticket, and nothing else is."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.ticket.draft import Draft
from runbook.ticket.preview import Dropping, Mark, long_enough, marks, preview, remaining, without
from runbook.ticket.redact import Identity
from runbook.ticket.renderers import formats, renderer
from runbook.ticket.transcript import Transcript
from runbook.ticket.units import units
from runbook.ticket.words import say
from tests.helpers import HOSTILE
from tests.runbook.ticket.sample import drawn_finding, drawn_state, sample, walked_state

WALKED = Draft.of(sample(walked_state()), Identity(("lihua",))).hidden
DRAWN = Draft.of(sample(drawn_state(drawn_finding()), "zh"), Identity(("lihua",))).hidden
PHRASE = "[left out by the sender]"


def _line(words: str, transcript: Transcript = WALKED) -> str:
    """Return the text of the preview that holds some words; the shortest, as the tool puts them into others too."""
    return min((line.text for line in preview(transcript) if words in line.text), key=len)


def _formats_of(transcript: Transcript) -> dict[str, str]:
    laid_out = {}
    for name in formats():
        chosen = renderer(name)
        laid_out[name] = "\n".join(text for _, text in chosen.read(chosen.render(transcript)))
    return laid_out


def test_the_preview_has_every_text_once_in_the_order_of_the_ticket() -> None:
    """Equal texts are one line with the number of its places; numbers count from one."""
    lines = preview(WALKED)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert len({line.text for line in lines}) == len(lines)
    assert sum(line.count for line in lines) == len(list(units(WALKED)))
    order = list(dict.fromkeys(line.section for line in lines))
    assert order[:4] == ["problem", "standing", "evidence", "checked"]
    fault = next(line for line in lines if "AcceleratorError" in line.text)
    assert fault.count == 4  # the proof, the step of the way there, the check, the timeline
    assert fault.place.endswith("job.log:48211")


def test_pseudonyms_are_marked_with_their_kind() -> None:
    """A mark is the place of a pseudonym and the kind of what it hides; a word like one with more digits is none."""
    assert marks("user-1@host-12 saw it") == (Mark(0, 6, "user"), Mark(7, 14, "host"))
    assert marks("user-1234567 and superuser-1 and user_1") == ()
    note = next(line for line in preview(WALKED) if line.text == _line("saw it twice"))
    assert [(note.text[m.start : m.end], m.kind) for m in note.marks] == [
        ("user-1", "user"),
        ("host-1", "host"),
        ("mail-1", "mail"),
    ]


def test_dropping_changes_no_number() -> None:
    """The preview is of what was not dropped yet, so the numbers stay while a person drops."""
    draft = Draft.of(sample(walked_state()), Identity(("lihua",)))
    before = draft.lines
    draft.leaving([before[3].text])
    assert draft.lines == before
    assert Draft.of(sample(walked_state()), Identity(("lihua",))).lines == before


@pytest.mark.parametrize("words", ["AcceleratorError", "saw it twice", "ends in DeepEP", "low_latency_dispatch`"])
def test_a_dropped_text_is_gone_from_every_format(words: str) -> None:
    """A citation, a note, a finding and a row of a table are in no format any more; the phrase stands there."""
    dropped = _line(words)
    before, after = _formats_of(WALKED), _formats_of(without(WALKED, [dropped]))
    assert set(after) >= {"markdown", "html", "json"}
    for name in after:
        assert words.rstrip("`") in before[name].replace("\\", ""), name
        assert not list(remaining(after[name], [dropped])), name
        assert say("left_out_by_sender", "en")[1:-1] in after[name], name


def test_everything_else_stays() -> None:
    """Dropping one citation leaves every other text as it was, and adds one line to the redaction report."""
    dropped = _line("AcceleratorError")
    after = without(WALKED, [dropped])
    expected = [PHRASE if unit.text == dropped else unit.text for unit in units(WALKED)]
    assert [unit.text for unit in units(after)] == expected
    assert after.redaction[:-1] == WALKED.redaction
    told = after.redaction[-1]
    assert (told.kind, told.values, told.count) == ("lines left out by the sender", 1, 4)
    assert told.where == ("Standing", "Evidence lines", "What was checked", "Timeline")


def test_dropping_nothing_or_what_is_not_there_changes_nothing() -> None:
    """No line of the report is made up."""
    assert without(WALKED, []) is WALKED
    assert without(WALKED, ["nowhere in this ticket"]) is WALKED


def test_one_line_of_a_note_goes_from_the_timeline_too() -> None:
    """The timeline has the lines of a note in one; a short one goes from there as well."""
    short = msgspec.structs.replace(
        WALKED,
        notes=(msgspec.structs.replace(WALKED.notes[0], lines=("ask Bo", "call again")),),
        timeline=(msgspec.structs.replace(WALKED.timeline[-1], what="Note: ask Bo / call again"),),
    )
    after = without(short, ["ask Bo"])
    assert after.notes[0].lines == (PHRASE, "call again")
    assert after.timeline[0].what == f"Note: {PHRASE} / call again"


def test_a_short_text_goes_only_where_it_stands_by_itself() -> None:
    """An answer of three letters is in many words that have nothing to do with it."""
    after = without(WALKED, ["ima"])
    assert not any(unit.text == "ima" for unit in units(after))
    assert "ima-deepep" in json.dumps(msgspec.to_builtins(after))


def test_a_row_goes_as_a_whole_and_its_table_keeps_its_shape() -> None:
    """The first cell says so, the others are empty."""
    after = without(WALKED, ["3 | buffer.py:511 `low_latency_dispatch`"])
    (table,) = next(check.tables for check in after.checks if check.tables)
    assert table.rows == ((PHRASE, ""), ("5", "a|b"))


def test_a_measurement_goes_with_its_number() -> None:
    """What is shown and the number behind it are the same text in two forms."""
    after = without(WALKED, ["8192"])
    number = next(number for check in after.checks for number in check.numbers if number.name == "hidden_size")
    assert (number.shown, number.value) == (PHRASE, None)


def test_a_copy_that_was_cut_goes_too() -> None:
    """Neither the cut beginning of a dropped text nor the whole of a dropped cut one stays."""
    whole = "a long line of a log that somebody cut in the middle of it"
    cut = "a long line of a log that…"
    assert Dropping([whole], "en").line(cut) == PHRASE
    assert Dropping([cut], "en").line(whole) == PHRASE
    assert Dropping([whole], "en").line("a long line…") == "a long line…"  # too little of it to know


def test_blanks_and_what_stands_around_do_not_keep_a_text_alive() -> None:
    """A dropped text is found with other blanks, in a longer line, and more than once."""
    dropping = Dropping(["secret plan of ours"], "en")
    assert dropping.line("  secret   plan of ours ") == PHRASE
    assert dropping.line("x secret  plan of ours, secret plan of ours y") == f"x {PHRASE}, {PHRASE} y"
    assert Dropping(["四个汉字"], "zh").line("这里有四个汉字。") == "这里有[发送者已略去]。"


def test_the_second_look_finds_a_dropped_text_through_markup() -> None:
    """Escapes, entities, invisible characters and line breaks do not hide it; the line is named."""
    text = "first\n\nthe \\[worker\\] said &lt;no&gt;\nto @\u200ball of it\nlast"
    assert list(remaining(text, ["[worker] said <no> to @all"])) == [(3, "[worker] said <no> to @all")]
    assert list(remaining(text, ["[worker] said <yes> to @all", "no"])) == []


@given(st.lists(st.sampled_from(preview(WALKED)), max_size=6), st.sampled_from(formats()))
def test_whatever_is_dropped_is_gone_and_no_ticket_is_refused_for_it(chosen: list[object], format: str) -> None:
    """In every format, for any set of lines: no line reads like a dropped one and the second look is content."""
    dropped = {line.text for line in preview(WALKED) if line in chosen}
    after = without(WALKED, dropped)
    for unit in units(after):
        assert unit.text not in dropped
        assert not any(long_enough(text) and text in unit.text for text in dropped)
    chosen_format = renderer(format)
    for _, text in chosen_format.read(chosen_format.render(after)):
        assert list(remaining(text, dropped)) == []


@given(st.lists(st.sampled_from(preview(DRAWN)), max_size=4))
def test_titles_labels_and_diffs_of_pictures_are_texts_like_others(chosen: list[object]) -> None:
    """What names a plot, a picture or an edited file can be dropped, and every layout still draws the rest."""
    dropped = {line.text for line in preview(DRAWN) if line in chosen}
    after = without(DRAWN, dropped)
    assert not {unit.text for unit in units(after)} & dropped
    for laid_out in _formats_of(after).values():
        assert list(remaining(laid_out, dropped)) == []


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30)), max_size=5), st.text(max_size=80))
def test_any_text_can_be_dropped(dropped: list[str], line: str) -> None:
    """No text breaks the dropping; dropping again changes nothing; what is dropped is gone."""
    dropping = Dropping(dropped, "en")
    once = dropping.text(line)
    assert dropping.text(once) == once
    for text in dropped:
        if long_enough(text) and text not in PHRASE:
            assert text not in once
