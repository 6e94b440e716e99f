"""Where a session stands, in a dialog: the five lines, what could not be written, and all notes."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from runbook.tui.actions import bindings
from runbook.tui.dialogs import Dialog
from runbook.tui.notetext import where_text
from runbook.tui.view import View


class Where(Dialog):
    """Shows and changes nothing."""

    BINDINGS = [*bindings("node"), Binding("i,q,enter", "leave", "leave", show=False)]  # noqa: RUF012
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

    def on_mount(self) -> None:
        """Let the keys scroll."""
        self.query_one(VerticalScroll).focus()

    def on_resize(self) -> None:
        """Wrap to the new width."""
        width = min(104, self.app.size.width * 94 // 100) - 8
        self.query_one("#where", Static).update(where_text(self.view, self._unwritten, width))

    def action_scroll_down(self) -> None:
        """Scroll down."""
        self.query_one(VerticalScroll).scroll_down(animate=False)

    def action_scroll_up(self) -> None:
        """Scroll up."""
        self.query_one(VerticalScroll).scroll_up(animate=False)

    def action_page_down(self) -> None:
        """One page down."""
        self.query_one(VerticalScroll).scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        """One page up."""
        self.query_one(VerticalScroll).scroll_page_up(animate=False)

    def action_scroll_home(self) -> None:
        """To the top."""
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """To the end."""
        self.query_one(VerticalScroll).scroll_end(animate=False)
