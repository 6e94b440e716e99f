"""A zstd file is read to its end, and one that is cut off is said to be."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import zstd_stream

frames = st.lists(st.binary(max_size=3000), max_size=4)


def _read(path: Path, content: bytes) -> tuple[bytes, str]:
    """Write a file, and return what it holds and the name of what ended the read."""
    path.write_bytes(content)
    found = bytearray()
    with zstd_stream.unpacked(str(path)) as stream:
        try:
            while part := stream.read1(777):  # type: ignore[attr-defined]
                found += part
        except (EOFError, zstandard.ZstdError) as error:
            return bytes(found), type(error).__name__
    return bytes(found), ""


@given(frames)
def test_frames_behind_each_other_are_one_stream(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    """What several writers appended one behind the other is read as one, and nothing is said to be damaged."""
    packed = b"".join(zstandard.compress(part) for part in parts)
    assert _read(tmp_path_factory.mktemp("x") / "x", packed) == (b"".join(parts), "")


@given(st.binary(min_size=1, max_size=300_000), st.floats(0.01, 0.999))
def test_a_cut_file_is_never_taken_for_a_whole_one(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, kept: float
) -> None:
    """Wherever a file is cut off, what is read is the beginning of the content and the cut is raised."""
    packed = zstandard.compress(content)
    cut = max(int(len(packed) * kept), 1)
    found, trouble = _read(tmp_path_factory.mktemp("x") / "x", packed[:cut])
    assert content.startswith(found)
    assert trouble == "EOFError"


def test_all_whole_blocks_before_a_cut_are_read(tmp_path: Path) -> None:
    """Of a file that lacks its last byte, all but the last block of 128 KiB is there."""
    content = b"".join(b"%d of many lines\n" % number for number in range(100_000))
    found, trouble = _read(tmp_path / "x", zstandard.compress(content)[:-1])
    assert trouble == "EOFError"
    assert len(content) - len(found) <= 128 * 1024


def test_other_bytes_behind_a_frame_are_told_after_its_content(tmp_path: Path) -> None:
    """Garbage behind a frame is a fault; the frame was read before."""
    assert _read(tmp_path / "x", zstandard.compress(b"content") + b"garbage trail") == (b"content", "ZstdError")


def test_a_bomb_is_unpacked_in_small_pieces(tmp_path: Path) -> None:
    """A file that unpacks to 256 MB hands out what is asked for, and never holds more than one step unpacks to."""
    packer = zstandard.ZstdCompressor().compressobj()
    path = tmp_path / "bomb"
    with path.open("wb") as file:
        for _ in range(256):
            file.write(packer.compress(bytes(1 << 20)))
        file.write(packer.flush())
    with zstd_stream.unpacked(str(path)) as stream, contextlib.closing(stream):
        total = 0
        while part := stream.read1(100_000):  # type: ignore[attr-defined]
            assert len(part) <= 100_000
            total += len(part)
    assert total == 256 << 20
