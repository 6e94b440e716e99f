"""A tracker in memory that breaks where it is told to: for what a network does that no real server does on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from runbook.ticket.outgoing import Attachment
from runbook.trackers.address import Address
from runbook.trackers.model import Attaches, Kind, Posted
from runbook.trackers.trouble import TrackerError

SITE = "https://board.example"

OK, BEFORE, AFTER, KILLED_BEFORE, KILLED_AFTER, LATER = (
    "ok",
    "before",
    "after",
    "killed-before",
    "killed-after",
    "later",
)
"""What happens to a call: it works; fails before or after it did its work; the sender dies before or after."""


class Killed(BaseException):
    """Stands for kill -9: nothing of the sender runs any more."""


class Board:
    """A tracker. script: what happens to each call that changes something; when it ends, all work."""

    def __init__(self, script: Sequence[str] = ()) -> None:
        self.script: Iterator[str] = iter(script)
        self.posts: list[tuple[str, str]] = []
        self.titles: list[str] = []
        self.labels: list[tuple[str, ...]] = []
        self.files: list[tuple[str, Attachment]] = []
        self.url = ""

    def create(self, title: str, body: str, labels: Sequence[str], mark: str) -> Posted:
        """Add a ticket."""
        assert mark in body

        def work() -> None:
            self.titles.append(title)
            self.labels.append(tuple(labels))
            self.posts.append(("", body))

        self._do(work)
        return Posted("1", self.url or f"{SITE}/1")

    def comment(self, item: str, body: str, mark: str) -> Posted:
        """Add a comment."""
        assert mark in body
        self._do(lambda: self.posts.append((item, body)))
        return Posted(item, f"{SITE}/{item}#c")

    def attach(self, item: str, file: Attachment) -> str:
        """Add a file."""
        self._do(lambda: self.files.append((item, file)))
        return f"[{file.name}]"

    def find(self, item: str, mark: str, since: float) -> Posted | None:  # noqa: ARG002
        """Look for a mark."""
        found = [place for place, body in self.posts if mark in body]
        assert found in ([], [item])
        return Posted(item or "1", f"{SITE}/{item or 1}") if found else None

    def holds(self, item: str, file: Attachment, since: float) -> bool:  # noqa: ARG002
        """Look for a file."""
        return (item, file) in self.files

    def url_of(self, item: str) -> str:
        """Return an address."""
        return f"{SITE}/{item}"

    def _do(self, work: object) -> None:
        assert callable(work)
        what = next(self.script, OK)
        if what in (OK, AFTER, KILLED_AFTER):
            work()
        if what in (KILLED_BEFORE, KILLED_AFTER):
            raise Killed
        if what != OK:
            raise TrackerError("board: broken", "again", again=True, soon=what != LATER)


def kind_of(board: Board, attaches: Attaches = Attaches.TO_ITEM, limit: int = 0, *, labels: bool = True) -> Kind:
    """Return the kind of which a board is the only one."""

    def settle(address: Address) -> Address:
        return address

    return Kind(
        "board",
        "Board",
        "board:x",
        ("text",),
        attaches,
        limit,
        40,
        labels,
        "nothing",
        settle,
        lambda _: (),
        lambda *_: board,
    )


def never(*_: object) -> NoReturn:
    """Fail: a dry run opens nothing."""
    raise AssertionError("something was opened")
