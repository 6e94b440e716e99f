"""What a scan keeps counts only for the very same bytes and survives a kill at any byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given

from probes import content_state
from probes.content_state import KEPT, WORTH, Stamp, State, state_of
from probes.readers.tensor_scan import Looked, Piece
from tests.helpers import hostile_bytes

PIECE = Piece("a.weight", "BF16", 64, 128)
LOOKED = Looked("ab" * 16, False, True, 1, 2, 3, 4)
STAMP = Stamp(1000, 123456789)


def test_what_was_added_is_known(tmp_path: Path) -> None:
    """Results come back by file and by place, also over several lines."""
    state = State(str(tmp_path / "s.jsonl"))
    other = PIECE._replace(name="b\n\x1b.weight")
    state.add("one", STAMP, [(PIECE, LOOKED)])
    state.add("one", STAMP, [(other, LOOKED)])
    assert state.known({"one": STAMP}) == {"one": {PIECE: LOOKED, other: LOOKED}}


@pytest.mark.parametrize("stamp", [Stamp(1001, 123456789), Stamp(1000, 123456790)])
def test_a_changed_file_is_read_again(tmp_path: Path, stamp: Stamp) -> None:
    """Another size or modification time makes earlier results worthless."""
    state = State(str(tmp_path / "s.jsonl"))
    state.add("one", STAMP, [(PIECE, LOOKED)])
    assert state.known({"one": stamp}) == {}
    assert state.known({}) == {}


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    """Wherever a write was cut off, the lines before it and after it count."""
    path = tmp_path / "s.jsonl"
    state = State(str(path))
    state.add("one", STAMP, [(PIECE, LOOKED)])
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        state.add("two", STAMP, [(PIECE, LOOKED)])
        assert state.known({"two": STAMP}) == {"two": {PIECE: LOOKED}}


@given(hostile_bytes)
def test_foreign_content_counts_for_nothing(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Whatever stands in the file, nothing is made up and nothing raises."""
    path = tmp_path_factory.getbasetemp() / "foreign.jsonl"
    path.write_bytes(content)
    assert State(str(path)).known({"one": STAMP}) == {}


def test_a_small_checkpoint_leaves_nothing_behind(tmp_path: Path) -> None:
    """Below WORTH no file is kept, and nothing is written."""
    state = state_of(str(tmp_path), WORTH - 1)
    state.add("one", STAMP, [(PIECE, LOOKED)])
    assert state.path == ""
    assert state.known({"one": STAMP}) == {}


def test_the_file_is_private_and_outside_the_checkpoint(tmp_path: Path) -> None:
    """It lies in the cache folder, and only its owner can read it."""
    state = state_of(str(tmp_path), WORTH)
    state.add("one", STAMP, [(PIECE, LOOKED)])
    assert os.path.commonpath([state.path, os.environ["XDG_CACHE_HOME"]]) == os.environ["XDG_CACHE_HOME"]
    assert os.stat(state.path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == []


def test_the_same_folder_by_another_name_has_the_same_state(tmp_path: Path) -> None:
    """A link to a checkpoint resumes its scan; another folder does not."""
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "model")
    assert state_of(str(tmp_path / "link"), WORTH) == state_of(str(tmp_path / "model"), WORTH)
    assert state_of(str(tmp_path), WORTH) != state_of(str(tmp_path / "model"), WORTH)


def test_old_states_make_room(tmp_path: Path) -> None:
    """Only the newest KEPT files stay."""
    for number in range(KEPT + 3):
        path = Path(state_of(str(tmp_path / str(number)), WORTH).path)
        path.touch()
        os.utime(path, (number, number))
    state_of(str(tmp_path), WORTH)
    place = path.parent
    assert len(list(place.iterdir())) == KEPT
    assert path in place.iterdir()


def test_without_a_cache_folder_scanning_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder that cannot be made, or a full disk, is no error."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert state_of(str(tmp_path), WORTH) == State()
    State(str(tmp_path / "file" / "s")).add("one", STAMP, [(PIECE, LOOKED)])
    assert content_state.State(str(tmp_path / "file" / "s")).known({"one": STAMP}) == {}
