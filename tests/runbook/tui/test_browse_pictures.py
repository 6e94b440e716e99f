"""Pictures of browsing: the trend over the shelves, the books of one, and a text with its disagreements."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from runbook.tui.app import RunbookApp
from tests.runbook import shelf
from tests.runbook.tui import kitchen
from tests.runbook.tui.driving import ROOT, a_desk, settle, until

SIZES = [(80, 24), (120, 40), (200, 60)]

Compare = Callable[..., bool]


def cells(size: tuple[int, int]) -> str:
    """Return a size as it stands in a test's name."""
    return f"{size[0]}x{size[1]}"


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def is_picture(compare: Compare, size: tuple[int, int], *keys: str, language: str = "en") -> bool:
    """Return whether the screen after some keys is the kept picture."""
    catalog = dataclasses.replace(kitchen.catalog(), browsers={"shelf": shelf.shelf})
    with a_desk(catalog=catalog, language=language) as desk:
        app = RunbookApp(desk)

        async def press(pilot: Pilot[Any]) -> None:
            await settle(pilot)
            for key in keys:
                await pilot.press(key)
                await until(pilot, lambda: not app.pages.busy)
                await settle(pilot)

        try:
            return compare(app, terminal_size=size, run_before=press)
        finally:
            app.pages.close()


@pytest.mark.parametrize("size", SIZES, ids=cells)
def test_the_first_page_plots_the_chosen_column_over_its_rows(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The plot of the dust over the shelves, the table below it with the chosen column underlined, the keys."""
    assert is_picture(snap_compare, size, "v", "l")


@pytest.mark.parametrize("size", SIZES, ids=cells)
def test_a_table_with_signs_an_order_and_the_row_in_full(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The books by pages, the largest first; a row that is suspicious has a sign beside its colour."""
    assert is_picture(snap_compare, size, "v", "enter")


@pytest.mark.parametrize("size", [(60, 20), *SIZES], ids=cells)
def test_a_text_shows_where_the_two_sides_disagree(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The first disagreement is under the cursor, with its numbers below; marks stand under what differs."""
    assert is_picture(snap_compare, size, "v", "enter", "enter", "n")


def test_a_filter_is_written_below_the_rows(snap_compare: Compare) -> None:
    """What is typed stands in the last line above the keys, and the rows follow it."""
    assert is_picture(snap_compare, (80, 24), "v", "enter", "slash", *"pages>90")


def test_a_text_in_chinese(snap_compare: Compare) -> None:
    """The same text with Chinese words around it."""
    assert is_picture(snap_compare, (80, 24), "v", "enter", "enter", "n", language="zh")


def test_a_text_in_ascii_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under NO_COLOR with ASCII signs the disagreements, the cursor and their numbers can still be read."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "linux")
    assert is_picture(snap_compare, (80, 24), "v", "enter", "enter", "n")


def test_a_table_in_ascii_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under NO_COLOR with ASCII signs the plot, the order and the signs of the rows can still be read."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "linux")
    assert is_picture(snap_compare, (80, 24), "v", "l")
