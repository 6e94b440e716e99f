"""An index gives the hits of a plain pass, whatever happens to the log, to the index or to the process."""

from __future__ import annotations

import contextlib
import gzip
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import logfiles, logindex, logindex_store, logscan
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage, Hit, Signature, signature

KNOWN = (
    signature("metric", ": {'", r"(step|rollout) (\d+): \{'", reach=19),
    signature("fault", ("CUDA error: ", "CUDA_ERROR_"), r"CUDA error: \w+|CUDA_ERROR_\w+"),
    signature("error", "error"),
    signature("died", ("has died", "died unexpectedly")),
)
PIECES = (
    b"step 3: {'a': 1}", b"rollout 1: {'", b": {'", b"CUDA error: x", b"CUDA error: ", b"CUDA_ERROR_ILLEGAL", b"error",
    b"has died", b"died unexpectedly", b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\0", b"\xff", b"\x1b[2J", b" ",
    b"x" * 300, b"\n" + b"y" * 9000 + b"error",
)  # fmt: skip
chunks = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)
asked = st.lists(st.sampled_from(KNOWN), min_size=1, max_size=4, unique=True)

Place = tuple[str, int, int, bytes, int, bytes, tuple[bytes | None, ...]]


@contextlib.contextmanager
def small_world() -> Iterator[Path]:
    """Yield a folder with a cache of its own; buffers, segments and limits are so small that little text fills them."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("SLIME_RUNBOOK_CACHE", str(Path(folder, "cache")))
        patch.setattr(logfiles, "BUFFER", 1024)
        patch.setattr(logfiles, "LINE_LIMIT", 8192)
        patch.setattr(logindex, "WORTH", 1)
        patch.setattr(logindex, "SEGMENT", 500)
        yield Path(folder)


def _indexed(path: Path, signatures: Sequence[Signature] = KNOWN) -> tuple[list[Hit], Coverage]:
    coverage = Coverage()
    return list(logindex.scan(expand([str(path)])[0], signatures, coverage, known=KNOWN)), coverage


def _plainly(path: Path, signatures: Sequence[Signature] = KNOWN) -> tuple[list[Hit], Coverage]:
    coverage = Coverage()
    return list(logscan.scan(expand([str(path)])[0], signatures, coverage)), coverage


def _same(path: Path, signatures: Sequence[Signature] = KNOWN) -> list[Hit]:
    """Assert that hits and coverage are those of a plain pass, and return the hits."""
    hits, coverage = _indexed(path, signatures)
    expected, plain = _plainly(path, signatures)
    assert hits == expected
    assert (coverage.lines, coverage.whole) == (plain.lines, plain.whole)
    assert [problem.kind for problem in coverage.problems] == [problem.kind for problem in plain.problems]
    return hits


def _slowly(content: bytes) -> list[tuple[str, int, int]]:
    """Find label, line and offset of all hits by trying every expression on every line."""
    found, offset = [], 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        found += [(each.label, number, offset) for each in KNOWN if each.pattern.search(line.rstrip(b"\r\n"))]
        offset += len(line) + 1
    return found


def _index_files() -> list[Path]:
    folder = Path(logindex_store.cache_folder())
    return sorted(folder.iterdir()) if folder.is_dir() else []


@given(st.lists(st.tuples(chunks, asked), min_size=1, max_size=6))
def test_any_appends_and_any_questions_give_the_hits_of_a_plain_pass(
    steps: list[tuple[bytes, list[Signature]]],
) -> None:
    """After every append, every question is answered as without an index, down to order, places and groups."""
    with small_world() as folder:
        path = folder / "job.log"
        for content, signatures in steps:
            with path.open("ab") as file:
                file.write(content)
            _same(path, signatures)
        _same(path)


@given(st.lists(chunks.filter(lambda chunk: len(chunk) < 4000), min_size=1, max_size=4))
def test_hits_are_those_of_one_expression_a_line(parts: list[bytes]) -> None:
    """Label, line and offset agree with a pass of `re` over the lines, for a log that grew in parts."""
    with small_world() as folder:
        path = folder / "job.log"
        for part in parts:
            with path.open("ab") as file:
                file.write(part)
            _indexed(path, KNOWN[:1])
        found = [(hit.label, hit.line, hit.offset) for hit in _indexed(path)[0]]
        if all(len(line) < logfiles.LINE_LIMIT for line in path.read_bytes().split(b"\n")):
            assert found == _slowly(path.read_bytes())


long_chunks = st.one_of(chunks, st.integers(1, 40_000).map(bytes), st.integers(1, 40_000).map(lambda n: b"error " * n))


@given(st.lists(st.tuples(long_chunks, asked), min_size=1, max_size=5))
def test_a_long_line_that_grows_gives_the_hits_of_a_plain_pass(steps: list[tuple[bytes, list[Signature]]]) -> None:
    """Lines of many times LINE_LIMIT, of NULs or full of hits, that stay open, grow and end at last."""
    with small_world() as folder:
        path = folder / "job.log"
        for content, signatures in steps:
            with path.open("ab") as file:
                file.write(content)
            _same(path, signatures)
            _same(path)


@given(st.integers(0, 7000), st.integers(1, 7000))
def test_what_follows_a_sparse_tail_is_found(before: int, after: int) -> None:
    """A hole of NULs that a line then follows: the line is found once, under the number and offset of its beginning."""
    with small_world() as folder:
        path = folder / "job.log"
        path.write_bytes(b"noise\n" * before + b"has died\n")
        os.truncate(path, path.stat().st_size + 60_000)
        assert [(hit.label, hit.line) for hit in _same(path)] == [("died", before + 1)]
        with path.open("ab") as file:
            file.write(b"." * after + b" error\n")
        begin = before * 6 + 9
        assert [(hit.line, hit.offset) for hit in _same(path)] == [(before + 1, before * 6), (before + 2, begin)]


@given(chunks, chunks, st.sampled_from(["replaced", "truncated", "overwritten", "shortened"]))
def test_a_log_that_became_another_is_read_anew(before: bytes, after: bytes, how: str) -> None:
    """A log that was replaced, truncated and written again, overwritten in place or shortened gives its own hits."""
    with small_world() as folder:
        path = folder / "job.log"
        path.write_bytes(before)
        _indexed(path)
        if how == "replaced":
            (folder / "new").write_bytes(after)
            os.replace(folder / "new", path)
        elif how == "shortened":
            os.truncate(path, len(before) // 2)
        elif how == "truncated":
            path.write_bytes(after)
        else:
            with path.open("r+b") as file:
                file.write(after[: len(before)])
            os.utime(path, ns=(1, 1))
        _same(path)


def test_a_log_of_the_same_beginning_is_told_apart_by_its_end(tmp_path: Path) -> None:
    """A job that starts again and truncates its log prints the same banner; what follows it is another log."""
    banner = b"the same banner every time\n" * 1000
    path = tmp_path / "job.log"
    path.write_bytes(banner + b"one error\n" * 30_000)
    assert len(_same(path)) == 30_000
    path.write_bytes(banner + b"nothing here to see, but a longer log\n" * 30_000 + b"error\n")
    assert len(_same(path)) == 1


def test_a_log_of_the_same_size_is_told_apart_by_its_time(tmp_path: Path) -> None:
    """A line that was overwritten in place, between a beginning and an end that stayed, is found."""
    path = tmp_path / "job.log"
    _large(path)
    _same(path)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\nerror\n")
    assert "error" in {hit.label for hit in _same(path)}


@given(chunks, chunks, st.integers(0, 10_000), st.sampled_from(["flipped", "cut", "foreign", "longer"]))
def test_a_damaged_index_changes_nothing_and_is_mended(first: bytes, more: bytes, place: int, how: str) -> None:
    """A flipped byte, a torn end, foreign content and rubbish behind the end cost a new pass at most."""
    with small_world() as folder:
        path = folder / "job.log"
        path.write_bytes(first + b"\nerror\n")
        _indexed(path)
        (index,) = _index_files()
        raw = bytearray(index.read_bytes())
        if how == "flipped":
            raw[place % len(raw)] ^= 0x55
        elif how == "cut":
            del raw[place % len(raw) :]
        elif how == "foreign":
            raw[:] = b"SRLX" + os.urandom(200)
        else:
            raw += b"SRLX\xff\xff\x00\x00rubbish"
        index.write_bytes(raw)
        _same(path)
        with path.open("ab") as file:
            file.write(more)
        _same(path)
        _same(path, KNOWN[2:])


@given(chunks, st.integers(0, 40))
def test_a_look_that_is_broken_off_leaves_nothing_broken(content: bytes, after: int) -> None:
    """When a probe stops asking in the middle, the next one gets everything."""
    with small_world() as folder:
        path = folder / "job.log"
        path.write_bytes(content * 20)
        hits = logindex.scan(expand([str(path)])[0], KNOWN, Coverage(), known=KNOWN)
        for _, _hit in zip(range(after), hits, strict=False):
            pass
        hits.close()  # type: ignore[attr-defined]
        _same(path)


@given(st.lists(chunks, min_size=1, max_size=30).map(b"".join), st.sampled_from([".gz", ".zst"]), st.booleans())
def test_a_packed_log_is_unpacked_once(content: bytes, name: str, cut: bool) -> None:
    """The second look at a packed log, also a damaged one, is answered by the index and equal to the first."""
    packed = gzip.compress(content) if name == ".gz" else zstandard.ZstdCompressor().compress(content)
    with small_world() as folder, pytest.MonkeyPatch.context() as patch:
        path = folder / f"job.log{name}"
        path.write_bytes(packed[: max(len(packed) - 5, 4)] if cut else packed)
        first = _same(path, KNOWN[:2])
        assert first == _plainly(path, KNOWN[:2])[0]
        expected, plain = _plainly(path)
        patch.setattr(logindex, "open_stream", _refuse)
        patch.setattr(logindex, "blocks", _refuse)
        patch.setattr(logscan, "blocks", _refuse)
        hits, coverage = _indexed(path)
        assert hits == expected
        assert [problem.kind for problem in coverage.problems] == [problem.kind for problem in plain.problems]


def _refuse(*_: object) -> None:
    raise AssertionError("the log was read again")


def _large(path: Path, lines: int = 60_000) -> None:
    """Write a log of some megabytes with a hit every hundred lines."""
    with path.open("wb") as file:
        for number in range(lines):
            file.write(b"noise %d " % number + b"." * 80 + b"\n")
            if number % 100 == 0:
                file.write(b"[x] step %d: {'train/loss': 1}\n" % number)


def _bytes_read(work: Callable[[], object]) -> int:
    def asked() -> int:
        return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])

    before = asked()
    work()
    return asked() - before


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not count what is read")
def test_the_second_look_reads_only_what_was_appended(tmp_path: Path) -> None:
    """Of a log that grew by a little, only that is read; for rare hits even nothing else of the log."""
    path = tmp_path / "job.log"
    _large(path)
    size = path.stat().st_size
    _indexed(path, KNOWN[1:])
    with path.open("ab") as file:
        file.write(b"more " * 20_000 + b"\nhas died\n")
    read = _bytes_read(lambda: _indexed(path, KNOWN[1:]))
    assert 100_000 < read < 250_000 < size // 20
    assert [hit.label for hit in _indexed(path, KNOWN[1:])[0]] == ["died"]


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not count what is read")
def test_the_second_look_passes_over_a_sparse_tail(tmp_path: Path) -> None:
    """Of a log that ends in a long line without end, only what is behind the last cut of it is read again."""
    path = tmp_path / "job.log"
    _large(path)
    os.truncate(path, path.stat().st_size + 10 * logfiles.LINE_LIMIT + 1000)
    assert _bytes_read(lambda: _indexed(path, KNOWN[1:])) > 10 * logfiles.LINE_LIMIT
    assert _bytes_read(lambda: _indexed(path, KNOWN[1:])) < 250_000


def test_an_open_tail_is_looked_at_once_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all that can be kept is kept, what is left of the line is not searched for everything again."""
    path = tmp_path / "job.log"
    _large(path)
    os.truncate(path, path.stat().st_size + logfiles.LINE_LIMIT * 3 // 2)
    first = _indexed(path, KNOWN[1:])[0]
    monkeypatch.setattr(logindex, "blocks", _refuse)
    assert _indexed(path, KNOWN[1:])[0] == first


def test_a_small_log_leaves_no_index(tmp_path: Path) -> None:
    """A log that is read in a blink is not kept."""
    path = tmp_path / "job.log"
    path.write_bytes(b"error\n" * 100)
    _same(path)
    assert _index_files() == []


def test_what_is_not_known_is_found_without_index(tmp_path: Path) -> None:
    """A signature that no probe declares is looked for plainly."""
    path = tmp_path / "job.log"
    _large(path)
    own = signature("own", "noise 77 ")
    assert [hit.line for hit in _indexed(path, (own,))[0]] == [79]
    assert _index_files() == []


def test_places_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is 0700 and the files are 0600, below the folder that the environment names; no text is in them."""
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "own"))
    path = tmp_path / "job.log"
    _large(path)
    _same(path)
    (index,) = _index_files()
    assert index.parent == tmp_path / "own" / "logs"
    assert (index.parent.stat().st_mode & 0o777, index.stat().st_mode & 0o777) == (0o700, 0o600)
    assert b"loss" not in index.read_bytes()


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that somebody else could have written is neither read nor made."""
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs").chmod(0o777)
    path = tmp_path / "job.log"
    _large(path)
    _same(path)
    assert _index_files() == []


def test_without_a_place_to_keep_it_everything_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder that cannot be made costs the index and nothing else."""
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "file"))
    path = tmp_path / "job.log"
    _large(path)
    assert len(_same(path)) == 600


def test_a_full_disk_ends_the_keeping_only(tmp_path: Path) -> None:
    """When the disk takes a part of an index and no more, the hits are complete, and so are those of the next look."""
    path = tmp_path / "job.log"
    _large(path)
    limited, free = _child(path, "-1", "300"), _child(path)
    assert limited.communicate(timeout=60)[0] == free.communicate(timeout=60)[0] != ""
    assert len(_same(path)) == 600


def test_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limits the index that was used longest ago goes; one that is used again stays."""
    monkeypatch.setattr(logindex_store, "MANY", 3)
    paths = [tmp_path / f"{number}.log" for number in range(4)]
    for path in paths:
        _large(path)
    indexes: list[Path] = []
    for path in paths[:3]:
        _same(path)
        indexes.append(next(iter(set(_index_files()) - set(indexes))))
        time.sleep(0.02)
    _same(paths[0])
    time.sleep(0.02)
    _same(paths[3])
    assert len(_index_files()) == 3
    assert indexes[0].exists()
    assert not indexes[1].exists()


def test_all_together_stay_below_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index does not grow beyond what a file may have, nor all of them beyond what the folder may have."""
    monkeypatch.setattr(logindex_store, "FILE_LIMIT", 900)
    monkeypatch.setattr(logindex_store, "LIMIT", 2500)
    monkeypatch.setattr(logindex, "SEGMENT", 300_000)
    for number in range(5):
        path = tmp_path / f"{number}.log"
        _large(path)
        _same(path)
        _same(path)
        sizes = [index.stat().st_size for index in _index_files()]
        assert max(sizes) <= 900
        assert sum(sizes) <= 2500


CHILD = """
import resource, sys, time
from probes.readers import logindex
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage
from tests.probes.readers.test_logindex import KNOWN
logindex.SEGMENT = 200_000
if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
found = []
for hit in logindex.scan(expand(sys.argv[1:2])[0], KNOWN, Coverage(), known=KNOWN):
    found.append((hit.label, hit.line, hit.offset))
    if len(sys.argv) > 2 and len(found) == int(sys.argv[2]):
        print("here", flush=True)
        time.sleep(60)
print(hash(tuple(found)), flush=True)
"""


def _child(path: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), *more],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        cwd=Path(__file__).parents[3],
    )


def test_a_killed_builder_leaves_what_it_had_found(tmp_path: Path) -> None:
    """After a SIGKILL the lock is free, what was kept counts, and the rest is read."""
    path = tmp_path / "job.log"
    _large(path)
    child = _child(path, "300")
    assert child.stdout is not None
    assert child.stdout.readline() == "here\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    (index,) = _index_files()
    assert index.stat().st_size > 0
    read = _bytes_read(lambda: _indexed(path, KNOWN[1:]))
    assert read < path.stat().st_size
    assert len(_same(path)) == 600


def test_processes_at_once_find_the_same(tmp_path: Path) -> None:
    """Four processes that ask for the same log at once agree, and leave an index that is right."""
    path = tmp_path / "job.log"
    _large(path, 120_000)
    children = [_child(path) for _ in range(4)]
    answers = {child.communicate(timeout=60)[0] for child in children}
    assert len(answers) == 1
    assert {child.returncode for child in children} == {0}
    assert len(_same(path)) == 1200


def test_a_builder_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When whoever holds the lock does not get on, a probe reads for itself."""
    monkeypatch.setattr(logindex_store, "PATIENCE", 0.2)
    path = tmp_path / "job.log"
    _large(path)
    child = _child(path, "5")
    assert child.stdout is not None
    assert child.stdout.readline() == "here\n"
    began = time.monotonic()
    assert len(_same(path)) == 600
    assert 0.2 < time.monotonic() - began < 30
    child.kill()
    child.communicate()


def test_lines_that_are_overwritten_while_they_are_looked_at_are_said(tmp_path: Path) -> None:
    """A log that changed behind the index is never called whole, and what is there is found."""
    path = tmp_path / "job.log"
    _large(path)
    _same(path)
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(b"step 300"))
        file.write(b"STEP")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    hits, coverage = _indexed(path)
    assert [problem.kind for problem in coverage.problems] == ["changed"]
    assert not coverage.whole
    assert len(hits) == 599
    assert len(_same(path)) == 599
