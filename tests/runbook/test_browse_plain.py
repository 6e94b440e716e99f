"""Pages of browsers in plain text: what is not whole, and counts, are told in words."""

from __future__ import annotations

import pytest

from runbook.browse import Column, Jump, Level, Line, Passage, Reading, Sheet, checked
from runbook.browse_plain import write_page
from runbook.browse_rows import EVERY
from runbook.text import Text
from tests.runbook.test_plain import shown


@pytest.mark.parametrize(("done", "told"), [(0.4, "only 40% could be read"), (1.0, "")])
def test_a_sheet_that_is_not_whole_says_so(done: float, told: str) -> None:
    """What could not be read in time must not look like all there is."""
    sheet = checked(
        Sheet(Text("Rows", "行"), (Column("n", Text("n", "数"), number=True),), (Line("a", (1,)),), done=done)
    )
    lines = shown(lambda plain: write_page(plain, sheet, EVERY, "", None))
    assert lines[0] == "Rows  (1)"
    assert [line for line in lines if "could be read" in line] == ([told] if told else [])


@pytest.mark.parametrize(
    ("values", "words"),
    [((2.0, 0.0), "1 place differs by 1 mm or more"), ((2.0, 3.0), "2 places differ by 1 mm or more")],
)
def test_places_that_differ_are_counted(values: tuple[float, float], words: str) -> None:
    """One place differs, two places differ."""
    jumps = tuple(Jump(0, 0, i, i, value, "x") for i, value in enumerate(values) if value >= 1.0)
    reading = Reading(
        Text("Text", "文本"),
        (Passage(Text("Part", "部分"), ("a ", "b"), values=values),),
        unit="mm",
        levels=(Level(1.0, "bad", Text("far", "远")),),
        jumps=jumps,
    )
    assert words in shown(lambda plain: write_page(plain, checked(reading), EVERY, "", None))
