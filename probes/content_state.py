"""What content scans of checkpoints have found so far, kept in the user's cache folder so that a scan can be resumed.

One append-only file of JSON lines a checkpoint folder, never inside it. Invariants: a result counts only for a file of
the same name, size and modification time and for a tensor at the same place; a torn or foreign line counts for
nothing; where nothing can be written, scanning goes on without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from probes.readers.tensor_scan import Looked, Piece

WORTH = 1 << 30
"""Bytes of a checkpoint from which on its results are kept; a smaller one is read again within seconds."""
LIMIT = 256 << 20
"""Bytes of a state file that are read; a larger one belongs to no checkpoint."""
KEPT = 20
"""State files that stay; of more, the oldest go."""


class _Line(msgspec.Struct, array_like=True, gc=False):
    """Some results of one file. rows: the fields of Piece and Looked as plain tuples.

    Not the classes themselves: msgspec hangs its own object onto a named tuple's class, which then cannot travel to
    a Ray node by value.
    """

    file: str
    size: int
    mtime: int
    rows: list[tuple[tuple[str, str, int, int], tuple[str, bool, bool, int, int, int, int]]]


@dataclass(frozen=True)
class Stamp:
    """Which state a file is in: bytes, and nanoseconds of its modification time."""

    size: int
    mtime: int


@dataclass(frozen=True)
class State:
    """The state file of one checkpoint folder; path is "" when none is kept."""

    path: str = ""

    def known(self, stamps: dict[str, Stamp]) -> dict[str, dict[Piece, Looked]]:
        """Return the results that still hold, by file name."""
        found: dict[str, dict[Piece, Looked]] = {}
        for raw in _lines(self.path):
            try:
                line = _decode(raw)
            except (msgspec.DecodeError, RecursionError):
                continue
            if stamps.get(line.file) == Stamp(line.size, line.mtime):
                rows = {Piece(*piece): Looked(*looked) for piece, looked in line.rows}
                found.setdefault(line.file, {}).update(rows)
        return found

    def add(self, file: str, stamp: Stamp, rows: Iterable[tuple[Piece, Looked]]) -> None:
        """Append results of one file, in one write: what a kill tears is one line at most."""
        if not self.path:
            return
        raw = msgspec.json.encode(_Line(file, stamp.size, stamp.mtime, list(rows)))
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, b"\n" + raw + b"\n")  # the first ends a line that was torn before
            finally:
                os.close(descriptor)


_decode = msgspec.json.Decoder(_Line).decode


def _lines(path: str) -> Iterable[bytes]:
    if not path:
        return ()
    try:
        with open(path, "rb") as file:
            return file.read(LIMIT).split(b"\n")
    except OSError:
        return ()


def state_of(folder: str, size: int) -> State:
    """Return the state file of a checkpoint folder of `size` bytes, making room for it."""
    if size < WORTH:
        return State()
    import platformdirs

    place = os.path.join(platformdirs.user_cache_dir("slime-runbook", appauthor=False), "content")
    key = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:24]
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        with os.scandir(place) as entries:
            files = sorted(((entry.stat().st_mtime_ns, entry.path) for entry in entries), reverse=True)
    except OSError:
        return State()
    for _, path in files[KEPT:]:
        with contextlib.suppress(OSError):
            os.unlink(path)
    return State(os.path.join(place, f"{key}.jsonl"))
