"""Excerpts as a source of windows: the kept lines, a line for each hole, and the cited one found."""

from __future__ import annotations

from runbook.bundle.form import Excerpt, KeptLine
from runbook.bundle.shelf import Excerpts
from runbook.finding import Citation
from runbook.window import Window

LINES = (
    KeptLine(100, 10, 11, False, "eleven"),
    KeptLine(110, 10, 12, False, "twelve"),
    KeptLine(300, 5, 40, False, "forty"),
)
SHELF = Excerpts(
    (
        Excerpt("a.log", "text", 400, notes={"110": "file_changed"}, lines=LINES),
        Excerpt("a.log", "text", 1, lines=LINES[:1]),
        Excerpt("packed.gz", "text", -1, packed=True, lines=LINES[:1]),
        Excerpt("x.bin", "binary", 77),
        Excerpt("gone", "missing", why="No such file"),
        Excerpt("folder", "folder", lines=(KeptLine(0, 0, None, False, "a/"),)),
        Excerpt("no-room.log", "text", 5),
        Excerpt("empty.log", "text", 0),
    )
)


def test_holes_stand_for_what_was_not_kept() -> None:
    """Before, between and behind the kept lines stands one line each, with the number of bytes that are not there."""
    window = SHELF.open("a.log")
    shape = [(line.offset, line.size, line.number, line.hole) for line in window.lines]
    assert shape == [
        (0, 100, None, True), (100, 10, 11, False), (110, 10, 12, False),
        (120, 180, None, True), (300, 5, 40, False), (305, 95, None, True),
    ]  # fmt: skip
    assert sum(line.size for line in window.lines) == window.size == 400
    assert SHELF.open("packed.gz").lines[-1].size == -1


def test_it_stands_at_the_cited_line() -> None:
    """A citation by the offset of its line, or by one inside it, is found with its remark; in a hole is the hole."""
    at = {offset: SHELF.open("a.log", Citation("a.log", None, offset)).at for offset in (100, 113, 150, 302, 399, 400)}
    assert at == {100: 1, 113: 2, 150: 3, 302: 4, 399: 5, 400: None}
    assert SHELF.open("a.log", Citation("a.log", 12, 110)).note == "file_changed"
    assert SHELF.open("a.log", Citation("a.log", 11, 100)).note == ""
    assert SHELF.open("a.log").at == 0
    assert SHELF.open("a.log", tail=True).at == 5


def test_what_has_no_lines_says_why() -> None:
    """A binary, a missing file, a folder, a file without room, an empty one and one that was never cited differ."""
    kinds = {path: SHELF.open(path).kind for path in (*SHELF.by_path, "never")}
    assert kinds == {
        "a.log": "text", "packed.gz": "text", "x.bin": "binary", "gone": "missing", "folder": "folder",
        "no-room.log": "absent", "empty.log": "text", "never": "absent",
    }  # fmt: skip
    assert SHELF.open("gone").why == "No such file"
    assert SHELF.open("x.bin").size == 77
    assert [line.raw for line in SHELF.open("folder").lines] == [b"a/"]
    assert SHELF.open("empty.log").at is None


def test_there_is_nothing_to_read_on() -> None:
    """A window has both its ends and stays as it is."""
    window = SHELF.open("a.log")
    assert window.ends == (True, True)
    assert all(SHELF.extend(window, after=after) is window for after in (True, False))
    assert isinstance(window, Window)
