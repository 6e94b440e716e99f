"""Dumps of every version are listed in order, told apart by content and read as samples."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.dump_errors import DumpError, Fault
from probes.readers.rollout_dump import inspect_file, list_dumps, read_dump, sniff
from probes.readers.torch_tensors import array
from tests.probes.readers.pickles import DUMPS, text, torch_zip


def names(folder: Path) -> list[str]:
    """Return the listed dumps relative to a folder."""
    return [os.path.relpath(file.path, folder) for file in list_dumps([str(folder)])]


def test_rollouts_come_in_numerical_order_and_evaluations_last(tmp_path: Path) -> None:
    """2 is before 10, and eval_1 is an evaluation whatever its number."""
    for number in (10, 2, 0):
        torch_zip(tmp_path / f"data_{number}.pt", pickle.dumps({"rollout_id": number, "samples": []}, 2))
    torch_zip(tmp_path / "data_eval_1.pt", pickle.dumps({"rollout_id": 1, "samples": []}, 2))
    assert names(tmp_path) == ["data_0.pt", "data_2.pt", "data_10.pt", "data_eval_1.pt"]
    assert [file.evaluation for file in list_dumps([str(tmp_path)])] == [False, False, False, True]


def test_the_number_inside_wins_over_the_name(tmp_path: Path) -> None:
    """A renamed dump keeps its rollout id; a file cut off before it falls back to the name."""
    path = torch_zip(tmp_path / "run2.pt", pickle.dumps({"rollout_id": 300, "samples": []}, 2))
    assert inspect_file(str(path)).rollout_id == 300
    path.write_bytes(path.read_bytes()[:60])
    assert inspect_file(str(path)).rollout_id == 2


def test_train_and_rollout_dumps_in_one_folder_are_told_apart() -> None:
    """The old layout keeps both kinds below one folder; content decides."""
    kinds = {os.path.relpath(file.path, DUMPS / "old"): file.kind for file in list_dumps([str(DUMPS / "old")])}
    assert kinds == {"rollout_data/0.pt": "rollout", "rollout_data/1.pt": "rollout", "train_data/0_0.pt": "train"}


@pytest.mark.parametrize(
    ("path", "kind", "version", "count", "indices"),
    [
        ("coherent/0.pt", "rollout", "", 11, [0, 2, 4, 8, 13, 16, 20, 25, 27, 29, 32]),
        ("old/rollout_data/1.pt", "rollout", "", 3, [0, 8, 19]),
        ("old/train_data/0_0.pt", "train", "rank", 3, [0, 8, 19]),
        ("one-zero-mlp/train/0_0.pt", "train", "v2", 4, [0, 1, 2, 3]),
    ],
)
def test_every_layout_gives_samples(path: str, kind: str, version: str, count: int, indices: list[int]) -> None:
    """The fields of old per-rank columns and of version 2 are the same dicts afterwards."""
    dump = read_dump(inspect_file(str(DUMPS / path)))
    assert (dump.kind, dump.version, len(dump.samples)) == (kind, version, count)
    assert [sample.get("sample_index", sample.get("index")) for sample in dump.samples] == indices
    if kind == "train":
        sample = dump.samples[0]
        assert len(array(sample["log_probs"])) == sample["response_lengths"]


def test_links_that_loop_are_followed_once(tmp_path: Path) -> None:
    """A folder linked into itself is walked once, and a file reached twice is listed once."""
    torch_zip(tmp_path / "0.pt", pickle.dumps({"rollout_id": 0, "samples": []}, 2))
    os.symlink(tmp_path, tmp_path / "again")
    os.symlink(tmp_path / "self", tmp_path / "self")
    os.symlink(tmp_path / "0.pt", tmp_path / "latest.pt")
    assert names(tmp_path) == ["0.pt"]


@pytest.mark.parametrize(
    "root",
    [["a list"], {"model": 1}, {"rollout_id": 0, "samples": "text"}, {"rollout_id": 0, "samples": [1]},
     {"format_version": 3, "samples": []}, {"rollout_id": 0, "rollout_data": []}],
)  # fmt: skip
def test_another_layout_is_foreign(root: object, tmp_path: Path) -> None:
    """What slime does not write is not guessed at."""
    path = torch_zip(tmp_path / "0.pt", pickle.dumps(root, 2))
    with pytest.raises(DumpError) as caught:
        read_dump(inspect_file(str(path)))
    assert caught.value.fault is Fault.FOREIGN


def test_objects_of_foreign_classes_are_named(tmp_path: Path) -> None:
    """A user's class in the metadata does not hinder reading; its name is kept."""
    data = (
        b"\x80\x02}("
        + text("rollout_id")
        + b"K\x00"
        + text("samples")
        + b"]}"
        + text("r")
        + b"cmine\nReward\n)\x81sau."
    )
    dump = read_dump(inspect_file(str(torch_zip(tmp_path / "0.pt", data))))
    assert dump.opaque == ("mine.Reward",)


@given(data=st.binary(max_size=200))
def test_sniffing_hostile_bytes_never_fails(data: bytes) -> None:
    """Any head is one of the three kinds, and only a pickle or zip can be a dump."""
    assert sniff(data) in ("rollout", "train", "other")
    assert sniff(b"\x00" + data) == "other"


def test_a_whole_dump_and_its_first_bytes_are_the_same_kind() -> None:
    """A cut-off dump is still recognised as one."""
    for path in DUMPS.glob("*/**/*.pt"):
        raw = path.read_bytes()
        assert sniff(raw[: len(raw) // 2]) == sniff(raw) != "other"


def test_a_copy_under_another_name_is_listed_beside_it(tmp_path: Path) -> None:
    """Copies, unlike links, are files of their own."""
    for name in ("a.pt", "b.pt"):
        shutil.copy(DUMPS / "coherent" / "0.pt", tmp_path / name)
    assert names(tmp_path) == ["a.pt", "b.pt"]
