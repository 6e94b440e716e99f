"""The lock of a session folder: one writer at a time, also on NFS.

A lock is a small file that names its holder. It comes into being by one atomic `link` (which NFS guarantees; `O_EXCL`
where the file system has no hard links), so it is never seen half written. No kernel lock is used: those are lost or
refused on many cluster mounts. Invariants: a lock whose holder is known to be dead is taken over; one whose holder
cannot be seen from here is not, unless the person says so; only the holder that the person was told of gives way, so
of several who take a session over at once exactly one gets it; a holder that lost its lock notices before it writes
again (`Lock.held`); a lock that cannot be read (a stale handle, an input/output error) is neither lost nor somebody
else's: nothing is concluded from it. The file is for whoever the session is for (`runbook.private.access_of`).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import time
from dataclasses import dataclass

import msgspec

from runbook.errors import HeldError, SessionError
from runbook.private import access_of, write_whole
from runbook.session.people import author
from runbook.text import sanitise

LOCK = "lock"
"""Name of the lock file in the session folder."""

_ATTEMPTS = 16
_LOOKS, _BETWEEN = 4, 0.05
"""Looks for a lock that is not there, and the seconds between: another who came too late may be putting it back."""


class Holder(msgspec.Struct, frozen=True):
    """Who holds a session.

    time: seconds since the epoch at which it was taken. start: start time of the process in kernel ticks, so that a
    re-used process id is not taken for the holder. boot, namespace: the boot of the machine and the process-id
    namespace in which `pid` means something; each is "" where the system does not tell. token: tells two locks of one
    process apart.
    """

    host: str
    pid: int
    time: float
    token: str
    who: str = ""
    start: str = ""
    boot: str = ""
    namespace: str = ""

    def describe(self) -> str:
        """Return one phrase that names the holder to a person."""
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.time))
        who = f"{sanitise(self.who)} " if self.who else ""
        return f"{who}on {sanitise(self.host)} (process {self.pid}) since {since}"

    def parts(self) -> dict[str, str]:
        """Return name, host and time of day (UTC), safe to draw, for words in any language: who, host, since."""
        since = time.strftime("%H:%M UTC", time.gmtime(self.time))
        return {"who": sanitise(self.who) or str(self.pid), "host": sanitise(self.host), "since": since}


@dataclass(frozen=True)
class Lock:
    """A lock that this process holds.

    content: the bytes of the lock file, unique to this lock. taken: it was taken from a holder that may be alive.
    """

    path: str
    content: bytes
    taken: bool = False

    def held(self) -> bool:
        """Return whether the lock file is still this one; costs one small read where it is.

        Raises SessionError when that cannot be seen; the lock is then not known to be lost.
        """
        for look in range(_LOOKS):
            if look:
                time.sleep(_BETWEEN)
            try:
                found = _bytes_of(self.path)
            except OSError as error:
                raise SessionError(
                    f"{sanitise(self.path)}: whether the session is still ours cannot be seen: {error.strerror}",
                    "see to the file system, then repeat it; nobody is known to have taken the session over",
                ) from error
            if found is not None:
                return found == self.content
        return False

    def release(self) -> None:
        """Give the lock up; a lock that somebody took over is left alone. Never fails."""
        with contextlib.suppress(OSError, SessionError):
            if self.held():
                os.unlink(self.path)


def acquire(folder: str, *, take_over: bool = False, instead_of: Holder | None = None) -> Lock:
    """Take the lock of a session folder.

    take_over: also take it from a holder that may be alive: from `instead_of`, by default from who holds it now, but
    from nobody who came after. Raises SessionError naming the holder when it is held, or the reason when no lock file
    can be made.
    """
    path = os.path.join(folder, LOCK)
    taken = False
    try:
        content = msgspec.json.encode(_me())
        giving_way = None if instead_of is not None or not take_over else _bytes_of(path)
        for _ in range(_ATTEMPTS):
            if _claim(folder, path, content):
                return Lock(path, content, taken)
            seen = _bytes_of(path)
            if seen is None:
                continue
            chosen = seen == giving_way or (instead_of is not None and _decode(seen) == instead_of)
            if not (take_over and chosen):
                _refuse_unless_dead(path, seen)
            taken = (_remove(path, seen) and take_over and chosen) or taken
    except OSError as error:
        hint = "read it with `resume SESSION --read`; to go on with it, ask its owner for the right to write"
        raise SessionError(f"{path}: cannot lock the session: {error.strerror}", hint) from error
    raise SessionError(f"{path}: the lock changes hands faster than it can be taken", "try again")


def holder_of(folder: str) -> Holder | None:
    """Return who holds the session, or None when nobody is known to: it is free, its holder is dead, or hidden.

    Never raises: a lock that cannot be read names nobody, and taking it (`acquire`) is refused with the reason.
    """
    try:
        content = _bytes_of(os.path.join(folder, LOCK))
        holder = _decode(content) if content is not None else None
        return None if holder is None or alive(holder) is False else holder
    except OSError:
        return None


def alive(holder: Holder) -> bool | None:
    """Return whether the holder lives; None when that cannot be seen from here.

    Another host, and another container on this host, cannot be seen. A holder of an earlier boot of this host is dead.
    """
    here = _me()
    if holder.host != here.host:
        return None
    if holder.boot != here.boot:
        return False
    if holder.namespace != here.namespace:
        return None
    if here.start:
        found = _process_start(holder.pid)
        if found is None:
            return None if _hidden(holder.pid) else False
        return found == (holder.start or found)
    return _answers(holder.pid)


def _hidden(pid: int) -> bool:
    """Return whether there is such a process though /proc does not show it: one of another user, with hidepid."""
    return _bytes_of(f"/proc/{pid}/stat") is None and _answers(pid)


def _answers(pid: int) -> bool:
    """Return whether there is such a process, where /proc is missing."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _me() -> Holder:
    pid = os.getpid()
    return Holder(
        host=socket.gethostname(),
        pid=pid,
        time=time.time(),
        token=secrets.token_hex(8),
        who=author(),
        start=_process_start(pid) or "",
        boot=(_bytes_of("/proc/sys/kernel/random/boot_id") or b"").decode().strip(),
        namespace=_link_of("/proc/self/ns/pid"),
    )


def _process_start(pid: int) -> str | None:
    """Return the start time of a running process in ticks since boot; None when there is none or it is a zombie."""
    stat = _bytes_of(f"/proc/{pid}/stat")
    if not stat:
        return None
    # The command name stands in parentheses and may hold blanks and parentheses; state is field 3, start time field 22.
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _link_of(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _bytes_of(path: str) -> bytes | None:
    """Return what a small file holds, None where there is none to be seen; raises OSError when that is not known."""
    try:
        with open(path, "rb") as file:
            return file.read(64 * 1024)
    except (FileNotFoundError, ProcessLookupError, PermissionError, NotADirectoryError):
        return None


def _decode(content: bytes) -> Holder | None:
    try:
        return msgspec.json.decode(content, type=Holder)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _refuse_unless_dead(path: str, seen: bytes) -> None:
    holder = _decode(seen)
    if holder is None:
        raise HeldError(
            f"{path}: the session is locked, but the lock does not say by whom",
            "take it over if you know that nobody has it open",
        )
    living = alive(holder)
    if living is False:
        return
    certainty = "" if living else "; whether it still runs cannot be seen from here"
    raise HeldError(
        f"{path}: the session is open elsewhere: {holder.describe()}{certainty}",
        "read it with `resume SESSION --read`, or give --take-over if you know that it is abandoned",
    )


def _claim(folder: str, path: str, content: bytes) -> bool:
    """Make the lock file with `content` in one step; return False when there is one already."""
    try:
        write_whole(path, content, overwrite=False, access=access_of(folder))
    except FileExistsError:
        return False
    return True


def _remove(path: str, seen: bytes) -> bool:
    """Take away the lock whose bytes are `seen`, and return whether that was done; another that is there now stays."""
    if _bytes_of(path) != seen:
        return False
    aside = f"{path}.{secrets.token_hex(8)}"
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return False
    try:
        if _bytes_of(aside) == seen:
            return True
        with contextlib.suppress(OSError):
            os.link(aside, path)
        return False
    finally:
        os.unlink(aside)
