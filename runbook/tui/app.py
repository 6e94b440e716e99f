"""The app: it holds the screens together, turns wishes into deeds and shows each new state of the session.

Invariants: no probe, journal write or file read happens on this thread; every change is journalled before it is seen,
so a kill loses nothing; Esc goes one level up and never quits.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading
from collections.abc import Iterable
from functools import partial
from multiprocessing import forkserver
from typing import Any

from textual.app import App, SystemCommand
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender

from runbook.clipboard import sequence
from runbook.errors import LostError, RunbookError, SessionError
from runbook.glyphs import wants_ascii
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.store import list_sessions
from runbook.text import sanitise
from runbook.triage import Report
from runbook.tui import theme
from runbook.tui.actions import bindings, of_scopes
from runbook.tui.asking import Asking, Hands
from runbook.tui.browse_pages import Pages
from runbook.tui.deeds import Deeds, why
from runbook.tui.handing import Handing
from runbook.tui.inbox import Inbox
from runbook.tui.leaving import Leaving
from runbook.tui.page import Page
from runbook.tui.recalling import Recalling
from runbook.tui.signs import ASCII, UNICODE, PlainBars
from runbook.tui.start import CAUSES, EVIDENCE, FLOWS, SESSIONS, StartScreen
from runbook.tui.view import View
from runbook.tui.wishes import Wish, Wishes
from runbook.window import FILES, Source

TICK = 0.5
"""Seconds between two draws of running timers."""

LATEST = 0.5
"""Seconds after which the work begins at the latest: a page pushed before the first paint keeps that from coming."""


class RunbookApp(App[Desk]):
    """The terminal UI over one desk. Its result is the desk of the session to turn to, None to leave."""

    TITLE = "runbook"
    BINDINGS = [*bindings("app"), *bindings("reader")]  # noqa: RUF012  # as Textual declares it
    CSS = """
    Page { background: $background; color: $foreground; }
    ToastRack { dock: top; align: right top; margin: 1 0 0 0; }
    Toast { background: $ink-cursor; width: 50; max-width: 70%; padding: 0 1; margin-top: 0; }
    Toast { border-left: outer $ink-accent; }
    Toast.-error { border-left: outer $ink-bad; }
    .-ascii TreePane { border-right: ascii $ink-line; }
    .-ascii .-narrow TreePane { border-right: none; }
    .-ascii .-wide LinesPane { border-left: ascii $ink-line; }
    .-ascii NodePane #foot, .-ascii LinesPane #full, .-ascii StartScreen #about { border-top: ascii $ink-line; }
    .-ascii PreviewScreen #full { border-top: ascii $ink-line; }
    .-ascii SheetPane #row, .-ascii ReadingPane #token { border-top: ascii $ink-line; }
    .-ascii ReadingPane VerticalScroll { border-top: ascii $ink-line; }
    .-ascii ReadingPane #beside { border-left: ascii $ink-line; }
    .-ascii StartScreen #side { border-left: ascii $ink-line; }
    .-ascii Dialog > Vertical { border: ascii $ink-accent; }
    .-ascii Toast { border-left: ascii $ink-accent; }
    .-ascii Toast.-error { border-left: ascii $ink-bad; }
    """

    def __init__(
        self, desk: Desk, start: str | None = None, *, ascii_only: bool = False, kept: Source | None = None
    ) -> None:
        """Show `desk`; start: id of the flow to begin in. kept: see `runbook.tui.running`."""
        plain = bool(os.environ.get("NO_COLOR"))
        forkserver.ensure_running()  # while stderr is the terminal's: it cannot start from Textual's capture of it
        super().__init__(ansi_color=True if plain else None)
        for colours in (theme.DARK, theme.LIGHT):
            self.register_theme(colours)
        self.theme = theme.DARK.name
        self.desk = desk
        self.ink = theme.PLAIN if plain else theme.COLOUR
        self.signs = ASCII if ascii_only or wants_ascii() else UNICODE
        self.set_class(self.signs.ascii_only, "-ascii")
        ScrollBar.renderer = PlainBars if self.signs.ascii_only else ScrollBarRender
        self.inbox = Inbox(self._take)
        self.hands = Hands(self.inbox.put)
        self.asking = Asking(desk, self.hands, self._trouble)
        self.deeds = Deeds(desk, self.hands, self.asking, self._trouble)
        self.leaving = Leaving(desk, self.hands, self.inbox.put, self._trouble)
        self.wishes = Wishes(self)
        self.handing = Handing(self, self._trouble)
        self.recalling = Recalling(desk, self.hands, lambda words: self.say(words.say(desk.language), bad=True))
        self.pages = Pages(self.inbox.put)
        self.start_screen = StartScreen()
        self.start_screen.resumed = kept is not None or desk.resumed
        self.guards_signals = False
        self._begun = False
        self._start = start
        self.kept = kept
        self._looking = kept is None and not desk.reads and not desk.state.items
        self._trouble_words = ""
        self._report: tuple[int, Report] | None = None
        self._probes = tuple(desk.triage_probes())
        self.asking.open = kept is None
        desk.listen(lambda kind, payload: self.inbox.put((kind, payload)))

    def get_default_screen(self) -> Screen[Any]:
        """Return the start screen: it lies below all others."""
        return self.start_screen

    def on_mount(self) -> None:
        """Show what is known and begin to ask."""
        loop = asyncio.get_running_loop()
        if self.guards_signals:
            for number in (signal.SIGHUP, signal.SIGTERM):
                loop.add_signal_handler(number, self.exit)
        self.start_screen.view = self.view()  # drawn as soon as the screen knows its size
        self.call_after_refresh(self._begin)
        self.set_timer(LATEST, self._begin)

    def _begin(self) -> None:
        """Take up the work after the first paint, or when another page covered the first before it was painted.

        What was made until now stays, so the collector need not look at it again.
        """
        if self._begun:
            return
        self._begun = True
        gc.freeze()
        gc.enable()
        self.inbox.open(asyncio.get_running_loop())
        self.set_interval(TICK, self._tick)
        self.go_on()
        self.handing.start()
        if self.kept is not None:
            self.say(self.word("bundle_note"))
        for words in self.desk.warnings:
            self.say(words.say(self.desk.language), bad=True)
        if self._start and self._start in self.desk.catalog.flows:
            self.open_flow(self._start)
        threading.Thread(target=self._list_sessions, name="sessions", daemon=True).start()

    def go_on(self) -> None:
        """Ask what was not asked yet of the evidence that is there."""
        if self.desk.state.items:
            self.asking.want(self._probes)
        for (flow, _), run in self.desk.state.attached.items():
            self.asking.want(self.desk.flow_probes(flow), run)

    def _list_sessions(self) -> None:
        folder = self.desk.folder
        if not folder:
            return
        self.recalling.load()
        with contextlib.suppress(RunbookError):
            every = [info for info in list_sessions(os.path.dirname(folder)) if info.id != self.desk.session_id]
            self.inbox.put(lambda: setattr(self.start_screen, "recent", tuple(every)))

    def view(self) -> View:
        """Return a snapshot of now."""
        state = self.desk.state
        if self._report is None or self._report[0] != state.revision:
            self._report = (
                state.revision,
                state.report(self.desk.catalog.flows.values(), self.desk.catalog.vocabulary),
            )
        return View(
            state,
            self._report[1],
            self.desk.catalog,
            self.desk.language,
            self.signs,
            self.ink,
            self.asking.running(),
            self._probes,
            self._looking,
            self.hands.pending > 0 and not self.asking.busy,
            self._trouble_words,
            FILES if self.kept is None else self.kept,
            self.kept is not None,
            self.handing.head(),
            self.recalling.words(self._report[1], self.desk.language),
        )

    def refresh_view(self) -> None:
        """Show the present state on the page in front, also when a dialog lies over it."""
        view = self.view()
        self._page().show(view)
        if not self.asking.busy and not self._looking:
            self.recalling.settle(view.report)

    def _page(self) -> Page:
        """Return the page in front, also when a dialog lies over it."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, Page)), self.start_screen)

    def _tick(self) -> None:
        if self.asking.busy:
            self.refresh_view()

    def _take(self, batch: list[Any]) -> None:
        """Take a batch of what happened on other threads, then draw once."""
        for item in batch:
            if callable(item):
                item()
            elif item[0] == "record":
                self._trouble_words = ""
                self._recorded(item[1].event)
            elif item[0] == "progress":
                self.asking.report(*item[1])
            elif item[0] == "discovered":
                self._looking = False
                self.asking.want(self._probes)
                for words in item[1]:
                    self.say(words.say(self.desk.language))
            elif item[0] == "error":
                self._looking = False
                self._trouble(item[1])
        if self.is_running:
            self.refresh_view()

    def _recorded(self, event: ev.Event) -> None:
        if isinstance(event, ev.Found):
            self.asking.found(event.run, event.finding.probe)
        elif isinstance(event, ev.EvidenceAdded) and event.items:
            self._looking = False
        for due in self.desk.due(event):
            self.asking.want(due.probes, due.run, again=due.again, first=due.first)

    def _trouble(self, error: BaseException) -> None:
        """Say what failed. What could not be saved stays in the head until something is saved again."""
        if isinstance(error, LostError):
            self.handing.lost(error)
            return
        if isinstance(error, SessionError):
            self._trouble_words = self.word("not_saved", why=error.message)
        self.say(self.word("failed", why=why(error)), bad=True)

    def word(self, key: str, /, **values: object) -> str:
        """Return UI words in the present language."""
        return self.view().word(key, **values)

    def say(self, words: str, *, bad: bool = False) -> None:
        """Show words in a corner for a while, or in the dialog that is open."""
        from runbook.tui.dialogs import Dialog

        if isinstance(self.screen, Dialog):
            self.screen.tell(sanitise(words))
            return
        self.notify(sanitise(words), severity="error" if bad else "information", markup=False, timeout=6)

    def copy_to_clipboard(self, text: str) -> None:
        """Offer a text to the terminal's clipboard, in the way that tmux or screen hands on; a too long one is not."""
        self._clipboard = text
        if self._driver is not None and (offered := sequence(text)):
            self._driver.write(offered)

    def open_flow(self, flow_id: str, node: str = "") -> None:
        """Go to a flow; with `node`, as far towards it as evidence leads, and show it."""
        from runbook.tui.walk import WalkScreen

        flow = self.desk.catalog.flows[flow_id]
        self.deeds.start_flow(flow_id)
        if node:
            self.deeds.walk_to(flow, node)
        while len(self.screen_stack) > 1:
            self.pop_screen()
        screen = WalkScreen(flow, node)
        screen.view = self.view()
        self.push_screen(screen)
        mine = {probe for n in flow.nodes.values() for probe in n.probes}
        self.asking.want((probe for probe in self._probes if probe in mine), first=True)
        self.call_after_refresh(self.refresh_view)

    def on_start_screen_picked(self, event: StartScreen.Picked) -> None:
        """Open what was chosen on the start screen."""
        kind, id = event.target.kind, event.target.id
        view = self.view()
        if kind == FLOWS:
            self.open_flow(id)
        elif kind == CAUSES and (verdict := view.verdict_of(id)) is not None:
            self.open_flow(verdict.flow, verdict.node)
        elif kind == EVIDENCE:
            self._open_item(view.state.items[int(id)].path)
        elif kind == SESSIONS:
            self.deeds.open_session(id, self._opened)

    def _opened(self, opened: Desk | BaseException) -> None:
        """Turn to another session; where it cannot be opened, say why and stay."""
        if isinstance(opened, Desk):
            self.exit(opened)
        else:
            self.say(self.word("not_opened", why=why(opened)), bad=True)

    def on_start_screen_dropped(self, event: StartScreen.Dropped) -> None:
        """Take an item out of the evidence."""
        self.wishes.drop(event.item)

    def _open_item(self, path: str) -> None:
        from runbook.tui.filescreen import FileScreen

        self.push_screen(FileScreen(path))
        self.call_after_refresh(self.refresh_view)

    def on_wish(self, wish: Wish) -> None:
        """Do what the walk screen asks for."""
        self.wishes.grant(wish)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the actions of the page and the app for the palette."""
        language = self.desk.language
        scope = screen.scope if isinstance(screen, Page) else ""
        for action in of_scopes(scope, "app"):
            if action.palette:
                where = screen if action.scope == scope and "." not in action.name else self
                callback = partial(self._act, where, action.name.rpartition(".")[2])
                yield SystemCommand(action.title.say(language), action.help.say(language), callback)

    async def _act(self, where: Screen[Any] | App[Any], name: str) -> None:
        await self.run_action(name, where)

    def action_up(self) -> None:
        """Go one level up: from a pane to the node, from a page to the start screen, and no further."""
        if self._page().leave_pane():
            return
        if len(self.screen_stack) > 1:
            self.pop_screen()
            self.refresh_view()

    def action_help(self) -> None:
        """Show all keys of what has the focus."""
        from runbook.tui.dialogs import Keys

        self.push_screen(Keys(self.view(), self._page().help_scopes()))

    def action_palette(self) -> None:
        """Open the palette."""
        self.action_command_palette()

    def action_language(self) -> None:
        """Switch the language."""
        self.desk.language = "en" if self.desk.language == "zh" else "zh"
        self.refresh_view()

    def action_theme(self) -> None:
        """Switch between dark and light."""
        self.theme = theme.LIGHT.name if self.theme == theme.DARK.name else theme.DARK.name

    def action_next_pane(self) -> None:
        """Go to the next pane."""
        self._page().turn(1)

    def action_previous_pane(self) -> None:
        """Go to the pane before."""
        self._page().turn(-1)

    def action_add(self) -> None:
        """Add evidence."""
        self.wishes.add()

    def action_ask_all(self) -> None:
        """Ask every probe again."""
        if self.wishes.refused("ask"):
            return
        self.asking.want(self._probes, again=True)
        self.refresh_view()

    def action_browse(self) -> None:
        """Look into bulk data of the evidence."""
        self.wishes.browse(self._page().run)

    def action_note(self) -> None:
        """Write a note for the whole session."""
        self.wishes.note()

    def action_whereabouts(self) -> None:
        """Show where the session stands, who has it, and the notes."""
        self.wishes.whereabouts()

    def action_take_over(self) -> None:
        """Take over the session that somebody else holds."""
        self.handing.ask()

    def action_export(self) -> None:
        """Write the ticket."""
        self.wishes.export()

    def _fatal_error(self) -> None:
        """Say a fault of this program in one traceback without the session's data; what was done is in the journal."""
        from rich.traceback import Traceback

        self.panic(Traceback(show_locals=False, width=None, max_frames=12))

    async def action_quit(self) -> None:
        """Leave; everything is saved already."""
        self.exit()
