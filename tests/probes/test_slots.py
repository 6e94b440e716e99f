"""What each kind of evidence is recognised by, and what it must not be taken for."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes import slots
from probes.readers.rollout_dump import inspect_file
from probes.readers.torch_dist import TRACKER, read_folder
from probes.slots import recognise_coredump, recognise_megatron
from runbook.discovery import recognise
from runbook.evidence import Candidate, Slot
from tests.probes.scripts import script, write

DATA = Path(__file__).parents[1] / "data"
ALL = {slot.name: slot for slot in vars(slots).values() if isinstance(slot, Slot)}
LOG_LINE = "(MegatronTrainRayActor pid=7) [2026-01-01 00:00:00] model.py:1 - step 0: {'train/loss': 0.0}\n"


def taken(path: Path) -> str:
    """Return the slot that takes a path, "" when none does."""
    best = recognise(Candidate(str(path), path.is_dir(), path.stat().st_size if path.is_file() else 0), ALL)
    return best[0] if best else ""


def dump(path: Path, *keys: str) -> Path:
    """Write a zip as torch.save does, whose pickle begins with these keys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        body = b"".join(b"X" + len(key).to_bytes(4, "little") + key.encode() for key in keys)
        file.writestr(f"{path.stem}/data.pkl", b"\x80\x02}q\x00(" + body)
        file.writestr(f"{path.stem}/.format_version", b"1")
    return path


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("run.sh", script(), "launch"),
        ("anything", "#!/bin/bash\nray job submit -- python3 train.py --a 1\n", "launch"),
        ("cmd.txt", "python3 train_async.py --actor-num-nodes 1\n", "launch"),
        ("launch.py", "import u\nu.execute_train(train_args='')\n", "launch"),
        ("models.sh", "MODEL_ARGS=(\n --num-layers 8\n)\n", ""),
        ("README.md", "run\nray job submit -- python3 train.py\n", ""),
        ("train.py", "import ray\nfrom slime.utils.arguments import parse_args\ndef train(a):\n    pass\n", "driver"),
        ("utils.py", "import numpy\n", ""),
        ("job.log", LOG_LINE, "log"),
        ("nohup.out", "noise\n" * 5 + LOG_LINE, "log"),
        ("traced.log", "+ ray job submit -- python3 train.py --a 1\n" + LOG_LINE, "log"),
        ("driver-77", LOG_LINE, "log"),
        ("Dockerfile", "COPY . /root/slime/\nRUN pip install sglang.x\n", ""),
        ("fix.patch", "--- a/megatron/core/x\n+++ b/megatron/core/x\n", ""),
        ("notes.txt", "ask the others tomorrow\n", ""),
        ("config.json", '{"model_type": "x", "slime.utils": 1}', ""),
        ("versions.txt", "ray==2.49.2\ndebugpy==1.8.0\n", "versions"),
        ("pip.txt", "Package Version\n------- -------\nray     2.49.2\ntorch   2.9.0\n", "versions"),
        ("image.txt", "slimerl/slime:v0.3.1\n", "versions"),
        ("requirements.txt", "ray==2.49.2\n", ""),
        ("empty", "", ""),
    ],
)
def test_text_files(tmp_path: Path, name: str, text: str, expected: str) -> None:
    """Scripts, drivers, logs and version lists are told apart by what is in them."""
    assert taken(Path(write(tmp_path, name, text))) == expected


def test_packed_logs_are_logs(tmp_path: Path) -> None:
    """A compressed log is recognised through its packing."""
    assert taken(Path(write(tmp_path, "job.log.gz", gzip.compress(LOG_LINE.encode())))) == "log"
    assert taken(Path(write(tmp_path, "data.gz", gzip.compress(b"other")))) == ""


@pytest.mark.parametrize(
    "name", ["job.log.1", "job.log.2026-11-29", "job.log-20261129", "job-20261129.log", "worker.err.2026-11-29_10"]
)
def test_rotated_logs_are_logs(tmp_path: Path, name: str) -> None:
    """A number or a date that rotation gave does not hide a log, nor what it was packed with."""
    content = "cut in a traceback\n  File x\n" + "(MegatronTrainRayActor pid=7) busy\n"
    assert taken(Path(write(tmp_path, name, content))) == "log"
    assert taken(Path(write(tmp_path, f"{name}.gz", gzip.compress(content.encode())))) == "log"


def test_a_folder_of_ray_logs_is_one_log(tmp_path: Path) -> None:
    """Ray's session folder is taken whole; a run folder with one worker file is not."""
    for name in ("worker-0123456789ab-01000000-77.out", "raylet.out", "gcs_server.err"):
        write(tmp_path / "logs", name, LOG_LINE)
    write(tmp_path / "run", "raylet.out", LOG_LINE)
    assert taken(tmp_path / "logs") == "log"
    assert taken(tmp_path / "run") == ""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("config.json", "model.safetensors"), "hf_checkpoint"),
        (("config.json", "pytorch_model-00001-of-00002.bin"), "hf_checkpoint"),
        (("config.json", "generation_config.json"), "hf_checkpoint"),
        (("model-00001-of-00002.safetensors",), "hf_checkpoint"),
        (("latest_checkpointed_iteration.txt",), "megatron_load"),
        (("iter_0000005/x",), "megatron_load"),
        (("release/x",), "megatron_load"),
        ((".metadata", "__0_0.distcp"), "megatron_load"),
        (("mp_rank_00/model_optim_rng.pt",), "megatron_load"),
        (("stage0.safetensors", "stage0.sent.json"), "received_weights"),
        (("adapter.safetensors", "notes.txt"), ""),
        (("iteration/x",), ""),
    ],
)
def test_folders(tmp_path: Path, names: tuple[str, ...], expected: str) -> None:
    """Checkpoints and recorded weights are told by the names inside, a damaged one as well."""
    for name in names:
        write(tmp_path / "x", name, json.dumps({"model_type": "qwen3"}) if name == "config.json" else "x")
    assert taken(tmp_path / "x") == expected


@pytest.mark.parametrize(
    ("name", "keys", "expected"),
    [
        ("0.pt", ("rollout_id", "samples", "index"), "rollout_dump"),
        ("weird.pt", ("rollout_id", "samples"), "rollout_dump"),
        ("0_0.pt", ("format_version", "rollout_id", "samples", "data_parallel_rank"), "train_dump"),
        ("0_0.pt", ("rollout_id", "rank", "rollout_data"), "train_dump"),
        ("common.pt", ("args", "iteration"), ""),
    ],
)
def test_dumps_are_told_by_their_first_keys(tmp_path: Path, name: str, keys: tuple[str, ...], expected: str) -> None:
    """Rollout and train dumps of every version; other torch files are neither."""
    path = dump(tmp_path / "d" / name, *keys)
    assert taken(path) == expected
    if expected:
        path.write_bytes(path.read_bytes()[:120])
        assert taken(path) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("d/3.pt", "rollout_dump"), ("train_data/3_0.pt", "train_dump"), ("d/eval_0.pt", "rollout_dump")],
)
def test_an_unreadable_dump_is_taken_by_its_name(tmp_path: Path, name: str, expected: str) -> None:
    """An empty or damaged file must still reach the probe that says so."""
    assert taken(Path(write(tmp_path, name, b"\x00\x01rubbish"))) == expected


def test_core_files_are_told_apart_by_their_machine(tmp_path: Path) -> None:
    """A GPU's core is told from a program, and from a CPU's core, which is taken to be named as what it is."""
    gpu = b"\x7fELF\x02\x01\x013\x07" + bytes(7) + b"\x04\x00\xbe\x00" + bytes(44)
    assert taken(Path(write(tmp_path, "core.1", gpu))) == "cuda_coredump"
    host = Path(write(tmp_path, "core.2", gpu.replace(b"\xbe\x00", b"\x3e\x00")))
    match = recognise_coredump(Candidate(str(host), is_dir=False))
    assert match is not None
    assert match.score < 50
    assert "of a CPU process" in match.why.en
    assert taken(Path(write(tmp_path, "core.so", gpu.replace(b"\x04\x00\xbe\x00", b"\x03\x00\x3e\x00")))) == ""


def test_real_logs_are_logs() -> None:
    """Every log of the test data is one."""
    for path in sorted((DATA / "logs").glob("ray-*.log")):
        assert taken(path) == "log", path


@given(st.binary(max_size=300), st.sampled_from(["x.sh", "x.py", "x.pt", "x.log", "x", "x.gz"]))
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    """Whatever a file holds, each recogniser answers."""
    path = Path(write(tmp_path_factory.mktemp("slots"), name, data))
    for slot in ALL.values():
        if slot.recognise is not None:
            slot.recognise(Candidate(str(path), is_dir=False, size=len(data)))


FOLDERS = {
    "tracker": (TRACKER, "iter_0000005/"),
    "iterations": ("iter_0000005/",),
    "released": ("release/",),
    "iteration": (".metadata", "__0_0.distcp"),
    "old iteration": ("mp_rank_00/",),
    "weights beside iterations": ("config.json", "iter_0000005/"),
    "neither": ("notes.txt", "iter_x/", "mp_rank_zero/"),
}


@pytest.mark.parametrize("names", FOLDERS.values(), ids=list(FOLDERS))
def test_discovery_and_the_reader_agree_on_checkpoint_folders(names: tuple[str, ...], tmp_path: Path) -> None:
    """What is taken for a Megatron checkpoint is what the reader of such folders calls one."""
    for name in names:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).touch()
    candidate = Candidate(str(tmp_path), is_dir=True)
    taken_for = {None: "", 92: "checkpoint", 91: "iteration"}[
        match.score if (match := recognise_megatron(candidate)) else None
    ]
    kind = read_folder(str(tmp_path)).kind
    assert taken_for == (kind if kind in ("checkpoint", "iteration") else "")


@pytest.mark.parametrize("path", sorted((DATA / "dumps").rglob("*.pt")), ids=lambda path: str(path.relative_to(DATA)))
def test_discovery_and_the_reader_agree_on_dumps(path: Path) -> None:
    """A real dump is taken for the kind that the reader of dumps sees in its head."""
    slot = {"rollout": "rollout_dump", "train": "train_dump"}.get(inspect_file(str(path)).kind)
    if slot is not None:
        assert taken(path) == slot
