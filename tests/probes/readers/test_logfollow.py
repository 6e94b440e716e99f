"""Hits appear while a job writes its logs, each once and at its true place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import logfollow
from probes.readers.logfiles import expand
from probes.readers.logfollow import LOOK_FOR_LOGS, SETTLED, follow
from probes.readers.logscan import Coverage, Hit, scan, signature

MARK = signature("mark", "MARK")
OTHER = signature("other", "OTHER")

Step = Callable[[], object]


def _run(path: Path, steps: list[Step], *, whole: bool = False) -> list[Hit]:
    """Follow a path; before each look one step is taken, and after the last one a few looks more."""
    todo = iter(steps)
    left = [SETTLED + 2]

    def stop() -> bool:
        step = next(todo, None)
        if step is not None:
            step()
            return False
        left[0] -= 1
        return left[0] < 0

    return list(follow([str(path)], (MARK, OTHER), stop=stop, poll=0.0, whole=whole))


def _append(path: Path, text: str) -> Step:
    def step() -> None:
        with path.open("a") as file:
            file.write(text)

    return step


def _places(hits: list[Hit]) -> list[tuple[str, str, int, int]]:
    return [(hit.label, Path(hit.file.path).name, hit.line, hit.offset) for hit in hits]


def test_only_what_is_new_is_told_unless_all_is_asked_for(tmp_path: Path) -> None:
    """A log is followed from its end, with the right line numbers; with `whole`, from its beginning."""
    path = tmp_path / "job.log"
    path.write_text("MARK old\nx\n")
    assert _places(_run(path, [_append(path, "x\nMARK new\n")])) == [("mark", "job.log", 4, 13)]
    assert [hit.line for hit in _run(path, [], whole=True)] == [1, 4]


def test_a_line_is_told_when_it_has_ended(tmp_path: Path) -> None:
    """A line that is written in pieces is one line, and its hit comes once."""
    path = tmp_path / "job.log"
    path.write_text("half a line MA")
    steps = [_append(path, "RK and"), _append(path, " more OTHER"), _append(path, "\nMARK\n")]
    hits = _run(path, steps)
    assert _places(hits) == [("mark", "job.log", 1, 0), ("other", "job.log", 1, 0), ("mark", "job.log", 2, 32)]
    assert hits[0].raw == b"half a line MARK and more OTHER"


def test_last_words_without_an_end_are_told_once(tmp_path: Path) -> None:
    """What a process that died wrote last is told after a while, and not again when the line does go on."""
    path = tmp_path / "job.log"
    path.write_text("")
    wait: list[Step] = [lambda: None] * (SETTLED + 2)
    hits = _run(path, [_append(path, "MARK last words"), *wait, _append(path, " OTHER\nMARK\n")])
    assert _places(hits) == [("mark", "job.log", 1, 0), ("other", "job.log", 1, 0), ("mark", "job.log", 2, 22)]


@pytest.mark.parametrize("held", [0, 256])
def test_a_rotated_log_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    """Lines written just before the rotation are told under the new name of the old part, then those of the new one."""
    monkeypatch.setattr(logfollow, "HELD", held)
    path = tmp_path / "job.log"
    path.write_text("x\n")

    def rotate() -> None:
        _append(path, "MARK old\n")()
        os.replace(path, tmp_path / "job.log.1")
        path.write_text("x\nx\nMARK new\n")

    more: list[Step] = [lambda: None] * (2 * LOOK_FOR_LOGS)
    hits = _run(tmp_path, [rotate, _append(path, "OTHER\n"), *more])
    assert _places(hits) == [
        ("mark", "job.log.1", 2, 2),
        ("mark", "job.log", 3, 4),
        ("other", "job.log", 4, 13),
    ]


def test_a_log_that_is_removed_is_read_to_its_end(tmp_path: Path) -> None:
    """What was written just before a log was packed and removed is told."""
    path = tmp_path / "job.log"
    path.write_text("x\n")

    def pack() -> None:
        _append(path, "MARK\n")()
        path.unlink()

    assert [hit.line for hit in _run(path, [pack])] == [2]


@pytest.mark.parametrize("longer", [False, True])
def test_a_truncated_log_is_begun_anew(tmp_path: Path, longer: bool) -> None:
    """A job that starts again into the same file is followed from its first line, also when it is longer by then."""
    path = tmp_path / "job.log"
    path.write_text("old line\n" * 5)
    again = "new line\n" * (50 if longer else 1) + "MARK\n"
    hits = _run(path, [lambda: path.write_text(again)])
    assert [hit.line for hit in hits] == [51 if longer else 2]


def test_a_new_log_of_a_folder_is_taken_up(tmp_path: Path) -> None:
    """A worker that starts later has its log followed from the beginning; a log that vanishes troubles nobody."""
    (tmp_path / "a.log").write_text("x\n")
    late = tmp_path / "late.err"
    steps: list[Step] = [lambda: late.write_text("MARK\n"), (tmp_path / "a.log").unlink]
    assert _places(_run(tmp_path, [*steps, *([lambda: None] * LOOK_FOR_LOGS)])) == [("mark", "late.err", 1, 0)]


@given(st.lists(st.sampled_from(["MARK", "OTHER", "\n", "\n", "x", "\r", "MA", "RK"]), max_size=40), st.data())
def test_any_pieces_give_the_hits_of_a_whole_read(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], data: st.DataObject
) -> None:
    """However a log is written, following it from its beginning gives what a scan of it gives."""
    path = tmp_path_factory.mktemp("log") / "job.log"
    path.write_text("")
    text = "".join(pieces) + "\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    steps = [_append(path, text[start:end]) for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    hits = _run(path, steps, whole=True)
    expected = list(scan(expand([str(path)])[0], (MARK, OTHER), Coverage()))
    assert sorted(_places(hits)) == sorted(_places(expected))
