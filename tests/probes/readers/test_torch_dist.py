"""Checkpoint folders are recognised, and `.metadata` is read without running it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from probes.readers.dump_errors import DumpError, Fault
from probes.readers.torch_dist import TRACKER, missing_legacy_ranks, read_folder, read_metadata
from tests.probes.readers.pickles import DATA

METADATA = DATA / "ckpt" / "iter_0000000" / ".metadata"


def test_metadata_written_by_megatron_gives_shapes_and_sizes() -> None:
    """A real two-stage checkpoint: 11 tensors, stacked layers, four files with the bytes each must have."""
    metadata = read_metadata(str(METADATA))
    assert metadata.needed == {
        "__0_0.distcp": 759073, "__0_1.distcp": 763804, "__1_0.distcp": 757624, "__1_1.distcp": 767086,
    }  # fmt: skip
    assert len(metadata.tensors) == 11
    assert metadata.tensors["decoder.layers.self_attention.linear_qkv.weight"].shape == (8, 256, 128)
    assert metadata.tensors["embedding.word_embeddings.weight"].dtype == "bf16"


def test_hostile_metadata_is_refused_and_cut_metadata_is_truncated(tmp_path: Path) -> None:
    """What torch would run is refused by this reader."""
    (tmp_path / "evil").write_bytes(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.")
    (tmp_path / "cut").write_bytes(METADATA.read_bytes()[:20000])
    (tmp_path / "list").write_bytes(pickle.dumps([1]))
    for name, fault in (("evil", Fault.UNSAFE), ("cut", Fault.TRUNCATED), ("list", Fault.FOREIGN)):
        with pytest.raises(DumpError) as caught:
            read_metadata(str(tmp_path / name))
        assert caught.value.fault is fault


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        ({TRACKER: "19", "iter_0000019/": ""}, "checkpoint"),
        ({"iter_0000019/": ""}, "checkpoint"),
        ({"release/": ""}, "checkpoint"),
        ({".metadata": "", "__0_0.distcp": ""}, "iteration"),
        ({"mp_rank_00/": ""}, "iteration"),
        ({"config.json": "{}", "model-00001-of-00002.safetensors": ""}, "hf"),
        ({"config.json": "{}", "iter_0000001/": ""}, "hf"),
        ({}, "empty"),
        ({"notes.txt": "x", "iter_1/": ""}, "other"),
    ],
)
def test_a_folder_is_what_its_names_say(entries: dict[str, str], kind: str, tmp_path: Path) -> None:
    """Tracker, iteration folder, Hugging Face folder and empty folder are told apart by one listing."""
    for name, content in entries.items():
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_text(content)
    assert read_folder(str(tmp_path)).kind == kind


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("release", "release"),
        ("19\n", "iter_0000019"),
        (" 7 ", "iter_0000007"),
        ("", None),
        ("-1", None),
        ("latest", None),
        ("9" * 400, None),
        ("\x00\x1b[2J", None),
    ],
)
def test_the_tracker_names_a_folder_or_nothing(content: str, wanted: str | None, tmp_path: Path) -> None:
    """Megatron takes a number or `release`; anything else names nothing, however hostile."""
    (tmp_path / TRACKER).write_text(content)
    assert read_folder(str(tmp_path)).wanted == wanted


def test_a_hole_in_the_grid_of_old_ranks_is_found() -> None:
    """Tensor rank 1 of pipeline stage 1 is missing in a 2 by 2 grid; huge or odd names are not counted."""
    names = dict.fromkeys(["mp_rank_00_000", "mp_rank_01_000", "mp_rank_00_001"], True)
    assert missing_legacy_ranks(names) == ("mp_rank_01_001",)
    assert missing_legacy_ranks({"mp_rank_00": True, "mp_rank_01": True}) == ()
    assert missing_legacy_ranks({"mp_rank_00": True, "mp_rank_02": True}) == ("mp_rank_01",)
    assert missing_legacy_ranks({"mp_rank_99_999_999": True}) == ()
