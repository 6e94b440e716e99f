"""Files for the owner's eyes: mode 0600 whatever the umask, and on the disk when the call returns.

Journals, locks, keys and tickets are written through here, so that there is one way to get it right. Everything raises
OSError as the system gives it; the callers know what the file means and say so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}


def write_new(path: str, content: bytes) -> None:
    """Write a file that must not be there yet; raises FileExistsError when it is. A kill may leave a part of it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_at(descriptor, content, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: str, content: bytes, *, overwrite: bool = True) -> None:
    """Write a file that appears whole or not at all; without `overwrite`, FileExistsError when the name is taken.

    Without `overwrite`, on a file system without hard links, a kill may leave a part of it: not to replace what is
    there goes before being whole.
    """
    draft = f"{path}.draft-{secrets.token_hex(4)}"
    try:
        write_new(draft, content)
        if overwrite:
            os.replace(draft, path)
        elif not _claim(draft, path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)


def _claim(draft: str, path: str) -> bool:
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
            write_new(path, content)
        except FileExistsError:
            return False
    return True


def write_at(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of `content` at `offset`, however little the system takes at once."""
    done = 0
    while done < len(content):
        done += os.pwrite(descriptor, content[done:], offset + done)
