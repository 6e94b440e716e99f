"""Pieces of packed logs are those of a read from the start, at the cost of one pass."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import BinaryIO, cast

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import logpacked
from probes.readers.logfiles import expand, window

CONTENT = b"".join(b"%d of many lines\n" % number for number in range(60_000))
NAMES = ("job.log.gz", "job.log.zst")


def _packed(folder: Path, name: str, content: bytes = CONTENT) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content, 1) if name.endswith("gz") else zstandard.compress(content, 1))
    return path


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a packed log of each kind."""
    folder = tmp_path_factory.mktemp("packed")
    return {name: _packed(folder, name) for name in NAMES}


places = st.tuples(st.integers(-5, len(CONTENT) + 5), st.integers(0, 70_000))


@given(st.sampled_from(NAMES), st.lists(places, max_size=8))
def test_pieces_in_any_order_are_those_of_the_content(
    packed: dict[str, Path], name: str, wanted: list[tuple[int, int]]
) -> None:
    """Forwards, backwards and beyond the end, with little held and steps that divide nothing."""
    (file,) = expand([str(packed[name])])[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logpacked, "HELD", 5000)
        patch.setattr(logpacked, "STEP", 777)
        for start, length in wanted:
            begin = max(start, 0)
            assert window(file, start, length) == CONTENT[begin : begin + length]


@pytest.mark.parametrize("name", NAMES)
def test_places_in_order_cost_one_pass(packed: dict[str, Path], name: str) -> None:
    """A thousand places, each with what stands a little before it, open the log once."""
    opened: list[BinaryIO] = []

    def opener() -> BinaryIO:
        opened.append(cast("BinaryIO", gzip.open(packed["job.log.gz"], "rb")))  # noqa: SIM115 - closed by forget()
        return opened[-1]

    logpacked.forget()
    for start in range(0, len(CONTENT), len(CONTENT) // 1000):
        piece = logpacked.piece(str(packed[name]), "gzip", opener, max(start - 3000, 0), 6000)
        assert piece == CONTENT[max(start - 3000, 0) : max(start - 3000, 0) + 6000]
    assert len(opened) == 1
    logpacked.forget()


def test_head_and_end_by_turns_cost_two_passes(packed: dict[str, Path]) -> None:
    """Who looks at the head of a log in between does not make the next look at its end begin anew."""
    opened: list[BinaryIO] = []

    def opener() -> BinaryIO:
        opened.append(cast("BinaryIO", gzip.open(packed["job.log.gz"], "rb")))  # noqa: SIM115 - closed by forget()
        return opened[-1]

    logpacked.forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logpacked, "HELD", 5000)
        patch.setattr(logpacked, "STEP", 777)
        for step in range(20):
            for start in (step * 10, len(CONTENT) - 2000 + step * 10):
                assert logpacked.piece(str(packed["job.log.gz"]), "gzip", opener, start, 100) == CONTENT[start:][:100]
    assert len(opened) == 2
    logpacked.forget()


def test_a_log_that_was_replaced_is_opened_anew(tmp_path: Path) -> None:
    """A piece is never that of a log which is not there any more."""
    path = _packed(tmp_path, "job.log.gz", b"old\n")
    (file,) = expand([str(path)])[0]
    assert window(file, 0, 100) == b"old\n"
    _packed(tmp_path, "new.gz", b"new and longer\n")
    os.replace(tmp_path / "new.gz", path)
    assert window(file, 0, 100) == b"new and longer\n"


def test_a_damaged_log_gives_what_stands_before_the_damage(tmp_path: Path) -> None:
    """A cut archive is read as far as it goes, and nothing is raised."""
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(CONTENT)[:-20_000])
    (file,) = expand([str(path)])[0]
    assert window(file, 0, 500) == CONTENT[:500]
    assert window(file, len(CONTENT) - 50, 50) == b""
    path.unlink()
    assert window(file, 0, 500) == b""
