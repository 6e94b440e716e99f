"""Tests of the checkpoint folder reader: numbering, index, leftovers, hostile names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.hf_index import Folder, is_weights, read_folder, read_headers
from runbook.probe import silent
from tests.helpers import hostile_bytes, is_safe

INDEX = "model.safetensors.index.json"


def folder_of(path: Path, *names: str, index: dict[str, str] | None = None) -> Folder:
    """Return the folder with these empty files and an index of this weight_map."""
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(b"x")
    if index is not None:
        (path / INDEX).write_text(json.dumps({"weight_map": index}))
    return read_folder(str(path))


def numbered(numbers: range, total: int, width: int = 5) -> list[str]:
    """Return shard names."""
    return [f"model-{number:0{width}d}-of-{total:05d}.safetensors" for number in numbers]


@pytest.mark.parametrize("first", [0, 1])
def test_a_whole_series_has_no_gap_wherever_it_begins(tmp_path: Path, first: int) -> None:
    """Numbers begin at 1 in transformers and at 0 in slime's converter; neither lacks anything."""
    folder = folder_of(tmp_path, *numbered(range(first, 4 + first), 4))
    assert folder.gaps == ()
    assert folder.series[0].first == first


@pytest.mark.parametrize(
    ("names", "gap"), [(numbered(range(1, 4), 4), 4), ([*numbered(range(2), 4), *numbered(range(3, 4), 4)], 2)]
)
def test_a_hole_of_the_numbering_is_named(tmp_path: Path, names: list[str], gap: int) -> None:
    """The name that the numbering wants is the gap, at the end and inside."""
    assert folder_of(tmp_path, *names).gaps == tuple(numbered(range(gap, gap + 1), 4))


def test_the_index_tells_where_numbering_begins(tmp_path: Path) -> None:
    """When shard 0 is the one that is absent, the index still shows that numbering begins at 0."""
    every = numbered(range(4), 4)
    folder = folder_of(tmp_path, *every[1:], index={f"t{name}": name for name in every})
    assert folder.absent == (every[0],)
    assert folder.gaps == ()


def test_unpadded_and_oddly_padded_names_are_shards(tmp_path: Path) -> None:
    """Kimi-K2 does not pad numbers, DeepSeek-V3 pads the total more, Qwen3.5 puts the ending twice."""
    for number, stem in enumerate(("model-2-of-3", "model-00002-of-000003", "model.safetensors-00002-of-00003")):
        folder = folder_of(tmp_path / str(number), f"{stem}.safetensors")
        assert folder.series[0].total == 3
        assert len(folder.gaps) == 2


def test_shards_of_another_conversion_are_not_missed(tmp_path: Path) -> None:
    """A series that the index does not name is left over; its holes are no gaps."""
    folder = folder_of(
        tmp_path,
        *numbered(range(1, 3), 2),
        "old-00001-of-00009.safetensors",
        index={"a": numbered(range(1, 2), 2)[0], "b": numbered(range(2, 3), 2)[0]},
    )
    assert folder.gaps == ()


def test_a_series_of_billions_is_not_counted(tmp_path: Path) -> None:
    """A hostile total is no series."""
    assert folder_of(tmp_path, "model-00001-of-999999999.safetensors").series == ()


def test_files_in_subfolders_are_found_and_ways_out_are_not_followed(tmp_path: Path) -> None:
    """An index may name a subfolder; a path that leads out of the folder is simply absent."""
    (tmp_path / "outside").write_bytes(b"x")
    folder = folder_of(
        tmp_path / "in", "sub/m.safetensors", index={"a": "sub/m.safetensors", "b": "../outside", "c": "/etc/hosts"}
    )
    assert folder.absent == ("../outside", "/etc/hosts")
    assert folder.weights == ("sub/m.safetensors",)


def test_the_index_of_the_files_that_are_there_is_taken(tmp_path: Path) -> None:
    """A .bin checkpoint beside a stale safetensors index is read by its own index."""
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors"}}))
    (tmp_path / "pytorch_model.bin.index.json").write_text(
        json.dumps({"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}})
    )
    folder = folder_of(tmp_path, "pytorch_model-00001-of-00001.bin", "optimizer.bin", "training_args.bin")
    assert folder.ending == ".bin"
    assert folder.weights == ("pytorch_model-00001-of-00001.bin",)
    assert folder.absent == ()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1", "git-LFS"),
        (b"{", "JSON"),
        (b"[1]", "JSON"),
        (b"{}", "weight_map"),
        (b'{"weight_map": {"a": 3}}', "file names"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_an_index_that_cannot_be_used_says_why(tmp_path: Path, content: bytes, word: str) -> None:
    """The fault is told in words and the weight_map is None."""
    (tmp_path / INDEX).write_bytes(content)
    index = read_folder(str(tmp_path)).index
    assert index is not None
    assert index.weight_map is None
    assert index.fault is not None
    assert word in index.fault.en


def test_downloads_in_progress_and_dead_links_are_seen(tmp_path: Path) -> None:
    """A partial file is listed as unfinished, a dead link is a file that is not there."""
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "blob")
    folder = folder_of(tmp_path, "abc.incomplete")
    assert folder.unfinished == ("abc.incomplete",)
    assert folder.files["model.safetensors"] == -1
    assert folder.weights == ()


@pytest.mark.parametrize(
    ("name", "weights"),
    [("model.safetensors", True), ("pytorch_model.bin", True), ("tokenizer.bin", False), ("training_args.bin", False)],
)
def test_only_weight_files_are_weights(name: str, weights: bool) -> None:
    """Other .bin files are none."""
    assert is_weights(name) is weights


def test_headers_are_read_in_order_and_reported(tmp_path: Path) -> None:
    """Every file gets its header and progress reaches the total."""
    names = numbered(range(1, 10), 9)
    folder = folder_of(tmp_path, *names)
    seen: list[float] = []
    assert list(read_headers(folder, names, lambda done, _total, _unit: seen.append(done))) == names
    assert seen == [float(number) for number in range(1, 10)]
    assert read_headers(folder, (), silent) == {}


@given(
    hostile_bytes
    | st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=3).map(
        lambda d: json.dumps({"weight_map": d}).encode()
    )
)
def test_a_hostile_index_does_not_escape(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever the index holds, the folder is read; words about it are safe to draw."""
    path = tmp_path_factory.mktemp("i")
    (path / INDEX).write_bytes(data)
    folder = read_folder(str(path))
    assert folder.index is not None
    assert folder.index.fault is None or is_safe(folder.index.fault.en)
    assert set(folder.absent) == set(folder.named)
