"""Runs the terminal UI: one app after another, each over the session that was chosen in the one before."""

from __future__ import annotations

import sys

from runbook.exits import ExitCode
from runbook.session.desk import Desk
from runbook.tui.app import RunbookApp
from runbook.tui.words import word
from runbook.window import Source


def run_app(desk: Desk, start: str | None = None, *, ascii_only: bool = False, kept: Source | None = None) -> ExitCode:
    """Run the terminal UI over `desk` and return the exit code of its triage. The caller closes `desk`.

    kept: what a bundle holds of the files; then no file is read, and what needs the cluster is refused with the reason.
    A session chosen on the start screen is opened in its turn, and closed here.
    """
    current, opened = desk, []
    try:
        while True:
            app = RunbookApp(current, start, ascii_only=ascii_only, kept=kept)
            app.guards_signals = True
            chosen = app.run()
            app.handing.stop()
            app.inbox.close()
            app.pages.close()
            app.recalling.leave()
            app.hands.finish(5.0)
            for words in app.handing.unwritten:
                print(word("unwritten", current.language, what=words), file=sys.stderr)
            if chosen is None:
                break
            current = chosen
            opened.append(current)
            start = current.state.current or None
        from runbook.triage import exit_code

        return exit_code(current.report())
    finally:
        for one in opened:
            one.close()
