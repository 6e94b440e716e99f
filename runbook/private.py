"""Files for the owner's eyes: mode 0600 whatever the umask, and on the disk when the call returns.

Journals, locks, keys and tickets are written through here, so that there is one way to get it right. What a session on
shared storage keeps may be for a group as well (`Access`): then the rule is the mode of the session's folder, which
everything in it follows. Invariants: nothing is ever for the world; a file that cannot be given to the group is the
owner's alone. Everything raises OSError as the system gives it; the callers know what the file means and say so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import NamedTuple

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}


class Access(NamedTuple):
    """Who may use what is made: its owner, and members of `group` (a group id, None for nobody else).

    writes: the group may also write.
    """

    group: int | None = None
    writes: bool = False

    @property
    def folder_mode(self) -> int:
        """Return the mode of a folder; what is made in one that a group writes to belongs to that group."""
        return 0o700 if self.group is None else 0o2770 if self.writes else 0o750

    @property
    def file_mode(self) -> int:
        """Return the mode of a file."""
        return 0o600 if self.group is None else 0o660 if self.writes else 0o640


PRIVATE = Access()
"""The owner alone."""


def access_of(folder: str | os.PathLike[str]) -> Access:
    """Return who may use a folder, as its mode says; the owner alone where it cannot be seen."""
    try:
        status = os.stat(folder)
    except OSError:
        return PRIVATE
    bits = stat.S_IMODE(status.st_mode)
    if bits & 0o050 != 0o050:
        return PRIVATE
    return Access(status.st_gid, bool(bits & 0o020))


def make_folder(path: str, access: Access = PRIVATE) -> None:
    """Make a folder that must not be there yet, for its owner and the group of `access`."""
    os.mkdir(path, 0o700)
    if access.group is not None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _give(descriptor, access.group, access.folder_mode)
        finally:
            os.close(descriptor)


def write_below(folder: str, names: tuple[str, ...], content: bytes) -> str:
    """Write a file whole below a session's folder, under that folder's rule, and return its path.

    names: folders, made where they are missing, and the file.
    """
    access, path = access_of(folder), folder
    for name in names[:-1]:
        path = os.path.join(path, name)
        with contextlib.suppress(FileExistsError):
            make_folder(path, access)
    path = os.path.join(path, names[-1])
    write_whole(path, content, access=access)
    return path


def share(descriptor: int, access: Access) -> None:
    """Give an open file to those who may use the folder that it is in."""
    if access.group is not None:
        _give(descriptor, access.group, access.file_mode)


def _give(descriptor: int, group: int, mode: int) -> None:
    """Give a file or folder to a group with `mode`, past the umask; where that is refused it stays the owner's."""
    try:
        if os.fstat(descriptor).st_gid != group:
            os.fchown(descriptor, -1, group)
        os.fchmod(descriptor, mode)
    except PermissionError:
        return


def write_new(path: str, content: bytes, access: Access = PRIVATE) -> None:
    """Write a file that must not be there yet; raises FileExistsError when it is. A kill may leave a part of it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        share(descriptor, access)
        write_at(descriptor, content, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: str, content: bytes, *, overwrite: bool = True, access: Access = PRIVATE) -> None:
    """Write a file that appears whole or not at all; without `overwrite`, FileExistsError when the name is taken.

    Without `overwrite`, on a file system without hard links, a kill may leave a part of it: not to replace what is
    there goes before being whole.
    """
    draft = f"{path}.draft-{secrets.token_hex(4)}"
    try:
        write_new(draft, content, access)
        if overwrite:
            os.replace(draft, path)
        elif not _claim(draft, path, access):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)


def _claim(draft: str, path: str, access: Access) -> bool:
    """Give the finished file `draft` the further name `path` in one step; False when that name is taken.

    By a hard link, which NFS makes atomically; where the file system has none, by a new file with the same content.
    """
    try:
        os.link(draft, path)
    except FileExistsError:
        # An NFS server may have made the link and its answer got lost: the link count tells.
        return os.stat(draft).st_nlink == 2
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        with open(draft, "rb") as file:
            content = file.read()
        try:
            write_new(path, content, access)
        except FileExistsError:
            return False
    return True


def write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of `content` at `offset`, however little the system takes at once."""
    done = 0
    while done < len(content):
        done += os.pwrite(descriptor, content[done:], offset + done)


def sync_folder(folder: str) -> None:
    """Make a new name in a folder survive a power cut, where the file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
