"""Looks at every screen of a session, as a person would, and returns what was drawn.

It runs in a process of its own too, where nothing is installed and nothing else is there:
`python -m tests.runbook.bundle.looking BUNDLE WIDTH HEIGHT` prints the screens as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys

from runbook.bundle.read import open_bundle, read_bundle
from runbook.session.desk import Desk
from runbook.tui.app import RunbookApp
from runbook.window import Source
from tests.runbook.tui.driving import drawn, settle

STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("start", ()),
    ("help", ("question_mark",)),
    ("evidence item", ("escape", "G", "enter")),
    ("cause", ("escape", "g", "j", "enter")),
    ("cited", ("e",)),
    ("end of the file", ("G",)),
    ("start of the file", ("g",)),
    ("cited again", (".",)),
    ("walk", ("escape", "escape", "escape", "g", "j", "j", "enter")),
    ("look at the experiment", ("shift+tab", "g", "j", "j", "j", "j")),
    ("its notes", ("escape", "G")),
    ("next citation", ("right_square_bracket", "e")),
    ("earlier node", ("escape", "shift+tab", "g")),
    ("other cause", ("escape", "escape", "g", "enter")),
    ("its proof", ("e",)),
    ("chinese", ("escape", "L")),
)
"""Name of a screen and the keys that lead there from the one before."""


async def screens(desk: Desk, kept: Source, size: tuple[int, int]) -> dict[str, str]:
    """Return text and picture of every screen over `desk`, whose lines of evidence come from `kept`."""
    app = RunbookApp(desk, kept=kept)
    seen = {}
    async with app.run_test(size=size) as pilot:
        for name, keys in STEPS:
            for key in keys:
                await pilot.press(key)
                await pilot.pause(0.1)
            await settle(pilot)
            seen[name] = drawn(app)
            seen[f"{name}, picture"] = app.export_screenshot()
    return seen


def main() -> None:
    """Print the screens of a bundle."""
    bundle = read_bundle(sys.argv[1])
    desk = open_bundle(bundle)
    try:
        size = int(sys.argv[2]), int(sys.argv[3])
        json.dump(asyncio.run(screens(desk, bundle.excerpts, size)), sys.stdout)
    finally:
        desk.close()


if __name__ == "__main__":
    main()
