"""The quick scan finds what a plain pass of regular expressions finds, in the same order."""

from __future__ import annotations

import gzip
import re
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import logfiles, logscan
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage, Hit, Signature, finder, line_ends, scan, scan_tail, signature

SIGNATURES = (
    signature("metric", ": {'", r"(step|rollout) (\d+): \{'"),
    signature("fault", ("CUDA error: ", "CUDA_ERROR_"), r"CUDA error: \w+|CUDA_ERROR_\w+"),
    signature("error", "error"),
    signature("died", ("has died", "died unexpectedly")),
)
PIECES = (
    b"step 3: {'a': 1}", b"rollout 1: {'", b": {'", b"CUDA error: x", b"CUDA error: ", b"CUDA_ERROR_ILLEGAL", b"error",
    b"has died", b"died unexpectedly", b"\n", b"\n", b"\r\n", b"\r", b"\0", b"\xff", b" ", b"CUDA", b"x" * 300,
)  # fmt: skip


def _scan(path: Path, signatures: Sequence[Signature] = SIGNATURES, *, plain: bool = False) -> list[Hit]:
    return list(scan(expand([str(path)])[0], signatures, Coverage(), find=finder(signatures, plain=plain)))


def _slowly(content: bytes, signatures: Sequence[Signature]) -> list[tuple[str, int, int, bytes, int]]:
    """Find all hits by trying every pattern on every line."""
    found, offset = [], 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        text = line.rstrip(b"\r\n")
        for each in signatures:
            match = each.pattern.search(text) if any(literal in text for literal in each.literals) else None
            if match:
                found.append((each.label, number, offset, text, match.start()))
        offset += len(line) + 1
    return found


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_both_engines_find_what_a_plain_pass_finds(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    """Label, line, offset, raw line and match agree between Hyperscan, bytes.find and one regex per line."""
    content = b"".join(pieces)
    path = tmp_path_factory.mktemp("log") / "job.log"
    path.write_bytes(content)
    quick, plain = _scan(path), _scan(path, plain=True)
    assert quick == plain
    assert [(hit.label, hit.line, hit.offset, hit.raw, hit.start) for hit in quick] == _slowly(content, SIGNATURES)


def test_hits_across_block_borders_keep_their_place(tmp_path: Path) -> None:
    """In a log of several buffers every hit has the right line, offset and groups."""
    lines = [b"noise %d " % number + b"." * (number % 700) for number in range(4000)]
    for number in range(0, 4000, 97):
        lines[number] = b"[time] model.py:1 - step %d: {'train/loss': 1}" % number
    content = b"\n".join(lines)
    assert len(content) > 3 * logfiles.BUFFER
    path = tmp_path / "job.log"
    path.write_bytes(content)
    hits = _scan(path)
    assert [int(hit.groups[1] or b"") for hit in hits] == list(range(0, 4000, 97))
    for hit in hits:
        assert content[hit.offset : hit.offset + len(hit.raw)] == hit.raw == lines[hit.line - 1]


def test_a_packed_log_gives_the_same_hits(tmp_path: Path) -> None:
    """Lines and offsets of a .gz count the unpacked text."""
    content = b"a\nb error\n" * 50_000
    (tmp_path / "job.log").write_bytes(content)
    (tmp_path / "job.log.gz").write_bytes(gzip.compress(content))
    plain, packed = _scan(tmp_path / "job.log"), _scan(tmp_path / "job.log.gz")
    assert [(hit.line, hit.offset) for hit in plain] == [(hit.line, hit.offset) for hit in packed]
    assert len(plain) == 50_000


def test_a_line_of_megabytes_is_matched_and_its_copy_is_cut(tmp_path: Path) -> None:
    """A hit at the end of a 1 MB line is found, with the line's own start and the text of the match."""
    line = b"bar\r" * 300_000 + b"step 7: {'train/loss': 2}"
    path = tmp_path / "job.log"
    path.write_bytes(b"one\n" + line + b"\nthree error\n")
    first, second = _scan(path)
    assert (first.line, first.offset, first.start) == (2, 4, 1_200_000)
    assert first.text == b"step 7: {'train/loss': 2}"
    assert line.startswith(first.raw)
    assert len(first.raw) < 100_000
    assert (second.line, second.offset) == (3, 4 + len(line) + 1)


def test_a_cut_line_still_has_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit of a line a hit carries the offset and first bytes of the line it stands in."""
    monkeypatch.setattr(logfiles, "LINE_LIMIT", logfiles.BUFFER)
    path = tmp_path / "job.log"
    path.write_bytes(b"one\nSTART" + b"." * (3 * logfiles.BUFFER) + b"an error here\n")
    (hit,) = _scan(path)
    assert (hit.line, hit.offset) == (2, 4)
    assert hit.raw.startswith(b"START...")
    assert hit.text == b"error here"


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Scanning 40 MB whose hits are not kept needs a few buffers of memory."""
    path = tmp_path / "job.log"
    with path.open("wb") as file:
        for _ in range(80):
            file.write((b"x" * 199 + b"\n") * 2500 + b"an error\n")
    files = expand([str(path)])[0]
    tracemalloc.start()
    count = sum(1 for _ in scan(files, SIGNATURES, Coverage()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 80
    assert peak < 8 * 1024 * 1024


def test_coverage_says_what_was_read(tmp_path: Path) -> None:
    """A whole log is covered; a damaged one is not, and the lines are counted."""
    (tmp_path / "a.log").write_bytes(b"one\ntwo\n")
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(b"x" * 100_000)[:60])
    coverage = Coverage()
    list(scan(expand([str(tmp_path / "a.log")])[0], SIGNATURES, coverage))
    assert (coverage.whole, coverage.lines) == (True, 2)
    list(scan(expand([str(tmp_path / "b.log.gz")])[0], SIGNATURES, coverage))
    assert not coverage.whole
    assert not Coverage().whole


def test_progress_ends_at_all_bytes(tmp_path: Path) -> None:
    """The last report of progress is the size of what was read."""
    path = tmp_path / "job.log"
    path.write_bytes(b"x\n" * 1000)
    told: list[float] = []
    list(scan(expand([str(path)])[0], SIGNATURES, Coverage(), progress=told.append))
    assert told[-1] == 2000


def test_a_signature_without_pattern_matches_its_literal() -> None:
    """Special characters of a literal are plain text in its pattern."""
    each = signature("x", "a.b(")
    assert each.pattern.search(b"say a.b( twice")
    assert not re.search(each.pattern, b"say aXb( twice")


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_reach_changes_nothing(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    """Beginning to match shortly before a literal gives the same hits."""
    path = tmp_path_factory.mktemp("log") / "job.log"
    path.write_bytes(b"".join(pieces))
    near = (signature("metric", ": {'", r"(step|rollout) (\d{1,5}): \{'", reach=17), *SIGNATURES[1:])
    expected = _scan(path, (signature("metric", ": {'", r"(step|rollout) (\d{1,5}): \{'"), *SIGNATURES[1:]))
    assert _scan(path, near) == expected


@given(st.lists(st.sampled_from((b"\n", b"\r", b"ab", b"\0")), max_size=40), st.integers(0, 60), st.integers(0, 60))
def test_line_ends_are_counted_between_two_places(pieces: list[bytes], start: int, end: int) -> None:
    """The quick count of line ends is the plain one, also for places behind the end."""
    data = b"".join(pieces)
    assert line_ends(data, start, end) == sum(byte == 10 for byte in data[start:end])


def test_the_end_of_a_log_is_seen_at_once(tmp_path: Path) -> None:
    """The tail gives the hits behind a place, with true offsets and lines but no numbers; a short log has numbers."""
    path = tmp_path / "job.log"
    path.write_bytes(b"an error\n" + b"noise\n" * 1000 + b"another error\n")
    files = expand([str(path)])[0]
    (hit,) = scan_tail(files, SIGNATURES, span=3000)
    assert (hit.line, hit.offset, hit.raw) == (0, 6009, b"another error")
    assert list(scan_tail(files, SIGNATURES)) == _scan(path)


def test_many_logs_share_what_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of a thousand logs takes no longer than one log; some end of each is looked at."""
    monkeypatch.setattr(logscan, "TAIL_SPAN", 4000)
    monkeypatch.setattr(logscan, "TAIL_LEAST", 500)
    for name in "abcdefgh":
        (tmp_path / f"{name}.log").write_bytes(b"an error\n" + b"noise\n" * 200 + b"another error\n")
    one, every = expand([str(tmp_path / "a.log")])[0], expand([str(tmp_path)])[0]
    assert [hit.raw for hit in scan_tail(one, SIGNATURES)] == [b"an error", b"another error"]
    assert [hit.raw for hit in scan_tail(every, SIGNATURES)] == [b"another error"] * 8


def test_a_literal_within_another_stands_for_both() -> None:
    """Fewer literals are searched, and every signature still gets its candidates."""
    both = (signature("short", "bad"), signature("long", "very bad"), signature("other", "bad luck"))
    assert finder(both)(b"a very bad day\n") == [(9, 0), (9, 1), (9, 2)]


def test_the_end_of_a_log_without_lines_is_left_to_the_scan(tmp_path: Path) -> None:
    """Where no line begins in the tail, nothing is said of the one that runs through it; packed logs have no tail."""
    path = tmp_path / "job.log"
    path.write_bytes(b"x" * 5000 + b"error")
    (tmp_path / "job.log.gz").write_bytes(gzip.compress(b"error\n" * 1000))
    assert list(scan_tail(expand([str(path)])[0], SIGNATURES, span=3000)) == []
    assert list(scan_tail(expand([str(tmp_path / "job.log.gz")])[0], SIGNATURES)) == []
