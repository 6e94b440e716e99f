"""A note, of one line or of several: Enter keeps it, a backslash before Enter goes on in a new line, as in a shell.

Terminals send the same for Enter with and without Shift or Ctrl, so no chord is asked for; pasted lines stay lines.
"""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import TextArea

from runbook.tui.dialogs import Dialog


class Lines(TextArea):
    """A text field of several lines in which Enter is done."""

    class Done(Message):
        """Enter was pressed. words: what was written."""

        def __init__(self, words: str) -> None:
            """Say what."""
            super().__init__()
            self.words = words

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            return
        if event.key != "enter":
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        row, column = self.cursor_location
        if column and self.document.get_line(row)[column - 1] == "\\":
            self.replace("\n", (row, column - 1), (row, column))
        else:
            self.post_message(self.Done(self.text))


class Write(Dialog):
    """Dismisses with the words of a note, None when it was left or is empty."""

    DEFAULT_CSS = """
    Write Lines { height: 6; border: none; padding: 0; margin: 1 0; background: $ink-cursor; }
    Write Lines:focus { border: none; }
    """

    def body(self) -> ComposeResult:
        """Lay out."""
        lines = Lines(show_line_numbers=False, tab_behavior="focus", soft_wrap=True)
        lines.cursor_blink = False  # a blink is a redraw over SSH for nothing
        yield lines

    def on_mount(self) -> None:
        """Write at once."""
        self.query_one(Lines).focus()

    def on_lines_done(self, event: Lines.Done) -> None:
        """Return what was written."""
        event.stop()
        self.dismiss(event.words.strip() or None)
