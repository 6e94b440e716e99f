"""What is taken around citations: true places, bounded amounts, and no half of a word."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook.bundle.excerpts import FILE_BYTES, REACHES, SMALL_BYTES, Wanted, collect, cost, take, wanted
from runbook.bundle.form import FILES
from runbook.bundle.shelf import Excerpts
from runbook.finding import Citation, Finding, Verdict, cite
from runbook.text import CUT, Text, sanitise
from runbook.window import CHUNK, LINE_BYTES, open_window
from tests.helpers import hostile_bytes, is_safe
from tests.runbook.test_window import numbered, write

REACH = REACHES[0]


def citing(path: str, verdict: Verdict, *lines: int) -> Finding:
    """Return a finding that cites lines of a file."""
    return Finding(verdict, None, Text("", ""), tuple(Citation(path, line, line * 10) for line in lines))


def test_the_most_telling_files_come_first() -> None:
    """Files of problems, then of warnings, then of the rest, then the changed copies; each place once."""
    findings = (
        citing("c", Verdict.OK, 1),
        citing("b", Verdict.WARNING, 2),
        citing("a", Verdict.PROBLEM, 3, 3),
        citing("b", Verdict.PROBLEM, 4),
    )
    files = wanted(findings, ("copy.sh", "c"))
    assert [(one.path, [c.line for c in one.citations]) for one in files] == [
        ("a", [3]), ("b", [4, 2]), ("c", [1]), ("copy.sh", []),
    ]  # fmt: skip
    many = wanted([citing(str(i), Verdict.OK, 1) for i in range(FILES + 5)])
    assert len(many) == FILES


def test_around_a_citation_in_a_large_log(tmp_path: Path) -> None:
    """Two hundred lines before and after each cited one, with their own offsets and numbers, and nothing between."""
    content, offsets = numbered(50_000)
    path = write(tmp_path, content)
    lines = (100, 25_000, 25_300, 49_990)
    excerpt = take(Wanted(path, tuple(Citation(path, n, offsets[n - 1], f"line {n}") for n in lines)), FILE_BYTES)
    numbers = [*range(1, 301), *range(24_800, 25_501), *range(49_790, 50_001)]
    assert [line.number for line in excerpt.lines] == numbers
    assert [line.offset for line in excerpt.lines] == [offsets[n - 1] for n in numbers]
    assert [line.text for line in excerpt.lines[:1]] == ["[rank0] line 1"]
    assert (excerpt.kind, excerpt.size, excerpt.notes) == ("text", len(content), {})


@pytest.mark.parametrize("packed", [False, True])
def test_a_small_cited_file_is_taken_whole(tmp_path: Path, packed: bool) -> None:
    """Every line of a small plain file is there, more than a window holds; of a packed one what is around."""
    content = b"".join(b"%d\n" % i for i in range(9_000))
    assert len(content) < SMALL_BYTES
    path = write(tmp_path, gzip.compress(content) if packed else content)
    excerpt = take(Wanted(path, (Citation(path, 3, 4, "2"),)), 4 * FILE_BYTES)
    numbers = [line.number for line in excerpt.lines]
    assert numbers == list(range(1, REACH + 4 if packed else 9_001))
    assert excerpt.size == (-1 if packed else len(content))


def test_the_end_of_a_packed_file_is_known_once_it_was_reached(tmp_path: Path) -> None:
    """A packed log that is all there has no hole behind its last line."""
    content, offsets = numbered(150)
    path = write(tmp_path, gzip.compress(content))
    excerpt = take(Wanted(path, (Citation(path, 100, offsets[99], "line 100"),)), FILE_BYTES)
    assert (len(excerpt.lines), excerpt.size) == (150, len(content))
    assert not any(line.hole for line in Excerpts([excerpt]).open(path).lines)


def test_less_is_taken_where_there_is_little_room(tmp_path: Path) -> None:
    """Fewer lines around each place, then none; never more bytes than there is room, for one file and for all."""
    content, offsets = numbered(50_000)
    path = write(tmp_path, content)
    citation = Citation(path, 25_000, offsets[24_999], "line 25000")
    for room, lines in ((100_000, 401), (10_000, 41), (1_000, 5), (100, 0)):
        excerpt = take(Wanted(path, (citation,)), room)
        assert len(excerpt.lines) == lines
        assert cost(excerpt.lines) <= room
    every = collect([Wanted(path, (citation,))] * 10, 60_000)
    assert sum(cost(one.lines) for one in every) <= 60_000


def test_what_is_no_text_is_said(tmp_path: Path) -> None:
    """A binary file, a folder and a missing file have no lines of text, and say which they are."""
    binary = write(tmp_path, bytes(range(256)) * 10, "x.bin")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b").touch()
    (tmp_path / "folder" / "a").mkdir()
    found = collect([Wanted(p, (Citation(p),)) for p in (binary, str(tmp_path / "folder"), str(tmp_path / "none"))])
    assert [(one.kind, [line.text for line in one.lines]) for one in found] == [
        ("binary", []), ("folder", ["a/", "b"]), ("missing", []),
    ]  # fmt: skip
    assert found[0].size == 2560
    assert found[2].why == "No such file or directory"


def test_a_place_that_reads_differently_is_noted(tmp_path: Path) -> None:
    """A citation whose line changed, or lies behind the end by now, keeps its remark."""
    content, offsets = numbered(50_000)
    path = write(tmp_path, content)
    citations = (Citation(path, 7, offsets[6], "something else"), Citation(path, 9, len(content) + 5, "gone"))
    excerpt = take(Wanted(path, citations), FILE_BYTES)
    assert excerpt.notes == {str(offsets[6]): "file_changed", str(len(content) + 5): "file_short"}


@pytest.mark.parametrize("width", [LINE_BYTES, LINE_BYTES + 1, 200_000])
def test_no_half_of_a_word_is_taken(tmp_path: Path, width: int) -> None:
    """A line that is cut ends at a whole word, and what goes on it begins with one: half a key is known as none."""
    secret = b"hf_" + b"AbCdEfGh" * 12
    head = b"x " * ((LINE_BYTES - 40) // 2)
    content = (head + secret + b" " + b"y " * width)[: max(width, LINE_BYTES)] + b"\nnext\n"
    path = write(tmp_path, content)
    for excerpt in (
        take(Wanted(path, (Citation(path, 1, 0, ""),)), FILE_BYTES),
        take(Wanted(path, (Citation(path, None, len(head) + 9, ""),)), FILE_BYTES),
    ):
        text = "\n".join(line.text for line in excerpt.lines)
        assert "AbCdEfGh" not in text
        assert (excerpt.lines[-1].text == "next") == (width < CHUNK)  # a window holds one piece of a longer line
    assert CUT in text


@settings(max_examples=40)
@given(st.lists(hostile_bytes, max_size=30), st.integers(0, 29), st.integers(0, 400))
def test_any_file_gives_lines_in_order_that_can_be_drawn(pieces: list[bytes], at: int, offset: int) -> None:
    """Whatever a file holds and wherever it is cited: safe texts, no overlap, true bytes, encodable, in their room."""
    folder = Path(os.environ["XDG_STATE_HOME"])
    content = b"\n".join(pieces)
    path = write(folder, content, "any.log")
    excerpt = take(Wanted(path, (Citation(path, at + 1, offset, "x"), Citation(path, None, at))), 5_000)
    end = 0
    for line in excerpt.lines:
        assert is_safe(line.text)
        assert line.offset >= end
        end = line.offset + line.size
        if excerpt.kind == "text" and not content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
            assert end <= len(content)
            whole = content[line.offset : end].rstrip(b"\r\n")
            assert line.text == sanitise(whole) or line.part or CUT in line.text or line.offset
    assert cost(excerpt.lines) <= 5_000 or excerpt.kind == "folder"
    assert msgspec.json.decode(msgspec.json.encode(excerpt), type=type(excerpt)) == excerpt


def test_an_excerpt_shows_what_the_file_showed(tmp_path: Path) -> None:
    """Around a citation the kept window holds the very lines of the window over the file, and stands at the same."""
    content, offsets = numbered(50_000)
    path = write(tmp_path, content)
    citation = cite(path, "[rank7] line 25000", line=25_000, offset=offsets[24_999])
    kept = Excerpts([take(Wanted(path, (citation,)), FILE_BYTES)]).open(path, citation)
    there = open_window(path, citation)
    assert kept.at is not None
    assert there.at is not None
    assert kept.lines[kept.at - REACH : kept.at + REACH + 1] == there.lines[there.at - REACH : there.at + REACH + 1]
    assert kept.note == there.note == ""
