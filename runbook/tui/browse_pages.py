"""Fetches pages of browsers from worker processes, and keeps the ones seen last.

It has a runner of its own, so that a page never waits behind probes. Invariants: all methods run on the app's thread;
a page that is only a part of the work is asked again until it is whole or brings nothing more; the folder that
browsers keep things in is private and gone when the app ends.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from runbook.browse import Ask, Browser, Page, Reading, Sheet, open_page
from runbook.evidence import Evidence
from runbook.runner import Job, Runner

KEPT = 12
"""Pages kept: going up and to a neighbour costs nothing."""

Then = Callable[[Page | BaseException], None]


@dataclass
class _Waiting:
    """A page on its way. jobs: the process that makes it. hears: who wants it."""

    job: Job | None = None
    hears: list[Then] = field(default_factory=list)


class Pages:
    """The pages of one app. tell: runs a callable on the app's thread, from any thread."""

    def __init__(self, tell: Callable[[Callable[[], None]], None]) -> None:
        """Start nothing before the first page is wanted."""
        self._tell = tell
        self._runner: Runner | None = None
        self._folder = ""
        self._known: OrderedDict[Any, Page] = OrderedDict()
        self._waiting: dict[Any, _Waiting] = {}

    @property
    def busy(self) -> bool:
        """Whether a page is on its way."""
        return bool(self._waiting)

    def open(self, browser: Browser, evidence: Evidence, ask: Ask, then: Then, *, fresh: bool = False) -> None:
        """Fetch a page; `then` gets it, and again each time when more of it has come, or the error that ended it.

        fresh: make it anew.
        """
        key = (browser.id, evidence, ask)
        known = None if fresh else self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            then(known)
            if _done(known) >= 1:
                return
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.hears.append(then)
            return
        self._waiting[key] = _Waiting(hears=[then])
        self._start(key, browser, evidence, ask, known)

    def cancel(self, browser: Browser, evidence: Evidence, ask: Ask | None = None) -> None:
        """Stop one page of a browser that is on its way, or all of them; nobody hears of it."""
        for key in list(self._waiting):
            if key[:2] == (browser.id, evidence) and ask in (None, key[2]):
                waiting = self._waiting.pop(key)
                if waiting.job is not None:
                    waiting.job.cancel()

    def close(self) -> None:
        """Stop, and take away what was kept."""
        self._waiting = {}
        if self._runner is not None:
            self._runner.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, key: Any, browser: Browser, evidence: Evidence, ask: Ask, known: Page | None) -> None:
        if self._runner is None:
            self._runner = Runner(("runbook.preload",))
            try:
                self._folder = tempfile.mkdtemp(prefix="runbook-browse-")
            except OSError:  # no room: browsers do without
                self._folder = ""
        asked = msgspec.structs.replace(ask, keep=self._folder, again=known is not None)
        waiting = self._waiting[key]

        def done(answer: Any) -> None:
            self._tell(lambda: self._take(key, waiting, browser, evidence, ask, known, answer))

        arguments = (browser.open.__module__, browser.id, evidence, asked)
        waiting.job = self._runner.call(open_page, arguments, done, browser.deadline)

    def _take(
        self,
        key: Any,
        waiting: _Waiting,
        browser: Browser,
        evidence: Evidence,
        ask: Ask,
        known: Page | None,
        answer: Page | BaseException,
    ) -> None:
        if self._waiting.get(key) is not waiting:
            return
        if isinstance(answer, Sheet | Reading):
            self._known[key] = answer
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        more = isinstance(answer, Sheet) and answer.done < 1 and (known is None or answer.done > _done(known))
        if not more:
            del self._waiting[key]
        for then in list(waiting.hears):
            then(answer)
        if more and isinstance(answer, Sheet) and self._waiting.get(key) is waiting:
            self._start(key, browser, evidence, ask, answer)


def _done(page: Page) -> float:
    return page.done if isinstance(page, Sheet) else 1.0
