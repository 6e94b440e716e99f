"""Sends a ticket from the preview: an address, the dry run with the very text that would leave, and one more question.

Invariants: nothing is connected to before the second yes; planning and posting are done on threads of their own; what
was not sent stays in the outbox, and its id is said.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from runbook.session import events as ev
from runbook.text import Text, sanitise
from runbook.tui.deeds import why
from runbook.tui.dialogs import Ask, Choose, Dialog, Written
from runbook.tui.leaving import Leaving
from runbook.tui.page import Page
from runbook.tui.view import View

if TYPE_CHECKING:
    from runbook.trackers.outbox import Entry
    from runbook.trackers.send import Plan


class DryRun(Choose):
    """What would be sent, and whether to."""

    BINDINGS = [  # noqa: RUF012
        Binding("pagedown,space", "text_down", show=False, priority=True),
        Binding("pageup", "text_up", show=False, priority=True),
    ]
    DEFAULT_CSS = "DryRun VerticalScroll { max-height: 60%; margin: 1 0 0 0; }"

    def __init__(self, view: View, lines: Sequence[str], to: str) -> None:
        """Show the lines of a dry run. to: where it would go."""
        choices = [("no", Content(view.word("send_not"))), ("yes", Content(view.word("send_yes", to=sanitise(to))))]
        super().__init__(view, view.word("send_title"), choices, view.word("send_hint"))
        self._lines = lines

    def body(self) -> ComposeResult:
        """Lay out the text above the choice."""
        with VerticalScroll(can_focus=False):
            yield Static("\n".join(sanitise(line) for line in self._lines), id="dry", markup=False)
        yield from super().body()

    def action_text_down(self) -> None:
        """Scroll the text down."""
        self.query_one(VerticalScroll).scroll_page_down(animate=False)

    def action_text_up(self) -> None:
        """Scroll the text up."""
        self.query_one(VerticalScroll).scroll_page_up(animate=False)


class Sending:
    """The way to a tracker from one page. left: called when all is done."""

    def __init__(self, page: Page, leaving: Leaving, format: str, left: Callable[[], None]) -> None:
        """Send what `leaving` makes; format: that the person chose, "" for none; taken where the tracker shows it."""
        self._page, self._leaving, self._format, self._left = page, leaving, format, left

    def begin(self) -> None:
        """Ask for the address."""
        view = self._page.view
        if view is None:
            return
        if self._leaving.desk.reads:
            self._say("send_reader")
            return
        self._page.app.push_screen(Ask(view, view.word("send_to"), view.word("send_to_hint")), self._plan)

    def _say(self, key: str, **values: object) -> None:
        if self._page.view is not None:
            self._page.notify(self._page.view.word(key, **values), markup=False)

    def _push(self, dialog: Dialog, then: Callable[[str | None], None] | None = None) -> None:
        """Show a dialog without the words on the way to it, which would cover it."""
        self._page.app.clear_notifications()
        self._page.app.push_screen(dialog, then)

    def _plan(self, words: str | None) -> None:
        if not words:
            return

        def make() -> None:
            from runbook.trackers.describe import describe
            from runbook.trackers.ready import ready
            from runbook.trackers.registry import place_of
            from runbook.trackers.send import plan, settled

            leaving = self._leaving
            kind, address = place_of(words)
            format = self._format if self._format in kind.formats else ""
            finished = ready(leaving.desk, leaving.folder, kind, format=format)
            planned = settled(plan(finished, kind, address, now=time.time()), leaving.folder)
            _, *lines = describe(planned, os.environ, leaving.desk.language)  # the first names an option of the CLI
            leaving.tell(lambda: self._ask(planned, lines, str(address)))

        self._say("preparing")
        self._leaving.kept(lambda: self._leaving.apart(make, self._failed))

    def _ask(self, planned: Plan, lines: Sequence[str], to: str) -> None:
        view = self._page.view
        if view is not None and self._page.is_attached:
            self._push(DryRun(view, lines, to), lambda word: self._post(planned) if word == "yes" else None)

    def _post(self, planned: Plan) -> None:
        leaving = self._leaving

        def report(words: Text) -> None:
            leaving.tell(lambda: self._page.notify(sanitise(words.say(leaving.desk.language)), markup=False))

        def make() -> None:
            from runbook.trackers.send import post

            entry = post(planned, leaving.folder, report=report)
            leaving.tell(lambda: self._sent(entry))

        self._say("sending")
        leaving.apart(make, lambda error: self._failed(error, planned.entry.id))

    def _sent(self, entry: Entry) -> None:
        self._leaving.journal(ev.Exported(entry.content.format, entry.url))
        view = self._page.view
        if view is not None and self._page.is_attached:
            said = [Content(sanitise(entry.url))]
            dialog = Written(view, view.word("sent"), said, view.word("written_hint"))
            self._push(dialog, lambda _: self._left())

    def _failed(self, error: BaseException, id: str = "") -> None:
        """Say why nothing was sent, and where it is kept when it was begun."""
        view = self._page.view
        if view is None or not self._page.is_attached:
            return
        said = [Content(why(error))]
        if id and _is_kept(id):
            said.append(Content(view.word("in_outbox", id=id)))
        self._push(Written(view, view.word("sent_not"), said, view.word("written_hint")))


def _is_kept(id: str) -> bool:
    """Return whether an entry is in the outbox."""
    from runbook.trackers.outbox import outbox_dir

    return (outbox_dir() / id).exists()
