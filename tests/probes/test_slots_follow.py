"""What launch scripts and logs name, found where it lies now."""

from __future__ import annotations

from pathlib import Path

from probes.slots_follow import follow_launch, follow_log
from runbook.evidence import Item
from runbook.text import Text
from tests.probes.scripts import script, table, write

REASON = Text("", "")


def named(follow: object, slot: str, path: str) -> dict[str, list[str]]:
    """Return the paths that an item names, by slot."""
    found: dict[str, list[str]] = {}
    assert callable(follow)
    for reference in follow(Item(slot, path, REASON)):
        found.setdefault(reference.slot, []).append(reference.path)
    return found


def test_a_script_names_its_paths(tmp_path: Path) -> None:
    """Checkpoints and dumps are named as written when they are nowhere; unknown values are not named."""
    text = script(
        "--load ${B}/x", "--save-debug-rollout-data /nowhere/{rollout_id}.pt", "--load-debug-rollout-data /n/1.pt"
    )
    assert named(follow_launch, "launch", write(tmp_path, "run.sh", text)) == {
        "hf_checkpoint": ["/models/toy"],
        "megatron_ref": ["/models/toy_torch_dist"],
        "rollout_dump": ["/nowhere/{rollout_id}.pt", "/n/1.pt"],
    }


def test_what_was_copied_beside_the_script_is_found(tmp_path: Path) -> None:
    """The last part of an absolute path, a relative path, dumps of a template and the driver are found beside it."""
    write(tmp_path, "toy/config.json", "{}")
    write(tmp_path, "ckpt/latest_checkpointed_iteration.txt", "1")
    write(tmp_path, "train.py", "import ray\n")
    for number in (0, 1):
        write(tmp_path, f"rollout_data/{number}.pt", "x")
    run = write(tmp_path, "run.sh", script("--load ckpt", "--dump-details /far/away"))
    found = named(follow_launch, "launch", run)
    assert found["hf_checkpoint"] == [str(tmp_path / "toy")]
    assert found["megatron_load"] == [str(tmp_path / "ckpt")]
    assert found["rollout_dump"] == [str(tmp_path / "rollout_data" / f"{number}.pt") for number in (0, 1)]
    assert found["train_dump"] == ["/far/away/train_data/{rollout_id}.pt"]
    assert found["driver"] == [str(tmp_path / "train.py")]


def test_names_that_are_no_paths_are_left_out(tmp_path: Path) -> None:
    """A model of the hub is not missing, and a Hugging Face folder under --load is no Megatron checkpoint."""
    write(tmp_path, "hf/config.json", "{}")
    text = f"python3 train.py --hf-checkpoint org/model --load {tmp_path}/hf --rollout-batch-size 1\n"
    assert named(follow_launch, "launch", write(tmp_path, "run.sh", text)) == {}


def test_a_log_names_what_applied_and_what_was_saved(tmp_path: Path) -> None:
    """The arguments table and the lines of dumps; a load that is the reference is not a second checkpoint."""
    text = (
        table(load="/r", ref_load="/r", hf_checkpoint="/m", save_debug_rollout_data=None)
        + "(RolloutManager pid=1) [t] x.py:1 - Save debug rollout data to /d/0.pt\n" * 3
        + "[t] x.py:1 - Save debug train data from 4 DP shard(s) to /d/t0.pt\n"
    )
    assert named(follow_log, "log", write(tmp_path, "job.log", text)) == {
        "hf_checkpoint": ["/m"],
        "megatron_ref": ["/r"],
        "rollout_dump": ["/d/0.pt"],
        "train_dump": ["/d/t0.pt"],
    }


def test_an_absent_log_names_nothing() -> None:
    """A path that is not there yields nothing and raises nothing."""
    assert named(follow_log, "log", "/nowhere/job.log") == {}


def test_core_dumps_that_the_driver_wrote_are_found(tmp_path: Path) -> None:
    """Those that are there are taken, also beside the log or relative to the process's folder; the rest is not."""
    here = write(tmp_path, "cores/cuda_coredump_a.1.1", "x")
    beside = write(tmp_path, "cuda_coredump_b.2.2", "x")
    relative = write(tmp_path, "work/dumps/c", "x")
    text = (
        f"(A pid=1) [10:00:00.1] coredump: Writing ELF file to {here}\x1b[0m\n"
        "[10:00:00.1] coredump: Writing ELF file to /far/cuda_coredump_b.2.2\n"
        "[10:00:00.1] coredump: Writing ELF file to dumps/c\n"
        f"[10:00:00.1] coredump: Current working directory is {tmp_path}/work\n"
        "[10:00:00.1] coredump: Writing ELF file to /far/gone\n"
    )
    assert named(follow_log, "log", write(tmp_path, "job.log", text)) == {"cuda_coredump": [here, beside, relative]}
