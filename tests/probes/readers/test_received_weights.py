"""Tests of reading what load_weights was given, in all its forms and however damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.received_weights import quote, read_updates
from tests.helpers import hostile_bytes
from tests.probes.weights_models import TINY, build, record, save

RECORDED = Path(__file__).parents[2] / "data" / "weights" / "recorded-moe"


def test_a_recording_of_the_real_engine() -> None:
    """Six updates, each with kind, version and sender; calls of one version are one update."""
    updates, troubles = read_updates([str(RECORDED)])
    assert troubles == []
    assert [(each.kind, each.version, len(each.sent)) for each in updates] == [
        ("load", "", 45),
        ("tensor", "1", 45),
        ("tensor", "2", 45),
        ("distributed", "3", 45),
        ("disk", "4", 45),
        ("tensor", "5", 1),
    ]
    assert updates[3].sent[0].source == "slime-pp_0"
    assert all(each.whole for each in updates)
    assert {each.name for each in updates[0].sent} == set(build(TINY))
    assert "model.layers.0.mlp.experts.w13_weight" in updates[1].after
    assert updates[1].before["model.norm.weight"].hash == updates[0].after["model.norm.weight"].hash


def test_a_place_is_the_line_itself() -> None:
    """The line that a tensor is cited by names that tensor."""
    updates, _ = read_updates([str(RECORDED)])
    for sent in updates[3].sent:
        assert json.loads(quote(sent.place))["name"] == sent.name


def test_files_of_stages_are_one_update(tmp_path: Path) -> None:
    """The files of one folder are one update, each a sender; a .sent.json tells what came twice or was not kept."""
    save(tmp_path / "stage0.safetensors", {"a.weight": np.zeros((2, 3), np.uint16)})
    save(tmp_path / "stage1.safetensors", {"b.weight": np.zeros(3, np.uint16)})
    bucket = [
        ["a.weight", "torch.bfloat16", [2, 3]],
        ["a.weight", "torch.bfloat16", [2, 3]],
        ["c", "torch.float32", [1]],
    ]
    (tmp_path / "stage0.sent.json").write_text(json.dumps({"group_name": "slime-pp_0", "buckets": [bucket]}))
    (update,), troubles = read_updates([str(tmp_path)])
    assert troubles == []
    assert [(each.name, each.source, each.start >= 0) for each in update.sent] == [
        ("a.weight", "stage0", True),
        ("b.weight", "stage1", True),
        ("c", "stage0", False),
    ]
    assert update.twice == {"a.weight": 2}


def test_a_line_torn_off_and_one_that_is_none(tmp_path: Path) -> None:
    """The last line of a killed engine is left out; a line that is no JSON is a trouble of the update."""
    weights = dict(list(build(TINY).items())[:3])
    folder = record(tmp_path / "u", weights, idle=False)
    lines = (folder / "received.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "received.jsonl").write_bytes(b"".join([*lines[:3], b"{not json\n", lines[3][:40]]))
    (update,), _ = read_updates([str(tmp_path)])
    assert len(update.sent) == 2
    assert not update.whole
    assert len(update.troubles) == 1


def test_a_tensor_beyond_its_file_has_no_bytes(tmp_path: Path) -> None:
    """A file that was cut off still tells its names; the tensors whose bytes are gone have none."""
    path = tmp_path / "stage0.safetensors"
    save(path, {"a": np.zeros((4, 4), np.uint16), "b": np.zeros((4, 4), np.uint16)})
    path.write_bytes(path.read_bytes()[:-8])
    (update,), _ = read_updates([str(path)])
    assert [(each.name, each.start >= 0) for each in update.sent] == [("a", True), ("b", False)]
    assert update.troubles


def test_what_is_no_recording_is_said(tmp_path: Path) -> None:
    """A folder or a file without weights gives no update and says so."""
    (tmp_path / "x.txt").write_text("x")
    for path in (tmp_path, tmp_path / "x.txt", tmp_path / "gone"):
        updates, troubles = read_updates([str(path)])
        assert updates == []
        assert len(troubles) == 1


@given(st.sampled_from(("received.jsonl", "engine.jsonl", "stage0.safetensors", "stage0.sent.json")), hostile_bytes)
def test_hostile_files_never_raise(tmp_path_factory, name: str, content: bytes) -> None:  # type: ignore[no-untyped-def]
    """Whatever stands in the files, reading them ends with updates and troubles."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "received.jsonl").write_bytes(b"")
    (folder / name).write_bytes(content + b"\n")
    updates, _ = read_updates([str(folder)])
    assert all(not each.sent for each in updates)


@given(
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=3)), max_size=4)
)
def test_a_list_of_what_was_sent_may_hold_anything(tmp_path_factory, entry: list[object]) -> None:  # type: ignore[no-untyped-def]
    """A .sent.json with entries of other kinds is a trouble at most."""
    folder = tmp_path_factory.mktemp("sent")
    (folder / "stage0.sent.json").write_text(json.dumps({"buckets": [[entry]]}))
    read_updates([str(folder)])
