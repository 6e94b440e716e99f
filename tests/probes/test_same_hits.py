"""The signatures of all probes give the hits of one expression a line, whatever a log holds and whatever became of it.

The yardstick knows nothing of literals, buffers, indexes or Hyperscan: it splits the content at its line ends and tries
every expression on every line.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes import logs
from probes.readers import logfiles, logindex, logscan
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage, Hit, Signature
from probes.signatures import every
from runbook.probe import silent
from tests.helpers import evidence_of
from tests.probes.asking import DATA

Place = tuple[str, int, int, int, tuple[bytes | None, ...]]

BAR = b"Update weights: 95%|####  | 109/115 [00:04<00:00, 24.1it/s]\r" * 3


@cache
def lines() -> tuple[bytes, ...]:
    """Return lines that the signatures hit, and ordinary ones, of real logs."""
    content = b"".join(path.read_bytes() for path in sorted(DATA.glob("*.log")))
    found: dict[bytes, None] = {}
    for each in every():
        hit = next((line for line in content.split(b"\n") if each.pattern.search(line)), None)
        if hit is not None:
            found[hit] = None
    return (*found, *content.split(b"\n")[:40])


@cache
def pieces() -> st.SearchStrategy[bytes]:
    """Return a strategy of lines, parts of lines, literals alone, and what breaks lines and characters."""
    literals = sorted({literal for each in every() for literal in each.literals})
    line = st.sampled_from(lines())
    cut = st.tuples(line, st.integers(0, 200), st.integers(0, 200)).map(
        lambda three: three[0][three[1] : -three[2] or None]
    )
    odd = st.sampled_from(
        [b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\0", b"\xff\xfe", b"\xe4\xb8", b"\x1b[36m", BAR, b" "]
    )
    return st.one_of(line.map(lambda each: each + b"\n"), cut, st.sampled_from(literals), odd)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """Return the content of a log."""
    return b"".join(draw(st.lists(pieces(), max_size=12)))


def slowly(content: bytes, wanted: Sequence[Signature]) -> list[Place]:
    """Return label, line, offset, start and groups of every hit, by trying every expression on every line."""
    found: list[Place] = []
    offset = 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        for each in wanted:
            match = each.pattern.search(line.rstrip(b"\r\n"))
            found += [(each.label, number, offset, match.start(), match.groups())] if match else []
        offset += len(line) + 1
    return found


def _places(hits: Sequence[Hit]) -> list[Place]:
    return [(hit.label, hit.line, hit.offset, hit.start, hit.groups) for hit in hits]


def _scanned(path: Path, wanted: Sequence[Signature], *, indexed: bool = False) -> list[Place]:
    files = expand([str(path)])[0]
    if indexed:
        return _places(list(logindex.scan(files, wanted, Coverage(), known=every())))
    return _places(list(logscan.scan(files, wanted, Coverage())))


MANY = settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@MANY
@given(contents(), st.integers(64, 300_000))
def test_wherever_the_blocks_end(tmp_path_factory: pytest.TempPathFactory, content: bytes, buffer: int) -> None:
    """Buffers of any size cut the log anywhere, and its hits are the same."""
    path = tmp_path_factory.mktemp("log") / "job.log"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logfiles, "BUFFER", buffer)
        assert _scanned(path, every()) == slowly(content, every())


@MANY
@given(
    st.lists(st.tuples(st.sampled_from(["appended", "truncated", "replaced", "same size"]), contents()), max_size=4),
    st.lists(st.sampled_from(every()), min_size=1, max_size=6, unique=True),
)
def test_whatever_became_of_a_log(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bytes]], wanted: list[Signature]
) -> None:
    """Grown, truncated, replaced, also by one of the same size: the index gives the hits of what is there."""
    folder = tmp_path_factory.mktemp("log")
    path = folder / "job.log"
    path.write_bytes(b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLIME_RUNBOOK_CACHE", str(folder / "cache"))
        patch.setattr(logindex, "WORTH", 1)
        patch.setattr(logindex, "SEGMENT", 700)
        for how, content in steps:
            if how == "appended":
                content = path.read_bytes() + content  # noqa: PLW2901 - what the log holds then
            elif how == "same size":
                size = path.stat().st_size
                content = (content * (size // max(len(content), 1) + 1))[:size].ljust(size, b"\n")  # noqa: PLW2901
            if how in ("replaced", "same size"):
                (folder / "new").write_bytes(content)
                os.replace(folder / "new", path)
            else:
                path.write_bytes(content)
            assert _scanned(path, wanted, indexed=True) == slowly(content, wanted)


def test_a_line_of_a_megabyte_with_everything_in_it(tmp_path: Path) -> None:
    """Bars, NULs and invalid UTF-8 in one line of a megabyte hide nothing that stands at its end."""
    wanted = [each for each in every() if each.label in ("ima", "cuda-oom", "metric", "host-oom")]
    for odd in (b"x", BAR, b"\0\xff\xfe"):
        fault = b"RuntimeError: CUDA error: an illegal memory access was encountered"
        content = lines()[0] + b"\n" + odd * (1_000_000 // len(odd)) + fault + b"\r\nrollout 3: {'rollout/x': 1}\n"
        path = tmp_path / "job.log"
        path.write_bytes(content)
        found = _scanned(path, wanted)
        assert found == slowly(content, wanted)
        assert [place[:2] for place in found][-2:] == [("ima", 2), ("metric", 3)]


@st.composite
def stamped(draw: st.DrawFn) -> list[tuple[int, int, bytes]]:
    """Return lines of two logs: second, log, line; times rise within a log."""
    seconds = sorted(draw(st.lists(st.integers(0, 59), max_size=20)))
    return [(second, draw(st.integers(0, 1)), draw(st.sampled_from(lines()))) for second in seconds]


@MANY
@given(stamped())
def test_hits_of_two_logs_come_in_the_order_of_time(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[int, int, bytes]]
) -> None:
    """Two logs whose lines carry times are one story, and each keeps its own order."""
    folder = tmp_path_factory.mktemp("logs")
    written = [
        [
            b"[2026-08-21 10:00:%02d] marked %d" % (second, number)
            for number, (second, log, _) in enumerate(told)
            if log == which
        ]
        for which in (0, 1)
    ]
    for which in (0, 1):
        (folder / f"{which}.log").write_bytes(b"".join(line + b"\n" for line in written[which]))
    mark = logscan.signature("marked", "marked ", r"marked (\d+)")
    found = logs.collect(evidence_of(("log", folder)), silent, (mark,)).of("marked")
    numbers = [int(hit.groups[0] or b"") for hit in found]
    assert sorted(numbers) == list(range(len(told)))
    assert [told[number][0] for number in numbers] == sorted(second for second, _, _ in told)
    for which in (0, 1):
        own = [number for number in numbers if told[number][1] == which]
        assert own == sorted(own)
