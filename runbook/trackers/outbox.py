"""The outbox: what is to be sent, on disk before the first connection is made, and what became of it.

It is the folder `outbox` in the user's state directory, beside the sessions kept there; wherever else sessions are
kept, for others to go on with, what is to be sent with one's own token stays with oneself. An entry is a folder in it
with one file, `entry.json`, and the lock of whoever is sending it. Invariants: an entry is whole on the disk when `put`
and `Held.save` return, mode 0600; it holds finished texts and no token; what is to be sent never changes once any of it
is posted, only what was done is added, so that a sender that was killed goes on where it stopped; an entry that
somebody else could have written is not sent, for it could take a token to a place of their choice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from runbook.errors import RunbookError, SessionError, UsageError
from runbook.private import write_whole
from runbook.session.lock import LOCK, Lock, acquire, holder_of
from runbook.session.store import APP
from runbook.text import sanitise
from runbook.ticket.outgoing import Attachment

FOLDER = "outbox"
FILE = "entry.json"
SCHEMA = 1

SIZE_LIMIT = 512 * 1024 * 1024
"""Bytes of an entry that is read."""


class OutboxError(RunbookError):
    """An entry is damaged, held by somebody, or cannot be written."""


class Step(msgspec.Struct, frozen=True):
    """One thing to post. text, mark: of a ticket or comment. file: number of the file to attach, -1 for none."""

    action: Literal["create", "comment", "attach"]
    text: str = ""
    mark: str = ""
    file: int = -1


class Content(msgspec.Struct, frozen=True):
    """What is to be sent.

    to: the address. format: layout of the texts. session: id of the session it is of. files: what the steps attach.
    """

    to: str
    title: str
    format: str
    session: str
    labels: tuple[str, ...]
    steps: tuple[Step, ...]
    files: tuple[Attachment, ...] = ()


class Entry(msgspec.Struct, frozen=True):
    """An entry of the outbox.

    made: seconds since the epoch. digest: of the content. done: for each step that was done, what links to it. item:
    the ticket in the tracker once it is known. url: where a person reads it. tries: how often it was begun to send it.
    state: `refused` when the tracker or its login has to be changed first. trouble: why it was not sent the last time.
    folder: of the session, where what was posted is noted, "" for none. again: that it is another ticket of a session
    that was posted there is wanted.
    """

    id: str
    made: float
    content: Content
    digest: str
    schema: int = SCHEMA
    done: tuple[str, ...] = ()
    item: str = ""
    url: str = ""
    tries: int = 0
    state: Literal["waiting", "refused", "posted"] = "waiting"
    trouble: str = ""
    folder: str = ""
    again: bool = False

    @property
    def attached(self) -> tuple[str, ...]:
        """Return the names of the files that were attached."""
        steps = self.content.steps[: len(self.done)]
        return tuple(self.content.files[step.file].name for step in steps if step.action == "attach")


class Damaged(NamedTuple):
    """An entry that cannot be used, and why."""

    id: str
    error: OutboxError


def outbox_dir() -> Path:
    """Return the folder of the outbox, in the user's state directory (XDG_STATE_HOME)."""
    import platformdirs

    return Path(platformdirs.user_state_dir(APP, appauthor=False), FOLDER)


def new_entry(content: Content, made: float) -> Entry:
    """Return an entry that is not on the disk yet."""
    id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(made))}-{secrets.token_hex(2)}"
    return Entry(id, made, content, digest_of(content))


def digest_of(content: Content) -> str:
    """Return what tells that the content is as it was made."""
    return hashlib.sha256(msgspec.msgpack.encode(content)).hexdigest()


@dataclass
class Held:
    """An entry that this process holds the lock of."""

    folder: str
    lock: Lock
    entry: Entry

    def save(self, entry: Entry) -> None:
        """Put what became of the entry on the disk. Raises OutboxError when the lock is lost or the disk is full."""
        if not self.lock.held():
            words = f"{self.folder}: somebody else took over the sending"
            raise OutboxError(words, "look at it again: slime-runbook outbox list")
        _write(self.folder, entry)
        self.entry = entry


@contextlib.contextmanager
def put(outbox: Path, entry: Entry) -> Iterator[Held]:
    """Put a new entry on the disk, and hold it. Raises OutboxError."""
    folder = os.path.join(outbox, entry.id)
    try:
        outbox.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.mkdir(folder, 0o700)
    except OSError as error:
        raise OutboxError(f"{folder}: cannot be made: {error.strerror}", "make room, or check its rights") from error
    with _locked(folder, take_over=False) as lock:
        _write(folder, entry)
        _sync(str(outbox))
        yield Held(folder, lock, entry)


@contextlib.contextmanager
def hold(outbox: Path, id: str, *, take_over: bool = False) -> Iterator[Held]:
    """Hold an entry. take_over: also from a sender that may be alive. Raises OutboxError."""
    folder = os.path.join(outbox, id)
    read(outbox, id)
    with _locked(folder, take_over=take_over) as lock:
        yield Held(folder, lock, read(outbox, id))


def read(outbox: Path, id: str) -> Entry:
    """Return an entry. Raises OutboxError naming the file and what is wrong with it."""
    folder = os.path.join(outbox, id)
    path = os.path.join(folder, FILE)
    try:
        _check_rights(folder, os.lstat(folder), stat.S_ISDIR)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            found = os.fstat(file.fileno())
            _check_rights(path, found, stat.S_ISREG)
            if found.st_size > SIZE_LIMIT:
                raise OutboxError(f"{path}: {found.st_size:,} bytes are no entry", _DROP)
            raw = file.read(SIZE_LIMIT)
    except OSError as error:
        raise OutboxError(f"{path}: cannot be read: {error.strerror}", _DROP) from error
    return _decoded(path, raw, id)


def entries(outbox: Path) -> list[Entry | Damaged]:
    """Return every entry, the oldest first; one that cannot be used does not keep the others back."""
    found: list[Entry | Damaged] = []
    for id in ids(outbox):
        try:
            found.append(read(outbox, id))
        except OutboxError as error:
            found.append(Damaged(id, error))
    return found


def ids(outbox: Path) -> list[str]:
    """Return the ids of all entries, the oldest first. Raises OutboxError when the folder cannot be read."""
    try:
        return sorted(name for name in os.listdir(outbox) if os.path.lexists(os.path.join(outbox, name, FILE)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise OutboxError(f"{outbox}: cannot be read: {error.strerror}", "check its rights") from error


def find_id(outbox: Path, words: str) -> str:
    """Return the id that `words` are, or that alone begins or ends so. Raises UsageError."""
    known = ids(outbox)
    if words in known:
        return words
    fitting = [id for id in known if words and (id.startswith(words) or id.endswith(f"-{words}"))]
    if len(fitting) == 1:
        return fitting[0]
    what = "no entry is" if not fitting else f"{len(fitting)} entries are"
    raise UsageError(f"{outbox}: {what} called {words!r}", "list them: slime-runbook outbox list")


def drop(outbox: Path, id: str) -> None:
    """Take an entry out of the outbox, also a damaged one. Raises OutboxError when somebody is sending it."""
    folder = os.path.join(outbox, id)
    if os.path.islink(folder):
        os.unlink(folder)
        return
    with _locked(folder, take_over=False):
        try:
            os.unlink(os.path.join(folder, FILE))
        except OSError as error:
            raise OutboxError(f"{folder}: cannot be dropped: {error.strerror}", "check its rights") from error
    for name in os.listdir(folder):
        if name.startswith((f"{FILE}.draft-", f"{LOCK}.")):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))
    with contextlib.suppress(OSError):
        os.rmdir(folder)


_DROP = "drop it, and send the ticket anew: slime-runbook outbox drop ID"


@contextlib.contextmanager
def _locked(folder: str, *, take_over: bool) -> Iterator[Lock]:
    try:
        lock = acquire(folder, take_over=take_over)
    except SessionError as error:
        holder = holder_of(folder)
        if holder is None:
            raise OutboxError(error.message, error.hint) from error
        words = f"{folder}: it is being sent by {holder.describe()}"
        raise OutboxError(words, "wait, or give --take-over if you know that nobody is sending it") from error
    try:
        yield lock
    finally:
        lock.release()


def _decoded(path: str, raw: bytes, id: str) -> Entry:
    try:
        entry = msgspec.json.decode(raw, type=Entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OutboxError(f"{path}: is no entry: {sanitise(str(error), 200)}", _DROP) from error
    faults = {
        "it was written by a newer version": entry.schema != SCHEMA,
        "it has another id": entry.id != id,
        "what is to be sent was changed or damaged": entry.digest != digest_of(entry.content),
        "a step names a file that is not there": any(
            step.file not in range(len(entry.content.files)) for step in entry.content.steps if step.action == "attach"
        ),
        "more was done than there was to do": len(entry.done) > len(entry.content.steps),
    }
    for words, wrong in faults.items():
        if wrong:
            raise OutboxError(f"{path}: is no entry that can be sent: {words}", _DROP)
    return entry


def _check_rights(path: str, found: os.stat_result, is_right: Callable[[int], bool]) -> None:
    if not is_right(found.st_mode):
        raise OutboxError(f"{path}: is no entry", _DROP)
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        words = f"{path}: somebody else may have written it, so it is not sent"
        raise OutboxError(words, "send the ticket anew; an entry belongs to one user with mode 0600")


def _write(folder: str, entry: Entry) -> None:
    path = os.path.join(folder, FILE)
    try:
        write_whole(path, msgspec.json.encode(entry))
        _sync(folder)
    except OSError as error:
        raise OutboxError(f"{path}: cannot be written: {error.strerror}", "make room, or check its rights") from error


def _sync(folder: str) -> None:
    """Put the names in a folder on the disk; where the file system cannot, the file itself is there all the same."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
