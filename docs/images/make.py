"""Draws the README's pictures: the real UI on the bundled incident, at 120×40.

Usage: python docs/images/make.py RUN
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

from runbook.catalog import load_catalog
from runbook.session.desk import Desk
from runbook.tui.app import RunbookApp

HERE = Path(__file__).parent
SIZE = (120, 40)


async def draw(desk: Desk) -> None:
    """Save the start screen, then the walk screen of the confirmed cause."""
    app = RunbookApp(desk)
    async with app.run_test(size=SIZE) as pilot:
        await wait(pilot, app)
        app.save_screenshot("start.svg", str(HERE))
        await pilot.press("enter")
        await wait(pilot, app)
        app.save_screenshot("walk.svg", str(HERE))


async def wait(pilot: Any, app: RunbookApp) -> None:
    """Wait until every probe has answered and the screen is drawn."""
    for _ in range(400):
        await pilot.pause(0.1)
        if not app.asking.busy and not app.hands.pending:
            break
    await pilot.pause(1.0)


def main(root: str) -> None:
    """Draw the pictures of the run in `root`."""
    desk = Desk(load_catalog(), session_id="20261129-031400-0a1b2c")
    over = threading.Event()
    desk.listen(lambda kind, _: over.set() if kind in ("discovered", "error") else None)
    desk.begin(root)
    desk.discover(root)
    over.wait(30)
    asyncio.run(draw(desk))
    desk.close()


if __name__ == "__main__":
    main(sys.argv[1])
