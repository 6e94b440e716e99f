"""Pages of browsers: safe to draw, bounded, and found by the catalogue as probes are."""

from __future__ import annotations

import math
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook import browse
from runbook.browse import Ask, Column, Line, Passage, Reading, Sheet, checked, open_page, say_value
from runbook.catalog import load_browsers, load_probes
from runbook.errors import EvidenceError
from runbook.evidence import Evidence
from runbook.text import Text, visible
from tests.helpers import HOSTILE, evidence_of, hostile_text, is_safe
from tests.runbook import shelf

MODULE = "tests.runbook.shelf"


def words(text: str) -> Text:
    """Return words that are the same in both languages."""
    return Text(text, text)


def test_a_page_is_opened_by_module_and_id() -> None:
    """What a worker runs finds the browser by its module and id, and returns its page."""
    page = open_page(MODULE, "shelf", Evidence(), Ask(("3",)))
    assert isinstance(page, Sheet)
    assert [line.cells[1] for line in page.lines] == ["Bread", "Alps [red]", "Chess", "Deep sea"]
    with pytest.raises(LookupError, match="no browser attic"):
        open_page(MODULE, "attic", Evidence(), Ask())


def test_a_place_that_is_not_there_is_an_error_of_the_user() -> None:
    """The error names the place and what there is."""
    with pytest.raises(EvidenceError) as caught:
        open_page(MODULE, "shelf", Evidence(), Ask(("77",)))
    assert "'77'" in caught.value.message
    assert "0 to 11" in caught.value.hint


def test_a_browser_says_what_it_lacks() -> None:
    """One slot of a need suffices; with none of them the need itself is named."""
    assert shelf.shelf.lacks(evidence_of(("scale", "/x"))) == []
    assert shelf.shelf.lacks(evidence_of(("other", "/x"))) == ["log|scale"]


def test_the_catalogue_finds_the_browser_of_dumps() -> None:
    """A browser at module level of a probe package is found, also without reading any flow."""
    assert "dumps" in load_browsers()
    assert load_probes().browsers["dumps"].needs == ("rollout_dump|train_dump",)
    assert isinstance(browse, ModuleType)


@given(hostile_text)
def test_every_text_of_a_sheet_is_safe(text: str) -> None:
    """Titles, cells in one or two languages and notes come back without anything that a terminal obeys."""
    column = Column("a", words(text))
    sheet = checked(Sheet(words(text), (column, column), (Line("x", (text, words(text))),), notes=(words(text),)))
    assert isinstance(sheet, Sheet)
    cells = sheet.lines[0].cells
    assert isinstance(cells[0], str)
    assert isinstance(cells[1], Text)
    for said in (sheet.title.en, cells[0], cells[1].zh, sheet.notes[0].en):
        assert is_safe(said)


@given(st.lists(hostile_text, max_size=6))
def test_every_piece_of_a_reading_is_safe_and_none_is_lost(pieces: list[str]) -> None:
    """Pieces keep their number and their line ends; what must not be drawn is written out as an escape."""
    page = checked(Reading(words("t"), (Passage(words("p"), tuple(pieces)),), facts=((words("f"), "".join(pieces)),)))
    assert isinstance(page, Reading)
    assert len(page.passages[0].pieces) == len(pieces)
    for raw, piece in zip(pieces, page.passages[0].pieces, strict=True):
        assert all(is_safe(line) for line in piece.split("\n"))
        assert piece.count("\n") == raw.count("\n")


@pytest.mark.parametrize("char", [char for char in HOSTILE if len(char) == 1 and char != "\t"])
def test_a_hidden_character_can_be_seen(char: str) -> None:
    """A control or bidi character in a piece is written as its escape, for it may be what one looks for."""
    shown = visible(f"a{char}b")
    assert shown == "a" + char.encode("unicode_escape").decode() + "b"


def test_a_page_that_breaks_the_contract_is_refused() -> None:
    """Uneven rows, uneven values, and more than crosses to the front are errors of the browser, not of the screen."""
    column = Column("a", words("a"))
    with pytest.raises(ValueError, match="another number of cells"):
        checked(Sheet(words("t"), (column,), (Line("x", (1, 2)),)))
    with pytest.raises(ValueError, match="another number of values"):
        checked(Reading(words("t"), (Passage(words("p"), ("a", "b"), values=(1.0,)),)))
    with pytest.raises(ValueError, match="in windows"):
        checked(Reading(words("t"), (Passage(words("p"), ("a",) * (browse.PIECE_LIMIT + 1)),)))
    with pytest.raises(ValueError, match="rows"):
        checked(Sheet(words("t"), (column,), (Line("x", (1,)),) * (browse.ROW_LIMIT + 1)))


def test_columns_are_measured() -> None:
    """The width of a column is that of its widest cell as it is written; a Chinese character takes two cells."""
    columns = (Column("a", words("a"), number=True, digits=1), Column("b", words("b")))
    sheet = checked(Sheet(words("t"), columns, (Line("x", (1234.56, "汉字")), Line("y", (None, "abc")))))
    assert isinstance(sheet, Sheet)
    assert [column.width for column in sheet.columns] == [len("1,234.6"), 4]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, ""),
        (0.0, "0.00"),
        (12, "12"),
        (-1234567, "-1,234,567"),
        (math.nan, "nan"),
        ("x", "x"),
        (Text("e", "z"), "z"),
    ],
)
def test_values_are_said_as_people_write_them(value: browse.Cell, said: str) -> None:
    """What is not known is blank and never 0; words of two languages are said in the one in force."""
    assert say_value(value, "zh", 2) == said


def test_a_share_is_said_in_percent() -> None:
    """A quarter is 25 percent."""
    assert say_value(0.25, "en", 2, percent=True) == "25%"


def test_a_value_has_the_highest_level_that_it_reaches() -> None:
    """The distance from zero counts, whatever its sign; what is not finite or not known has no level."""
    reading = Reading(words("t"), (), levels=shelf.LEVELS)
    assert [reading.level(v) for v in (0.1, 0.2, -0.99, -1.0, 50.0)] == [-1, 0, 0, 1, 1]
    assert [reading.level(v) for v in (None, math.nan, math.inf)] == [-1, -1, -1]
