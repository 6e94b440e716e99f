"""Follows a session that somebody else writes: what was added since the last look, and who holds it now.

A look opens the journal anew, for on NFS that is what makes a client ask the server for the file's size, and reads from
the end of the last whole line only, a bounded piece at a time. Invariants: nothing is written; a record is given once,
whole and in order; a line that is not whole yet, or not readable yet (a page that has not come), is waited for; a
journal that was shortened, or replaced by one that does not go on from what was read, is said and read anew.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from runbook.errors import SessionError
from runbook.session import events as ev
from runbook.session.journal import JOURNAL, encode, load, parse
from runbook.session.lock import Holder, holder_of
from runbook.text import Text, sanitise

PIECE = 1 << 20
"""Bytes of one read; a longer line is read with a larger one the next time."""
PATIENCE = 5
"""Looks at which a line may be unreadable before that is said."""


@dataclass(frozen=True)
class News:
    """What a look brought.

    records: new ones, in order; all of them when `anew`. anew: the journal is not the one that was read before.
    holder: who writes, None when nobody does. said: what a person should know.
    """

    records: tuple[ev.Record, ...] = ()
    anew: bool = False
    holder: Holder | None = None
    said: tuple[Text, ...] = ()


class Follower:
    """Follows the session in `folder`. records, warnings: what was in it at first."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Read what is there. Raises SessionError when the journal is damaged or cannot be read."""
        self.folder = os.fspath(folder)
        self._path = os.path.join(self.folder, JOURNAL)
        self._complained = ""
        self._begin()
        self.holder = holder_of(self.folder)

    def _begin(self) -> None:
        loaded = load(self._path)
        self.records, self.warnings = loaded.records, loaded.warnings
        self._next, self._offset = loaded.next, loaded.size
        self._last: ev.Record | None = loaded.records[-1] if loaded.records else None
        self._file = self._identity()
        self._reach, self._tries = PIECE, 0

    def look(self) -> News:
        """Return what is new; never raises."""
        try:
            news = self._look()
            self._complained = ""
        except (SessionError, OSError) as error:
            news = News(said=self._once(error))
        self.holder = holder_of(self.folder)
        return News(news.records, news.anew, self.holder, news.said)

    def _look(self) -> News:
        with open(self._path, "rb") as file:
            status = os.fstat(file.fileno())
            if (status.st_dev, status.st_ino) != self._file or status.st_size < self._offset:
                return self._another()
            if status.st_size == self._offset:
                return News()
            file.seek(self._offset)
            piece = file.read(self._reach)
        end = piece.rfind(b"\n") + 1
        if not end:
            self._reach = self._reach * 4 if len(piece) == self._reach else self._reach
            return News()
        self._reach = PIECE
        return self._taken(piece[:end])

    def _taken(self, lines: bytes) -> News:
        """Return the records of whole lines, up to the first that cannot be read yet."""
        records: list[ev.Record] = []
        said: list[Text] = []
        for line in lines.split(b"\n")[:-1]:
            try:
                found = parse(line)
            except (ValueError, RecursionError):
                found = -1
            if (found if isinstance(found, int) else found.n) != self._next:
                self._tries += 1
                if self._tries == PATIENCE:
                    said.append(_unreadable(self._path, self._next))
                break
            self._next, self._tries = self._next + 1, 0
            self._offset += len(line) + 1
            if isinstance(found, ev.Record):
                records.append(found)
        self._last = records[-1] if records else self._last
        return News(tuple(records), said=tuple(said))

    def _another(self) -> News:
        """Read another file under the journal's name: one that goes on from what was read is no surprise."""
        known, last = self._next, self._last
        self._begin()
        same = last is None or any(one.n == last.n and encode(one) == encode(last) for one in self.records)
        if self._next >= known and same:
            return News(tuple(one for one in self.records if one.n >= known))
        return News(self.records, anew=True, said=(_replaced(self._path),))

    def _identity(self) -> tuple[int, int]:
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise SessionError(
                f"{self._path}: cannot be read: {error.strerror}", "check the path and its rights"
            ) from error
        return status.st_dev, status.st_ino

    def _once(self, error: SessionError | OSError) -> tuple[Text, ...]:
        """Return what to say of an error, unless it was said at the look before."""
        words = error.message if isinstance(error, SessionError) else f"{self._path}: {error.strerror}"
        if words == self._complained:
            return ()
        self._complained = words
        return (Text(f"cannot follow: {sanitise(words)}", f"无法跟随：{sanitise(words)}"),)


def _unreadable(path: str, number: int) -> Text:
    return Text(
        f"{sanitise(path)}: record {number} cannot be read; what follows it is not shown",
        f"{sanitise(path)}：记录 {number} 无法读取，其后的内容不显示",
    )


def _replaced(path: str) -> Text:
    return Text(
        f"{sanitise(path)}: the journal was replaced or shortened; it was read anew",
        f"{sanitise(path)}：日志已被替换或缩短，已重新读取",
    )
