"""Where a session stands, in a dialog: the five lines, what could not be written, and all notes."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from runbook.tui.dialogs import Scrolled
from runbook.tui.notetext import where_text
from runbook.tui.view import View


class Where(Scrolled):
    """Shows and changes nothing."""

    BINDINGS = [Binding("i,q,enter", "leave", "leave", show=False)]  # noqa: RUF012
    DEFAULT_CSS = """
    Where > Vertical { width: 104; }
    """

    def __init__(self, view: View, unwritten: Sequence[str]) -> None:
        """Show a snapshot. unwritten: what was lost when somebody took the session over."""
        super().__init__(view, view.word("where_title"), view.word("where_hint"))
        self._unwritten = unwritten

    def body(self) -> ComposeResult:
        """Lay out."""
        with VerticalScroll():
            yield Static(id="where", markup=False)

    def on_resize(self) -> None:
        """Wrap to the new width."""
        width = min(104, self.app.size.width * 94 // 100) - 8
        self.query_one("#where", Static).update(where_text(self.view, self._unwritten, width))
