"""Grants what the walk screen wishes: opens the dialog that a deed needs, then does the deed.

Invariant: a dialog that is left changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message

from runbook.browse import Browser
from runbook.evidence import Item
from runbook.flow.model import Flow
from runbook.text import sanitise

if TYPE_CHECKING:
    from runbook.tui.app import RunbookApp


class Wish(Message):
    """A person wants something done that the app has to do.

    do: what. target: answer, node or slot. flow, node: where.
    """

    def __init__(self, do: str, flow: str = "", node: str = "", target: str = "") -> None:
        """Say what is wanted."""
        super().__init__()
        self.do, self.flow, self.node, self.target = do, flow, node, target


OUTSIDE = frozenset({"ask", "cancel", "change", "attach", "add", "drop", "browse"})
"""What needs the evidence or the cluster."""
WRITES = frozenset(
    {
        "accept",
        "earlier",
        "answer",
        "answer_list",
        "back",
        "note",
        "ask",
        "ask_all",
        "cancel",
        "change",
        "attach",
        "add",
    }
) | {"drop"}
"""What changes the session, which a reader cannot."""


class Wishes:
    """What a person wants, over one app."""

    def __init__(self, app: RunbookApp) -> None:
        """Work for `app`."""
        self.app = app

    def grant(self, wish: Wish) -> None:
        """Do it; a wish that is only a message is said."""
        flow = self.app.desk.catalog.flows[wish.flow]
        deeds, node, target = self.app.deeds, wish.node, wish.target
        doing: dict[str, Callable[[], None]] = {
            "accept": lambda: deeds.answer(flow, node, target, accepted=True),
            "earlier": lambda: deeds.answer(flow, node, target, accepted=False),
            "answer": lambda: deeds.answer(flow, node, target, accepted=False) if target else self.choose(flow, node),
            "answer_list": lambda: self.choose(flow, node),
            "ask": lambda: deeds.ask_again(flow, node),
            "cancel": lambda: deeds.cancel(flow, node),
            "export": self.export,
            "start": self.app.action_up,
            "change": lambda: self.change(flow, node),
            "attach": lambda: self.attach(flow, node),
            "add": lambda: self.add(target, self.app.desk.state.run_at(flow, node) or ""),
            "note": lambda: self.note(wish.flow, node),
            "copy": lambda: self.copy(wish),
            "back": lambda: self.back(flow, target),
        }
        if wish.do == "attach" and self.app.desk.reads:  # one key: a reader attaches nothing, but takes over
            self.app.handing.ask()
            return
        if self.refused(wish.do):
            return
        if wish.do in doing:
            doing[wish.do]()
            self.app.refresh_view()
        else:
            self.app.say(self.app.word(wish.do))

    def refused(self, do: str) -> bool:
        """Return whether something cannot be done since this is a bundle, or is only read, and say so."""
        if self.app.desk.reads and do in WRITES:
            self.app.say(self.app.handing.refusal())
            return True
        if self.app.kept is None or do not in OUTSIDE:
            return False
        self.app.say(self.app.word("no_bulk" if do == "browse" else "not_here"))
        return True

    def back(self, flow: Flow, node: str) -> None:
        """Go back to `node`, by default to the last answered one."""
        steps = self.app.desk.state.walk(flow.flow).steps
        if not steps:
            self.app.say(self.app.word("first_node"))
        else:
            self.app.deeds.back(flow, node or steps[-1].node)

    def choose(self, flow: Flow, node: str) -> None:
        """Answer from a list."""
        from runbook.tui.dialogs import Choose
        from runbook.tui.nodetext import answer_rows

        view = self.app.view()
        rows = answer_rows(view, flow, node)

        def chosen(word: str | None) -> None:
            if word is not None:
                self.app.deeds.answer(flow, node, word, accepted=False)

        if rows:
            self.app.push_screen(Choose(view, view.word("answer_title"), rows), chosen)
        else:
            self.app.say(view.word("no_answer"))

    def note(self, flow: str = "", node: str = "") -> None:
        """Write a note."""
        if self.refused("note"):
            return
        from runbook.tui.notedialog import Write

        view = self.app.view()
        self.app.push_screen(
            Write(view, view.word("note_title"), view.word("note_hint")),
            lambda words: self.app.deeds.note(words, flow, node) if words else None,
        )

    def whereabouts(self) -> None:
        """Show where the session stands, who has it, and the notes."""
        from runbook.tui.wheredialog import Where

        self.app.push_screen(Where(self.app.view(), tuple(self.app.handing.unwritten)))

    def change(self, flow: Flow, node: str) -> None:
        """Write the changed copy of an experiment."""
        if flow.nodes[node].kind != "experiment":
            self.app.say(self.app.word("no_experiment"))
            return
        self.app.deeds.change(flow, node)

    def attach(self, flow: Flow, node: str) -> None:
        """Attach a run to an experiment."""
        view = self.app.view()
        if flow.nodes[node].kind == "experiment":
            self._ask(
                view.word("run_title"), view.word("path_hint"), lambda path: self.app.deeds.attach(flow, node, path)
            )
        else:
            self.app.say(view.word("no_experiment"))

    def add(self, slot: str = "", run: str = "") -> None:
        """Add evidence to a run: ask for the slot, unless it is known, and for the path."""
        from runbook.tui.dialogs import Choose

        if self.refused("add"):
            return
        view = self.app.view()
        slots = self.app.desk.catalog.slots

        def path_of(name: str | None) -> None:
            if name:
                title = view.word("path_title", slot=view.say(slots[name].title))
                self._ask(title, view.word("path_hint"), lambda path: self.app.deeds.add(name, path, run))

        if slot in slots:
            path_of(slot)
            return
        choices = [
            (name, Content.assemble(name.ljust(18), (view.say(one.title), view.ink.dim))) for name, one in slots.items()
        ]
        self.app.push_screen(Choose(view, view.word("slot_title"), choices), path_of)

    def drop(self, item: Item | None) -> None:
        """Take an item out of the evidence, if the person confirms it."""
        from runbook.tui.dialogs import Choose

        if self.refused("drop"):
            return
        view = self.app.view()
        if item is None:
            self.app.say(view.word("no_item"))
            return
        choices = [(word, Content(view.word(word))) for word in ("drop_yes", "drop_no")]
        title = view.word("drop_title", path=sanitise(item.path))

        def chosen(word: str | None) -> None:
            if word == "drop_yes":
                self.app.deeds.drop(item)

        self.app.push_screen(Choose(view, title, choices, view.word("drop_hint")), chosen)

    def copy(self, wish: Wish) -> None:
        """Copy a command of the node: OSC 52 and a named file.

        Whether the terminal took it cannot be known, and is not claimed.

        The wish's target is the index of the action, "" for the first that has a command.
        """
        app = self.app
        copy = app.desk.state.copies.get((wish.flow, wish.node))
        if copy is not None and copy.command and not wish.target:
            app.copy_to_clipboard(copy.command)
            app.deeds.keep_command(copy.command, f"{wish.flow}-{wish.node}.sh", self._copied)
            return
        actions = app.desk.state.node(app.desk.catalog.flows[wish.flow], wish.node).actions
        with_command = [i for i, action in enumerate(actions) if action.command]
        index = int(wish.target) if wish.target else next(iter(with_command), -1)
        if index not in with_command:
            app.say(app.word("nothing_to_copy"))
            return
        command = actions[index].command or ""
        app.copy_to_clipboard(command)
        app.deeds.keep_command(command, f"{wish.flow}-{wish.node}-{index + 1}.sh", self._copied)

    def _copied(self, path: str) -> None:
        """Say where a command was put. path: the named file, "" when it could not be written."""
        self.app.say(self.app.word("copied", path=sanitise(path)) if path else self.app.word("copied_only"))

    def browse(self, run: str) -> None:
        """Open the browser whose evidence is there, the one that is chosen of several, or say what it would need."""
        from runbook.tui.dialogs import Choose

        if self.refused("browse"):
            return
        app, view = self.app, self.app.view()
        ready = view.browsers(run)
        if len(ready) == 1:
            self._browse(ready[0], run)
        elif ready:
            named = {browser.id: browser for browser in ready}
            choices = [(id, Content(view.say(browser.title))) for id, browser in named.items()]
            app.push_screen(
                Choose(view, view.word("browse_title"), choices),
                lambda word: self._browse(named[word], run) if word else None,
            )
        elif view.catalog.browsers:
            needs = [need for browser in view.catalog.browsers.values() for need in browser.needs]
            app.say(app.word("nothing_to_browse", slots=", ".join(dict.fromkeys(needs)).replace("|", " / ")))
        else:
            app.say(app.word("no_browser"))

    def _browse(self, browser: Browser, run: str) -> None:
        from runbook.tui.browse import BrowseScreen

        app = self.app
        screen = BrowseScreen(browser, app.desk.state.evidence(run), app.pages)
        screen.view = app.view()
        app.push_screen(screen)
        app.call_after_refresh(app.refresh_view)

    def export(self) -> None:
        """Choose a format, then look at what will leave; the ticket is written from there."""
        from runbook.bundle.form import FORMAT
        from runbook.ticket.export import formats
        from runbook.tui.dialogs import Export

        names = [*sorted(formats(), key=lambda name: name != "markdown"), *([] if self.app.kept else [FORMAT])]
        self.app.push_screen(Export(self.app.view(), names), lambda name: self._preview(name, names) if name else None)

    def _preview(self, format: str, formats: Sequence[str]) -> None:
        from runbook.tui.preview import PreviewScreen

        screen = PreviewScreen(self.app.leaving, format, formats)
        screen.view = self.app.view()
        self.app.push_screen(screen)
        self.app.call_after_refresh(self.app.refresh_view)

    def _ask(self, title: str, hint: str, then: Callable[[str], None]) -> None:
        from runbook.tui.dialogs import Ask

        self.app.push_screen(Ask(self.app.view(), title, hint), lambda words: then(words) if words else None)
