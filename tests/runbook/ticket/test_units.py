"""Every text of a transcript is a unit, with its place, and with the one whose words it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from runbook.picture import Cells
from runbook.ticket import transcript as tr
from runbook.ticket.redact import Identity, redact_transcript
from runbook.ticket.transcript import Transcript
from runbook.ticket.units import EVIDENCE, FIXED, PERSON, SECTIONS, TOOL, units
from tests.runbook.ticket.sample import LINE, drawn_finding, drawn_state, open_state, sample, triage_state, walked_state

SAMPLES = {
    "triage": sample(triage_state()),
    "walked": sample(walked_state()),
    "open": sample(open_state()),
    "drawn": sample(drawn_state(drawn_finding())),
    "chinese": sample(walked_state(), "zh"),
}


def _every(value: Any) -> Iterator[str]:
    """Yield every string of a transcript that is not from a closed set, read without the code under test."""
    if isinstance(value, str):
        yield from value.splitlines()
    elif isinstance(value, Cells):
        yield from (value.title, *value.rows, *value.columns, *(words for _, words, _ in value.legend))
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            if (type(value), field) not in FIXED:
                yield from _every(getattr(value, field))
    elif isinstance(value, tuple):
        for one in value:
            yield from _every(one)


@pytest.mark.parametrize("name", SAMPLES)
def test_no_text_of_a_transcript_is_missed(name: str) -> None:
    """Every string that a person, a probe or a flow wrote is the text of a unit or in its place."""
    transcript = SAMPLES[name]
    found = list(units(transcript))
    said = "\n".join(f"{unit.place}\n{unit.text}" for unit in found)
    plain = msgspec.structs.replace(transcript, session="", language="", redaction=())
    missed = {text for text in _every(plain) if text.strip() and text not in said}
    assert missed == set()


def test_every_field_of_a_transcript_has_its_section() -> None:
    """A new field is listed, unless the tool alone fills it with numbers, ids or the report of the redaction."""
    listed = [field for _, fields in SECTIONS for field in fields]
    rest = {"schema", "language", "session", "walked", "began", "changed", "redaction"}
    assert len(listed) == len(set(listed))
    assert set(listed) | rest == set(Transcript.__struct_fields__)


@pytest.mark.parametrize("name", SAMPLES)
def test_redaction_changes_no_number_of_units(name: str) -> None:
    """The units before and after redaction stand side by side: as many, of the same fields."""
    raw = SAMPLES[name]
    hidden, _ = redact_transcript(raw, Identity(("lihua",), (), ("grpo", "DeepEP")))
    before, after = list(units(raw)), list(units(hidden))
    assert [(unit.field, unit.what) for unit in before] == [(unit.field, unit.what) for unit in after]
    assert any("hidden-1" in unit.text for unit in after)


def test_a_unit_says_where_it_stands_and_whose_words_it_is() -> None:
    """Excerpts and log lines are evidence, notes and answers by hand are a person's, the rest is the tool's."""
    found = list(units(sample(walked_state())))
    excerpts = [unit for unit in found if unit.text == LINE]
    assert {unit.origin for unit in excerpts} == {EVIDENCE}
    assert {unit.place.rpartition("/")[2] for unit in excerpts} == {"job.log:48211"}
    assert {"standing", "evidence", "timeline"} <= {unit.section for unit in excerpts}
    notes = [unit for unit in found if unit.field == "notes"]
    assert [unit.text for unit in notes] == [
        "Paged by alert #4711.",
        "lihua@gpu-node-17 saw it twice; ask wang.fang@corp.example.net",
    ]
    assert {unit.origin for unit in notes} == {PERSON}
    by_hand = {unit.text: unit.origin for unit in found if unit.field == "answers" and unit.what == "answer"}
    assert by_hand["garbled"] == PERSON
    assert by_hand["deepep"] == TOOL
    assert {unit.origin for unit in found if unit.text == "The diagnosis began."} == {TOOL}


def test_a_command_is_as_many_units_as_it_has_lines() -> None:
    """A text of several lines can lose single ones."""
    commands = [unit.text for unit in units(sample(triage_state())) if unit.what == "command"]
    assert commands[:2] == ["pip show deep_ep | head -n 3", "nvidia-smi --query-gpu=driver_version --format=csv"]


def test_a_row_is_one_unit() -> None:
    """The cells of a row stand side by side, below the title of their table."""
    rows = [unit for unit in units(sample(triage_state())) if unit.what == "row"]
    assert [unit.text for unit in rows] == ["3 | buffer.py:511 `low_latency_dispatch`", "5 | a|b"]
    assert {unit.place for unit in rows} == {"cuda.stack Last frames by rank"}


def test_what_has_only_a_name_is_listed_by_it() -> None:
    """A place without an excerpt, of which nothing else is told, is a text itself."""
    bare = msgspec.structs.replace(
        sample(triage_state()), problems=(tr.Proof("a.probe", "", (tr.Place("/run/only-here.bin"),)),)
    )
    assert ("/run/only-here.bin", "path") in {(unit.text, unit.what) for unit in units(bare)}
