"""What leaves from the terminal UI: the draft that a person looks at, their choices, and the ticket that comes of it.

Invariants: all methods run on the app's thread and none waits; what is written is the draft that was looked at, also
when probes went on meanwhile (a bundle holds the journal as it is then, with the same choices); choices are kept as
soon as they are made.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from runbook.errors import RedactionError
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.text import sanitise
from runbook.tui.asking import Hands
from runbook.tui.deeds import why

if TYPE_CHECKING:
    from runbook.ticket.choices import Choices
    from runbook.ticket.draft import Draft


@dataclass(frozen=True)
class Outcome:
    """What became of a ticket.

    words: why nothing was written. paths: the ticket's, then what lies beside it. text: of the ticket, for the
    clipboard, "" when it is none. hide: a word that would have to be hidden first; shown: what names it without giving
    it away. line: a dropped text that is still there.
    """

    words: str = ""
    paths: tuple[str, ...] = ()
    text: str = ""
    hide: str = ""
    shown: str = ""
    line: str = ""


class Leaving:
    """What leaves of one desk."""

    def __init__(
        self,
        desk: Desk,
        hands: Hands,
        tell: Callable[[Callable[[], None]], None],
        trouble: Callable[[BaseException], None],
    ) -> None:
        """Take tickets of `desk`. tell: runs a callable on the app's thread. trouble: hears of what was not kept."""
        self.desk, self.tell, self._hands, self._trouble = desk, tell, hands, trouble
        self.chosen: Choices | None = None

    @cached_property
    def folder(self) -> str:
        """Return the session's folder, or an empty one for a session that has none, which goes with this object."""
        return self.desk.folder or self._nowhere.name

    @cached_property
    def _nowhere(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="runbook-")

    @cached_property
    def _aside(self) -> str:
        return tempfile.mkdtemp(prefix="runbook-")

    @property
    def place(self) -> str:
        """Return where tickets are written: the session's folder; where that is another's, or nowhere, the current one.

        Where that may not be written, or is in the run, it is a new folder among the temporary ones.
        """
        if self.desk.folder and not self.desk.reads:
            return self.desk.folder
        here = os.getcwd()
        return here if os.access(here, os.W_OK) and not inside(here, self.desk.state.root) else self._aside

    def draft(self, done: Callable[[Draft | str], None], format: str, *, fresh: bool = False) -> None:
        """Make the draft of what leaves in a format as the session is now; `done` gets it, or why there is none.

        fresh: with what the session keeps of choices by now, which another command may have added to.
        """
        from runbook.ticket.choices import Choices, choices

        def read(result: Any) -> None:
            if isinstance(result, Choices):
                self.chosen = result
                self._make(result, format, done)
            else:
                done(why(result))

        if self.chosen is None or (fresh and not self.desk.reads):
            folder = self.folder
            self._hands.do(lambda: choices(folder), read)  # in its turn, after choices that are still to be kept
        else:
            self._make(self.chosen, format, done)

    def _make(self, chosen: Choices, format: str, done: Callable[[Draft | str], None]) -> None:
        def make() -> None:
            from runbook.bundle.form import FORMAT

            draft: Draft
            if format == FORMAT:
                from runbook.bundle.write import bundle_draft

                draft = bundle_draft(self.desk, self.folder, hide=chosen.hide, kept=False)
            else:
                from runbook.ticket.export import draft_of

                draft = draft_of(self.desk, self.folder, hide=chosen.hide, kept=False)
            draft.work_out()
            self.tell(lambda: done(draft))

        self.apart(make, lambda error: done(why(error)))

    def choose(self, chosen: Choices) -> None:
        """Take over what a person chose, and keep it for every later ticket; a reader's choices are kept nowhere."""
        from runbook.ticket.choices import remember

        self.chosen = chosen
        folder = self.folder
        if not self.desk.reads:
            self._hands.do(lambda: remember(folder, chosen), self._check)

    def write(self, draft: Draft, format: str, done: Callable[[Outcome], None]) -> None:
        """Write the ticket that a draft makes in a format; `done` gets what came of it."""
        chosen, place, keep_key = self.chosen, self.place, bool(self.desk.folder) and not self.desk.reads

        def make() -> None:
            from runbook.bundle.draft import BundleDraft
            from runbook.ticket.export import finished, free_name, put

            drop = chosen.drop if chosen is not None else ()
            if isinstance(draft, BundleDraft):
                from runbook.bundle.write import finished_bundle

                leaving = finished_bundle(self.desk, draft, self.folder, drop=drop, keep_key=keep_key)
            else:
                leaving = finished(draft, format, self.folder, drop=drop, keep_key=keep_key)
            paths = tuple(str(path) for path in put(leaving, free_name(place, leaving.suffix)))
            try:
                text = leaving.text
            except UnicodeDecodeError:
                text = ""
            self.tell(lambda: self._written(format, Outcome(paths=paths, text=text), done))

        self.apart(make, lambda error: done(refused(error)))

    def _written(self, format: str, outcome: Outcome, done: Callable[[Outcome], None]) -> None:
        self.journal(ev.Exported(format, outcome.paths[0]))
        done(outcome)

    def journal(self, event: ev.Exported) -> None:
        """Journal that something left; a reader's journal is somebody else's."""
        if not self.desk.reads:
            self._hands.do(lambda: self.desk.append(event), self._check)

    def kept(self, then: Callable[[], None]) -> None:
        """Do `then` once what was chosen is kept."""
        self._hands.do(lambda: None, lambda _: then())

    def apart(self, work: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
        """Do work on a thread of its own: it computes, and must hold up neither the screen nor the journal.

        failed: gets whatever it raised, for who waits must hear of it.
        """

        def run() -> None:
            try:
                work()
            except Exception as error:  # handed to the person, whatever it is: who waits would wait for ever
                self.tell(lambda error=error: failed(error))  # type: ignore[misc]

        threading.Thread(target=run, name="export", daemon=True).start()

    def _check(self, result: Any) -> None:
        if isinstance(result, BaseException):
            self._trouble(result)


def inside(folder: str, root: str) -> bool:
    """Return whether a folder is the run in `root` or lies in it."""
    run = os.path.realpath(root) if root else ""
    return bool(run) and os.path.isdir(run) and os.path.commonpath((run, os.path.realpath(folder))) == run


def refused(error: BaseException) -> Outcome:
    """Return what is to be said of a ticket that was not written."""
    if isinstance(error, RedactionError):
        return Outcome(why(error), hide=error.word, shown=sanitise(error.shown), line=error.line)
    return Outcome(why(error))


def beside(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of what lies beside a ticket."""
    return tuple(os.path.basename(path) for path in paths[1:])
