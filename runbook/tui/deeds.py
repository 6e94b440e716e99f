"""What the app does for a person: answer, go back, note, attach, take out, copy, turn to another session.

Each deed reads the session and queues what blocks on the desk's thread.

Invariants: nothing here waits; a deed that failed is said, never swallowed; an answer is recorded for the node it was
given at, so a key pressed twice while the disk is slow answers once.
"""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

from runbook.errors import RunbookError, UsageError
from runbook.evidence import Item, placed
from runbook.flow.model import Flow
from runbook.private import write_below
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import open_or_follow
from runbook.session.people import author, note_words
from runbook.text import sanitise
from runbook.tui.asking import Asking, Hands
from runbook.walk import By, answer, position
from runbook.walk import Step as WalkStep


class Deeds:
    """The deeds over one desk."""

    def __init__(self, desk: Desk, hands: Hands, asking: Asking, trouble: Callable[[BaseException], None]) -> None:
        """Work on `desk`. trouble: hears of what failed."""
        self.desk, self.hands, self.asking, self._trouble = desk, hands, asking, trouble

    def append(self, event: ev.Event) -> None:
        """Journal an event."""
        self.hands.do(lambda: self.desk.append(event), self._check)

    def _check(self, result: Any) -> None:
        if isinstance(result, BaseException):
            self._trouble(result)

    def start_flow(self, flow: str) -> None:
        """Turn to a flow; a reader only looks."""
        if self.desk.reads:
            return
        if self.desk.state.current != flow or flow not in self.desk.state.walks:
            self.append(ev.FlowStarted(flow))

    def answer(self, flow: Flow, node: str, word: str, *, accepted: bool) -> None:
        """Answer `node`, if the walk still stands there when the desk comes to it.

        accepted: the probes' own answer was taken.
        """
        who = None if accepted else author()
        self.hands.do(lambda: self.desk.answer(flow.flow, word, who, at=node), self._check)

    def walk_to(self, flow: Flow, node: str) -> None:
        """Answer every node on the way to `node`, as far as evidence decides it; stop where it does not."""
        if self.desk.reads:
            return
        state = self.desk.state
        walk = state.walk(flow.flow)
        while (here := position(flow, walk)) != node:
            decision = state.decision(flow, here)
            word = decision.answer
            if word is None or node not in flow.reach(flow.nodes[here].branches[word]):
                return
            self.answer(flow, here, word, accepted=True)
            walk = answer(flow, walk, WalkStep(here, word, By.PROBE))

    def back(self, flow: Flow, node: str) -> None:
        """Go back to an answered node."""
        self.append(ev.WentBack(flow.flow, node))

    def note(self, words: str, flow: str = "", node: str = "") -> None:
        """Write a note, of one line or of several."""
        try:
            self.append(ev.Noted(note_words(words), author(), flow, node))
        except UsageError as error:
            self._trouble(error)

    def add(self, slot: str, path: str, run: str = "") -> None:
        """Take a file, folder or address into a slot."""
        holds = self.desk.catalog.slots[slot]
        self.hands.do(lambda: self.desk.discover("", ((slot, placed(holds, path)),), run), self._check)

    def drop(self, item: Item) -> None:
        """Take an item out of the evidence; what cites it is asked again."""
        self.append(ev.EvidenceDropped(item.slot, item.path, item.run))

    def attach(self, flow: Flow, node: str, path: str) -> None:
        """Attach the run in `path` to an experiment."""
        self.hands.do(lambda: self.desk.attach(flow.flow, node, path), self._check)

    def change(self, flow: Flow, node: str) -> None:
        """Write the changed copy that an experiment asks for."""
        self.hands.do(lambda: self.desk.change(flow.flow, node), self._check)

    def ask_again(self, flow: Flow, node: str) -> None:
        """Ask a node's probes again."""
        run = self.desk.state.run_at(flow, node)
        probes = flow.nodes[node].probes or flow.nodes[node].verify
        if run is not None:
            self.asking.want(probes, run, again=True, first=True)

    def cancel(self, flow: Flow, node: str) -> None:
        """Cancel a node's probes."""
        runs = ("", self.desk.state.attached.get((flow.flow, node), ""))
        self.asking.cancel([(run, probe) for probe in flow.nodes[node].probes for run in runs])

    def keep_command(self, command: str, name: str, then: Callable[[str], None]) -> None:
        """Write a command into a named file of the session; `then` gets its path, "" when it could not be written."""
        folder = self.desk.folder

        def write() -> str:
            names = ("commands", name) if folder else (name,)
            place = folder or tempfile.mkdtemp(prefix="runbook-")
            return write_below(place, names, (command.rstrip("\n") + "\n").encode())

        self.hands.do(write, lambda path: then("" if isinstance(path, BaseException) else path))

    def open_session(self, id: str, then: Callable[[Desk | BaseException], None]) -> None:
        """Open another session of the same folder; `then` gets its desk, or why it stays closed."""
        folder = os.path.join(os.path.dirname(self.desk.folder), id)
        self.hands.do(lambda: open_or_follow(self.desk.catalog, folder, self.desk.language), then)


def why(error: BaseException) -> str:
    """Return an error in words that are safe to draw, with its remedy.

    One that nobody foresaw is told by its kind and the place where it arose: its text may quote a login.
    """
    if isinstance(error, RunbookError):
        return sanitise(f"{error.message}  {error.hint}".strip())
    if isinstance(error, OSError | ImportError):
        return sanitise(str(error) or type(error).__name__)
    place = "".join(f" ({frame.name}, line {frame.lineno})" for frame in traceback.extract_tb(error.__traceback__)[-1:])
    return sanitise(type(error).__name__ + place)
