"""Sending from the preview to a real tracker: what would go is shown first, and nothing goes before the second yes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from runbook.errors import RunbookError
from runbook.session.desk import Desk
from runbook.session.opening import new_session, open_or_follow
from runbook.trackers import send
from runbook.trackers.outbox import Entry
from runbook.tui.app import RunbookApp
from runbook.tui.dialogs import Written
from runbook.tui.preview import PreviewScreen
from runbook.tui.sending import DryRun
from runbook.tui.start import StartScreen
from tests.runbook.trackers.site import PASSWORD, Site, roundup_site
from tests.runbook.tui import kitchen
from tests.runbook.tui.driving import ROOT, answered, drawn, items, settle, type_in, until
from tests.runbook.tui.test_preview import go_to, opened


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve one tracker for all tests of this file."""
    with roundup_site(tmp_path_factory.mktemp("roundup")) as found:
        yield found


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site) -> Iterator[Desk]:
    """Yield the desk of a session on disk; the login of the tracker is in the environment, the outbox is empty."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    made = new_session(kitchen.catalog(), str(tmp_path / "sessions"))
    made.begin("/kitchen")
    made.append(items())
    answered(made)
    yield made
    made.close()


async def asked(pilot: Pilot[Any], address: str) -> None:
    """Give an address in the preview and wait for what comes of it."""
    await pilot.press("s")
    await type_in(pilot, address)
    await until(pilot, lambda: isinstance(pilot.app.screen, DryRun | Written), 60)
    await settle(pilot)


def said(app: RunbookApp) -> str:
    """Return what the dialog in front says."""
    return " ".join(str(app.screen.query_one("#said").render()).split())


async def test_nothing_is_sent_before_the_second_yes(desk: Desk, site: Site) -> None:
    """The dry run shows the text without what was dropped; Enter alone sends nothing, the second choice does."""
    app = RunbookApp(desk)
    before = site.count("issue")
    async with app.run_test(notifications=True, size=(120, 40)) as pilot:
        screen = await opened(pilot)
        await go_to(pilot, screen, "ERROR oven: OFF")
        await pilot.press("space")
        await asked(pilot, site.address)
        shown = str(app.screen.query_one("#dry").render())
        assert "left out by the sender" in shown
        assert "ERROR oven: OFF" not in shown
        assert "oven" in shown
        assert "characters, text" in shown  # Roundup's own layout, though the preview is headed markdown
        assert PASSWORD not in shown
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, PreviewScreen)
        assert site.count("issue") == before
        await asked(pilot, site.address)
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, Written), 60)
        await settle(pilot)
        assert site.url in said(app)
        assert site.count("issue") == before + 1
        number = desk.state.exports[-1][1].rpartition("issue")[2]
        (message,) = site.issue(number)["messages"]
        posted = site.text(message["id"])
        assert "ERROR oven: OFF" not in posted
        assert "left out by the sender" in posted
        await pilot.press("enter")
        assert [type(one) for one in app.screen_stack] == [StartScreen]


async def test_a_layout_that_was_chosen_is_sent_and_once_only(desk: Desk, site: Site) -> None:
    """The prompt names all four kinds; `f` chooses a layout; a second ticket names the first and is not sent."""
    app = RunbookApp(desk)
    async with app.run_test(notifications=True, size=(160, 40)) as pilot:
        screen = await opened(pilot)
        await pilot.press("s")
        await settle(pilot)
        assert all(kind in drawn(app) for kind in ("github:", "gitlab:", "jira+", "roundup+"))
        await pilot.press("escape", "f")
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        await asked(pilot, site.address)
        assert f"characters, {screen.format}" in str(app.screen.query_one("#dry").render())
        assert screen.format == "markdown"
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, Written), 60)
    url = desk.state.exports[-1][1]
    app = RunbookApp(desk)
    async with app.run_test(notifications=True, size=(160, 40)) as pilot:
        await opened(pilot)
        await asked(pilot, site.address)
        assert isinstance(app.screen, Written)
        assert url in said(app)


async def test_what_cannot_be_sent_says_why(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address, and a tracker that nobody answers for: why, and where the ticket waits; the preview stays."""
    app = RunbookApp(desk)
    async with app.run_test(notifications=True, size=(160, 40)) as pilot:
        await opened(pilot)
        await asked(pilot, "ann:secret@tracker")
        assert "no login" in said(app)
        assert "secret" not in said(app)
        await pilot.press("escape")
        await asked(pilot, "roundup+http://127.0.0.1:9/tracker")
        monkeypatch.setattr("runbook.trackers.send.ATTEMPTS", 1)
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, Written), 60)
        await settle(pilot)
        assert "not sent" in drawn(app)
        assert "slime-runbook outbox send" in said(app)
        assert PASSWORD not in drawn(app)
        await pilot.press("escape")
        assert isinstance(app.screen, PreviewScreen)
        assert desk.state.exports == ()


async def test_whatever_ends_the_sending_the_place_of_the_ticket_is_said(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for an error that nobody foresaw, what was put into the outbox is named."""
    real = send.post

    def breaking(plan: send.Plan, session: str, *, report: send.Report) -> Entry:
        with contextlib.suppress(RunbookError):
            return real(plan, session, report=report)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(send, "ATTEMPTS", 1)
    monkeypatch.setattr(send, "post", breaking)
    app = RunbookApp(desk)
    async with app.run_test(notifications=True, size=(160, 40)) as pilot:
        await opened(pilot)
        await asked(pilot, "roundup+http://127.0.0.1:9/tracker")
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, Written), 60)
        await settle(pilot)
        assert "Input/output error" in said(app)
        assert "slime-runbook outbox send" in said(app)


async def test_a_reader_sends_nothing(desk: Desk) -> None:
    """What a reader leaves out is kept nowhere, so a reader cannot send."""
    reader = open_or_follow(kitchen.catalog(), desk.folder)
    app = RunbookApp(reader)
    async with app.run_test(notifications=True, size=(120, 40)) as pilot:
        await opened(pilot)
        await pilot.press("s")
        await settle(pilot)
        assert isinstance(app.screen, PreviewScreen)
        assert "only reads" in drawn(app)
    reader.close()


async def test_what_goes_on_stands_in_the_dialog_that_is_open(desk: Desk) -> None:
    """Words said while a dialog is open are a line of it, and no toast covers it."""
    app = RunbookApp(desk)
    async with app.run_test(notifications=True, size=(80, 24)) as pilot:
        await opened(pilot)
        await pilot.press("s")
        await settle(pilot)
        app.say("the oven is on")
        await settle(pilot)
        assert "the oven is on" in str(app.screen.query_one("#told").render())
        assert len(app._notifications) == 0
