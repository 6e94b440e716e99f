"""Logs are read whole, in pieces, however they are packed, and whatever stops a read is said."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import logfiles
from probes.readers.logfiles import LogFile, ReadProblem, blocks, expand, window

CONTENT = b"".join(b"line %d\n" % number for number in range(80_000))
"""Longer than two buffers."""


def _write(path: Path, content: bytes) -> LogFile:
    path.write_bytes(content)
    return expand([str(path)])[0][0]


def _read(file: LogFile) -> tuple[bytes, list[ReadProblem]]:
    problems: list[ReadProblem] = []
    return b"".join(block.data for block in blocks(file, problems)), problems


@pytest.mark.parametrize("packing", ["plain", "gzip", "zstd"])
def test_reads_every_byte_of_each_packing(tmp_path: Path, packing: str) -> None:
    """A log comes out byte for byte, whichever way it is packed; the name is not asked."""
    packed = {"plain": CONTENT, "gzip": gzip.compress(CONTENT), "zstd": zstandard.ZstdCompressor().compress(CONTENT)}
    file = _write(tmp_path / "job.log", packed[packing])
    assert file.packing == packing
    assert _read(file) == (CONTENT, [])


def test_blocks_end_at_line_ends_and_follow_each_other(tmp_path: Path) -> None:
    """Every block but the last ends in a newline, and the offsets leave no gap."""
    file = _write(tmp_path / "job.log", CONTENT + b"no end")
    found = list(blocks(file, []))
    assert len(found) > 2
    assert all(block.data.endswith(b"\n") for block in found[:-1])
    assert [block.offset for block in found[1:]] == [block.offset + len(block.data) for block in found[:-1]]
    assert all(block.line_offset == block.offset for block in found)


def test_a_line_beyond_the_limit_is_cut_and_remembers_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pieces of an endless line carry where the line begins and how."""
    monkeypatch.setattr(logfiles, "LINE_LIMIT", logfiles.BUFFER * 2)
    line = b"start " + b"x" * (logfiles.BUFFER * 5)
    file = _write(tmp_path / "job.log", b"first\n" + line + b"\nlast\n")
    found = list(blocks(file, []))
    assert b"".join(block.data for block in found) == b"first\n" + line + b"\nlast\n"
    later = [block for block in found if block.head]
    assert later
    assert all(block.line_offset == 6 and block.head.startswith(b"start xxx") for block in later)
    assert max(len(block.data) for block in found) <= logfiles.BUFFER * 2


def test_a_truncated_archive_is_damaged_not_absent(tmp_path: Path) -> None:
    """Of a cut .gz what is there is read, and the damage is reported."""
    content = os.urandom(50_000)
    file = _write(tmp_path / "job.log.gz", gzip.compress(content)[:-2000])
    data, problems = _read(file)
    assert content.startswith(data)
    assert [problem.kind for problem in problems] == ["damaged"]
    assert not problems[0].harmless


@pytest.mark.parametrize("name", ["job.log.gz", "job.log.zst"])
@pytest.mark.parametrize("lines", [500, 20_000, 100_000])
def test_what_stands_before_a_cut_is_read_and_the_cut_is_told(tmp_path: Path, name: str, lines: int) -> None:
    """Of a log that lost its last bytes at most one block is lost, however small it is, and it is never whole."""
    content = b"".join(b"%d of many lines\n" % number for number in range(lines))
    packed = gzip.compress(content) if name.endswith("gz") else zstandard.compress(content)
    file = _write(tmp_path / name, packed[:-3])
    data, problems = _read(file)
    assert content.startswith(data)
    assert len(content) - len(data) <= (0 if name.endswith("gz") else 128 * 1024)
    assert [problem.kind for problem in problems] == ["damaged"]
    assert logfiles.window(file, 0, len(content)) == data


def test_a_shrinking_log_is_said_to_have_shrunk(tmp_path: Path) -> None:
    """A log that is cut while it is read gives an error value with both sizes."""
    path = tmp_path / "job.log"
    file = _write(path, CONTENT)
    problems: list[ReadProblem] = []
    reading = blocks(file, problems)
    next(reading)
    os.truncate(path, 10)
    list(reading)
    assert [problem.kind for problem in problems] == ["shrank"]
    assert str(len(CONTENT)) in problems[0].detail


def test_a_growing_log_is_read_up_to_where_it_was(tmp_path: Path) -> None:
    """What is appended during the read is left for the next one, and that is harmless."""
    path = tmp_path / "job.log"
    file = _write(path, CONTENT)
    problems: list[ReadProblem] = []
    reading = blocks(file, problems)
    data = next(reading).data
    with path.open("ab") as more:
        more.write(b"appended\n")
    data += b"".join(block.data for block in reading)
    assert data == CONTENT
    assert [(problem.kind, problem.harmless) for problem in problems] == [("grew", True)]


def test_expand_takes_the_logs_of_a_folder_and_nothing_else(tmp_path: Path) -> None:
    """Logs are found by name to the bottom of a folder, rotated and packed ones too, in a fixed order."""
    (tmp_path / "logs").mkdir()
    for name in ("b.out", "a.err", "raylet.out.1", "old.log.gz", "model.safetensors", "train.py"):
        (tmp_path / "logs" / name).write_bytes(b"x\n")
    files, problems = expand([str(tmp_path)])
    assert [Path(file.path).name for file in files] == ["a.err", "b.out", "old.log.gz", "raylet.out.1"]
    assert problems == ()


def test_the_parts_of_a_rotated_log_are_one_stream_oldest_first(tmp_path: Path) -> None:
    """Numbers count back in time and dates forward; packed parts belong to it; other logs stay where they were."""
    names = (
        "job.log",
        "job.log.1",
        "job.log.10",
        "job.log.2.gz",
        "a.log",
        "w.err",
        "w.err-20260820",
        "w.err-20260821.gz",
    )
    for name in names:
        (tmp_path / name).write_bytes(b"x\n")
    files, _ = expand([str(tmp_path)])
    assert [(Path(file.path).name, Path(file.stream).name, file.part) for file in files] == [
        ("a.log", "a.log", 0),
        ("job.log.10", "job.log", 0),
        ("job.log.2.gz", "job.log", 1),
        ("job.log.1", "job.log", 2),
        ("job.log", "job.log", 3),
        ("w.err-20260820", "w.err", 0),
        ("w.err-20260821.gz", "w.err", 1),
        ("w.err", "w.err", 2),
    ]


def test_a_dated_stem_belongs_to_the_log_that_is_there(tmp_path: Path) -> None:
    """Logrotate with `extension .log` dates the stem; without the undated log they are the logs of several jobs."""
    for name in ("job.log", "job-20261129.log.gz", "job-20261128.log", "run-20261128.log", "run-20261129.log"):
        (tmp_path / name).write_bytes(b"x\n")
    files, _ = expand([str(tmp_path)])
    assert {Path(file.path).name: (Path(file.stream).name, file.part) for file in files} == {
        "job-20261128.log": ("job.log", 0),
        "job-20261129.log.gz": ("job.log", 1),
        "job.log": ("job.log", 2),
        "run-20261128.log": ("run-20261128.log", 0),
        "run-20261129.log": ("run-20261129.log", 0),
    }


def test_reading_may_begin_at_any_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the start of a line on, the pieces are those of a whole read, also of lines that are cut."""
    monkeypatch.setattr(logfiles, "BUFFER", 512)
    monkeypatch.setattr(logfiles, "LINE_LIMIT", 2048)
    content = b"".join(b"%d" % number + b"x" * (number * 37 % 5000) + b"\n" for number in range(60))
    for name, packed in (("job.log", content), ("job.log.gz", gzip.compress(content))):
        file = _write(tmp_path / name, packed)
        whole = _pieces(file, 0)
        start = content.index(b"\n", len(content) // 2) + 1
        later = _pieces(file, start)
        assert later == {key: offset for key, offset in whole.items() if key[0] >= start}
        assert len(later) > 20


def _pieces(file: LogFile, start: int) -> dict[tuple[int, bytes], int]:
    """Return where each piece of a line begins, with the piece, and where its line does."""
    found = {}
    for block in blocks(file, [], start):
        at, line_offset = block.offset, block.line_offset
        for piece in block.data.splitlines(keepends=True):
            found[at, piece] = line_offset
            at += len(piece)
            line_offset = at
    return found


def test_what_cannot_be_taken_is_named(tmp_path: Path) -> None:
    """A missing file and a pipe give error values; the pipe is not opened, which would hang."""
    os.mkfifo(tmp_path / "pipe.log")
    files, problems = expand([str(tmp_path / "gone.log"), str(tmp_path / "pipe.log"), "bad\0name"])
    assert files == ()
    assert [problem.kind for problem in problems] == ["missing", "not-a-file", "unreadable"]


@pytest.mark.parametrize("name", ["job.log", "job.log.gz"])
def test_window_reads_from_an_offset(tmp_path: Path, name: str) -> None:
    """A window is the unpacked bytes from an offset on, cut at the end of the file."""
    content = gzip.compress(CONTENT) if name.endswith("gz") else CONTENT
    file = _write(tmp_path / name, content)
    assert window(file, 300_000, 12) == CONTENT[300_000:300_012]
    assert window(file, len(CONTENT) - 3, 100) == CONTENT[-3:]
    assert window(file, len(CONTENT) + 5, 10) == b""


@given(st.lists(st.sampled_from([b"\n", b"\0", b"\xff\xfe", b"\x1b[2J", b"x" * 5000, b"\r", b"y"]), max_size=40))
def test_any_bytes_come_out_as_they_are(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    """NUL, escapes and invalid UTF-8 pass through unchanged."""
    content = b"".join(pieces)
    file = _write(tmp_path_factory.mktemp("log") / "job.log", content)
    assert _read(file) == (content, [])
