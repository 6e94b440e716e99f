"""The plain text ticket keeps to 80 columns and loses nothing."""

from __future__ import annotations

import re
import unicodedata

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from runbook.ticket import transcript as tr
from runbook.ticket.plain_wrap import hang, wrap
from runbook.ticket.renderers import renderer
from tests.runbook.ticket.hostile import HOSTILE_WORDS, hostile_state
from tests.runbook.ticket.sample import drawn_finding, drawn_state, sample, walked_state

WORDS = st.lists(
    st.sampled_from(
        ["rank", "3", "停在第十七步，", "（然后）", "🔥", "/home/user-12/a", "x" * 30, " ", "  ", "-", "é", "host-1"]
    ),
    max_size=30,
).map(" ".join) | st.text(alphabet="ab 字，🔥/-", max_size=80)


def _cells(text: str) -> int:
    """Return the width by the standard library: two cells for wide and full-width characters."""
    return sum(
        2 if unicodedata.east_asian_width(one) in "WF" else 0 if unicodedata.combining(one) else 1 for one in text
    )


@given(WORDS, st.integers(12, 80))
@settings(max_examples=400, deadline=None)
def test_lines_fit_and_nothing_is_lost(text: str, width: int) -> None:
    """No line is wider than asked for, and without blanks the lines are the text."""
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", text)


@given(WORDS, st.integers(16, 80))
@settings(max_examples=200, deadline=None)
def test_a_pseudonym_is_not_broken(text: str, width: int) -> None:
    """user-12 stays in one line: the first half of it would read as the name of a user."""
    text = f"{text} /home/user-12/x"
    assert sum(line.count("user-12") for line in wrap(text, width)) == text.count("user-12")


def test_lines_break_where_a_reader_expects() -> None:
    """Between words, between wide characters but not before closing punctuation, at signs in a long path."""
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("停在第十七步，然后", 12) == ["停在第十七", "步，然后"]
    assert wrap("/mnt/nfs/runs/grpo-235b/job.log", 16) == ["/mnt/nfs/runs/", "grpo-235b/job.", "log"]
    assert hang("job.log:3: one two", 14, "  ", "    ") == ["  job.log:3:", "    one two"]
    assert wrap("", 10) == [""]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_line_is_at_most_eighty_columns(language: str) -> None:
    """In both languages, with plots, grids, edits and tables; commands and addresses, which are copied, excepted."""
    command = "nvidia-smi --query-gpu=driver_version " + "x" * 80
    of = sample(drawn_state(drawn_finding(lines=9)), language)
    step = msgspec.structs.replace(of.next.actions[0], command=command)
    of = msgspec.structs.replace(of, next=msgspec.structs.replace(of.next, actions=(step,)))
    lines = renderer("text").render(of).decode().splitlines()
    assert f"    {command}" in lines
    assert max(_cells(line) for line in lines if command not in line) <= 80


@pytest.mark.parametrize("words", HOSTILE_WORDS, ids=range(len(HOSTILE_WORDS)))
def test_hostile_text_keeps_the_width(words: str) -> None:
    """Whatever stands in evidence, no line is wider than 80 cells."""
    lines = renderer("text").render(sample(hostile_state(words))).decode().splitlines()
    assert max(map(cell_len, lines)) <= 80


def test_tables_are_aligned_and_wrapped_within_their_cells() -> None:
    """Columns begin at the same place in every line; a long cell goes on below itself; wide characters count two."""
    table = tr.Table("Sizes", ("层", "what"), (("第一层", "word " * 20), ("2", "x")))
    of = sample(walked_state())
    check = msgspec.structs.replace(of.checks[0], tables=(table,))
    text = renderer("text").render(msgspec.structs.replace(of, checks=(check,))).decode()
    lines = text[text.index("Sizes (2)") :].splitlines()[3:8]
    assert lines == [
        "层      what",
        "------  " + "-" * 72,
        "第一层  " + "word " * 13 + "word",
        "        " + "word " * 5 + "word",
        "",
    ]


def test_a_table_of_many_columns_is_written_row_by_row() -> None:
    """Where columns would be too narrow to read, each cell stands under the name of its column."""
    names = tuple(f"column{n}" for n in range(20))
    of = sample(walked_state())
    check = msgspec.structs.replace(of.checks[0], tables=(tr.Table("Wide", names, (names[::-1],)),))
    text = renderer("text").render(msgspec.structs.replace(of, checks=(check,))).decode()
    assert "\ncolumn0: column19\ncolumn1: column18\n" in text


def test_a_faked_heading_stands_off() -> None:
    """Lines of evidence that look like a heading are indented, so that they are none."""
    of = sample(walked_state())
    of = msgspec.structs.replace(of, symptoms=("x\n\nStanding\n--------\n\nall is well",))
    text = renderer("text").render(of).decode()
    assert len(re.findall(r"^Standing\n--------$", text, re.MULTILINE)) == 1
    assert "\n  Standing\n  --------\n" in text
