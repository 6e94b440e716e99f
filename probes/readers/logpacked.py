"""Read pieces out of the middle of packed logs, without unpacking them from the start for each.

A packed log can only be read forwards, and what cites it asks for places that mostly come one behind the other. The
last places that were asked for therefore stay open where they were left, with what was unpacked last: one at the head
of a log does not lose the one at its end. Invariants: a piece is the same as one read from the start; a place before
all that is held begins anew; memory is bounded by OPEN, HELD and what is asked for; a log that was replaced or has
grown is opened anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

HELD = 4 << 20
"""Bytes before the place reached that are held at least, and up to twice as many: more than a citation, its traceback
and its table look back."""
STEP = 256 * 1024
"""Bytes that are unpacked at a time."""
OPEN = 4
"""Places in packed logs that stay open."""

_Key = tuple[int, str, int, int, int, int]


@dataclass
class _Reader:
    """A packed log. data: what was unpacked last, from `start` on. ended: nothing more can be read."""

    stream: BinaryIO
    start: int = 0
    data: bytearray = field(default_factory=bytearray)
    ended: bool = False

    def piece(self, start: int, length: int) -> bytes:
        """Return up to `length` bytes from `start` on, which is not before what is held."""
        while not self.ended and self.start + len(self.data) < start + length:
            try:
                part = self.stream.read1(STEP)  # type: ignore[attr-defined]  # read() drops what stands before a fault
            except Exception:  # whatever an unpacker raises: what came before it is still evidence
                part = b""
            self.ended = not part
            self.data += part
            spare = min(len(self.data) - HELD, start - self.start)
            if spare >= HELD:
                del self.data[:spare]
                self.start += spare
        begin = max(start - self.start, 0)
        return bytes(self.data[begin : begin + length])


_readers: list[tuple[_Key, _Reader]] = []
"""The last used stands last."""
_lock = threading.Lock()


def piece(path: str, packing: str, opener: Callable[[], BinaryIO], start: int, length: int) -> bytes:
    """Return up to `length` unpacked bytes of a packed log from `start` on. Raises OSError where it cannot be opened.

    opener: opens it at its beginning.
    """
    status = os.stat(path)
    key = (os.getpid(), packing, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    with _lock:
        before = [each for own, each in _readers if own == key and each.start <= start]
        reader = max(before, key=lambda each: each.start) if before else _Reader(opener())
        _readers[:] = [each for each in _readers if each[1] is not reader]
        _readers.append((key, reader))
        while len(_readers) > OPEN:
            _readers.pop(0)[1].stream.close()
        return reader.piece(start, length)


def forget() -> None:
    """Close the logs that stay open."""
    with _lock:
        while _readers:
            _readers.pop()[1].stream.close()
