"""A kept table of metrics is the table of a fresh parse, whatever is appended and whoever writes."""

from __future__ import annotations

import contextlib
import gzip
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import joblog, logindex, logindex_store, metric_store, metrics
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage, Hit
from probes.readers.metric_store import tables
from probes.readers.metric_table import SIGNATURES, Part, Table
from probes.readers.metrics import Record
from tests.probes.asking import step

KNOWN = (*SIGNATURES, joblog.TAIL)
PIECES = (
    b"step 3: {'train/loss': 1.5, 'train/grad_norm': nan}",
    b"[2026-08-21 10:00:00] model.py:918 - step 4: {'train/x': 1}",
    b"(A pid=7) rollout 1: {'rollout/a': np.float64(0.25), 'rollout/b': tensor(2.0)}",
    b"perf 0: {'perf/train_time': 2}",
    b"(MegatronTrainRayActor pid=9) critic-step 2: {'train/critic-x': -inf}",
    b"AssertionError: log_dict={'train/a': 1}",
    b"eval 2: {",
    b"------------------------ arguments ------------------------",
    b"Creating placement group with 8 GPUs...",
    b" saving checkpoint at iteration 4",
    b"Traceback (most recent call last)",
    b"found NaN in local grad",
    b"last available logs (truncated to 20,000 chars)",
    *[b"\n"] * 3,
    b"\r\n",
    b"\0\xff\x1b[2J",
    b"y" * 3000 + b"\n",
)
chunks = st.lists(st.sampled_from(PIECES), max_size=24).map(b"".join)


@contextlib.contextmanager
def small_world() -> Iterator[Path]:
    """Yield a folder with a cache of its own, in which every log is worth keeping and parts are of a few rows."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("SLIME_RUNBOOK_CACHE", str(Path(folder, "cache")))
        patch.setattr(logindex, "WORTH", 1)
        patch.setattr(logindex, "SEGMENT", 500)
        patch.setattr(metric_store, "ROWS", 2)
        yield Path(folder)


def _shown(records: Iterator[Record]) -> list[str]:
    return [
        repr((each.kind, each.number, each.values, each.logger, each.pid, each.line, each.offset)) for each in records
    ]


def _kept(path: Path) -> list[str]:
    coverage = Coverage()
    (table,) = tables(expand([str(path)])[0], coverage, known=KNOWN)
    assert coverage.lines == path.read_bytes().count(b"\n")
    return _shown(table.records())


def _freshly(path: Path) -> list[str]:
    (file,) = expand([str(path)])[0]
    table = Table(file)
    for hit in joblog.scan_job((file,), SIGNATURES, Coverage()):
        table.add(hit)
    return _shown(table.records())


@given(st.lists(chunks, min_size=1, max_size=5))
def test_any_appends_give_the_table_of_a_fresh_parse(parts: list[bytes]) -> None:
    """After every append, torn lines and repeated tails included, the rows are those of a parse of the whole log."""
    with small_world() as folder:
        path = folder / "job.log"
        path.write_bytes(b"a log\n")
        for part in parts:
            with path.open("ab") as file:
                file.write(part)
            assert _kept(path) == _freshly(path)
            assert _kept(path) == _freshly(path)


@given(chunks, chunks)
def test_a_log_that_became_another_is_parsed_anew(before: bytes, after: bytes) -> None:
    """Neither a log written over nor one in its place is taken for the one that was kept."""
    with small_world() as folder:
        path, other = folder / "job.log", folder / "other"
        path.write_bytes(b"one\n" + before)
        _kept(path)
        other.write_bytes(b"two\n" + after)
        os.replace(other, path)
        assert _kept(path) == _freshly(path)
        path.write_bytes(b"three\n" + before + b"\nend\n")
        assert _kept(path) == _freshly(path)


@given(chunks)
def test_records_of_a_table_are_those_of_the_lines(content: bytes) -> None:
    """What a table gives back of a metric line is what the reader makes of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "job.log")
        path.write_bytes(content)
        (file,) = expand([str(path)])[0]
        hits = list(joblog.scan_job((file,), SIGNATURES, Coverage()))
        table = Table(file)
        for hit in hits:
            table.add(hit)
        lines = [metrics.record(hit) for hit in hits if hit.label in ("metric", "asserted")]
        rows = [each for each in table.records() if each.values or each.kind in ("step", "eval", "asserted")]
        assert _shown(iter(rows)) == _shown(
            each for each in lines if each.values or each.kind in ("step", "eval", "asserted")
        )


def test_only_what_was_appended_is_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second reader makes no record of a line that is kept, but for the last, which might still have grown."""
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(logindex, "WORTH", 1)
    monkeypatch.setattr(metric_store, "MARGIN", 0)
    path = tmp_path / "job.log"
    path.write_text("".join(step(number, loss=1.0) + "\n" for number in range(200)))
    first = _kept(path)
    parsed: list[int] = []
    add = Table.add

    def counted(table: Table, hit: Hit) -> None:
        parsed.append(hit.line)
        add(table, hit)

    monkeypatch.setattr(Table, "add", counted)
    assert _kept(path) == first
    with path.open("a") as file:
        file.write(step(200, loss=1.0) + "\n")
    assert len(_kept(path)) == 201
    assert parsed == [200, 200, 201]


def test_a_cache_that_cannot_be_written_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a cache folder the log is parsed all the same."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(logindex, "WORTH", 1)
    path = tmp_path / "job.log"
    path.write_text(step(0, loss=1.0) + "\n")
    assert _kept(path) == _freshly(path)


def test_a_packed_log_is_kept_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A gzip log gives the rows of its text, also from what is kept."""
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(logindex, "WORTH", 1)
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress("".join(step(number, loss=1.0) + "\n" for number in range(9)).encode()))
    (file,) = expand([str(path)])[0]
    shown = [_shown(next(tables((file,), Coverage(), known=KNOWN)).records()) for _ in range(2)]
    assert shown[0] == shown[1] == _freshly(path)
    assert len(shown[0]) == 9


@given(st.binary(max_size=60))
def test_bytes_that_are_no_part_are_refused(raw: bytes) -> None:
    """A kept part whose columns do not fit each other leaves the table as it was."""
    table = Table(expand([__file__])[0][0])
    part = Part(raw[:3], raw, raw, raw, raw, raw, raw, [("a",)], [("", -1)])
    with contextlib.suppress(ValueError):
        table.take(part)
    assert len(table.kinds) == len(table.numbers) == len(table.lines) == len(table.shapes)


def test_the_kept_tables_lie_beside_the_indexes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One folder, with the limits and the permissions of the log index."""
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(logindex, "WORTH", 1)
    path = tmp_path / "job.log"
    path.write_text(step(0, loss=1.0) + "\n" + step(1, loss=1.0) + "\n")
    _kept(path)
    files = list(Path(logindex_store.cache_folder()).iterdir())
    assert len(files) == 2
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
