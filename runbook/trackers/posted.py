"""What was posted of a session, and where, so that nobody posts its ticket a second time without wanting to.

It is kept in the session's folder, for whoever may read the session, and not in its journal: what somebody else holds,
or reads only, can be sent as well. One's own outbox knows more where the folder cannot be written. Invariants: it is
only ever appended to, one line a ticket or comment, each by one write; a line that cannot be read is passed over; it
never leaves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from runbook.errors import SessionError, UsageError
from runbook.private import access_of, share
from runbook.session.people import author
from runbook.text import Text, sanitise
from runbook.trackers.outbox import Entry, entries

POSTED_FILE = "posted.jsonl"
"""Name of the file in the session folder."""

SIZE_LIMIT = 4 * 1024 * 1024
"""Bytes of it that are read."""


class Posting(msgspec.Struct, frozen=True):
    """Something of a session that stands in a tracker.

    to: the address that was given. url: where a person reads it. item: name of the ticket there. time: seconds since
    the epoch. who: posted it.
    """

    to: str
    url: str
    item: str = ""
    time: float = 0.0
    who: str = ""

    @property
    def place(self) -> str:
        """Return the address of the place, without a ticket."""
        return self.to.partition("#")[0]

    def say(self) -> Text:
        """Return one line for people, safe to draw."""
        when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self.time)) if 0 < self.time < 1e11 else ""
        rest = ", ".join(filter(None, (sanitise(self.who, 60), when)))
        behind = f" ({rest})" if rest else ""
        url = sanitise(self.url)
        return Text(f"posted: {url}{behind}", f"已提交：{url}{behind}")


def postings(session: str | os.PathLike[str]) -> tuple[Posting, ...]:
    """Return what a session's folder says was posted, the oldest first. Raises SessionError when it cannot be read."""
    path = os.path.join(session, POSTED_FILE)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            lines = file.read(SIZE_LIMIT).splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        words = f"{path}: what was posted of the session cannot be read: {error.strerror}"
        raise SessionError(words, "check its rights; it is a plain file") from error
    return tuple(one for one in map(_decoded, lines) if one is not None)


def keep(session: str | os.PathLike[str], entry: Entry) -> None:
    """Note in a session's folder what an entry of the outbox came to; once, however often it is called.

    Raises SessionError when that cannot be written.
    """
    path = os.path.join(session, POSTED_FILE)
    new = Posting(entry.content.to, entry.url, entry.item, time.time(), author())
    if any((one.to, one.url) == (new.to, new.url) for one in postings(session)):
        return
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            if os.fstat(descriptor).st_size == 0:
                share(descriptor, access_of(session))
            os.write(descriptor, b"\n" * (os.fstat(descriptor).st_size > 0) + msgspec.json.encode(new) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        words = f"{path}: cannot be written: {error.strerror}"
        raise SessionError(words, "tell whoever goes on with the session where its ticket is") from error


def check_first(entry: Entry, session: str | os.PathLike[str], outbox: Path, hint: str = "") -> None:
    """Check that a new ticket is the first one of its session at that place, or is meant to be another one.

    session: the session's folder, "" where it is not known. hint: what to do, instead of the ways on. Raises UsageError
    with the URL of the ticket that is there.
    """
    if "#" in entry.content.to or entry.again:
        return
    here = postings(session) if session else ()
    known = [one for one in (*here, *_of_outbox(entry, outbox)) if one.place == entry.content.to]
    if known:
        raise UsageError(
            f"{entry.content.to}: session {sanitise(entry.content.session)} is posted there already: "
            f"{sanitise(known[-1].url)}",
            hint or _ways_on(known),
        )


def _ways_on(known: Sequence[Posting]) -> str:
    place, item = sanitise(known[-1].place), sanitise(known[-1].item)
    return f"comment on it: --to '{place}#{item}'; or post another one: slime-runbook send SESSION --to {place} --again"


def _of_outbox(entry: Entry, outbox: Path) -> list[Posting]:
    return [
        Posting(one.content.to, one.url, one.item, one.made)
        for one in entries(outbox)
        if isinstance(one, Entry) and one.url and one.content.session == entry.content.session and one.id != entry.id
    ]


def _decoded(line: bytes) -> Posting | None:
    """Return a line as what was posted, None when it is none: others may write the file, too."""
    try:
        found = msgspec.json.decode(line, type=Posting)
        good = urlsplit(found.url).scheme in ("http", "https")
    except (ValueError, RecursionError):
        return None
    return found if good else None
