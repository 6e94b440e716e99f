"""Brings what happens on other threads to the app, many events at a time.

Invariant: however fast events come, the app is woken at most once in BATCH seconds; nothing is lost, also not what
comes before the app runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

BATCH = 0.05
"""Seconds between two redraws: short enough to feel immediate, long enough for a burst."""


class Inbox:
    """A queue that other threads fill and the app's loop empties."""

    def __init__(self, take: Callable[[list[Any]], None]) -> None:
        """Make an inbox. take: gets each batch, on the loop's thread."""
        self._take = take
        self._lock = threading.Lock()
        self._items: deque[Any] = deque()
        self._awake = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.Context()

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Deliver to `loop` from now on, in the context of this call, beginning with what has come already."""
        with self._lock:
            self._context = contextvars.copy_context()
            self._loop = loop
            waiting = bool(self._items)
            self._awake = waiting
        if waiting:
            loop.call_soon_threadsafe(self._deliver, context=self._context)

    def close(self) -> None:
        """Deliver nothing more."""
        with self._lock:
            self._loop = None

    def put(self, item: Any) -> None:
        """Add an item, from any thread."""
        with self._lock:
            self._items.append(item)
            loop = self._loop
            if loop is None or self._awake:
                return
            self._awake = True
        try:
            loop.call_soon_threadsafe(self._later, loop)
        except RuntimeError:  # the loop was closed: the app is gone
            self.close()

    def _later(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(BATCH, self._deliver, context=self._context)

    def _deliver(self) -> None:
        with self._lock:
            if self._loop is None:
                return
            batch = list(self._items)
            self._items.clear()
            self._awake = False
        self._take(batch)
