"""Browsing with keys and mouse: levels, filters, orders, windows, and what happens when a page does not come."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from runbook.browse import Browser, Sheet
from runbook.catalog import Catalog, load_catalog
from runbook.evidence import Item
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.text import Text
from runbook.tui.app import RunbookApp
from runbook.tui.browse import BrowseScreen
from runbook.tui.browse_sheet import SheetPane, SheetRows
from runbook.tui.browse_tokens import Tokens
from runbook.tui.start import StartScreen
from tests.helpers import is_safe
from tests.probes.dump_makers import run_folder
from tests.runbook import shelf
from tests.runbook.tui import kitchen
from tests.runbook.tui.driving import ROOT, a_desk, drawn, type_in, until


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def library(*browsers: Browser) -> Catalog:
    """Return the kitchen with browsers, by default that of the shelves."""
    return dataclasses.replace(kitchen.catalog(), browsers={b.id: b for b in browsers or (shelf.shelf,)})


@asynccontextmanager
async def driven(desk: Desk, size: tuple[int, int] = (80, 24), **app: Any) -> AsyncIterator[Pilot[Any]]:
    """Drive an app over a desk."""
    shown = RunbookApp(desk, **app)
    try:
        async with shown.run_test(size=size) as pilot:
            yield pilot
    finally:
        shown.pages.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    """Return a desk over the kitchen and its library."""
    with a_desk(catalog=library()) as one:
        yield one


def screen(pilot: Pilot[Any]) -> BrowseScreen:
    """Return the browse screen, which is in front."""
    front = pilot.app.screen
    assert isinstance(front, BrowseScreen)
    return front


async def still(pilot: Pilot[Any]) -> None:
    """Wait until no page is on its way and all is drawn."""
    app = pilot.app
    assert isinstance(app, RunbookApp)
    await until(pilot, lambda: not app.pages.busy)
    await pilot.pause(0.05)
    await pilot.pause()


async def press(pilot: Pilot[Any], *keys: str) -> str:
    """Press keys, waiting after each, and return what is drawn."""
    for key in keys:
        await pilot.press(key)
        await still(pilot)
    assert isinstance(pilot.app, RunbookApp)
    return drawn(pilot.app)


def said(pilot: Pilot[Any]) -> str:
    """Return what was said in a corner."""
    return "\n".join(note.message for note in pilot.app._notifications)


def first_cells(pilot: Pilot[Any]) -> list[str]:
    """Return the ids of the rows in sight, in order."""
    return screen(pilot).query_one(SheetPane).keys()


async def test_one_key_opens_and_esc_goes_up_level_by_level(desk: Desk) -> None:
    """After v, Enter, Enter a text is open; Esc leads back level by level, each with its cursor, to the start."""
    async with driven(desk) as pilot:
        assert "Library" in await press(pilot, "v")
        assert "Books of shelf 2" in await press(pilot, "j", "j", "enter")
        assert "shelf 2 · book 0" in await press(pilot, "j", "enter")
        assert "Books of shelf 2" in await press(pilot, "escape")
        assert screen(pilot).query_one(SheetRows).key == "0"
        assert "Shelves" in await press(pilot, "escape")
        assert screen(pilot).query_one(SheetRows).key == "2"
        await press(pilot, "escape", "escape")
        assert isinstance(pilot.app.screen, StartScreen)


async def test_a_page_that_was_only_a_part_is_completed(desk: Desk) -> None:
    """The first page shows six of twelve weights and the rest when it has come, without a key."""
    async with driven(desk) as pilot:
        await press(pilot, "v")
        page = screen(pilot).here.page
        assert isinstance(page, Sheet)
        assert page.done == 1
        assert sum(line.cells[2] is not None for line in page.lines) == 12


async def test_rows_are_sorted_by_the_chosen_column(desk: Desk) -> None:
    """The keys h and l choose a column, s sorts by it, again the other way round; the unknown stays last."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "enter")
        assert first_cells(pilot) == ["2", "0", "3", "1"], "pages: 200, 120, 95, 80"
        await press(pilot, "s")
        assert first_cells(pilot) == ["1", "3", "0", "2"]
        await press(pilot, "l", "s")
        assert first_cells(pilot) == ["2", "1", "0", "3"], "marks: 0.5, -0.5, -1.5, none"
        await press(pilot, "s")
        assert first_cells(pilot) == ["0", "1", "2", "3"]
        await press(pilot, "h", "h", "s")
        assert first_cells(pilot) == ["1", "0", "2", "3"], "titles: Alps, Bread, Chess, Deep sea"


async def test_rows_are_filtered_while_one_types(desk: Desk) -> None:
    """/ takes a filter; Enter keeps it, Esc drops it; a column that is compared takes part at once."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "enter", "slash")
        await press(pilot, *"pages>90")
        assert first_cells(pilot) == ["2", "0", "3"]
        assert "/pages>90" in await press(pilot, "enter")
        assert isinstance(pilot.app.focused, SheetRows)
        await press(pilot, "slash", "escape")
        assert first_cells(pilot) == ["2", "0", "3", "1"]
        assert not screen(pilot).query_one("#filter", Input).display


async def test_words_are_searched_for_in_the_whole_content(desk: Desk) -> None:
    """A word that stands in no cell, but in the text of one book, leaves that book."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "enter", "slash")
        await type_in(pilot, "secret")
        await still(pilot)
        assert first_cells(pilot) == ["2"]


async def test_a_filter_that_is_not_understood_is_said_and_stays_open(desk: Desk) -> None:
    """A number that is none is told on Enter, and one can go on writing."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "enter", "slash")
        await type_in(pilot, "pages>many")
        await pilot.pause(0.3)
        assert "is no number" in said(pilot)
        assert isinstance(pilot.app.focused, Input)


async def test_n_goes_from_one_disagreement_to_the_next_also_into_the_next_window(desk: Desk) -> None:
    """Words 22, 45, 68, 91 ... are far off; 68 is in the second window, and N leads back into the first."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "enter", "enter")
        tokens = screen(pilot).query_one(Tokens)
        assert tokens.cursor == (1, 0)
        assert "word 22" in await press(pilot, "n")
        assert "word 45" in await press(pilot, "n")
        shown = await press(pilot, "n")
        assert "word 68" in shown
        assert "disagrees" in shown
        assert tokens.reading is not None
        assert (tokens.reading.part, tokens.cursor) == (1, (0, 8))
        assert "word 45" in await press(pilot, "N")
        await press(pilot, "N", "N")
        assert "no further place" in said(pilot)


async def test_keys_move_over_the_text_and_past_its_windows(desk: Desk) -> None:
    """The cursor moves by h l j k, g and G; after the last word comes the next window, before its first the other."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "enter", "enter")
        tokens = screen(pilot).query_one(Tokens)
        await press(pilot, "l", "l", "h")
        assert tokens.cursor == (1, 1)
        await press(pilot, "j")
        below = tokens.cursor
        assert below[1] > 8, "a line of 70 cells holds more than eight words"
        await press(pilot, "k")
        assert tokens.cursor == (1, 1)
        await press(pilot, "G")
        assert tokens.cursor == (1, 59)
        await press(pilot, "l")
        assert screen(pilot).here.part == 1
        assert tokens.cursor == (0, 0)
        await press(pilot, "h")
        assert (screen(pilot).here.part, tokens.cursor) == (0, (1, 59))
        await press(pilot, "g")
        assert tokens.cursor == (0, 0)


async def test_brackets_open_the_neighbours_in_the_order_of_the_table(desk: Desk) -> None:
    """By pages the books are 2, 0, 3, 1; ] leads from 2 to 0, and Esc back to the row that was opened last."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "enter")
        assert "book 2" in await press(pilot, "enter")
        assert "book 0" in await press(pilot, "right_square_bracket")
        assert "book 2" in await press(pilot, "left_square_bracket", "left_square_bracket")
        await press(pilot, "right_square_bracket", "escape")
        assert screen(pilot).query_one(SheetRows).key == "0"


async def test_esc_stops_a_page_that_does_not_come(desk: Desk) -> None:
    """The last shelf takes a minute; meanwhile its wait is said, Esc stops it and the table is as it was."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "G")
        await pilot.press("enter")
        await until(pilot, lambda: "Esc stops" in drawn(screen(pilot).app))  # type: ignore[arg-type]
        shown = await press(pilot, "escape")
        assert "Shelves" in shown
        assert "Esc stops" not in shown
        assert "Books of shelf 3" in await press(pilot, "g", "j", "j", "j", "enter")


async def test_the_mouse_sorts_opens_and_points(desk: Desk) -> None:
    """A click on a heading sorts, a click on a row chooses it and a second one opens it, one on a word points at it."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "enter")
        lines = drawn(screen(pilot).app).splitlines()  # type: ignore[arg-type]
        at = next(i for i, line in enumerate(lines) if "pages" in line)
        await pilot.click(offset=(lines[at].index("pages") + 1, at))
        await still(pilot)
        assert first_cells(pilot) == ["1", "3", "0", "2"]
        await pilot.click(offset=(10, at + 2))
        await pilot.click(offset=(10, at + 2))
        await still(pilot)
        lines = drawn(screen(pilot).app).splitlines()  # type: ignore[arg-type]
        assert "book 3" in lines[0]
        at = next(i for i, line in enumerate(lines) if "quick" in line)
        await pilot.click(offset=(lines[at].index("quick") + 1, at))
        assert screen(pilot).query_one(Tokens).cursor == (1, 1)


async def test_without_its_evidence_the_key_says_what_is_needed() -> None:
    """No slot of the browser is filled: v says which would do, and the foot does not offer it."""
    lacking = dataclasses.replace(shelf.shelf, needs=("scale|thermometer",))
    with a_desk(catalog=library(lacking)) as desk:
        async with driven(desk) as pilot:
            assert isinstance(pilot.app, RunbookApp)
            await pilot.pause(0.1)
            assert "v browse" not in drawn(pilot.app)
            await press(pilot, "v")
            assert "nothing to browse: it needs scale / thermometer" in said(pilot)
            assert isinstance(pilot.app.screen, StartScreen)


async def test_of_several_browsers_one_is_chosen() -> None:
    """With two browsers v asks which; the second one opens."""
    other = dataclasses.replace(shelf.shelf, title=Text("Archive", "档案"))
    with a_desk(catalog=library(shelf.shelf, dataclasses.replace(other, id="archive"))) as desk:
        async with driven(desk) as pilot:
            assert "Library" in await press(pilot, "v")
            assert not isinstance(pilot.app.screen, BrowseScreen)
            await pilot.press("escape")


async def test_the_walk_screen_opens_it_too(desk: Desk) -> None:
    """At a node v browses the evidence of that node's run, and Esc leads back to the node."""
    desk.append(ev.FlowStarted("bread"))
    async with driven(desk, start="bread") as pilot:
        await pilot.pause(0.2)
        assert "Shelves" in await press(pilot, "v")
        await press(pilot, "escape")
        assert "Bread" in drawn(pilot.app) or "bread" in drawn(pilot.app)  # type: ignore[arg-type]
        assert not isinstance(pilot.app.screen, BrowseScreen)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 60)])
async def test_hostile_text_is_shown_and_not_obeyed(desk: Desk, size: tuple[int, int]) -> None:
    """Brackets stay as they are, a NUL is written out, and nothing that is drawn can be obeyed by a terminal."""
    async with driven(desk, size) as pilot:
        shown = await press(pilot, "v", "enter")
        assert "Alps [red]" in shown
        text = await press(pilot, "enter", "g")
        assert "Be\\x00ware." in text
        more = await press(pilot, "G")
        assert "A. [b]Nonym[/b]" in text + more
        assert all(is_safe(line) for part in (shown, text, more) for line in part.splitlines())


async def test_with_ascii_signs_nothing_else_is_drawn(desk: Desk) -> None:
    """Lines, marks, plots, orders and the sign of the cursor are all ASCII on every page."""
    async with driven(desk, (120, 40), ascii_only=True) as pilot:
        for keys in (("v",), ("enter",), ("enter", "n")):
            shown = await press(pilot, *keys)
            assert shown.isascii(), {char for char in shown if not char.isascii()}


async def test_the_language_can_be_switched_on_every_page(desk: Desk) -> None:
    """L turns titles, columns and cells of two languages."""
    async with driven(desk) as pilot:
        assert "书架 0 的书" in await press(pilot, "v", "enter", "L")
        assert "分歧" in await press(pilot, "enter", "n")


async def test_reading_again_shows_what_is_there_now(desk: Desk) -> None:
    """Reloading makes the page anew and keeps the order and the row."""
    async with driven(desk) as pilot:
        await press(pilot, "v", "enter", "s", "j", "r")
        assert first_cells(pilot) == ["1", "3", "0", "2"]
        assert screen(pilot).query_one(SheetRows).key == "3"


async def test_an_engineer_reaches_the_first_token_that_disagrees(tmp_path: Path) -> None:
    """From the start screen over a run with both kinds of dumps: rollout 2, sample 2, token 4, in five keys."""
    folder = run_folder(tmp_path)
    found = Text("found", "发现")
    items = (Item("rollout_dump", str(folder / "dump"), found), Item("hf_checkpoint", str(folder / "model"), found))
    desk = Desk(load_catalog())
    desk.append(ev.EvidenceAdded(items))
    keys = ("v", "G", "enter", "enter", "n")
    try:
        async with driven(desk) as pilot:
            shown = await press(pilot, *keys)
            assert len(keys) < 10
            assert "rollout 2 · sample 2" in shown
            assert 'token 4  "."  ✗ disagrees' in shown
            assert "trainer - engine -1.990 nat" in shown
    finally:
        desk.close()
