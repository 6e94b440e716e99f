"""Unpack zstd files as a stream that tells when the file was cut off.

The library's own reader ends silently where its input does, so that a log which was cut off would count as one that
was read to its end. Invariants: all that can be unpacked is handed out before anything is raised; frames that stand
one behind the other are one stream; memory is bounded by STEP times what zstd can pack into a byte.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO, cast

STEP = 1024
"""Packed bytes that are unpacked at a time: at most some 32 MB, 128 KiB (a block of one repeated byte) for 4 bytes."""


def unpacked(path: str) -> BinaryIO:
    """Open a zstd file for reading what it holds. Raises OSError; reading raises EOFError where the file is cut off."""
    return cast("BinaryIO", io.BufferedReader(_Frames(open(path, "rb"))))


class _Frames(io.RawIOBase):
    """The content of all frames of a file. left: packed bytes behind the last frame. ready: what nobody has taken."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._frame: Any = None
        self._left = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with what stands next; 0 at the end. Raises EOFError, ZstdError and OSError."""
        while not self._ready:
            packed = self._left or self._source.read(STEP)
            if not packed:
                if self._frame is not None:
                    message = "Compressed file ended before the end of a frame was reached"
                    raise EOFError(message)
                return 0
            self._unpack(packed)
        with memoryview(buffer).cast("B") as free:
            got = min(len(free), len(self._ready))
            free[:got] = self._ready[:got]
        self._ready = self._ready[got:]
        return got

    def close(self) -> None:
        self._source.close()
        super().close()

    def _unpack(self, packed: bytes) -> None:
        import zstandard

        frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(frame.decompress(packed))
        self._frame = None if frame.eof else frame
        self._left = frame.unused_data if frame.eof else b""
