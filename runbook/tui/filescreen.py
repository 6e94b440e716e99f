"""A page with nothing but one file of the evidence, from its start."""

from __future__ import annotations

from textual.app import ComposeResult

from runbook.tui.linespane import Lines, LinesPane
from runbook.tui.page import Page
from runbook.tui.view import View


class FileScreen(Page):
    """One file."""

    def __init__(self, path: str) -> None:
        """Show `path`."""
        super().__init__()
        self.path = path

    def foot_scopes(self) -> tuple[str, ...]:
        """Return the keys of the lines."""
        return ("lines",)

    def body(self) -> ComposeResult:
        """Lay out."""
        yield LinesPane()

    def on_mount(self) -> None:
        """Put the focus on the lines."""
        self.query_one(Lines).focus()

    def show(self, view: View) -> None:
        """Draw `view` and open the file."""
        super().show(view)
        if self.is_mounted:
            pane = self.query_one(LinesPane)
            pane.show(view)
            pane.open(self.path)
