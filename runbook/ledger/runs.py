"""Which run a cause was confirmed in, so that several sessions over one run count as the one incident that they are.

An identity is a hash of RUN's real path, of the file that proves the cause and of how that file begins: a later run
that writes over the files of an earlier one begins otherwise, by its times. Invariants: no path stands in it; a file
that grows behind its first HEAD bytes keeps it; nothing but a plain file is read.
"""

from __future__ import annotations

import hashlib
import os
import stat

from runbook.triage import Verdicted

HEAD = 4096
"""Bytes of a file that tell one run's from another's: launch scripts and loggers print times in their first lines."""


def identity_of(cause: Verdicted, root: str) -> str:
    """Return the identity of the run that a confirmed cause is of, 16 hex digits. root: RUN as it was given.

    Within RUN the proving file alone counts, so that a folder and a log in it are one run. Where no file can be read,
    the paths count.
    """
    path = next((cited.path for finding in cause.by for cited in finding.citations if os.path.isabs(cited.path)), "")
    top, real = (os.path.realpath(name) if name and "\0" not in name else "" for name in (root, path))
    inside = bool(top and real) and (real == top or real.startswith(top.rstrip("/") + "/"))
    made = hashlib.blake2b(digest_size=8)
    for part in ("" if inside else top, real):
        made.update(part.encode("utf-8", "surrogateescape") + b"\0")
    made.update(_head(real))
    return made.hexdigest()


def _head(path: str) -> bytes:
    """Return how a plain file begins, nothing where it cannot be read."""
    if not path:
        return b""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, HEAD, 0) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)
