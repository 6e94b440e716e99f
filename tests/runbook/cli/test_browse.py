"""`browse`: the pages of a browser as text and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runbook import small
from tests.runbook.cli.world import World


@pytest.fixture
def run(world: World) -> Path:
    """Return a run with a log, which is all that the library wants."""
    return world.log(small.FINE)


def test_the_first_page_is_complete_and_plotted(world: World, run: Path) -> None:
    """Without a place the first page is printed once it is whole: its plot, its columns and every row with its sign."""
    done = world("browse", run, "--ascii")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == "Shelves  (12)"
    assert lines[1] == "weight"
    assert "  shelf  place   weight kg  dust" in lines
    assert lines[-1] == "     11  row 11        3.5  121%"
    assert "x     9  row 9         3.5   81%" in lines
    assert done.stdout.isascii()


def test_options_name_the_page_the_filter_and_the_order(world: World, run: Path) -> None:
    """The levels of the browser are options; rows are filtered and sorted as on the screen."""
    done = world("browse", run, "--shelf", 3, "--filter", "pages>90", "--sort", "title")
    assert [line.split()[1] for line in done.stdout.splitlines()[2:]] == ["Bread", "2", "Deep"]
    assert done.stdout.splitlines()[0] == "Books of shelf 3  (3 / 4)"
    down = world("browse", run, "--shelf", 3, "--sort=-book").stdout.splitlines()[2:]
    assert [line.removeprefix("▲").split()[0] for line in down] == ["3", "2", "1", "0"]
    found = world("browse", run, "--shelf", 3, "--filter", "secret").stdout.splitlines()
    assert [line.split() for line in found[2:]] == [["▲", "2", "Chess", "200", "0.50"]]


def test_a_text_is_printed_with_its_marks(world: World, run: Path) -> None:
    """Facts, the places that are far apart, and marks below the words; the second part begins at word 60."""
    text = world("browse", run, "--shelf", 0, "--book", 1, "--ascii").stdout
    assert "author: A. [b]Nonym[/b]" in text
    assert "6 places differ by 1 mm or more" in text
    assert "22  -2.500  ' jumps'" in text
    assert "^^^^^^-2.50" in text
    assert "\x00" not in text
    second = world("browse", run, "--shelf", 0, "--book", 1, "--part", 1).stdout
    assert "part 2 of 3" in second
    assert "\n    60  " in second


def test_json_is_the_page(world: World, run: Path) -> None:
    """The place, the rows that pass in their order, values as they are and null for what is not known."""
    done = world("browse", run, "--shelf", 3, "--filter", "pages<100", "--json")
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["browser"], answer["place"]) == (1, "shelf", ["3"])
    assert [line["cells"] for line in answer["page"]["lines"]] == [
        [3, "Deep sea", 95, None],
        [1, "Alps [red]", 80, -0.5],
    ]
    assert answer["page"]["type"] == "sheet"


def test_in_chinese(world: World, run: Path) -> None:
    """Titles, headings and cells of two languages."""
    assert "书架 3 的书" in world("browse", run, "--shelf", 3, "--lang", "zh").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--shelf", "77"), "there is no shelf '77'"),
        (("--book", "1"), "--shelf is missing"),
        (("--shelf", "1", "--sort", "colour"), "there is no such column"),
        (("--shelf", "1", "--filter", "pages>many"), "is no number"),
        (("--browser", "attic"), "unknown browser"),
    ],
)
def test_wrong_words_are_usage_errors_with_a_remedy(world: World, run: Path, words: tuple[str, ...], told: str) -> None:
    """Exit code 2, what is wrong, and what to do about it on the second line."""
    done = world("browse", run, *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert done.stdout == ""


def test_without_its_evidence_nothing_can_be_browsed(world: World) -> None:
    """A folder without anything of use: the options that would fill the slots are named."""
    empty = world.folder / "empty"
    empty.mkdir()
    done = world("browse", empty)
    assert done.returncode == 2
    assert "--log PATH or --scale PATH" in done.stderr
