"""The window into a file: the right lines, numbers and bounds, whatever the file holds."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
import zstandard
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runbook import window as windows
from runbook.finding import Citation
from runbook.window import FILES, LINE_BYTES, LINES, Window, extend, open_window


def write(folder: Path, content: bytes, name: str = "x.log") -> str:
    """Write a file and return its path."""
    (folder / name).write_bytes(content)
    return str(folder / name)


def numbered(count: int) -> tuple[bytes, list[int]]:
    """Return `count` lines and the offset of each."""
    lines = [b"[rank%d] line %d\n" % (i % 8, i + 1) for i in range(count)]
    offsets, at = [], 0
    for line in lines:
        offsets.append(at)
        at += len(line)
    return b"".join(lines), offsets


@pytest.mark.parametrize("line", [1, 2, 777, 49_999, 50_000])
def test_a_citation_opens_at_its_line_with_true_numbers(tmp_path: Path, line: int) -> None:
    """The line asked for is where the window says, and every number equals the line's place in the whole file."""
    content, offsets = numbered(50_000)
    path = write(tmp_path, content)
    window = open_window(path, Citation(path, line, offsets[line - 1], f"line {line}"))
    assert window.at is not None
    assert window.lines[window.at].offset == offsets[line - 1]
    assert window.note == ""
    assert len(window.lines) <= LINES
    for one in window.lines:
        assert one.number is not None
        assert one.offset == offsets[one.number - 1]
        assert (
            one.raw == content.split(b"\n")[one.number - 1]
            if one.number < 200
            else one.raw.endswith(b"%d" % one.number)
        )


@pytest.mark.parametrize("after", [True, False])
def test_reading_on_reaches_the_end_with_bounded_memory(tmp_path: Path, after: bool) -> None:
    """Extending again and again comes to the file's end without a gap, never holding more than LINES lines."""
    content, offsets = numbered(20_000)
    path = write(tmp_path, content)
    window = open_window(path, Citation(path, 10_000, offsets[9_999], "line 10000"))
    seen = {line.offset for line in window.lines}
    for _ in range(40):
        window = extend(window, after=after)
        seen |= {line.offset for line in window.lines}
        assert len(window.lines) <= LINES
        numbers = [line.number for line in window.lines]
        assert numbers == list(range(numbers[0] or 0, (numbers[0] or 0) + len(numbers)))
    assert window.ends[after]
    assert seen >= set(offsets[9_999:] if after else offsets[:10_000])


def test_the_tail_is_the_end_of_the_file_without_numbers(tmp_path: Path) -> None:
    """Jumping to the end shows the last lines; their numbers are not known, so none is shown."""
    content, offsets = numbered(50_000)
    window = open_window(write(tmp_path, content), tail=True)
    assert window.lines[-1].offset == offsets[-1]
    assert window.lines[-1].number is None
    assert window.ends == (False, True)


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_packed_files_are_unpacked_up_to_the_offset(tmp_path: Path, suffix: str) -> None:
    """Offset and line of a citation into a packed log count in the unpacked text."""
    content, offsets = numbered(30_000)
    packed = gzip.compress(content) if suffix == "gz" else zstandard.ZstdCompressor().compress(content)
    path = write(tmp_path, packed, f"x.log.{suffix}")
    window = open_window(path, Citation(path, 20_000, offsets[19_999], "line 20000"))
    assert window.at is not None
    assert window.lines[window.at].raw.endswith(b"line 20000")
    assert (
        extend(window, after=True)
        .lines[-1]
        .raw.endswith(b"line %d" % (extend(window, after=True).lines[-1].number or 0))
    )


@pytest.mark.parametrize(
    ("content", "kind"), [(b"\x7fELF\0\0\0", "binary"), (b"", "text"), (b"one line", "text"), (b"\n\n", "text")]
)
def test_what_a_file_is(tmp_path: Path, content: bytes, kind: str) -> None:
    """A file with NUL bytes is binary; an empty one and one without a line end are text."""
    assert open_window(write(tmp_path, content)).kind == kind


def test_a_folder_and_an_absent_file_are_said(tmp_path: Path) -> None:
    """A folder lists its names, an absent file comes with the system's reason, whatever its name looks like."""
    write(tmp_path, b"x", "shard.bin")
    folder = open_window(str(tmp_path))
    assert (folder.kind, [line.raw for line in folder.lines]) == ("folder", [b"shard.bin"])
    assert open_window("http://127.0.0.1:8265").kind == "missing"
    gone = open_window(str(tmp_path / "gone.log"))
    assert (gone.kind, gone.why) == ("missing", "No such file or directory")


def test_a_truncated_or_changed_file_is_said(tmp_path: Path) -> None:
    """A citation past the end opens the end and says so; a line that reads differently is told too."""
    content, offsets = numbered(100)
    path = write(tmp_path, content)
    assert open_window(path, Citation(path, 9_000, 1_000_000, "line 9000")).note == "file_short"
    assert open_window(path, Citation(path, 50, offsets[49], "something else")).note == "file_changed"


def test_a_line_of_many_megabytes_costs_one_piece(tmp_path: Path) -> None:
    """A line without an end is cut into pieces that share its number; the next line has the next number."""
    path = write(tmp_path, b"first\n" + b"x" * 3_000_000 + b"\nlast\n")
    window: Window = open_window(path)
    for _ in range(40):
        window = extend(window, after=True)
    assert all(len(line.raw) <= LINE_BYTES for line in window.lines)
    assert (window.lines[-1].raw, window.lines[-1].number) == (b"last", 3)
    assert {line.number for line in window.lines[1:-1]} == {2}


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.binary(max_size=60).map(lambda b: b.replace(b"\n", b"").replace(b"\0", b"")), max_size=60),
    pick=st.integers(min_value=0, max_value=59),
)
def test_windows_equal_a_plain_split(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], pick: int) -> None:
    """Joined by small chunks, the lines read around any place are those of the whole file split at newlines."""
    content = b"".join(part + b"\n" for part in parts)
    assume(not content.startswith((windows.GZIP, windows.ZSTD)))
    path = write(tmp_path_factory.mktemp("w"), content)
    old, windows.CHUNK = windows.CHUNK, 128
    try:
        at = min(pick, max(len(parts) - 1, 0))
        offset = sum(len(part) + 1 for part in parts[:at])
        window = open_window(path, Citation(path, at + 1, offset))
        for _ in range(80):
            window = extend(extend(window, after=True), after=False)
    finally:
        windows.CHUNK = old
    assert [line.raw for line in window.lines] == [part.rstrip(b"\r") for part in parts]
    assert [line.number for line in window.lines] == list(range(1, len(parts) + 1))


def test_a_pipe_or_device_is_not_waited_for(tmp_path: Path) -> None:
    """What is no regular file is said to be none, at once."""
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        window = open_window(path)
        assert (window.kind, window.why) == ("missing", "this is no regular file")


def test_the_file_system_is_a_source(tmp_path: Path) -> None:
    """A source over files gives the windows of `open_window` and reads on as `extend` does."""
    content, offsets = numbered(50_000)
    path = write(tmp_path, content)
    citation = Citation(path, 777, offsets[776], "line 777")
    assert FILES.open(path, citation) == open_window(path, citation)
    assert FILES.open(path, tail=True) == open_window(path, tail=True)
    window = open_window(path)
    assert FILES.extend(window, after=True) == extend(window, after=True)
