"""The lines of a reading and the marks below them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from runbook.browse import Passage, Reading
from runbook.browse_layout import HIDDEN, lay_out, marks
from runbook.text import Text
from tests.runbook.shelf import LEVELS

PIECE = st.text(alphabet="ab 汉é\n", max_size=12)


def reading(*pieces: str, values: tuple[float | None, ...] = ()) -> Reading:
    """Return a reading of one passage."""
    return Reading(Text("t", "t"), (Passage(Text("p", "p"), pieces, values=values),), levels=LEVELS)


def drawn(*pieces: str, width: int = 20, values: tuple[float | None, ...] = ()) -> list[str]:
    """Return the lines and, where there are any, the marks below each."""
    page = reading(*pieces, values=values)
    lines = []
    for laid in lay_out(page, 0, width):
        lines.append(laid.text)
        below = marks(page, laid, ascii_only=True)
        lines += [below] if below else []
    return lines


@given(st.lists(PIECE, max_size=20), st.integers(4, 30))
def test_every_character_stands_in_one_line(pieces: list[str], width: int) -> None:
    """Line ends aside, the spans of a piece put together are the piece; no line is wider than asked for."""
    lines = lay_out(reading(*pieces), 0, width)
    for place, piece in enumerate(pieces):
        spans = [span for line in lines for span in line.spans if span.piece == place]
        assert "".join(span.text for span in spans) == piece.replace("\n", "")
    for line in lines:
        assert cell_len(line.text) <= width
        assert [span.start for span in line.spans] == [cell_len(line.text[:at]) for at in begins(line.spans)]
    joined = [span.piece for line in lines for span in line.spans]
    assert joined == sorted(joined)


def begins(spans: object) -> list[int]:
    """Return at which character each span begins."""
    at, found = 0, []
    assert isinstance(spans, tuple)
    for span in spans:
        found.append(at)
        at += len(span.text)
    return found


def test_lines_break_at_blanks_and_where_the_text_says() -> None:
    """A word of several pieces stays whole; a line end in a piece ends the line; an empty line is one."""
    assert drawn("one", " two", " thr", "ee", width=10) == ["one two", " three"]
    assert drawn("a\n", "\nb", "c") == ["a", "", "bc"]


def test_a_piece_that_is_too_wide_is_cut() -> None:
    """Ten cells of Chinese fit five characters."""
    assert drawn("汉" * 7, width=10) == ["汉" * 5, "汉" * 2]


def test_marks_stand_below_their_pieces() -> None:
    """A little off is dashed, far off is marked and its value written where there is room; the rest has no mark."""
    assert drawn("aa", "bb", "cc", "dd", values=(0.1, 0.5, -3.0, None)) == ["aabbccdd", "  --^^-3.00"]
    assert drawn("aa", "bb", "cc", values=(2.0, 1.5, 0.0)) == ["aabbcc", "^^^^+1.50"]
    assert drawn("aa", values=(0.0,)) == ["aa"]


def test_marks_count_cells_and_not_characters() -> None:
    """Two Chinese characters before a piece put its mark four cells to the right."""
    assert drawn("汉字", "x", values=(0.0, 1.0)) == ["汉字x", "    ^+1.00"]


@pytest.mark.parametrize("ascii_only", [False, True])
def test_half_a_character_that_is_off_can_be_seen(ascii_only: bool) -> None:
    """A piece without text but with a level is drawn as a sign; without a level it is nothing."""
    page = reading("", "x", values=(-2.0, 0.0))
    (line,) = lay_out(page, 0, 20, ascii_only=ascii_only)
    assert line.text == HIDDEN[ascii_only] + "x"
    assert drawn("", "x", values=(0.0, 0.0)) == ["x"]
