"""Plots in the terminal UI: drawn beside their finding at the pane's width, hinted at in the tree."""

from __future__ import annotations

import time

import pytest
from textual.content import Content

from runbook.finding import Finding, Plot, Verdict
from runbook.plot import sparkline
from runbook.session import events as ev
from runbook.text import Text
from runbook.tui.app import RunbookApp
from runbook.tui.nodepane import Reading
from runbook.tui.rows import Row, Rows
from tests.runbook.plots import BURST, RAMP, TWO
from tests.runbook.tui.driving import ROOT, a_desk, drawn, settle
from tests.runbook.tui.test_pictures import Compare, cells, is_picture

UPPER = sparkline([float(x) for x in range(11)], 8, False)


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def plotted(*plots: Plot) -> tuple[ev.Event, ...]:
    """Return the events after which the kitchen's first check has a finding with plots."""
    words = Text("It warmed up too far.", "温度过高。")
    return (
        ev.FlowStarted("bread"),
        ev.Found(Finding(Verdict.WARNING, "cold", words, plots=plots, probe="kitchen.oven")),
    )


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=cells)
def test_a_finding_shows_its_plot_and_the_tree_a_sparkline(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The curve climbs through the limit past the mark; beside the check in the tree stands the same in eight cells."""
    assert is_picture(snap_compare, size, flow="bread", events=plotted(RAMP, TWO))


async def _lines(size: tuple[int, int], *, ascii_only: bool = False, language: str = "en") -> list[str]:
    """Return the lines of the screen scrolled to the plot."""
    with a_desk(*plotted(RAMP, BURST), language=language) as desk:
        app = RunbookApp(desk, "bread", ascii_only=ascii_only)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            app.screen.query_one(Reading).scroll_end(animate=False)
            await settle(pilot)
            return drawn(app).split("\n")


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 60)], ids=cells)
async def test_a_plot_keeps_to_its_pane(size: tuple[int, int]) -> None:
    """At every size the plot's axis is whole, its last line is there, and nothing is cut off."""
    lines = await _lines(size)
    assert all(len(line) <= size[0] for line in lines)
    (axis,) = [line for line in lines if "└" in line and "×" in line]
    assert axis.split("└")[1].split("×")[0].startswith("┬")
    assert any("printed, but not finite: 2" in line for line in lines)


async def test_in_ascii_the_plot_is_ascii() -> None:
    """Where the terminal shows ASCII only, the plot and the sparkline are drawn in it."""
    lines = await _lines((80, 24), ascii_only=True)
    assert all(line.isascii() for line in lines)
    assert any("x printed, but not finite: 2" in line for line in lines)
    assert any(sparkline([float(x) for x in range(11)], 8, True) in line for line in lines)


async def test_the_words_of_a_plot_are_in_the_language() -> None:
    """In Chinese the plot's own words are Chinese, too."""
    assert any("已打印但非有限值：2 处" in line for line in await _lines((80, 24), language="zh"))


async def test_a_plot_is_drawn_again_when_the_pane_changes() -> None:
    """After the terminal grew, the axis is longer."""
    with a_desk(*plotted(RAMP)) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(size=(80, 40)) as pilot:
            await settle(pilot)
            before = next(line for line in drawn(app).split("\n") if "└" in line)
            await pilot.resize_terminal(109, 40)
            await settle(pilot)
            after = next(line for line in drawn(app).split("\n") if "└" in line)
    assert len(after.split("└")[1].rstrip()) == len(before.split("└")[1].rstrip()) + 29


async def test_the_tree_hints_at_checks_only() -> None:
    """The check has its sparkline, the cause that it decides does not repeat it."""
    with a_desk(*plotted(RAMP)) as desk:
        app = RunbookApp(desk, "bread")
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            lines = [line[:31] for line in drawn(app).split("\n")]
    assert [line for line in lines if UPPER in line] == [line for line in lines if "oven-hot" in line]


@pytest.mark.parametrize(
    ("width", "line"),
    [(30, "  name ▁▂▃         answer"), (22, "  name ▁▂▃ answer"), (18, "  name      answer"), (12, "  name ▁▂▃")],
)
async def test_what_stands_beside_gives_way_first(width: int, line: str) -> None:
    """Where there is no room for both, the sparkline goes before the answer; a name is never cut for it."""
    rows = Rows()
    rows.rows = (Row("k", Content("name"), Content("answer"), beside=Content("▁▂▃")),)
    with a_desk() as desk:
        app = RunbookApp(desk)
        async with app.run_test(size=(80, 24)) as pilot:
            rows.styles.width = width
            await app.screen.mount(rows)
            await settle(pilot)
            strip = rows.render_line(0).text
    assert " ".join(strip.split()) == " ".join(line.split())
